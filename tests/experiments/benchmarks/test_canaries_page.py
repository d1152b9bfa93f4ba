"""The benchmark of audits of one training run: its quick forms, its rows, and a wrong twin."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit import PureDP
from dpaudit.experiments.benchmarks.canaries import known_scores
from dpaudit.experiments.benchmarks.canaries.canaries_page import CANARIES
from dpaudit.experiments.benchmarks.canaries.known_scores import KNOWN, Known, _worst_law, epsilon_of_gaussian
from dpaudit.experiments.benchmarks.core.page import Effort

BENCHES = {bench.name: bench for bench in CANARIES.benches}


def rows_of(name, *only, audits=20):
    effort = Effort(is_quick=True, jobs=1, audits=audits, only=frozenset(only))
    return [row for task in BENCHES[name].tasks(effort) for row in task.measure(None)]


@pytest.mark.parametrize(
    ("table", "only"),
    [
        ("canary-false-alarms", "all revealed with probability delta"),
        ("canary-bounds", "counts"),
        ("dp-sgd", "one run, last iterate"),
        ("training-mistakes", "noise-divided-twice"),
    ],
)
def test_the_quick_form_meets_its_targets(table, only):
    rows = rows_of(table, only, audits=5)
    assert rows
    assert all(row.is_met for row in rows), rows


def test_a_mechanism_that_leaks_more_misses_its_target(monkeypatch):
    """The wrong twin: scores that tell every canary, among those that keep their claim."""
    monkeypatch.setitem(
        known_scores.KNOWN,
        "randomised response",
        Known(lambda m: PureDP(1.0), lambda included, rng: included.astype(np.float64)),
    )
    (row,) = rows_of("canary-false-alarms", "randomised response", audits=5)
    assert row.cells["auto"] == 1.0
    assert not row.is_met


def test_more_audits_are_added_to_a_former_row():
    (task,) = BENCHES["canary-false-alarms"].tasks(
        Effort(is_quick=True, jobs=1, audits=3, only=frozenset({"randomised response"}))
    )
    *_, former = task.measure(None)
    (more,) = BENCHES["canary-false-alarms"].tasks(
        Effort(is_quick=True, jobs=1, audits=5, only=frozenset({"randomised response"}))
    )
    *_, row = more.measure(former)
    assert row.cells["audits"] == 5
    assert row.cells["auto"] == row.cells["auto_refuted"] / 5


@pytest.mark.parametrize("canaries", [200, 1_000])
def test_the_worst_law_is_a_law_that_spends_all_of_delta(canaries):
    """Σ_j [j P(j) − e^ε (m − j + 1) P(j − 1)]₊ is m δ, as theorem 2 allows."""
    delta, m = 1e-3 / canaries, canaries
    law = _worst_law(m, delta)
    assert law.min() >= 0.0
    assert law.sum() == pytest.approx(1.0)
    j = np.arange(1, m + 1)
    spent = np.maximum(j * law[1:] - np.e * (m - j + 1) * law[:-1], 0.0)
    assert spent[spent > 1e-9].sum() == pytest.approx(m * delta, rel=1e-6)


@pytest.mark.parametrize("name", KNOWN)
def test_scores_are_one_for_each_canary(name):
    rng = np.random.default_rng(0)
    included = rng.random(50) < 0.5
    assert KNOWN[name].draw(included, rng).shape == (50,)


def test_the_epsilon_of_a_gaussian_curve_is_the_published_one():
    """From the session of the issue of jax-privacy's test figures: mu 1, 2, 4 at delta 1e-6."""
    found = [epsilon_of_gaussian(mu, 1e-6) for mu in (1.0, 2.0, 4.0)]
    assert found == pytest.approx([4.887, 10.997, 26.357], abs=1e-3)


def test_a_finished_row_is_kept_as_it_is():
    """Shares stay shares where nothing is added to a former row."""
    (task,) = BENCHES["canary-false-alarms"].tasks(
        Effort(is_quick=True, jobs=1, audits=3, only=frozenset({"randomised response"}))
    )
    *_, former = task.measure(None)
    *_, kept = task.measure(former)
    assert kept == former
