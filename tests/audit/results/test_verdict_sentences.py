"""What a result says of its counts, read back: no sentence contradicts them, and an infinite estimate has a reason.

And how it is printed: in lines of at most 120 characters.
"""

from __future__ import annotations

import math
import re
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpaudit import ApproxDP, GaussianDP, PrivacyProfile, PureDP, RenyiDP, TradeOffCurve, Verdict, ZeroConcentratedDP
from dpaudit.audit.events.events import Intervals
from dpaudit.audit.inference.event_test import Counts
from dpaudit.audit.inference.guess_test import Guesses
from dpaudit.audit.results.audit_result import (
    FixedSizeResult,
    OtherDirection,
    Pair,
    SequentialResult,
    bound_beside_claim,
    largest_excess,
)
from dpaudit.claims import NFoldComposition, ProbabilityPreservation
from dpaudit.reports.plain_text import other_way

CLAIMS = [
    PureDP(1.0), ApproxDP(1.0, 0.1), ApproxDP(1.0, 0.1, bound_on="delta"), GaussianDP(1.0), RenyiDP(2.0, 0.3),
    ZeroConcentratedDP(0.1), PrivacyProfile((0.5,), (0.1,)), TradeOffCurve((0.1, 0.4), (0.6, 0.2)),
    ProbabilityPreservation(2.0, 0.1), NFoldComposition(0.1, 4), PureDP(0.5).group(2), GaussianDP(0.5).group(2),
    ApproxDP(0.5, 0.01, bound_on="delta").group(2),
]  # fmt: skip
FULL = 1000


def audited(claim, kind=FixedSizeResult, **given):
    fields = {
        "mechanism": "m", "pair": Pair(x="", y="", difference="", adjacency="", distance=1.0),
        "event": Intervals(((-math.inf, 0.5),)), "more_likely_on": "x", "alpha": 0.05, "pvalue": 0.01,
        "counts": Counts(count_x=10, runs_x=FULL, count_y=10, runs_y=FULL), "bound": claim.parameter + 1e-3,
        "resolution": 0.1, "power": 0.95, "runs": FULL, "pilot_runs": 0, "seed": 1,
    }  # fmt: skip
    return kind(claim=claim, **(fields | given))


def refuted(claim, count_x, count_y, more_likely_on, runs_y=FULL):
    counts = Counts(count_x=count_x, runs_x=FULL, count_y=count_y, runs_y=runs_y)
    result = audited(claim, counts=counts, more_likely_on=more_likely_on)
    assert result.verdict is Verdict.REFUTED
    return result


counts = st.one_of(st.sampled_from([0, 1, FULL - 1, FULL]), st.integers(0, FULL))


