"""The quick form of every table meets its targets, its mathematics is right, and buggy variants miss the targets."""

import dataclasses
import itertools
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dpaudit import Answers, ApproxDP, PureDP, epsilon_lower
from dpaudit.audit.events.events import Intervals
from dpaudit.audit.inference.event_test import Counts, pvalue
from dpaudit.claims import NFoldComposition
from dpaudit.domains import Within
from dpaudit.experiments.benchmarks import (
    canaries,
    detection,
    inference,
    libraries,
    regression,
    replays,
)
from dpaudit.experiments.benchmarks.command import FILES, tables_of
from dpaudit.experiments.benchmarks.measure import Effort, is_met, measure
from dpaudit.experiments.cases.experiment import parameter_by_distributions
from dpaudit.experiments.libraries.defects import Defect
from dpaudit.experiments.libraries.subjects import Subject, diffprivlib_fits, is_installed
from dpaudit.mechanisms import LaplaceMechanism, exact_delta, exact_epsilon
from dpaudit.mechanisms.faulty import SparseVectorWithoutQueryNoise

QUICK = Effort(is_quick=True)
TABLES = {table.name: table for name in FILES for table in tables_of(name)}
WRONG = LaplaceMechanism(1.0, sensitivity=0.5)


def row_of(table, key):
    *_, row = TABLES[table].states(key, QUICK, None)
    return row


def is_good(row):
    return all(map(is_met, row["targets"]))


@pytest.mark.parametrize(("table", "key"), [(table.name, key) for table in TABLES.values() for key in table.quick])
def test_the_quick_form_meets_its_targets(table, key):
    library = TABLES[table].library
    needed = "" if library is None else library(*TABLES[table].rows[key])
    if needed and not is_installed(needed):
        pytest.skip(f"{needed} cannot be imported")
    row = row_of(table, key)
    assert row["cells"]
    assert is_good(row), row


@pytest.mark.parametrize("subject", inference.subjects(), ids=lambda subject: subject.name)
def test_the_claims_of_the_subjects_hold_with_equality(subject):
    distribution_x, distribution_y = subject.distributions()
    if isinstance(subject.claim, ApproxDP):
        assert exact_delta(distribution_x, distribution_y, subject.claim.epsilon) == pytest.approx(
            subject.claim.delta, rel=1e-8
        )
    else:
        assert exact_epsilon(distribution_x, distribution_y) == pytest.approx(subject.claim.epsilon, rel=1e-9)


@pytest.mark.parametrize("claim", [PureDP(1.0), NFoldComposition(0.1, 4)], ids=str)
@pytest.mark.parametrize(("n", "m"), [(5, 5), (12, 7)])
def test_bisection_finds_what_enumeration_finds(claim, n, m):
    critical = inference.smallest_refuted(n, m, claim, 0.05)
    for x, y in itertools.product(range(n + 1), range(m + 1)):
        p = pvalue(Counts(count_x=x, runs_x=n, count_y=y, runs_y=m), claim, alpha=0.05)
        assert (p <= 0.05) == (x >= critical[y])
    q = 0.3
    p = float(claim.max_power(q)[0])
    by_hand = sum(
        stats.binom.pmf(x, n, p) * stats.binom.pmf(y, m, q)
        for x, y in itertools.product(range(n + 1), range(m + 1))
        if x >= critical[y]
    )
    size, _ = inference.exact_size(critical, n, claim)
    assert by_hand <= size <= 0.05


def test_the_size_of_a_region_that_is_largest_at_small_probabilities():
    """{X ≥ 1, Y = 0} of five runs each: a maximum where both probabilities are below one half."""
    size, where = inference.exact_size(np.array([1.0, 6, 6, 6, 6, 6]), 5, PureDP(1.0))
    assert math.e * where < 0.5
    assert size == pytest.approx((1 - where) ** 5 * (1 - (1 - math.e * where) ** 5), rel=1e-9)


def test_a_region_too_large_by_a_hit_is_seen():
    critical = inference.smallest_refuted(20, 20, PureDP(1.0), 0.05)
    assert inference.exact_size(critical, 20, PureDP(1.0))[0] <= 0.05
    assert inference.exact_size(critical - 1, 20, PureDP(1.0))[0] > 0.05


@pytest.mark.parametrize("kind", inference.KINDS)
@pytest.mark.parametrize("truth", [1.5, 1.01])
def test_the_refuted_mechanisms_have_the_loss_that_is_stated(kind, truth):
    subject = inference.KINDS[kind]
    assert parameter_by_distributions(subject.mechanism(truth), subject.pair, subject.claim) == pytest.approx(
        truth, rel=1e-6
    )


