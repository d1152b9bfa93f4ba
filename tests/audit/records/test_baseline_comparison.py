"""Two records of the same audits: what counts as a change, and what must not. Seeds are fixed."""

from __future__ import annotations

import datetime
import enum
import math
from dataclasses import replace

import pytest

from dpaudit import PureDP, check
from dpaudit.audit.errors import RecordError
from dpaudit.audit.events.events import Intervals, Outcomes
from dpaudit.audit.health.findings import Finding, HealthCheck
from dpaudit.audit.procedures.count_again import recount
from dpaudit.audit.records.baseline_comparison import ANOTHER_PAIR, compare
from dpaudit.audit.records.json_codec import is_storable
from dpaudit.audit.records.suite import Accepted, SideCheck
from dpaudit.audit.results.statement_result import Point
from dpaudit.results import Entry, Suite

from .by_hand import AUDIT, CANARIES, STATEMENT

X, Y = 1.0, 0.0
UPPER = Intervals(((1.0, math.inf),))


def laplace(scale):
    def noisy(answer, size, rng):
        return answer + rng.laplace(scale=scale, size=size)

    return noisy


KEPT = replace(AUDIT, bound=0.5, pvalue=0.5, alpha=1e-5, runs=20_000, notes=())


def entry(mechanism, seed=0, runs=20_000, stream="after", **changes):
    """Counts of the mechanism beside a result that does not depend on it."""
    again = recount(mechanism, X, Y, UPPER, stream=stream, runs=runs, seed=seed, jobs=1)
    return Entry(name="one", result=replace(KEPT, **changes), recounts=(again,))


def compared(before, after, **options):
    (found,) = compare(Suite(title="", entries=(before,)), Suite(title="", entries=(after,)), **options)
    return found


BEFORE = entry(laplace(1.0), stream="before")
NONE = ()


def test_the_same_mechanism_is_the_same_and_one_with_other_noise_has_changed():
    """But for chance, 1e-5 each: with the same seed and with another one."""
    found = compared(BEFORE, entry(laplace(1.0)))
    assert found.changes == NONE
    assert 1e-5 < found.pvalue <= 1.0
    found = compared(BEFORE, entry(laplace(0.85), seed=1))
    assert "Pr[output ≥ 1 | y] was" in " ".join(found.changes)
    assert found.pvalue < 1e-5


def negated(answer, size, rng):
    """The distribution of `laplace(1.0)`, from the same random numbers."""
    return answer - rng.laplace(size=size)


def test_counts_from_the_same_random_numbers_have_no_pvalue():
    """The same counts pass. Others are named with the way to compare them, whether or not they differ."""
    same = compared(BEFORE, entry(laplace(1.0), stream="before"))
    assert (same.changes, same.pvalue) == (NONE, None)
    assert same.notes == ("no p-value: the counts are equal and come from the same random numbers (seed 0, before)",)
    for other in (negated, laplace(0.5)):
        found = compared(BEFORE, entry(other, stream="before"))
        assert found.pvalue is None
        (said,) = (change for change in found.changes if "verdict" not in change)
        counts = BEFORE.recounts[0].counts
        assert f"Pr[output ≥ 1 | y] was {counts.count_y:,} of 20,000 and is " in said
        assert "from the same random numbers (seed 0, before); save one of them again under another name" in said
        assert "p-value 0" not in said


def test_counts_of_runs_that_are_not_independent_are_not_compared():
    finding = Finding(HealthCheck.SERIAL_DEPENDENCE, "runs are correlated")
    found = compared(BEFORE, entry(laplace(1.0), findings=(finding,)))
    assert found.pvalue is None
    assert found.not_compared.startswith("runs were not independent")
    assert found.changes == ("the verdict was not refuted and is inconclusive",)


def test_counts_that_do_not_say_their_random_numbers():
    """As files from before they were kept: two of them may be of one stream, and one of them and a new one are not."""
    silent = [
        replace(one, recounts=(replace(one.recounts[0], seed=None, stream=""),))
        for one in (BEFORE, entry(negated, stream="before"))
    ]
    (said,) = compared(*silent).changes
    assert "from random numbers that may be the same (neither file names them)" in said
    assert compared(silent[0], silent[0]).notes[0].startswith("no p-value: the counts are equal and come from random")
    assert 0.0 < compared(silent[0], entry(laplace(1.0))).pvalue <= 1.0


