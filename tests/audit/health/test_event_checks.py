"""Constant outputs, events that all runs share, and hit rates that differ from the pilot."""

import numpy as np
import pytest

from dpaudit import PureDP, Verdict, check
from dpaudit.audit.events.events import Intervals, Outcomes, Scored
from dpaudit.audit.events.scores import Weighted
from dpaudit.audit.health.findings import Finding, HealthCheck
from dpaudit.audit.portfolio.choice import Choice, choose_seen
from dpaudit.audit.procedures.conclude import event_findings, pilot_findings
from dpaudit.audit.procedures.pilot import FixedSizeEvidence, Pilot, Portfolio
from dpaudit.audit.sampling.tasks import MainCounts

CONSTANT, IDLE, UNSTEADY = HealthCheck.CONSTANT_OUTPUT, HealthCheck.IDLE_EVENT, HealthCheck.UNSTEADY_HITS
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


@pytest.mark.parametrize(
    ("on_x", "on_y", "sequential"),
    [
        (float("nan"), 0.0, False), ("a", None, True), (0, ValueError(), False),
    ],
)  # fmt: skip
def test_two_constants_stay_refuted(on_x, on_y, sequential):
    def constant(d, rng):
        if d and isinstance(on_y, ValueError):
            raise on_y
        return on_y if d else on_x

    assert audit(constant, sequential=sequential).is_refuted
    assert audit(lambda d, rng: on_x if rng.random() < 0.01 else constant(d, rng), sequential=sequential).is_refuted


def made(hits_x, hits_y, *, runs=10_000, event=HALF_LINE):
    kept = Pilot(choice(1, 1, event), [], [], VARIED, VARIED)
    counted = MainCounts((runs, runs), np.array([[hits_x], [hits_y]]), np.zeros((2, 0), np.int64))
    portfolio = Portfolio(kept.choice, None, None, None)
    return FixedSizeEvidence(
        kept=kept, portfolio=portfolio, counted=counted, runs=runs + 2_000, pilot_runs=2_000, coins=0
    )


VARIED = np.random.default_rng(0).normal(size=100)


@pytest.mark.parametrize("hits", [0, 10_000])
def test_an_event_that_all_runs_share(hits):
    (found,) = event_findings(made(hits, hits), Verdict.NOT_REFUTED)
    assert found.check is IDLE
    often = "all" if hits else "none"
    assert f"(output ≥ 0) occurred in {often} of 10,000 runs on x and 10,000 on y" in str(found)
    assert str(found).endswith("Silence this check with ignore='idle-event'.")


def test_an_audit_of_too_few_runs_says_that_nothing_recurs_unless_another_check_has_failed():
    (found,) = event_findings(made(0, 0), Verdict.INCONCLUSIVE)
    assert found.check is IDLE
    assert str(found).startswith("no event could be learned, because ")
    failed = (Finding(HealthCheck.REPEATED_BLOCKS, "repeated"),)
    assert event_findings(made(0, 0), Verdict.INCONCLUSIVE, failed) == []


def choice(pilot_x, pilot_y, event=HALF_LINE, runs=2_000):
    return Choice(event, "x", pilot_x, pilot_y, runs)


@pytest.mark.parametrize(
    ("hits", "pilot", "sides"),
    [
        ((5_000, 5_000), (1_000, 1_000), ""),
        ((5_000, 5_500), (1_000, 1_000), ""),  # 5%, a possible error of the pilot from the choice of the event
        ((5_000, 0), (1_000, 1_000), "y"),
        ((10_000, 5_000), (1_000, 1_000), "x"),
        ((10_000, 0), (1_000, 1_000), "xy"),
    ],
)
def test_hits_unlike_those_of_the_pilot(hits, pilot, sides):
    findings = pilot_findings(choice(*pilot), made(*hits).counts, ())
    assert [finding.check for finding in findings] == [UNSTEADY] * len(sides)
    for side, finding in zip(sides, findings, strict=True):
        assert f"pilot runs on {side}, but in " in str(finding)
    repeated = Finding(HealthCheck.REPEATED_BLOCKS, "2 of 9 blocks are equal.")  # which explains the difference
    assert pilot_findings(choice(*pilot), made(*hits).counts, (repeated,)) == []


def test_what_the_pilot_may_have_chosen_freely_is_given_more_room():
    union = Intervals(tuple((float(i), i + 0.5) for i in range(8)))
    for event, expected in ((HALF_LINE, {UNSTEADY}), (Outcomes(("a",)), {UNSTEADY}), (union, set())):
        for shown in (event, Scored(Weighted((1.0,)), event)) if isinstance(event, Intervals) else (event,):
            found = pilot_findings(choice(1_000, 1_000, shown), made(9_000, 5_000).counts, ())
            assert {finding.check for finding in found} == expected


class Unlike:
    """An object that hardly ever equals another one and does not say what it holds."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.value == other.value

    def __hash__(self):
        return self.value % 64

    def __reduce__(self):
        return Unlike, (self.value,)


def test_objects_that_never_come_again_accuse_nobody():
    """An event without outputs must not be compared with counts that were not observed."""
    result = audit(lambda d, rng: Unlike(64 * int(rng.integers(10**12)) + 7), runs=400)
    assert checks(result) == {IDLE}
    assert "no event could be learned, because " in str(result)
    assert "keeps state" not in str(result)
    assert result.counts.hits_x + result.counts.hits_y == 0


def test_the_hits_of_an_event_of_last_resort_are_those_of_the_half_that_was_held_out():
    rng = np.random.default_rng(3)
    parts = [
        np.array([Unlike(64 * int(number)) for number in rng.integers(10**9, size=400)], dtype=object) for _ in range(4)
    ]
    parts[2][:30], parts[3][:10] = parts[0][:30], parts[0][30:40]
    x, y = np.concatenate(parts[::2]), np.concatenate(parts[1::2])
    on_x, on_y = choose_seen(x, y)
    for way in (on_x, on_y):
        assert (way.pilot_hits_x, way.pilot_hits_y) == tuple(way.event.count(part) for part in parts[2:])
    assert (on_x.pilot_hits_x, on_x.pilot_hits_y, on_x.likelier_on, on_x.shows_nothing) == (30, 10, "x", False)
    assert (on_y.pilot_hits_x, on_y.pilot_hits_y, on_y.shows_nothing) == (0, 0, True)
