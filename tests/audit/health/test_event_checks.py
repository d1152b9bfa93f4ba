"""Constant outputs, events that all runs share, and hit rates that differ from the pilot."""

from dataclasses import replace

import numpy as np
import pytest

from dpaudit import PureDP, Verdict, check
from dpaudit.audit.events.events import Intervals
from dpaudit.audit.health.event_checks import Evidence, are_same, constant_output, idle_event, pilot_findings
from dpaudit.audit.health.findings import Finding, HealthCheck
from dpaudit.audit.inference.event_test import Counts
from dpaudit.audit.portfolio.choice import Choice

CONSTANT, IDLE, UNSTEADY = HealthCheck.CONSTANT_OUTPUT, HealthCheck.NO_POWER, HealthCheck.NONSTATIONARY
HALF_LINE = Intervals(((0.0, np.inf),))


def audit(mechanism, **settings):
    return check(mechanism, 0, 1, **{"claim": PureDP(1.0), "runs": 1_000, "jobs": 1, **settings})


def checks(result):
    return {finding.check for finding in result.findings}


CONSTANTS = {
    "zero": lambda d, size, rng: np.zeros(size), "empty vector": lambda d, size, rng: np.zeros((size, 0)),
    "word": lambda d: "ok", "tuple": lambda d: ("a", float("nan")),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "sequential"), [("zero", True), ("empty vector", False), ("tuple", False), ("word", False)]
)
def test_a_constant_says_nothing_unless_its_check_is_silenced(name, sequential):
    result = audit(CONSTANTS[name], sequential=sequential)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert checks(result) == {CONSTANT}
    assert "all 1,000 runs on x and 1,000 on y gave the same output" in str(result)
    assert str(result.findings[0]).endswith("Silence this check with ignore='constant-output'.")
    if name == "zero":
        silenced = audit(CONSTANTS[name], sequential=sequential, ignore="constant-output")
        assert (silenced.verdict, silenced.findings) == (Verdict.NOT_REFUTED, ())
        others = [other.value for other in HealthCheck if other is not CONSTANT]
        assert checks(audit(CONSTANTS[name], sequential=sequential, ignore=others)) == {CONSTANT}


def test_outputs_are_the_same_only_if_the_last_one_is():
    for other in (1.0, np.nan):
        assert not are_same(np.append(np.zeros(1_000), other))
    assert are_same(np.full((1_000, 2), np.nan))
    assert not are_same(np.zeros(0))


def made(count_x, count_y):
    counts = Counts(count_x=count_x, runs_x=10_000, count_y=count_y, runs_y=10_000)
    return Evidence(VARIED, VARIED, choice(1, 1), counts, counts, 2_000)


def choice(pilot_x, pilot_y):
    return Choice(HALF_LINE, "x", pilot_x, pilot_y, 2_000)


VARIED = np.random.default_rng(0).normal(size=100)


@pytest.mark.parametrize("counts", [0, 10_000])
def test_an_event_that_all_runs_share(counts):
    (found,) = idle_event(made(counts, counts))
    assert found.check is IDLE
    often = "all" if counts else "none"
    assert f"(output ≥ 0) occurred in {often} of 10,000 runs on x and 10,000 on y" in str(found)
    assert str(found).endswith("Silence this check with ignore='no-power'.")


def test_a_pilot_of_equal_outputs_that_later_runs_do_not_give_is_no_constant():
    """The event contains the pilot's output, 0."""
    for counts, found in ((0, []), (10_000, [CONSTANT])):
        evidence = replace(made(counts, counts), x=np.zeros(100), y=np.zeros(100))
        assert [each.check for each in constant_output(evidence)] == found


def test_an_audit_of_too_few_runs_says_that_nothing_recurs():
    (found,) = idle_event(made(0, 0), says_too_few=True)
    assert found.check is IDLE
    assert str(found).startswith("no event could be learned, because ")


@pytest.mark.parametrize(
    ("counts", "sides"),
    [
        ((5_000, 5_000), ""),
        ((5_000, 5_500), ""),  # 5%, a possible error of the pilot from the choice of the event
        ((5_000, 0), "y"),
        ((10_000, 5_000), "x"),
        ((10_000, 0), "xy"),
    ],
)
def test_counts_unlike_those_of_the_pilot(counts, sides):
    pilot = choice(1_000, 1_000)
    findings = pilot_findings(pilot, made(*counts).counts, ())
    assert [finding.check for finding in findings] == [UNSTEADY] * len(sides)
    for side, finding in zip(sides, findings, strict=True):
        assert f"pilot runs on {side}, but in " in str(finding)
    repeated = Finding(HealthCheck.DUPLICATE_OUTPUTS, "2 of 9 blocks are equal.")  # which explains the difference
    assert pilot_findings(pilot, made(*counts).counts, (repeated,)) == []


class Switching:
    """A mechanism whose outputs on y change after so many runs."""

    def __init__(self, after):
        self.runs, self.after = 0, after

    def __call__(self, dataset, size, rng):
        self.runs += size
        return (20 * dataset if self.runs > self.after else 0) + rng.laplace(size=size)


def test_a_change_at_the_end_of_the_pilot_is_found():
    """All pilot runs are alike, and all main runs; the pilot's event tells one from the other."""
    result = audit(Switching(after=10_300), claim=PureDP(2.0), runs=20_000, floating_point="ignore")
    assert result.pilot_runs == 5_000
    (found,) = result.findings
    assert found.check is UNSTEADY
    assert "of 5,000 pilot runs on y, but in 15,000 of the next 15,000 runs" in str(found)


class Unlike:
    """An object that rarely equals another one and does not say what it holds."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.value == other.value

    def __hash__(self):
        return self.value % 64

    def __reduce__(self):
        return Unlike, (self.value,)


def test_objects_that_never_come_again_accuse_nobody(monkeypatch):
    """An event without outputs must not be compared with counts that were not observed."""

    def unlike(d, rng):
        return Unlike(64 * int(rng.integers(10**12)) + 7)

    result = audit(unlike, runs=400)
    assert checks(result) == {IDLE}
    assert "no event could be learned, because " in str(result)
    assert "keeps state" not in str(result)
    assert result.counts.count_x + result.counts.count_y == 0
    failed = Finding(HealthCheck.DUPLICATE_OUTPUTS, "repeated")  # which says why nothing can be tested
    monkeypatch.setattr("dpaudit.audit.procedures.audit.examine", lambda *_, **__: (failed,))
    assert audit(unlike, runs=400).findings == (failed,)
