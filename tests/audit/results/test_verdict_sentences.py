"""What a result says of its counts, read back: no sentence contradicts them, and an infinite estimate has a reason.

And how it is printed: in lines of at most 120 characters.
"""

import math
import re
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpaudit import ApproxDP, GaussianDP, PrivacyProfile, PureDP, RenyiDP, TradeOffCurve, Verdict, ZeroConcentratedDP
from dpaudit.audit.datasets.adjacency import NAMED
from dpaudit.audit.events.events import Intervals
from dpaudit.audit.inference.event_test import Counts
from dpaudit.audit.inference.guess_test import Guesses
from dpaudit.audit.results.audit_result import FixedSizeResult, OtherDirection, SequentialResult
from dpaudit.audit.results.claim_pair_and_alpha import Pair
from dpaudit.audit.results.verdict import bound_beside_claim, largest_excess
from dpaudit.audit.sampling.object_identity import Provenance
from dpaudit.claims import NFoldComposition, ProbabilityPreservation
from dpaudit.reports.plain_text import found, other_way

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
        "min_detectable_excess": 0.1, "power": 0.95, "runs": FULL, "pilot_runs": 0, "seed": 1,
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
    on, runs, text = {"x": count_x, "y": count_y}, {"x": FULL, "y": runs_y}, str(result)
    share = {side: on[side] / runs[side] for side in on}

    assert "infinite" not in text
    (line,) = re.findall(r"^  .*runs on x.*$", text, re.MULTILINE)
    seen = re.fullmatch(r"  (all but )?(.*): ([\d,]+) of ([\d,]+) runs on x, ([\d,]+) of ([\d,]+) on y", line)
    first, of_first, second, of_second = (int(seen[n].replace(",", "")) for n in (3, 4, 5, 6))
    assert (seen[2], of_first, of_second) == (str(result.event), runs["x"], runs["y"])
    assert (first, second) == tuple(runs[s] - on[s] if seen[1] else on[s] for s in "xy")
    assert not seen[1] or math.isinf(result.estimate)
    if math.isinf(result.estimate):
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
    {"stopped": "request", "detect": 0.001234},
]


@pytest.mark.parametrize("stop", [None, *STOPS], ids=str)
def test_lines_of_a_verdict_have_at_most_120_characters(stop):
    kind, more = (FixedSizeResult, {}) if stop is None else (SequentialResult, {"interim_analyses": (), **stop})
    for claim, least, excess in product(CLAIMS, [0.0012, math.inf], [-0.001234, 0.001234]):
        found = {"bound": max(0.0, claim.parameter + excess), "min_detectable_excess": least, "excess_basis": "common"}
        result = audited(claim, kind, counts=ALL_WRONG, **found, **LONG, **more)
        verdict, *others = str(result).split("\n")
        assert verdict.startswith(f"{result.verdict.value.upper()}  m: ")
        assert max(map(len, (verdict, *others))) <= 120
        # Nothing is lost in the lines, and what is not part of the first sentence follows it.
        assert " ".join(str(result).split()) == " ".join(" ".join([result.headline, *result.details]).split())
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


THRICE = Counts(count_x=300, runs_x=FULL, count_y=100, runs_y=FULL)


def test_the_evidence_is_what_is_tested():
    one = audited(PureDP(1.0), counts=THRICE)
    assert one.counterexample == f"{one.pair.difference}\n{one.observation}"
    assert audited(PureDP(1.0), bound=0.5).counterexample == ""
    assert one.observation == "output ≤ 0.5 is 3 times as likely on x\n300 of 1,000 on x, 100 of 1,000 on y"
    guesses = Guesses(correct=590, incorrect=200, runs=1_900)
    other = OtherDirection(event=Intervals(((0.5, math.inf),)), counts=THRICE.swapped(), guesses=guesses)
    both = audited(PureDP(1.0), counts=THRICE, opposite=other)
    assert both.tested is guesses
    assert both.observation.splitlines()[1:] == [
        "output ≥ 0.5 is 3 times as likely on y",
        "590 correct and 200 incorrect guesses in 1,900 runs",
    ]
    betting = {"counts": THRICE, "interim_analyses": (), "stopped": "refuted"}
    for is_closed, how in ((False, "occurred 3 times as often on x"), (True, "is 3 times as likely on x")):
        # In the runs on which an event was learned, its frequencies are not likelihoods.
        found = audited(PureDP(1.0), SequentialResult, is_closed=is_closed, **betting)
        assert found.event_in_words == f"output ≤ 0.5 {how}"


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
    assert audited(claim, min_detectable_excess=most, **held).verdict is Verdict.NOT_REFUTED
    missed = audited(claim, min_detectable_excess=1.01 * most, **held)
    assert missed.verdict is Verdict.INCONCLUSIVE
    accepted = float(re.search(r"detect=(\S+)$", missed.sentence)[1])
    assert audited(claim, min_detectable_excess=1.01 * most, detect=accepted, **held).verdict is Verdict.NOT_REFUTED