def test_false_alarms_miss_their_target(monkeypatch):
    """The buggy variant: a claim that does not hold."""
    wrong = dataclasses.replace(inference._subjects()["randomised-response"], claim=PureDP(0.0))
    monkeypatch.setattr(inference, "_subjects", lambda: {wrong.name: wrong})
    assert not is_good(row_of("false-alarms", "randomised-response, fixed size"))


# Detection.

LAPLACE = LaplaceMechanism(0.5)


def test_event_probabilities_are_those_of_the_distribution():
    event = Intervals(((3.0, math.inf),))
    found = detection.event_probabilities(LAPLACE, 0.0, 1.0, event, runs=200_000, seed=0)
    distribution_x, distribution_y = stats.laplace(0, 2), stats.laplace(1, 2)
    assert found.p == pytest.approx(distribution_y.sf(3.0), rel=0.02)
    assert found.q == pytest.approx(distribution_x.sf(3.0), rel=0.02)
    assert math.log(found.p / found.q) == pytest.approx(0.5, rel=2e-3), "the ratio is constant there: almost no noise"
    (on_x, on_y), rest = detection.event_rates(LAPLACE, 0.0, 1.0, event, runs=20_000, seed=0)
    assert on_x < on_y, "the rates have the order of the datasets"
    assert [on_x + rest[0], on_y + rest[1]] == pytest.approx([1.0, 1.0], rel=0.02)


def test_an_event_that_is_never_hit_has_a_probability_all_the_same():
    """Far out every output counts for both datasets, whichever it was drawn on."""
    event = Intervals(((1.0, math.inf),))
    found = detection.event_probabilities(LaplaceMechanism(8.0), 0.0, 1.0, event, runs=20_000, seed=0)
    assert found.q == pytest.approx(0.5 * math.exp(-8.0), rel=0.05)


def test_the_best_event_of_a_known_distribution():
    runs = 1_000_000
    found = detection.best_event(LAPLACE, 0.0, 1.0, audit_runs=runs, alpha=0.1, runs=200_000, seed=0)
    distributions = stats.laplace(0, 2), stats.laplace(1, 2)
    bounds = [
        detection.Probabilities(*(distribution.cdf(t) for distribution in distributions)).expected_bound(runs, 0.1)
        for t in (-1.0, -0.3, 0.0, 0.3)
    ]
    assert found.expected_bound(runs, 0.1) == pytest.approx(max(bounds), rel=2e-3)
    assert bounds[2] == epsilon_lower(500_000, runs, round(runs * distributions[1].cdf(0.0)), runs, alpha=0.1)
    same = detection.best_event(LAPLACE, 0.0, 0.0, audit_runs=1_000, alpha=0.1, runs=1_000, seed=0)
    assert (same.p, same.q) == (0.5, 0.5), "equal distributions have no best event"


def test_an_infinite_loss_has_no_counts_on_the_other_side():
    pair, sizes = ((0.0, 1.0), (1.0, 0.0)), {"audit_runs": 1_000_000, "runs": 50_000}
    found = detection.best_event(SparseVectorWithoutQueryNoise(1.0), *pair, **sizes, alpha=0.1, seed=0)
    assert found.q == 0.0
    assert found.p > 0.1


# Audits of one training run.


@pytest.mark.parametrize("name", canaries.KNOWN)
def test_scores_are_one_for_each_canary(name):
    rng = np.random.default_rng(0)
    included = rng.random(50) < 0.5
    assert canaries.KNOWN[name].draw(included, rng).shape == (50,)


@pytest.mark.parametrize("m", [200, 1_000])
def test_the_worst_distribution_is_a_distribution_that_spends_all_of_delta(m):
    """Σ_j [j P(j) − e^ε (m − j + 1) P(j − 1)]₊ is m δ, as theorem 2 allows."""
    delta = 1e-3 / m
    distribution = canaries._worst_distribution(m, delta)
    assert distribution.min() >= 0.0
    assert distribution.sum() == pytest.approx(1.0)
    j = np.arange(1, m + 1)
    spent = np.maximum(j * distribution[1:] - np.e * (m - j + 1) * distribution[:-1], 0.0)
    assert spent[spent > 1e-9].sum() == pytest.approx(m * delta, rel=1e-6)


def test_scores_that_tell_every_canary_miss_the_target(monkeypatch):
    known = canaries.Known(lambda m: PureDP(1.0), lambda included, rng: included.astype(np.float64))
    monkeypatch.setitem(canaries.KNOWN, "randomised response", known)
    row = row_of("canary-false-alarms", "randomised response, 200 canaries")
    assert row["cells"]["auto"] == 1.0
    assert not is_good(row)


