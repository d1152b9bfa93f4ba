"""The comparison with other tools: the page has the measured rows, and the program replaces those of one tool."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from dpaudit.experiments.benchmarks import peers
from dpaudit.mechanisms import GaussianDistribution, exact_delta

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = (DOCS / "comparison.md").read_text(encoding="utf-8")


def test_the_page_has_the_measured_rows_and_a_source_for_each_mark():
    rows = json.loads((DOCS / "benchmarks" / "peers.json").read_text(encoding="utf-8"))
    assert {row["tool"] for row in rows} == set(peers.TOOLS)
    assert peers.table(rows) in PAGE
    assert set(re.findall(r"\[\^(\w+)\](?!:)", PAGE)) == set(re.findall(r"^\[\^(\w+)\]:", PAGE, re.MULTILINE))


def test_the_claims_of_the_step_and_of_the_canaries():
    for mu, epsilon in ((1.0, 1.0), (2.0, 4.0)):
        delta = exact_delta(GaussianDistribution(0.0, 1.0), GaussianDistribution(mu, 1.0), epsilon)
        assert peers.delta_of(epsilon, mu) == pytest.approx(delta, rel=1e-9)
        assert peers.epsilon_of(mu, delta) == pytest.approx(epsilon, rel=1e-9)


def test_a_sparse_vector_ends_with_the_first_answer_above():
    outputs = peers.sparse_vector((2.0, 4.0), [0.0, 1.0, 2.0], 500, np.random.default_rng(0))
    assert {"".join("-01"[int(each) + 1] for each in row) for row in outputs} == {"1--", "01-", "001", "000"}


def test_the_rows_of_one_tool_are_replaced(tmp_path, monkeypatch):
    use = "`check_canaries`", peers.dpaudit_canaries, 2, (peers.RUN,)
    monkeypatch.setitem(peers.TOOLS, "dpaudit", ("dpaudit", [use]))
    file = tmp_path / "rows.json"
    file.write_text('[{"tool": "dpaudit"}, {"tool": "opake"}]')
    peers.main("dpaudit", str(file), "this one")
    rows = json.loads(file.read_text(encoding="utf-8"))
    assert [(row["tool"], row.get("variant")) for row in rows] == [
        ("dpaudit", "noise / 1"), ("dpaudit", "noise / 2"), ("opake", None),
    ]  # fmt: skip