FIRST, SECOND = STATEMENT.points
STATED = replace(STATEMENT, points=(FIRST, replace(SECOND, high=4.0)))
TRAINED = replace(CANARIES, bound=0.8, pvalue=0.3)
HALVES = tuple(replace(test, alpha=test.alpha / 2) for test in TRAINED.tests)
LOWER = {"points": (Point(at="t = 1", estimate=1.8, lower=1.6, upper=1.9, high=2.0),)}
NEAR = {"points": (Point(at="t = 1", estimate=1.6, lower=1.4, upper=1.9, high=2.0),), "seed": 9}


@pytest.mark.parametrize(
    ("was", "change", "words"),
    [
        (KEPT, {"claim": PureDP(2.0)}, "the claim was 1-DP and is 2-DP"),
        (KEPT, {"runs": 10_000}, "the runs on each dataset fell from 20,000 to 10,000"),
        (KEPT, {"alpha": 1e-6}, "alpha was 1e-05 and is 1e-06, so smaller deviations go undetected"),
        (KEPT, {"floating_point": "ignore"}, "the setting for floating-point leaks was warn and is ignore"),
        (KEPT, {"bound": 1.5, "pvalue": 1e-9}, "the verdict was not refuted and is refuted"),
        (STATED, {"statement": "It doubles."}, "the statement was: The error halves. It is: It doubles."),
        (STATED, {"points": (replace(FIRST, high=3.0),)}, "t = 1: stated at most 2 before, stated at most 3 now"),
        (STATED, LOWER, "t = 1: in [0.5, 1.5] before"),
        (STATED, {"runs": 400}, "the runs fell from 500 to 400"),
        (STATED, {"alpha": 1e-6}, "so smaller deviations go undetected"),
        (STATED, NEAR, None),  # intervals that meet
        (TRAINED, {}, None),
        (TRAINED, {"pvalue": 0.5, "bound": 0.7}, None),
        (TRAINED, {"bound": 1.9345, "pvalue": 1e-10}, "the verdict was not refuted and is refuted"),
        (TRAINED, {"claim": PureDP(2.0)}, "the claim was (1, 1e-05)-DP and is 2-DP"),
        (TRAINED, {"canaries": 500, "included": 250}, "the canaries fell from 1,000 to 500"),
        (TRAINED, {"alpha": 0.025, "tests": HALVES, "deciding_test": HALVES[1]}, "alpha was 0.05 and is 0.025, so"),
        (TRAINED, {"inclusion": "fixed", "adjacency": "replace"}, "the adjacency was add-remove and is replace"),
    ],
)
def test_settings_that_changed_and_results_that_became_weaker_or_moved(was, change, words):
    counts = BEFORE.recounts if was is KEPT else ()
    before, after = (Entry(name="one", result=one, recounts=counts) for one in (was, replace(was, **change)))
    found = compared(before, after)
    assert (words is None) == (found.changes == NONE)
    assert words is None or words in " ".join(found.changes)
    assert was is not KEPT or len(found.changes) == 1
    assert (found.pvalue, found.not_compared) == (None, None)


def test_nothing_to_compare_is_no_pass():
    none = replace(BEFORE, recounts=())
    for before, after, which in (
        (BEFORE, none, "the second file does not have"),
        (none, BEFORE, "the first file does not have"),
        (none, none, "neither file has"),
    ):
        found = compared(before, after)
        assert (found.pvalue, found.has_changed) == (None, False)
        assert found.not_compared == (
            f"nothing to compare: {which} separate counts of the event; pytest --dp-audit-save writes them"
        )
    other = Intervals(((7.5, math.inf),))
    after = replace(BEFORE, recounts=tuple(replace(one, event=other, stream="other") for one in BEFORE.recounts))
    said = compared(BEFORE, after).not_compared
    assert said.startswith(
        f"nothing to compare: the counted events were {BEFORE.recounts[0].event} and are output ≥ 7.5; pytest"
    )
    assert "output ≥ 7.5; pytest --dp-audit-compare=FIRST --dp-audit-save=SECOND counts" in said


