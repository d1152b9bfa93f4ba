"""Suites of a small library: right, faulty, leaking by bits, of unknown form, failing, and of unknown neighbours."""

from __future__ import annotations

import dataclasses
import json
import time

import numpy as np
import pytest

from dpaudit import AddRemove, Answers, PureDP, Replace, Rows, Within, check, find_worst_pair
from dpaudit.audit.errors import OptionError
from dpaudit.audit.records.json_codec import from_json, to_json
from dpaudit.audit.results.audit_result import Verdict
from dpaudit.experiments.library_suites import run_target as of_targets
from dpaudit.experiments.library_suites.audited_library import Library, NotCovered, PublicCallable, SameAs, Target
from dpaudit.experiments.library_suites.coverage import (
    Status,
    coverage_markdown,
    coverage_of_plan,
    coverage_of_run,
    coverage_text,
    outcome_text,
)
from dpaudit.experiments.library_suites.plan import plan_of
from dpaudit.experiments.library_suites.run_plan import run_plan
from dpaudit.experiments.library_suites.run_target import run_target
from dpaudit.reports import junit, markdown


class Noise:
    """Noise on a whole number, with the claim 1."""

    claim, adjacency = PureDP(1.0), Within("l1", 1.0)

    def __init__(self, epsilon=1.0, continuous=False):
        self.p, self.continuous = -np.expm1(-epsilon), continuous

    def sample(self, dataset, size, rng):
        if self.continuous:
            return dataset + rng.laplace(scale=1.0, size=size)
        return dataset + rng.geometric(self.p, size) - rng.geometric(self.p, size)


class Difference:
    """Ones minus zeros, with noise for added rows: a replaced row moves it by 2."""

    claim = PureDP(1.0)

    def __init__(self, epsilon=1.0):
        self.noise = Noise(epsilon)

    def sample(self, rows, size, rng):
        return self.noise.sample(rows.count(1) - rows.count(0), size, rng)


def broken():
    raise ZeroDivisionError("of the library")


WHOLE, ROWS = Answers(low=0, high=2, integer=True), Rows(values=(0, 1), least=1, most=3)
NAMES = ("bits", "changed", "failing", "faulty", "right", "same", "unknown", "wrong_rows")


def form_of(public):
    def target(point, make, domain=WHOLE, **options):
        return Target(callable=public.name, point=point, make=make, domain=domain, runs=1_500, **options)

    both = (Replace(), AddRemove())
    match public.short:
        case "right":
            return target("epsilon=1", Noise), target("epsilon=1 again", Noise)
        case "faulty":
            return target("epsilon=1", lambda: Noise(4.0), known="too little noise"), target("epsilon=2", Noise)
        case "bits":
            return (target("epsilon=1", lambda: Noise(continuous=True), Answers(low=0.0, high=1.0)),)
        case "failing":
            return (target("any", broken),)
        case "changed":
            return (target("rows", Difference, ROWS, adjacencies=both),)
        case "wrong_rows":
            return (target("rows", lambda: Difference(4.0), ROWS, adjacencies=both),)
        case "same":
            return SameAs("tools.right")
    return NotCovered("it fits no known form")


def public():
    return tuple(PublicCallable(f"tools.{name}", None) for name in NAMES)


LIBRARY = Library(name="small", release=lambda: "small 1.0", public=public, form_of=form_of)


@pytest.fixture(scope="module")
def run():
    plan = plan_of(LIBRARY)
    return run_plan(LIBRARY, plan, minutes=5, in_process=True)


def outcome(run, name):
    return next(one for one in run.outcomes if one.name == name)


def test_every_callable_is_planned_or_has_a_reason():
    plan = plan_of(LIBRARY)
    assert [line.callable for line in coverage_of_plan(plan).lines] == [f"tools.{name}" for name in NAMES]
    assert plan.callables == tuple(f"tools.{name}" for name in NAMES)
    first = [target.callable for target in plan.targets[:6]]
    assert len(set(first)) == 6
    assert [target.name for target in plan.targets[6:]] == ["tools.faulty: epsilon=2", "tools.right: epsilon=1 again"]


