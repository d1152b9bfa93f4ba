"""Outputs of megabytes: an audit keeps few, tells the reader, and refuses outputs that do not fit into memory."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit import PureDP, check
from dpaudit.audit.errors import MechanismError
from dpaudit.audit.events.scores import Weighted
from dpaudit.audit.sampling import draw
from dpaudit.audit.sampling.block_plan import KEPT, bytes_of_one, most_kept, refuse_too_much
from dpaudit.audit.sampling.draw import draw_pilot, plan_blocks
from dpaudit.audit.sampling.sampler import as_sampler

pytestmark = pytest.mark.usefixtures("learned_seldom")

SETTINGS = {"claim": PureDP(1.0), "jobs": 1, "seed": 1, "bits": False}


@pytest.mark.parametrize(
    ("outputs", "least", "most"),
    [
        (np.zeros((10, 100)), 800, 800),
        (np.array(["x" * 10**6] * 9, dtype=object), 10**6, 10**6 + 200),
        (np.fromiter([("a",) * 1_000] * 3, dtype=object, count=3), 8_000, 9_000),
        (np.zeros(0), 1, 1),
    ],
)
def test_bytes_of_an_output(outputs, least, most):
    assert least <= bytes_of_one(outputs) <= most


def test_of_large_outputs_few_are_kept_and_drawn_at_a_time():
    def texts(dataset, rng):
        return "x" * 10**6 + str(rng.integers(3))

    plan = plan_blocks(as_sampler(texts), 0, 1, 1, 1, runs=10_000)
    assert plan.may_keep(500) == plan.most_kept == KEPT // plan.output_bytes == 134
    assert plan.block <= 33
    assert plan.for_pilot(134).block <= 33


@pytest.mark.usefixtures("without_trees")
def test_a_cut_pilot_is_told_and_the_audit_goes_on(monkeypatch):
    def vectors(dataset, size, rng):
        return dataset + rng.laplace(size=(size, 2_000))

    monkeypatch.setattr(draw, "most_kept", lambda size, name: 55)
    result = check(vectors, 0, 1, **SETTINGS, runs=120)
    assert result.pilot_runs == 55
    assert result.is_refuted  # 2,000 coordinates together show the leak that one coordinate hides
    assert any(
        "15.6 KiB, so events were learned from 55 runs on each dataset and not from 60" in n for n in result.notes
    )


def test_sequential_audits_keep_no_more(monkeypatch):
    monkeypatch.setattr(draw, "most_kept", lambda size, name: 100)
    result = check(lambda d, rng: d + rng.laplace(), 0, 1, **SETTINGS, runs=400, sequential=True)
    assert result.runs == 400
    assert any("learned from 100 runs on each dataset and not from 400" in note for note in result.notes)


def test_what_cannot_be_held_is_refused():
    with pytest.raises(MechanismError, match=r"an output of big takes 47\.7 MiB, and fewer than 32 of them fit"):
        check(lambda d, rng: "x" * 50_000_000, 0, 1, **SETTINGS, runs=100, name="big")
    with pytest.raises(MechanismError, match="return a part or a summary"):
        most_kept(KEPT, "big")
    with pytest.raises(MechanismError, match="must be held together take more than 1 GiB; use fewer runs"):
        refuse_too_much((1 << 30) + 1, "big")


def test_outputs_that_grow_are_refused_while_they_are_drawn():
    """The first output is small, so nothing is cut by its size."""
    drawn, large = [], "x" * 30_000_000  # one text, which nevertheless counts each time

    def growing(dataset, rng):
        drawn.append(1)
        return "x" if len(drawn) < 4 else large

    plan = plan_blocks(as_sampler(growing), 0, 1, 1, 1, runs=1_000, is_stateful=True)
    with pytest.raises(MechanismError, match="must be held together"):
        draw_pilot(plan.in_blocks(8), 200)
    assert len(drawn) < 100


def test_a_long_weighted_sum_is_the_same_for_a_row_alone():
    rng = np.random.default_rng(1)
    vectors = rng.laplace(size=(7, 20_001))
    score = Weighted(tuple(rng.normal(size=20_001).tolist()))
    together = score.values(vectors)
    assert [float(score.values(vectors[i : i + 1])[0]) for i in range(7)] == together.tolist()
    assert score.values(np.asfortranarray(vectors)).tolist() == together.tolist()
    assert together == pytest.approx(vectors @ np.array(score.weights))
