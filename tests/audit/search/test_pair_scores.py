"""Scores of pairs, and how they are pooled."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit import ApproxDP, GaussianDP, PureDP
from dpaudit.audit.search.successive_halving import pooled
from dpaudit.audit.search.trial import score_pair


def test_scores():
    rng = np.random.default_rng(0)
    near, far, equal = (rng.laplace(shift, 1.0, 4_000) for shift in (1.0, 3.0, 0.0))
    base, claim = rng.laplace(size=4_000), PureDP(1.0)
    scores = {name: score_pair(base, other, claim, 10**6, 0.05) for name, other in (("near", near), ("far", far))}
    nothing = score_pair(base, equal, claim, 10**6, 0.05)
    assert scores["far"].value > 1 > scores["near"].value > 0.5
    assert all(score.value - 3 * score.error > 0 for score in scores.values())
    assert 0 <= nothing.value < 3 * nothing.error
    assert score_pair(far, base, claim, 10**6, 0.05).value == pytest.approx(scores["far"].value)
    # Claims with a delta, and in other units.
    assert score_pair(base, far, ApproxDP(1.0, 1e-3), 10**6, 0.05).value > 1
    assert score_pair(base, near, GaussianDP(0.1), 10**6, 0.05).value > 0.2
    rare = base.copy()
    rare[::500] = 1e6  # 8 of 4,000, half of them where scores are learned
    assert score_pair(rare, equal, PureDP(0.1), 10**6, 0.05).bold > 0.5
    always = score_pair(np.full(400, 7), np.full(400, 7), claim, 10**6, 0.05)
    assert (always.value, always.bold, always.is_empty) == (0, 0, True)
    assert score_pair(np.full(400, 7), np.full(400, 8), claim, 10**6, 0.05).value > 1


def test_coupled_runs_have_a_smaller_error():
    """Noise that both datasets share; a shift of a tenth of its scale shows in the pairs at once."""
    rng = np.random.default_rng(1)
    noise, fresh = rng.laplace(size=(2, 8_000))
    coupled, independent = (score_pair(noise, y + 0.1, PureDP(0.1), 10**7, 0.05) for y in (noise, fresh))
    assert coupled.error < 0.5 * independent.error
    assert abs(coupled.value - 0.1) < 4 * coupled.error


def test_similar_pairs_are_pooled():
    """Of four pairs that are alike each is known as well as their mean; one that is unlike keeps its own score."""
    groups = ["many", "many", "many", "many", "one", "one"]
    merit, deviation = pooled([0.08, 0.12, 0.1, 0.1, 0.02, 0.02], [0.03] * 4 + [0.002] * 2, groups)
    assert np.ptp(merit[:4]) < 0.01
    assert deviation[0] < 0.03
    assert merit[:4].min() > 0.05 > merit[4:].max()
    apart, _ = pooled([0.0, 1.0], [0.01, 0.01], ["same", "same"])
    assert apart == pytest.approx([0.0, 1.0], abs=0.01)
    alone, error = pooled([0.3], [0.1], [None])
    assert (alone[0], error[0]) == (pytest.approx(0.3), pytest.approx(0.1))


def test_one_pair_that_leaks_among_many_keeps_its_score():
    """It does not follow the distribution of the others, and moves by at most √(2 ln 8) standard errors."""
    values, errors = [1.0] * 7 + [2.6], [0.03] * 7 + [0.6]
    merit, _ = pooled(values, errors, ["alike"] * 8)
    assert merit[7] == pytest.approx(2.6 - 0.6 * np.sqrt(2 * np.log(8)))
    assert merit[7] > merit[:7].max()


def test_few_pairs_are_never_taken_for_equal():
    """Their scores agree better than their errors let them; the order is that of the scores all the same."""
    merit, _ = pooled([0.9, 1.0, 1.1], [0.3, 0.3, 0.3], ["alike"] * 3)
    assert merit[0] < merit[1] < merit[2]
    assert np.ptp(merit) < 0.15


def test_a_certain_score_does_not_break_the_others():
    """Outputs that tell x from y in every run have no spread."""
    apart = score_pair(np.zeros(1_000), np.ones(1_000), PureDP(1.0), 10**5, 0.05)
    assert apart.error > 0
    merit, deviation = pooled([apart.value, 1.0], [apart.error, 0.1], [None, None])
    assert np.isfinite([*merit, *deviation]).all()