def test_shares_are_fixed_before_the_first_audit_and_add_up():
    plan = plan_of(LIBRARY, alpha=1e-3)
    assert plan.audits == 16
    assert plan.share * plan.audits == pytest.approx(1e-3, rel=1e-12)
    assert plan_of(LIBRARY, alpha=1e-3, with_bits=False).share == pytest.approx(2 * plan.share)


def test_verdicts(run):
    refuted = {one.name for one in run.outcomes if one.is_refuted_by_values}
    assert refuted == {"tools.faulty: epsilon=1", "tools.wrong_rows: rows"}
    assert [one.name for one in run.outcomes if one.is_refuted_by_bits_only] == ["tools.bits: epsilon=1"]
    assert outcome(run, "tools.failing: any").failure == "it raised ZeroDivisionError: of the library"
    assert all(entry.result.alpha == run.plan.share for one in run.outcomes for entry in one.entries)
    assert run.not_reached == ()
    assert run.status == 1
    (entry,) = outcome(run, "tools.changed: rows").entries  # refuted only under each of its relations
    assert entry.result.verdict is Verdict.NOT_REFUTED
    assert str(entry.result.pair.adjacency) == str(AddRemove())
    suite = run.suite()
    assert from_json(to_json(suite)) == suite
    assert junit(suite).count("<failure") == 3
    assert "Known for this release" in markdown(suite)


def test_a_known_defect_is_marked_and_stays_refuted(run):
    (entry,) = outcome(run, "tools.faulty: epsilon=1").entries
    assert entry.result.verdict is Verdict.REFUTED
    assert entry.note.startswith("Known for this release: too little noise. Confirmed on fresh runs")
    (new,) = outcome(run, "tools.wrong_rows: rows").entries
    assert "Known" not in new.note
    assert "tools.faulty: epsilon=1: REFUTED" in outcome_text(run)
    assert outcome_text(run).count("(new)") == 2
    assert outcome_text(run).count("(known: too little noise)") == 1


def test_coverage_says_what_was_not_audited(run):
    coverage = coverage_of_run(run)
    assert {line.callable.partition(".")[2]: line.status for line in coverage.lines} == {
        "bits": Status.REFUTED_BY_BITS,
        "changed": Status.AUDITED,
        "failing": Status.FAILED,
        "faulty": Status.REFUTED,
        "right": Status.AUDITED,
        "same": Status.SAME,
        "unknown": Status.NOT_COVERED,
        "wrong_rows": Status.REFUTED,
    }
    assert coverage.audited == 5
    assert "tools.unknown: not covered (it fits no known form)" in coverage_text(coverage)
    assert "| `tools.failing` | could not be audited | 0 of 1 | any: it raised" in coverage_markdown(coverage, "small")
    assert json.loads(json.dumps(coverage.to_dict()))["public callables"] == 8


def test_what_the_time_does_not_reach_is_a_line_of_the_coverage():
    plan = plan_of(LIBRARY, only="right")
    run = run_plan(LIBRARY, plan, minutes=1e-9, in_process=True)
    assert len(run.not_reached) == 2
    (line,) = [line for line in coverage_of_run(run).lines if line.callable == "tools.right"]
    assert (line.status, line.reasons) == (Status.NOT_REACHED, ("2 of 2 points not reached in the time",))
    assert run.status == 3


