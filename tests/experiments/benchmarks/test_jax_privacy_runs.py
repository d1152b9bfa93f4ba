"""JAX Privacy's auditing beside `check_canaries`: the rows, what misses a target, and what happens without it."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from dpaudit.audit.errors import OptionError
from dpaudit.experiments.benchmarks.canaries import canaries_page
from dpaudit.experiments.benchmarks.canaries.canaries_page import CANARIES, JAX_PRIVACY_RUNS
from dpaudit.experiments.benchmarks.core.page import Effort
from dpaudit.experiments.libraries.target import is_installed

needs_jax_privacy = pytest.mark.skipif(not is_installed("jax-privacy"), reason="jax-privacy cannot be imported")
pytestmark = pytest.mark.filterwarnings("ignore:optax.global_norm is deprecated:DeprecationWarning")  # in the library


def rows_of(*only, audits=5):
    effort = Effort(is_quick=True, jobs=1, audits=audits, only=frozenset(only))
    return [row for task in JAX_PRIVACY_RUNS.tasks(effort) for row in task.measure(None)]


def test_without_the_library_the_rows_are_left_out_or_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax_privacy", None)
    assert rows_of() == []
    assert list(CANARIES.left_out()) == ["jax-privacy cannot be imported: its rows are left out"]
    with pytest.raises(OptionError, match="jax-privacy cannot be imported; install it to measure random scores"):
        rows_of("random scores")


def test_rows_of_other_tables_need_no_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax_privacy", None)
    assert rows_of("counts") == []


@needs_jax_privacy
@pytest.mark.parametrize("name", JAX_PRIVACY_RUNS.names)
def test_the_quick_form_meets_its_targets(name):
    rows = rows_of(name)
    assert len(rows) == (6 if name == "training" else 1)
    assert all(row.is_met for row in rows), rows
    assert all(row.cells["release"].startswith("jax-privacy ") for row in rows)


@needs_jax_privacy
def test_a_bound_that_is_not_the_published_one_misses_its_target(monkeypatch):
    """The wrong twin of the published numbers."""
    monkeypatch.setitem(canaries_page._PUBLISHED, 1.0, (1.143, 2.165))
    (row,) = rows_of("published numbers")
    assert row.cells["bonferroni"] == pytest.approx(1.13346, rel=1e-4)
    assert not row.is_met


@needs_jax_privacy
def test_guesses_that_are_always_right_are_false_alarms(monkeypatch):
    """The wrong twin of the identical laws."""
    monkeypatch.setattr(
        canaries_page, "right_from_both_ends", lambda draws, rng: np.ones(len(draws.scores), dtype=bool)
    )
    (row,) = rows_of("false alarms")
    assert (row.cells["audits"], row.cells["dpaudit_alarms"], row.cells["dpaudit_refuted"]) == (5, 5, 1.0)
    assert not row.is_met


@needs_jax_privacy
def test_both_kinds_of_scores_are_of_the_same_trainings():
    steps, last, *_ = rows_of("training")
    assert steps.cells["training"] == last.cells["training"]
    assert steps.cells["claimed"] == last.cells["claimed"] > 0
