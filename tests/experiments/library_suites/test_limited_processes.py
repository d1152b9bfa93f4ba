"""Targets in processes: one hangs, one ends its process, and the others are answered."""

from __future__ import annotations

import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError

from dpaudit import Answers, PureDP, Within
from dpaudit.audit.errors import OptionError
from dpaudit.experiments.library_suites import run_plan as of_plans
from dpaudit.experiments.library_suites.audited_library import Library, PublicCallable, Target
from dpaudit.experiments.library_suites.coverage import Status, coverage_of_run
from dpaudit.experiments.library_suites.plan import plan_of
from dpaudit.experiments.library_suites.run_plan import run_plan

from ...reports.cli.conftest import run

__all__ = ["run"]


class Noise:
    """A whole number with noise."""

    claim, adjacency = PureDP(1.0), Within("l1", 1.0)

    def sample(self, dataset, size, rng):
        return dataset + rng.geometric(0.6, size) - rng.geometric(0.6, size)


class Hanging(Noise):
    def sample(self, dataset, size, rng):
        while True:
            time.sleep(1_000)


class Dying(Noise):
    def sample(self, dataset, size, rng):
        os._exit(7)


MAKERS = {"dying": Dying, "hanging": Hanging, "right": Noise}


def form_of(public):
    whole = Answers(low=0, high=2, integer=True)
    return (Target(callable=public.name, point="any", make=MAKERS[public.name], domain=whole, runs=500),)


def public():
    return tuple(PublicCallable(name, None) for name in MAKERS)


LIBRARY = Library(name="small", release=lambda: "small 1.0", public=public, form_of=form_of)


def test_a_target_that_hangs_and_one_that_dies_are_lines_of_the_coverage():
    seen = []
    found = run_plan(
        LIBRARY,
        plan_of(LIBRARY, with_bits=False),
        workers=2,
        deadline=3.0,
        watch=lambda outcome, done, total: seen.append((outcome.name, done, total)),
    )
    lines = {line.callable: line for line in coverage_of_run(found).lines}
    assert {name: line.status for name, line in lines.items()} == {
        "dying": Status.FAILED,
        "hanging": Status.FAILED,
        "right": Status.AUDITED,
    }
    assert lines["hanging"].reasons == ("any: it did not answer within its deadline of 3 s, and its process was ended",)
    assert lines["dying"].reasons == ("any: its process died, by a crash in compiled code or for want of memory",)
    assert [(done, total) for _, done, total in seen] == [(1, 3), (2, 3), (3, 3)]
    assert {name for name, *_ in seen} == {"dying: any", "hanging: any", "right: any"}
    here = run_plan(LIBRARY, plan_of(LIBRARY, with_bits=False, only="right"), in_process=True)
    ((entry,), (same,)) = (each.suite().entries for each in (found, here))
    assert entry.result.counts == same.result.counts


class Dead:
    """A pool whose process died between two targets."""

    def submit(self, *_):
        raise TerminatedWorkerError("it died")

    def shutdown(self, **_):
        self.is_ended = True


def test_a_process_that_died_between_two_targets_is_replaced(monkeypatch):
    monkeypatch.setattr(of_plans, "ProcessPoolExecutor", lambda **_: ThreadPoolExecutor(1))
    dead, prepared = Dead(), []
    lane = of_plans._Lane(lambda parcel, name: f"{name} done", prepared.append, "parcel", None)
    lane.pool = dead
    lane.give("second")
    wait([lane.answer], 60)
    assert lane.take(60.0) == ("second", "second done")
    assert dead.is_ended
    assert prepared == ["parcel"]


def leaving():
    sys.exit("no data")


def test_a_constructor_that_leaves_the_program_could_not_be_audited(monkeypatch):
    monkeypatch.setitem(MAKERS, "leaving", leaving)
    plan = plan_of(LIBRARY, with_bits=False, only="leaving|right")
    found = run_plan(LIBRARY, plan, in_process=True)
    failures = {outcome.name: outcome.failure for outcome in found.outcomes}
    assert failures == {"leaving: any": "it raised SystemExit: no data", "right: any": ""}


@pytest.mark.parametrize("options", [{"deadline": 0.0}, {"deadline": 5.0, "in_process": True}])
def test_impossible_deadlines_are_refused(options):
    with pytest.raises(OptionError, match="deadline"):
        run_plan(LIBRARY, plan_of(LIBRARY), **options)


def test_a_termination_of_the_command_ends_its_processes_as_ctrl_c_does(run, monkeypatch):
    before = signal.getsignal(signal.SIGTERM)

    def terminated(library, plan, **options):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)

    monkeypatch.setattr(of_plans, "run_plan", terminated)
    status, _, errors = run("suite", "pydp", "--only", "Count")
    assert status == 130
    assert "the same command with --resume continues" in errors
    assert signal.getsignal(signal.SIGTERM) == before