def test_a_suite_that_ended_resumes_with_the_same_results(run, tmp_path):
    plan = plan_of(LIBRARY, only="right|fail")

    def stop(found, done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_plan(LIBRARY, plan, out=tmp_path, only="right|fail", watch=stop, in_process=True)
    again = []
    resumed = run_plan(
        LIBRARY,
        plan,
        out=tmp_path,
        is_resumed=True,
        only="right|fail",
        in_process=True,
        watch=lambda found, done, total: again.append(found.name),
    )
    assert again == ["tools.failing: any", "tools.right: epsilon=1 again"]
    whole = run_plan(LIBRARY, plan, only="right|fail", in_process=True)
    assert resumed.suite() == whole.suite()


def test_a_folder_belongs_to_one_suite(tmp_path):
    plan = plan_of(LIBRARY, only="fail")
    with pytest.raises(OptionError, match="nothing to resume"):
        run_plan(LIBRARY, plan, out=tmp_path, is_resumed=True, only="fail")
    run_plan(LIBRARY, plan, out=tmp_path, only="fail", in_process=True)
    with pytest.raises(OptionError, match="continue that suite with --resume"):
        run_plan(LIBRARY, plan, out=tmp_path, only="fail", in_process=True)
    later = dataclasses.replace(plan, release="small 2.0")
    with pytest.raises(OptionError, match=r"the release of the suite in .* differ: 'small 1.0' then, 'small 2.0' now"):
        run_plan(LIBRARY, later, out=tmp_path, is_resumed=True, only="fail")


def test_a_refutation_that_fresh_runs_do_not_confirm_is_withdrawn(monkeypatch):
    (target,) = [target for target in plan_of(LIBRARY, only="faulty").targets if "=1" in target.name]

    def right_from_now_on(mechanism, x, y, **options):
        return check(Noise(), x, y, **options)

    monkeypatch.setattr(of_targets, "check", right_from_now_on)
    found = run_target(target, alpha=1e-6, seed=0, seconds=5, with_bits=True)
    assert not found.is_refuted_by_values
    assert len(found.unconfirmed) == 1
    (entry,) = found.entries
    assert entry.result.verdict is Verdict.NOT_REFUTED
    assert entry.note.startswith("A first audit refuted the claim (REFUTED")


def test_the_confirmation_swaps_the_pair_and_has_another_seed(monkeypatch):
    (target,) = [target for target in plan_of(LIBRARY, only="faulty").targets if "=1" in target.name]
    seen, found = [], []

    def searched(*arguments, **options):
        found.append(find_worst_pair(*arguments, **options))
        return found[-1]

    def noted(mechanism, x, y, **options):
        seen.append((x, y, options["seed"], options["alpha"]))
        return check(mechanism, x, y, **options)

    monkeypatch.setattr(of_targets, "find_worst_pair", searched)
    monkeypatch.setattr(of_targets, "check", noted)
    (entry,) = run_target(target, alpha=1e-6, seed=0, seconds=5, with_bits=True).entries
    ((x, y, seed, alpha),) = seen
    assert (found[0].x, found[0].y) == (y, x)
    assert seed != entry.result.seed
    assert alpha == 1e-6


@pytest.mark.parametrize(("runs", "seconds", "given"), [(50_000, 20.0, 5_000), (50_000, 1e3, 50_000), (900, 2.0, 500)])
def test_a_slow_mechanism_gets_fewer_runs(monkeypatch, runs, seconds, given):
    target = Target(callable="slow", point="any", make=Noise, domain=WHOLE, runs=runs)
    monkeypatch.setattr(of_targets, "_seconds_of_a_run", lambda mechanism, dataset, limit: 1e-3)
    assert of_targets._affordable(target, Noise(), seconds) == (given, given)


def test_a_mechanism_that_is_too_slow_gets_a_reason():
    target = Target(callable="slow", point="any", make=Noise, domain=WHOLE, runs=50_000)
    assert of_targets._seconds_of_a_run(lambda dataset, rng: time.sleep(0.002), 0, 1.0) >= 0.002
    found = run_target(target, alpha=1e-4, seed=0, seconds=1e-9, with_bits=False)
    assert "so that 400 runs on each dataset do not fit into 1e-09 s" in found.failure


def test_impossible_suites_are_refused():
    double = dataclasses.replace(LIBRARY, form_of=lambda held: form_of(PublicCallable("tools.right", None))[:1])
    with pytest.raises(OptionError, match=r"targets have the same name: tools\.right: epsilon=1"):
        plan_of(double)
    for only, said in (("(", "is not a regular expression"), ("nothing such", "matches no callable of small")):
        with pytest.raises(OptionError, match=said):
            plan_of(LIBRARY, only=only)
    for options in ({"minutes": 0.0}, {"minutes": float("nan")}, {"workers": 0}):
        with pytest.raises(OptionError, match=next(iter(options))):
            run_plan(LIBRARY, plan_of(LIBRARY), **options)