@given(st.sampled_from(CLAIMS), counts, counts, st.sampled_from("xy"), st.sampled_from([FULL, 1700]))
@example(PureDP(1.0), FULL, 500, "x", FULL)
@example(PureDP(1.0), 500, FULL, "y", FULL)
@example(PureDP(1.0), FULL, 0, "x", 1700)
@example(ApproxDP(1.0, 0.1), 200, 0, "x", FULL)
@example(ApproxDP(1.0, 0.1, bound_on="delta"), FULL, 0, "x", FULL)
@example(PureDP(1.0), 0, 0, "y", FULL)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_no_sentence_contradicts_its_counts(claim, count_x, count_y, more_likely_on, runs_y):
    count_y = runs_y if count_y == FULL else count_y
    result = refuted(claim, count_x, count_y, more_likely_on, runs_y)
    on, runs, text = {"x": count_x, "y": count_y}, {"x": FULL, "y": runs_y}, result.sentence
    share = {side: on[side] / runs[side] for side in on}

    assert "infinite" not in text
    seen = re.search(
        r"; (the event|outputs outside the event) in ([\d,]+) of ([\d,]+) runs on ([xy]) and ([\d,]+) of ([\d,]+) on",
        text,
    )
    assert (seen is not None) == math.isinf(result.estimate)
    if seen is not None:
        first, of_first, second, of_second = (int(seen[n].replace(",", "")) for n in (2, 3, 5, 6))
        side, is_outside = seen[4], seen[1] != "the event"
        other = "y" if side == "x" else "x"
        assert (of_first, of_second) == (runs[side], runs[other])
        assert (first, second) == tuple(runs[s] - on[s] if is_outside else on[s] for s in (side, other))
        assert min(first, second) == 0
        # It is the reason: with one run in every set that was empty the estimate is finite.
        less = {s: min(max(h, 1), runs[s] - 1) for s, h in on.items()}
        assert math.isfinite(refuted(claim, less["x"], less["y"], more_likely_on, runs_y).estimate)

    words = result.event_in_words.removeprefix(str(result.event))
    if match := re.fullmatch(r" occurred (once|[\d,]+ times) on ([xy]) and never on ([xy])", words):
        assert on[match[2]] == (1 if match[1] == "once" else int(match[1].split()[0].replace(",", ""))) > 0
        assert on[match[3]] == 0
    elif match := re.fullmatch(r" is (\S+) times as likely on ([xy])", words):
        other = "y" if match[2] == "x" else "x"
        assert float(match[1]) == pytest.approx(share[match[2]] / share[other], rel=5.1e-3)
        assert share[match[2]] > share[other] > 0
    elif words == " is about as likely on x as on y":
        assert share["x"] / share["y"] == pytest.approx(1.0, rel=1e-2)
    else:
        assert words == " never occurred"
        assert count_x == count_y == 0

    if outside := other_way(result):
        found = re.fullmatch(
            r"outputs outside the event (?:are (\S+) times as likely|occur only) on ([xy]): ([\d,]+) there, "
            r"([\d,]+) on ([xy])", outside,
        )  # fmt: skip
        ratio, side, there, here, other = found.groups()
        there, here = (int(n.replace(",", "")) for n in (there, here))
        assert (there, here) == (runs[side] - on[side], runs[other] - on[other])
        assert there / runs[side] > here / runs[other]
        assert side != other == more_likely_on
        assert (
            here == 0
            if ratio is None
            else float(ratio) == pytest.approx((there / runs[side]) / (here / runs[other]), rel=5.1e-3)
        )


MANY = 123_456_789
LONG = {"alpha": 1.2345e-7, "runs": MANY, "power": 0.975, "is_reproducible": False}
ALL_WRONG = Counts(count_x=MANY, runs_x=MANY, count_y=MANY - 1, runs_y=MANY)
STOPS = [
    {"stopped": "refuted"},
    {"stopped": "refuted", "is_closed": True, "final_alpha": 1e-8},
    {"stopped": "time"},
    {"stopped": "request", "requested_resolution": 0.001234},
]


@pytest.mark.parametrize("stop", [None, *STOPS], ids=str)
def test_lines_of_a_verdict_have_at_most_120_characters(stop):
    kind, more = (FixedSizeResult, {}) if stop is None else (SequentialResult, {"interim_analyses": (), **stop})
    for claim, resolution, excess in product(CLAIMS, [0.0012, math.inf], [-0.001234, 0.001234]):
        found = {"bound": max(0.0, claim.parameter + excess), "resolution": resolution, "resolution_basis": "common"}
        result = audited(claim, kind, counts=ALL_WRONG, **found, **LONG, **more)
        verdict, *others = str(result).split("\n")
        assert verdict.startswith(f"{result.verdict.value.upper()}: ")
        assert max(map(len, (verdict, *others))) <= 120
        # Nothing is lost in the lines, and what is not part of the sentence follows it.
        assert " ".join(str(result).split()) == " ".join([result.sentence, *result.remarks])
        assert all(line.startswith("  ") for line in others)


@pytest.mark.parametrize(
    ("claim", "bound", "said"),
    [
        (PureDP(1.0), 1.0000349, "epsilon >= 1.00003, claimed 1"), (PureDP(1.0), 1.0 + 3e-12, "epsilon > 1, claimed 1"),
        (PureDP(1.0), math.inf, "epsilon >= inf, claimed 1"),
        (PureDP(12_000.0), 12_345.6, "epsilon >= 12340, claimed 12000"),
        (PureDP(0.96627), 0.96621, "epsilon >= 0.9662, claimed 0.9663"),
        (ApproxDP(1.00006, 1e-5), 1.00012, "epsilon >= 1.00012 at delta 1e-05, claimed 1.00006"),
        (PureDP(1.00006).group(2), 1.00012, "epsilon >= 1.00012 per step, at distance 2, claimed 1.00006"),
    ],
)  # fmt: skip
def test_the_digits_of_a_bound_show_whether_it_exceeds_the_claim(claim, bound, said):
    assert bound_beside_claim(claim, bound) == said


