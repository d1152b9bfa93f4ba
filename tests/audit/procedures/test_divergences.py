"""Claims on divergences are refuted by every kind of audit, and no result contradicts its own intervals."""

import numpy as np
import pytest

from dpaudit import (
    ApproxDP,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
    assert_same_distribution,
    check,
    check_equivalence,
    check_outputs,
)
from dpaudit.audit.errors import OptionError
from dpaudit.audit.results.cell_result import CellCounts

CLAIM = ZeroConcentratedDP(0.5)


def noisy(answer, size, rng):
    """Gaussian noise with ρ = 0.625 for a sensitivity of 1."""
    return answer + rng.normal(scale=0.8**0.5, size=size)


def normal(answer, size, rng):
    """Gaussian noise with ρ = 0.5."""
    return answer + rng.normal(size=size)


@pytest.mark.parametrize("options", [{}, {"sequential": True}, {"cells": 16}], ids=str)
def test_gaussian_noise(options):
    result = check(noisy, 0.0, 1.0, claim=CLAIM, runs=40_000, bits=False, jobs=1, **options)
    assert result.is_refuted
    assert result.by_divergence is not None
    assert result.evidence.startswith("Rényi divergence of order 1 ")
    assert 0.5 < result.bound < 0.625
    assert sum(share for _, share in result.test_shares) == pytest.approx(0.05)


def test_gaussian_noise_that_keeps_the_claim():
    right = check(normal, 0.0, 1.0, claim=CLAIM, runs=40_000, bits=False, jobs=1, alpha=1e-6)
    assert not right.is_refuted
    assert 0.0 < right.resolution < 0.2


def test_at_a_distance():
    result = check(noisy, 0.0, 2.0, claim=CLAIM, distance=2, runs=40_000, bits=False, jobs=1)
    assert 0.5 < result.bound < 0.625


def test_outputs_drawn_elsewhere():
    rng = np.random.default_rng(0)
    xs, ys = noisy(0.0, 40_000, rng), noisy(1.0, 40_000, rng)
    assert check_outputs(xs, ys, claim=RenyiDP(1.5, 0.75), bits=False).is_refuted


@pytest.mark.parametrize("alpha", [5e-10, 1.05e-9])
def test_a_small_alpha_is_refused_by_the_number_passed(alpha):
    xs = np.random.default_rng(0).normal(size=100)
    for refused in (
        lambda: check_outputs(xs, xs[::-1], claim=CLAIM, alpha=alpha),
        lambda: check(noisy, 0.0, 1.0, claim=CLAIM, alpha=alpha, jobs=1),
        lambda: check_equivalence(noisy, noisy, 0.0, margin=0.1, alpha=alpha, jobs=1),
        lambda: assert_same_distribution(noisy, noisy, 0.0, margin=0.1, alpha=alpha, jobs=1),
    ):
        with pytest.raises(OptionError, match=f"alpha={alpha:g} is too small for the exact test"):
            refused()


@pytest.mark.usefixtures("without_trees")
def test_vectors_are_binned_by_the_score_of_the_event():
    def vector(answer, size, rng):
        return rng.normal(size=(size, 5)) + answer * np.sqrt(1.25 / 5)

    assert check(vector, 0.0, 1.0, claim=CLAIM, runs=10_000, bits=False, jobs=1).is_refuted


def test_intervals_of_cells_refute():
    names, on_x, on_y = ("a", "b", "c"), (7_000, 2_000, 1_000), (2_000, 3_000, 5_000)
    counts = CellCounts(names=names, hits_x=on_x, hits_y=on_y, alpha=0.05, n_known=3, scope="s")
    largest = np.log(5.0)
    assert 1.4 < counts.strength_lower(PureDP(1.0)) < largest
    assert counts.strength_lower(PureDP(1.0)) >= counts.maximum().lower
    assert counts.strength_lower(RenyiDP(2.0, 0.1)) >= counts.renyi_lower(2.0)
    mirrored = CellCounts(names=names, hits_x=on_y[::-1], hits_y=on_x[::-1], alpha=0.05, n_known=3, scope="s")
    delta = max(float(each.band().profile(1.0)[0]) for each in (counts, mirrored))
    assert counts.strength_lower(ApproxDP(1.0, 1e-3, bound_on="delta")) == pytest.approx(delta, rel=1e-6)
    for claim in (PureDP(1.0), ZeroConcentratedDP(0.5), ApproxDP(1.0, 1e-3)):
        assert mirrored.strength_lower(claim) == pytest.approx(counts.strength_lower(claim), rel=1e-9)


def test_a_refutation_by_cells_is_said():
    """Four outcomes: one has a ratio beyond the claim, which the chosen event may not be."""

    def weights(answer, size, rng):
        return rng.choice(4, p=(0.4, 0.3, 0.2, 0.1) if answer else (0.1, 0.2, 0.3, 0.4), size=size)

    result = check(weights, 0, 1, claim=PureDP(1.0), runs=40_000, cells=4, jobs=1)
    assert result.cells.strength_lower(result.claim) > 1.0
    assert result.is_refuted
    assert result.bound >= result.cells.strength_lower(result.claim)
