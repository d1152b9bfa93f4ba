"""NaN in searches: on mechanisms that clamp, not on those that rely on the range, and not where it is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit import Answers, Rows, UserLevel, Values, check_sensitivity, find_worst_pair

few = {"claim": 1.0, "runs": 2_000, "search_runs": 4_000, "jobs": 1, "bits": False, "alpha": 1e-6}


def clamped(rows, size, rng):
    return sum(min(max(row, 0.0), 1.0) for row in rows) + rng.laplace(size=size)


def with_own_noise(rows):
    return float(np.clip(rows, 0.0, 1.0).sum() + np.random.default_rng().laplace())


def without_nan(rows, size, rng):
    return np.nan_to_num(np.clip(np.array(rows, dtype=float), 0.0, 1.0)).sum() + rng.laplace(size=size)


def trusting(rows, size, rng):
    return sum(rows) + rng.laplace(size=size)


def refusing(rows, rng):
    if any(math.isnan(row) for row in rows):
        raise ValueError("NaN")
    return clamped(rows, 1, rng)[0]


@pytest.mark.parametrize("mechanism", [clamped, with_own_noise])
@pytest.mark.parametrize("domain", [Rows(), Rows(values=(0.0, 0.5, 1.0))])
def test_a_clamp_that_nan_passes_is_refuted(mechanism, domain):
    found = find_worst_pair(mechanism, domain, adjacency="add-remove", **few)
    assert found.is_refuted
    assert math.isnan(sum(found.x)) != math.isnan(sum(found.y))
    assert any("finite=True" in note for note in found.audit.notes)


@pytest.mark.parametrize(
    ("mechanism", "domain"),
    [
        (clamped, Rows(finite=True)),
        (clamped, Rows(values=(0.0, 1.0), finite=True)),
        (without_nan, Rows()),
        (trusting, Rows()),
        (trusting, Rows(values=(0.0, 1.0))),
        (refusing, Rows()),
        (lambda rows, size, rng: sum(rows) / 5 + rng.laplace(size=size), Rows(high=5, integer=True)),
    ],
)
def test_other_mechanisms_are_not(mechanism, domain):
    found = find_worst_pair(mechanism, domain, adjacency="add-remove", **few)
    assert not found.is_refuted
    assert any("raises on it" in note for note in found.audit.notes) == (mechanism is refusing)


def test_answers_and_values_in_the_local_model():
    def report(value, size, rng):
        return np.clip(value, 0.0, 1.0) + rng.laplace(size=size)

    for domain in (Answers(low=0.0, high=1.0), Values((0.0, 1.0))):
        assert find_worst_pair(report, domain, adjacency="local", **few).is_refuted
    for domain in (Answers(low=0.0, high=1.0, finite=True), Values((0.0, 1.0), finite=True)):
        assert not find_worst_pair(report, domain, adjacency="local", **few).is_refuted


def test_the_sensitivity_of_a_clamped_sum():
    options = {"adjacency": "add-remove", "bound": 1.0, "evaluations": 400}
    assert check_sensitivity(lambda rows: np.clip(rows, 0, 1).sum(), Rows(), **options).is_refuted
    assert not check_sensitivity(lambda rows: np.clip(rows, 0, 1).sum(), Rows(finite=True), **options).is_refuted
    assert not check_sensitivity(sum, Rows(), **options).is_refuted


def test_users_with_many_different_rows_are_tried():
    """Values are counted once over all users before the bound of one value for each: epsilon is up to 4."""

    def distinct(rows):
        owner = {}
        for user, value in rows:
            owner.setdefault(value, user)
        return len(set({user: value for value, user in reversed(owner.items())}.values()))

    def noisy(rows, size, rng):
        return distinct(rows) + rng.laplace(size=size)

    domain = Rows(low=(0, 0), high=(5, 5), integer=True, most=12, rows_per_user=6)
    options = few | {"search_runs": 60_000, "runs": 4_000}
    assert find_worst_pair(noisy, domain, adjacency=UserLevel(0), **options).is_refuted
