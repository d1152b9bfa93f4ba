"""Files of every format that a version of dpaudit wrote are read, and say what they said then.

``python -m tests.audit.records.test_samples`` writes those of the present formats. A new format adds files; an old one
stays, with its figures.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from dpaudit import load, save
from dpaudit.audit.records import json_codec
from dpaudit.audit.store import sqlite_store
from dpaudit.audit.store.sqlite_store import FILE, Store

from ...gate.frozen_audits import AUDITS, figures

SAMPLES = Path(__file__).with_name("samples")
RESULTS = {
    8: {
        "pure claim broken": ("REFUTED", "0.922854", "1.25e-10", "381 of 2,000 on x, 1,058 of 2,000 on y"),
        "approximate claim": ("NOT_REFUTED", "0.983178", "0.0826926", "112 of 2,000 on x, 574 of 2,000 on y"),
        "profile": ("NOT_REFUTED", "0", "0.269937", "1,291 of 2,000 on x, 526 of 2,000 on y"),
        "sequential broken": ("REFUTED", "0.706498", "0.0296965", "400 of 789 on x, 141 of 789 on y"),
        "dictionary": ("NOT_REFUTED", "0.885837", "1", "396 of 2,000 on x, 1,038 of 2,000 on y"),
        "dataclass": ("NOT_REFUTED", "0.863024", "1", "1,423 of 2,000 on x, 560 of 2,000 on y"),
        "missing numbers": ("REFUTED", "0.955708", "2.57147e-09", "505 of 1,684 on x, 235 of 2,316 on y"),
        "canaries broken": ("REFUTED", "4.44605", "1e-12", ""),
        "noise": ("NOT_REFUTED", "", "1", ""),
        "equivalence": "equivalent within the margin",
        "sensitivity": "not refuted",
        "replay": "bounded on this path",
    },
}  # fmt: skip
"""By format: verdict, bound, p-value and counts of the audits in the file, and the words for its other checks."""
SETTINGS = {"seed": 7, "mechanism": "noisy count"}
KEPT = {
    "pilot x 0": [np.array([0.5, -1.25, np.inf]), np.arange(3)],
    "main y 1": [np.array([("a", 1), None, {"b": 2.5}], dtype=object), [40, 2], np.array([True, False])],
}
"""Blocks of a store of any format: outputs of every kind, and counts."""


def write() -> None:
    results = {name: AUDITS[name]() for name in RESULTS[json_codec.SCHEMA]}
    save(results, SAMPLES / f"results-{json_codec.SCHEMA}.json")
    with tempfile.TemporaryDirectory() as folder:
        with Store(folder) as store:
            store.tell("command", "dpaudit audit")
            section = store.section("noisy count", SETTINGS)
            for key, value in KEPT.items():
                section.keep(key, value)
        shutil.copyfile(Path(folder, FILE), SAMPLES / f"store-{sqlite_store.SCHEMA}.sqlite")


def test_the_present_formats_have_samples():
    assert {path.name for path in SAMPLES.iterdir()} >= {
        f"results-{json_codec.SCHEMA}.json", f"store-{sqlite_store.SCHEMA}.sqlite"
    }  # fmt: skip


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("results-*")), ids=lambda path: path.stem)
def test_results_are_read(path, tmp_path):
    suite = load(path)
    expected = RESULTS[int(path.stem.partition("-")[2])]
    found = {entry.name: figures(entry.result)[:4] for entry in suite.entries}
    assert found | {check.name: check.word for check in suite.checks} == expected
    save(suite, tmp_path / "again.json")
    assert load(tmp_path / "again.json") == suite


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("store-*")), ids=lambda path: path.stem)
def test_stores_are_read(path, tmp_path):
    shutil.copyfile(path, tmp_path / FILE)
    with Store(tmp_path) as store:
        assert store.told("command") == "dpaudit audit"
        section = store.section("noisy count", SETTINGS)
        for key, value in KEPT.items():
            np.testing.assert_equal(section.recall(key), value)


if __name__ == "__main__":
    sys.exit(write())