@pytest.mark.parametrize("excess", [1e-9, 1e-4, 0.004, 0.0099, 0.02, 1.0])
@pytest.mark.parametrize("claim", [0.7, 0.9996, 1.0, 3.0])
def test_an_early_stop_prints_no_bound_that_equals_the_claim_to_three_digits(claim, excess):
    bound, counts = claim * (1.0 + excess), Counts(count_x=300, runs_x=FULL, count_y=10, runs_y=FULL)
    stopped = {"interim_analyses": (), "stopped": "refuted", "counts": counts}
    early = audited(PureDP(claim), SequentialResult, bound=bound, **stopped)
    line = str(early).split("\n")[0]
    is_shown = re.match(rf"REFUTED  m: epsilon >= (\S+), claimed {claim:.4g} ", line)
    assert bool(is_shown) == (excess > 0.01)
    if is_shown:
        assert f"{float(is_shown[1]):.3g}" != f"{claim:.3g}"
    else:
        assert line.startswith(
            f"REFUTED  m: epsilon more than the claimed {claim:.4g} (95% confidence), about 3.4; stopped"
        )
        assert f"epsilon > {claim:.4g}," in repr(early)
        assert found(early) == f"ε > {claim:.4g}"
    late = audited(PureDP(claim), SequentialResult, bound=bound, is_closed=True, **stopped)
    assert re.match(
        r"REFUTED  m: epsilon (>=|>) \S+, claimed .*, by the final test after 1,000 runs per dataset", str(late)
    )


@pytest.mark.parametrize("estimate", [1.004, 1.06, 3.04, 12.3])
def test_a_rough_estimate_is_shown_only_if_it_exceeds_the_claim(estimate):
    """The first event's shares are p = e^ε q, so the point estimate is ε."""
    q = 0.5 * math.exp(-estimate)
    counts = Counts(count_x=5 * 10**14, runs_x=10**15, count_y=round(q * 10**15), runs_y=10**15)
    early = audited(PureDP(1.0), SequentialResult, bound=1.001, counts=counts, interim_analyses=(), stopped="refuted")
    assert early.estimate == pytest.approx(estimate, rel=1e-6)
    about = re.search(r"about (\S+);", str(early))
    assert (about[1] if about else None) == {1.06: "1.1", 3.04: "3.0", 12.3: "12"}.get(estimate)


def test_a_refutation_is_followed_by_a_replay_of_the_code():
    code = Provenance(where="mine:m", fingerprint="0" * 16)
    for claim, said in (
        (PureDP(0.5), "claim=0.5"), (ApproxDP(1.0, 1e-5), "claim=(1, 1e-05)"),
        (GaussianDP(1.0), "claim=GaussianDP(mu=1.0)"), (PureDP(0.5).group(2), "claim=0.5, distance=2"),
        (TradeOffCurve((0.1, 0.4), (0.6, 0.2)), "claim=claim"),
    ):  # fmt: skip
        result = audited(claim, bound=claim.parameter + 1.0, provenance=code)
        assert result.next_step == f"replay(m, x, y, {said}) looks for the line that leaks"
        assert str(result).endswith(f"\n  next: {result.next_step}")
    assert "replay(mechanism, x, y" in audited(PureDP(1.0), bound=2.0, provenance=code, mechanism="a b").next_step
    pair = replace(audited(PureDP(1.0), bound=2.0).pair, adjacency=str(NAMED["add-remove"]))
    part = audited(PureDP(1.0), bound=2.0, provenance=code, mechanism='m, output "total"', pair=pair)
    assert part.next_step.startswith('replay(m, x, y, claim=1, adjacency="add-remove", output="total") looks')
    for other in (None, Provenance(where="mine:f"), Provenance(where="mine.program:Program", fingerprint="0" * 16)):
        assert audited(PureDP(1.0), bound=2.0, provenance=other).next_step == ""
    assert audited(PureDP(1.0), bound=1.001, provenance=code).next_step == "", "which is to be audited again"


def test_the_guesses_of_a_refutation_name_the_event_of_each_dataset():
    guesses = Guesses(correct=59, incorrect=20, runs=190)
    other = OtherDirection(event=Intervals(((0.6, math.inf),)), counts=THRICE.swapped(), guesses=guesses)
    said = "59 correct and 20 incorrect guesses in 190 runs"
    for more_likely_on, events in (
        ("x", "x if output ≤ 0.5, y if output ≥ 0.6"),
        ("y", "x if output ≥ 0.6, y if output ≤ 0.5"),
    ):
        result = audited(PureDP(1.0), bound=2.0, counts=THRICE, opposite=other, more_likely_on=more_likely_on)
        assert str(result).split("\n")[1] == f"  {events}: {said}"
