"""Counts of cells: their health checks. The counts themselves are tested with partitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpaudit import count_cells
from dpaudit.audit.errors import OptionError


def independent(answer, size, rng):
    return answer + rng.laplace(size=size)


def tiled(answer, size, rng):
    return answer + np.resize(rng.laplace(size=max(1, size // 8)), size)


def shared(answer, size, rng):
    return np.full(size, answer + rng.laplace())


def seeded(answer, size, rng):
    return answer + np.random.default_rng(5).laplace(size=size)


CALLS = itertools.count()


def drifting(answer, size, rng):
    return answer + rng.laplace(size=size) + next(CALLS) / 20


@pytest.mark.parametrize(
    ("mechanism", "check"),
    [
        (tiled, "serial-dependence"),
        (shared, "serial-dependence"),
        (seeded, "repeated-blocks"),
        (drifting, "unsteady-hits"),
    ],
)
def test_runs_that_are_not_independent_are_said(mechanism, check):
    """False alarm of the twin: one in a million."""
    counts = count_cells(mechanism, 0.0, 0.0, cells=4, runs=10_000, jobs=1)
    assert check in [finding.check.value for finding in counts.findings]
    assert str(counts).startswith("INCONCLUSIVE: failed health check")
    assert "so the intervals need not hold" in str(counts)
    assert count_cells(independent, 0.0, 0.0, cells=4, runs=10_000, jobs=1).findings == ()


def test_a_check_can_be_silenced_and_an_unknown_one_is_refused():
    options = {"cells": 4, "runs": 4_000, "jobs": 1}
    names = [finding.check.value for finding in count_cells(seeded, 0.0, 0.0, **options).findings]
    left = count_cells(seeded, 0.0, 0.0, ignore="repeated-blocks", **options).findings
    assert "repeated-blocks" in names
    assert "repeated-blocks" not in [finding.check.value for finding in left]
    with pytest.raises(OptionError, match="ignore='repeated' is not a health check"):
        count_cells(seeded, 0.0, 0.0, runs=4_000, ignore="repeated")


def test_a_dataset_that_is_changed_is_said():
    def changing(rows, rng):
        rows.append(0)
        return int(rng.integers(2))

    counts = count_cells(changing, [1], [1, 1], runs=600, jobs=1)
    assert [finding.check.value for finding in counts.findings] == ["dataset-mutated"]


def test_equal_outputs_are_noted():
    counts = count_cells(lambda answer, size: np.full(size, 3), 0, 1, runs=1_000, jobs=1)
    assert counts.findings == ()
    assert "gave the same output, 3" in str(counts)
