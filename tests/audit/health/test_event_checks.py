"""Constant outputs, events that all runs share, and hit rates that differ from the pilot."""

import numpy as np
import pytest
from scipy import stats

from dpaudit import ApproxDP, PureDP, Verdict, check, check_outputs
from dpaudit.audit.events.events import Intervals, Outcomes, Scored
from dpaudit.audit.events.scores import Weighted
from dpaudit.audit.health.findings import Finding, HealthCheck
from dpaudit.audit.portfolio.choice import Choice, choose_seen
from dpaudit.audit.procedures import conclude
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
    "zero": lambda d, size, rng: np.zeros(size), "nan": lambda d, size, rng: np.full(size, np.nan),
    "true": lambda d, size, rng: np.ones(size, bool), "vector": lambda d, size, rng: np.tile([0.0, np.nan], (size, 1)),
    "empty vector": lambda d, size, rng: np.zeros((size, 0)), "none": lambda d: None, "word": lambda d: "ok",
    "tuple": lambda d: ("a", float("nan")),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "sequential"), [*((name, False) for name in CONSTANTS), ("zero", True), ("tuple", True)]
)
def test_a_constant_says_nothing_unless_its_check_is_silenced(name, sequential):
    result = audit(CONSTANTS[name], sequential=sequential)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert checks(result) == {CONSTANT}
    assert "all 1,000 runs on x and 1,000 on y gave the same output" in str(result)
    assert str(result.findings[0]).endswith("Silence this check with ignore='constant-output'.")
    if name in ("zero", "tuple"):
        silenced = audit(CONSTANTS[name], sequential=sequential, ignore="constant-output")
        assert (silenced.verdict, silenced.findings) == (Verdict.NOT_REFUTED, ())
        others = [other.value for other in HealthCheck if other is not CONSTANT]
        assert checks(audit(CONSTANTS[name], sequential=sequential, ignore=others)) == {CONSTANT}


@pytest.mark.parametrize(
    ("on_x", "on_y", "sequential"),
    [
        (0, 1, False), (0, 1, True), (float("nan"), 0.0, False), ("a", None, True), ((1, 2), (1, 3), False),
        (True, False, False), (0, ValueError(), False),
    ],
)  # fmt: skip
def test_two_constants_stay_refuted(on_x, on_y, sequential):
    def constant(d, rng):
        if d and isinstance(on_y, ValueError):
            raise on_y
        return on_y if d else on_x

    assert audit(constant, sequential=sequential).is_refuted
    assert audit(lambda d, rng: on_x if rng.random() < 0.01 else constant(d, rng), sequential=sequential).is_refuted


def test_a_constant_that_is_left_after_the_pilot_is_no_constant():
    result = audit(lambda d, size, rng: (rng.random(size) < 2e-3).astype(float), runs=100_000)
    assert CONSTANT not in checks(result)


def test_constant_outputs_made_elsewhere():
    result = check_outputs([0.0] * 500, [0.0] * 600, claim=PureDP(1.0))
    assert checks(result) == {CONSTANT}
    assert "all 500 runs on x and 600 on y" in str(result)
    assert check_outputs([0.0] * 500, [1.0] * 500, claim=PureDP(1.0)).is_refuted


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
    assert audit(lambda d, rng: f"{rng.random():.17g}", runs=2_000, ignore="idle-event").findings == ()


@pytest.mark.parametrize(
    ("hits", "verdict"),
    [
        ((1, 0), Verdict.NOT_REFUTED), ((10_000, 0), Verdict.REFUTED), ((0, 10_000), Verdict.NOT_REFUTED),
        ((10_000, 9_999), Verdict.NOT_REFUTED),
    ],
)  # fmt: skip
def test_other_counts_are_no_idle_event(hits, verdict):
    assert event_findings(made(*hits), verdict) == []


def test_an_audit_of_too_few_runs_says_that_nothing_recurs_unless_another_check_has_failed():
    (found,) = event_findings(made(0, 0), Verdict.INCONCLUSIVE)
    assert found.check is IDLE
    assert str(found).startswith("no event could be learned, because ")
    failed = (Finding(HealthCheck.REPEATED_BLOCKS, "repeated"),)
    assert event_findings(made(0, 0), Verdict.INCONCLUSIVE, failed) == []


def test_what_can_find_nothing_says_so_already():
    """No event of these probabilities can violate the claim, so the resolution is infinite."""
    result = audit(lambda d, size, rng: rng.random(size) < 0.5, claim=ApproxDP(0.0, 0.9999), runs=400)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "no detectable excess can be stated (95% power)" in str(result)


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


def test_false_alarms_of_the_comparison_with_the_pilot(monkeypatch):
    """The pilot's half-line with the largest error in frequency, at error probability .2 per side and phase."""
    monkeypatch.setattr(conclude, "FALSE_ALARM", 0.8)
    monkeypatch.setattr(conclude, "_SCORES", 0.5)
    rng, alarms = np.random.default_rng(6), 0
    for _ in range(600):
        pilot = np.sort(rng.random(500))
        off = np.abs(np.arange(1, 501) / 500 - pilot)
        worst = int(off.argmax())
        hits = int(rng.binomial(2_000, pilot[worst]))
        counts = made(hits, 1_000, runs=2_000).counts
        alarms += bool(pilot_findings(choice(worst + 1, 250, runs=500), counts, ()))
    assert alarms <= stats.binom.isf(1e-7, 600, 0.4)


def identifiers(count, *, leak=False):
    """Return one of `count` names in each run; with `leak`, x and y have different names."""

    def mechanism(dataset, size, rng):
        return [f"id{number}" for number in rng.integers(count, size=size) + dataset * leak * count]

    return mechanism


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


def test_texts_that_never_come_again_are_audited_by_their_parts():
    for within in (lambda text: text, lambda text: (text,)):
        result = audit(lambda d, rng, within=within: within(f"n{d + rng.laplace():.17g}"), runs=4_000)
        assert result.verdict is Verdict.NOT_REFUTED
        assert result.findings == ()
        assert result.bound > 0.5


@pytest.mark.parametrize(
    ("mechanism", "sequential"),
    [
        (lambda answer, rng: f"{rng.integers(1 << 40):x}:{answer}", False),
        (lambda answer, rng: f"count={answer + rng.laplace(scale=0.25)}", False),
        (lambda answer, rng: f"count={answer + rng.laplace(scale=0.25)}", True),
        (lambda answer, rng: b"%f" % (answer + rng.laplace(scale=0.25)), False),
    ],
    ids=["the answer itself", "all digits", "all digits, in batches", "six digits"],
)
def test_a_violation_in_texts_that_hardly_come_again_is_found(mechanism, sequential):
    """Overfitted events are frequent in the training runs and never occur in others; parts of the texts do."""
    result = audit(mechanism, runs=1_200, sequential=sequential)
    assert result.is_refuted
    assert result.findings == ()


@pytest.mark.parametrize("count", [1_000, 30_000, 100_000])
def test_many_identifiers(count):
    """Correct identifiers that hardly repeat in a pilot raise no alarm; disjoint identifiers are refuted."""
    for sequential in (False, True) if count == 100_000 else (False,):
        settings = {"runs": 6_000 if count == 30_000 else 2_000, "sequential": sequential, "bits": False}
        assert audit(identifiers(count), **settings).findings == ()
        leaking = audit(identifiers(count, leak=True), **settings)
        assert leaking.is_refuted
        assert leaking.findings == ()


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