# Regression testing.


def test_a_session_makes_thirty_audits_and_says_what_they_found(monkeypatch):
    assert len(regression.right()) == 30
    status, (found,) = regression._session("['laplace, sequential']", "--dp-audit-runs=1_000")
    assert (status, found.result.runs) == (0, 1_000)
    wrong = regression._of_pair(WRONG, 0.0, 1.0, claim=PureDP(1.0), floating_point="ignore")
    monkeypatch.setattr(regression, "right", lambda: {"wrong": wrong})
    status, (found,) = regression._session("['wrong']", "--dp-audit-runs=2_000")
    assert (status, found.result.is_refuted, found.name.rpartition("::")[2]) == (1, True, "test_audit[wrong]")


# Libraries, replays.


@pytest.mark.parametrize("table", ["opendp", "diffprivlib", "pydp", "composites"])
def test_rows_of_missing_libraries_are_left_out(table, monkeypatch):
    for library in ("opendp", "diffprivlib", "pydp"):
        monkeypatch.setitem(sys.modules, library, None)
    told = []
    kept = dataclasses.replace(TABLES[table], measure=lambda *arguments: ({}, []))
    assert measure([kept], Effort(), tell=told.append)
    without = sum(not kept.library(*arguments) for arguments in kept.rows.values())
    assert (without > 0) == (table == "composites")
    assert sum("cannot be imported: its rows are left out" not in line for line in told) == without
    assert any("cannot be imported: its rows are left out" in line for line in told)


def test_a_broken_subject_and_a_sound_defect_miss_their_targets(monkeypatch):
    broken = Subject(name="broken", make=lambda: WRONG, pair=(0.0, 1.0), runs=5_000)
    monkeypatch.setitem(libraries._SUBJECTS["opendp"], "broken", broken)
    cells, targets = libraries._library_cells(QUICK, range, "opendp", "broken")
    assert cells["refuted"] == 1
    assert not is_met(targets[0])
    sizes = {"runs": 2_000, "search_runs": 400, "adjacency": Within("l1"), "domain": Answers()}
    sound = Subject(name="sound", make=lambda: LaplaceMechanism(1.0), **sizes)
    monkeypatch.setitem(
        libraries._DEFECTS, "none", Defect(name="none", library="", by="values", broken=sound, variant=sound)
    )
    assert not is_met(libraries._defect_cells(QUICK, range, "none")[1][0])


def test_false_findings_of_replays_miss_their_targets(monkeypatch):
    """The wrong variant: a mechanism that breaks its claim, among those that keep it."""
    monkeypatch.setitem(replays.REFERENCES, "LaplaceMechanism", (WRONG, lambda rng: (0.0, 1.0)))
    row = row_of("false-findings", "LaplaceMechanism")
    assert (row["cells"]["excess"], row["cells"]["bounded"], is_good(row)) == (5, 0, False)
    side = Subject(name="wrong", make=lambda: WRONG, pair=(0.0, 1.0), adjacency=Within("l1"))
    monkeypatch.setattr(replays, "composites", lambda: {"none": replays.Composite(name="none", right=side)})
    cells, (target,) = replays._composite_cells(QUICK, range, "none")
    assert (cells["right_excess"], is_met(target)) == (1, False)
    assert (cells["call"], cells["moved"], cells["wrong_pairs"]) == ("laplace_on_grid", "1", None)


def test_what_raises_on_both_is_counted():
    def broken(rows, rng):
        raise ValueError("no rows")

    assert replays.verdicts(broken, [([1], [])], 0, claim=1.0) == (0, 0, 0, 1, None, "raised")


def test_names_of_models_are_unique_and_their_rows_fit():
    fits = diffprivlib_fits()
    assert len({fit.name for fit in fits}) == len(fits) > 20
    assert all(isinstance(fit.domain.corners()[0], tuple) for fit in fits)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of scipy, about what diffprivlib passes to it
def test_the_findings_say_what_replay_names(capsys):
    """A block of a page that needs diffprivlib, and takes a tenth of a second for each defect."""
    pytest.importorskip("diffprivlib", reason="diffprivlib cannot be imported")
    page = (Path(__file__).resolve().parents[3] / "docs" / "findings" / "details.md").read_text(encoding="utf-8")
    found = re.search(r"## What replay names.*?```python\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL)
    exec(found[1], {"__name__": "__main__"})
    assert capsys.readouterr().out == found[2]