def test_events_of_types_that_no_file_holds_are_compared_by_form():
    """An Enum comes back from a file as a text: its members are forms, and those are counted."""

    class Answer(enum.Enum):
        YES = 1
        NO = 2

    def response(share):
        return lambda answer, rng: Answer.YES if rng.random() < share else Answer.NO

    def recounted(share, stream="after"):
        one = recount(response(share), X, Y, None, stream=stream, runs=4_000, jobs=1)
        assert {form.rpartition(".")[2] for form, _, _ in one.forms} == {"YES", "NO"}
        return replace(BEFORE, recounts=(one,))

    assert not is_storable(Outcomes((Answer.YES,)))
    assert is_storable(Outcomes(("yes", None, 3, (1, 2.5))))
    before = recounted(0.7, "before")
    assert compared(before, recounted(0.7)).changes == NONE  # false alarm: 1e-5
    assert "Answer.NO | x] was 0.3" in " ".join(compared(before, recounted(0.5)).changes)


def test_another_pair_of_a_search_is_said_and_not_counted():
    def with_pair(text):
        return replace(BEFORE, result=replace(BEFORE.result, pair=replace(BEFORE.result.pair, contents=(text, "0.0"))))

    found = compared(with_pair("1.0"), replace(with_pair("0.5"), recounts=()))
    assert (found.has_changed, found.pvalue) == (False, None)
    assert found.not_compared == ANOTHER_PAIR


def test_an_accepted_finding_holds_until_its_day():
    broken = replace(BEFORE, result=replace(KEPT, bound=1.5))
    accepted = replace(broken, accepted=Accepted(reason="the noise is a known fault", until="2027-06-30"))
    day = datetime.date(2027, 6, 30)
    assert not compared(accepted, broken, today=day).has_changed
    assert "accepted until 2027-06-30: the noise is a known fault" in compared(accepted, broken, today=day).notes
    (expired,) = compared(accepted, broken, today=day + datetime.timedelta(days=1)).changes
    assert expired == (
        "the acceptance does not cover the finding: acceptance expired after 2027-06-30: the noise is a known fault"
    )
    mended = compared(accepted, BEFORE, today=day)
    assert "no longer refuted" in " ".join(mended.notes)

    for reason, until, words in (("", "2027-01-01", "needs a reason"), ("x", "2027-13-01", "is not a date")):
        with pytest.raises(RecordError, match=words):
            Accepted(reason=reason, until=until)


def test_a_recount_is_of_runs_of_its_own():
    """The audit's main runs do not come again."""
    result = check(laplace(1.0), X, Y, claim=PureDP(1.0), runs=4_000, seed=3)
    again = recount(laplace(1.0), X, Y, result.event, stream="one", runs=4_000, seed=3)
    assert again.counts != result.counts
    assert again == recount(laplace(1.0), X, Y, result.event, stream="one", runs=4_000, seed=3)
    assert again.counts != recount(laplace(1.0), X, Y, result.event, stream="two", runs=4_000, seed=3).counts
    assert (again.seed, again.stream) == (3, "one")


def check_of(verdict="BOUNDED", name="r", **changes):
    told = {"kind": "replay", "subject": "f", "claim": "1-DP", "found": "loss 1", "lines": ("said",), "seed": 1}
    return SideCheck(name=name, verdict=verdict, **{**told, **changes})


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        (check_of(), check_of(), ()),
        (check_of(), check_of("EXCESS"), ("the verdict was bounded on this path and is excess",)),
        (check_of("EXCESS"), check_of(), ("the verdict was excess and is bounded on this path",)),
        (check_of(), check_of(claim="2-DP"), ("the claim was 1-DP and is 2-DP",)),
        (check_of(), None, ()),
        (None, check_of(), ()),
        (None, check_of("EXCESS"), ("new, and excess",)),
        (None, check_of("EXCESS", is_expected=True), ()),
    ],
)
def test_replays_and_other_checks_are_compared_by_verdict_and_claim(before, after, changes):
    sides = (Suite(title="", entries=(), checks=(each,) if each else ()) for each in (before, after))
    (found,) = compare(*sides)
    assert found.changes == changes
    assert (found.not_compared is not None) is (after is None)