@given(st.sampled_from(CLAIMS) | st.builds(PureDP, st.floats(1e-3, 20.0)), st.floats(1e-11, 1e-3))
@example(PureDP(1.00006), 5e-5)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_the_bound_of_a_refutation_is_printed_above_the_claim(claim, beyond):
    found = claim.parameter + beyond * (claim.parameter or 1.0)
    said = bound_beside_claim(claim, found)
    sign, bound, beside = re.search(r" (>=|>) (\S+?),? .*claimed (\S+)$", said).groups()
    if sign == ">=":
        assert float(beside) < float(bound) <= found
    else:
        assert bound == beside
        assert beyond < 1e-10


def test_the_evidence_is_what_is_tested():
    counts = Counts(count_x=300, runs_x=FULL, count_y=100, runs_y=FULL)
    one = audited(PureDP(1.0), counts=counts)
    assert one.evidence == "output ≤ 0.5 is 3 times as likely on x\n300 of 1,000 on x, 100 of 1,000 on y"
    guesses = Guesses(right=590, wrong=200, runs=1_900)
    other = OtherDirection(event=Intervals(((0.5, math.inf),)), counts=counts.swapped(), guesses=guesses)
    both = audited(PureDP(1.0), counts=counts, opposite=other)
    assert both.tested is guesses
    assert both.evidence.splitlines()[1:] == [
        "output ≥ 0.5 is 3 times as likely on y",
        "590 correct and 200 incorrect guesses in 1,900 runs",
    ]


@pytest.mark.parametrize(
    ("is_closed", "how"), [(False, "occurred 3 times as often on x"), (True, "is 3 times as likely on x")]
)
def test_frequencies_in_the_runs_that_an_event_was_learned_on_are_no_likelihoods(is_closed, how):
    counts = Counts(count_x=300, runs_x=FULL, count_y=100, runs_y=FULL)
    result = audited(
        PureDP(1.0), SequentialResult, counts=counts, interim_analyses=(), stopped="refuted", is_closed=is_closed
    )
    assert result.event_in_words == f"output ≤ 0.5 {how}"


def test_a_bound_within_a_percent_of_the_claim_says_what_to_do():
    close = audited(PureDP(1.0), bound=1.009)
    assert any("Audit again with more runs and another seed" in remark for remark in close.remarks)
    unseeded = audited(PureDP(1.0), bound=1.009, is_reproducible=False)
    assert any("another seed alone changes nothing" in remark for remark in unseeded.remarks)
    for other in ({"bound": 1.02}, {"bound": 1.009, "alpha": 1e-5}, {"bound": 0.9}):
        assert not any("Audit again" in remark for remark in audited(PureDP(1.0), **other).remarks)


@pytest.mark.parametrize("claim", [*CLAIMS, PureDP(0.0), ApproxDP(0.0, 0.1), TradeOffCurve((0.1,), (0.9,))], ids=str)
def test_an_audit_that_would_miss_twice_the_claim_is_inconclusive(claim):
    most = largest_excess(claim)
    assert most == claim.parameter or claim.parameter == 0.0
    held = {"bound": 0.0, "counts": Counts(count_x=10, runs_x=FULL, count_y=10, runs_y=FULL)}
    assert audited(claim, resolution=most, **held).verdict is Verdict.NOT_REFUTED
    missed = audited(claim, resolution=1.01 * most, **held)
    assert missed.verdict is Verdict.INCONCLUSIVE
    accepted = float(re.search(r"resolution=(\S+)$", missed.sentence)[1])
    assert audited(claim, resolution=1.01 * most, requested_resolution=accepted, **held).verdict is Verdict.NOT_REFUTED
