"""Audits of one training run: verdicts by guesses about canaries, their tests, and their number."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri
from scipy.stats import binom

from dpaudit import (
    AddRemove,
    ApproxDP,
    GaussianDP,
    PrivacyProfile,
    PureDP,
    RenyiDP,
    TradeOffCurve,
    Verdict,
    ZeroConcentratedDP,
    ZeroOut,
    check_canaries,
    plan_canaries,
)
from dpaudit.audit.canaries.canary_tests import least_wrong, refuted_parameter, refutes, tail
from dpaudit.audit.canaries.check_canaries import canary_draws
from dpaudit.audit.canaries.plan_canaries import best_rates, fixed_numbers, plan_tests, smallest_excess
from dpaudit.audit.errors import ClaimError, OptionError
from dpaudit.audit.guesses.canary_guesses import CanaryGuesses, CanaryTest
from dpaudit.counts import epsilon_from_guesses

METHODS = ("auto", "betting", "counts", "steinke", "f-dp")
FIXED = {"inclusion": "fixed", "adjacency": "replace"}


def coins_of(canaries, seed=0, probability=0.5):
    return np.random.default_rng(seed).random(canaries) < probability


def even_scores(included, shift):
    """Normal quantiles on an even grid within each group: scores without chance."""
    scores = np.empty(len(included))
    for flag in (True, False):
        count = int((included == flag).sum())
        scores[included == flag] = ndtri((np.arange(count) + 0.5) / count) + shift * flag
    return scores


FLAGS = coins_of(400)
CLEAR = even_scores(FLAGS, 3.0)


FAMILIES = [
    PureDP(0.5), GaussianDP(0.3), RenyiDP(2.0, 0.1), PureDP(0.25).group(2), PrivacyProfile((0.0, 1.0), (0.1, 0.0)),
    TradeOffCurve((0.0, 0.2, 0.7, 1.0), (1.0, 0.7, 0.2, 0.0)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("claim", "kind", "options"),
    [
        *((ApproxDP(1.0, 1e-6), "betting" if method == "auto" else method, {"method": method}) for method in METHODS),
        *((claim, "counts" if isinstance(claim, PureDP) else "f-dp", {"guesses": 100}) for claim in FAMILIES),
    ],
    ids=str,
)
def test_what_is_clear_is_refuted_and_nothing_without_a_signal(claim, kind, options):
    clear = check_canaries(CLEAR, FLAGS, claim=claim, **options)
    assert (clear.verdict, clear.is_refuted) == (Verdict.REFUTED, True)
    assert "REFUTED" in str(clear)
    assert clear.pvalue <= 0.05
    assert claim.parameter < clear.bound <= clear.max_attainable_bound
    assert {test.kind for test in clear.tests} == {kind}
    assert sum(test.alpha for test in clear.tests) == pytest.approx(0.05)
    vague = check_canaries(even_scores(FLAGS, 0.0), FLAGS, claim=claim, **options)
    assert not vague.is_refuted
    assert vague.pvalue > 0.05
    assert vague.bound <= claim.parameter < vague.max_attainable_bound
    assert vague.verdict is Verdict.NOT_REFUTED or claim in FAMILIES


def test_scores_at_the_claim_are_not_refuted_and_the_bound_is_close():
    """Gaussian scores without chance: the bound is below the truth, and grows with the canaries."""
    mu, bounds = 2.0, []
    for canaries in (500, 5_000):
        included = coins_of(canaries, seed=1)
        result = check_canaries(even_scores(included, mu), included, claim=GaussianDP(mu))
        assert not result.is_refuted
        bounds.append(result.bound)
    assert 0.5 * mu < bounds[1] < mu
    assert bounds[0] < bounds[1]


def test_forms_of_the_same_scores_infinite_scores_and_flags_as_scores():
    expected = check_canaries(CLEAR, FLAGS, claim=PureDP(1.0)).guesses
    for scores in (3.0 * CLEAR - 7.0, CLEAR.tolist(), CLEAR.reshape(4, 100)):
        flags = FLAGS.reshape(np.shape(scores)).astype(int)
        assert check_canaries(scores, flags, claim=PureDP(1.0)).guesses == expected
    infinite = np.where(FLAGS, np.inf, -np.inf)
    for scores in (infinite, FLAGS, FLAGS.astype(int)):
        result = check_canaries(scores, FLAGS, claim=PureDP(1.0))
        assert result.guesses.correct_among(32) == 32
    assert not check_canaries(np.full(400, np.inf), FLAGS, claim=PureDP(0.0)).is_refuted
    flags = coins_of(30_000)[:, None]  # many runs of one canary, whose pairs would take much memory
    assert canary_draws(flags + 0.0, flags).runs == 30_000


@pytest.mark.parametrize("say", [None, "in", "out"])
def test_equal_scores_do_not_give_the_coins_away(say):
    """With the canaries that are in first or last: a stable sort would guess all of them right."""
    first = np.arange(400) < 190
    for seed, flags in enumerate((first, first[::-1])):
        result = check_canaries(np.zeros(400), flags, claim=PureDP(0.0), seed=seed, guess=say)
        assert result.guesses.correct_among(400) < 240


@pytest.mark.parametrize(("say", "probability"), [("in", 0.2), ("out", 0.5)])
def test_guesses_of_one_answer(say, probability):
    included = coins_of(600, 2, probability)
    result = check_canaries(even_scores(included, 3.0), included, claim=PureDP(0.5), probability=probability, guess=say)
    assert result.is_refuted
    assert (result.guesses.answer, result.guesses.probability) == (say, probability)
    assert result.bound <= result.max_attainable_bound
    assert callable(vars(result)["min_detectable_excess"]), "a refutation needs none, so it is computed when it is read"
    assert 0.0 < result.min_detectable_excess < 5.0
    prior = check_canaries(even_scores(included, 0.0), included, claim=PureDP(0.5), probability=probability, guess=say)
    assert not prior.is_refuted
    assert 0.0 < prior.min_detectable_excess < 5.0


def test_fixed_split_is_audited_in_pairs():
    half = np.arange(300) < 150
    result = check_canaries(even_scores(half, 3.0), half, claim=PureDP(1.0), **FIXED)
    assert result.is_refuted
    assert (result.canaries, result.included, result.guesses.canaries) == (300, 150, 150)
    assert "of 150 pairs" in result.sentence
    assert result.adjacency == "replace"
    for adjacency in ("zero-out", ZeroOut(), ZeroOut(null=None)):  # an inclusion bit puts a canary or a null record in
        made = check_canaries(np.zeros(300), half, claim=PureDP(1.0), inclusion="independent", adjacency=adjacency)
        assert made.adjacency == "zero-out"
    for seed in range(4):
        equal = check_canaries(np.zeros(300), half, claim=PureDP(0.0), seed=seed, **FIXED)
        assert equal.guesses.correct_among(150) < 110
    # Pairs are of one run. One has many canaries in, the other few: scores that tell the run alone tell no coin.
    rng = np.random.default_rng(0)
    included = np.stack([rng.permutation(60) < 54, rng.permutation(60) < 6])
    result = check_canaries(np.stack([np.ones(60), np.zeros(60)]), included, claim=PureDP(0.0), **FIXED)
    assert result.guesses.canaries == 12
    assert not result.is_refuted


@dataclass(frozen=True, slots=True)
class Dented(PureDP):
    """A claim of one's own whose boundary is not concave."""

    def _boundary(self, q, q_complement):
        p = np.where(q < 0.3, q, np.minimum(1.0, q + 0.2))
        return p, 1.0 - p


class Tensor:
    """Refuses to become an array, as tensors that track gradients do."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("use tensor.detach().numpy()")


SOME, TENTH, RUNS_APART = coins_of(600, 2, 0.2), np.arange(400) < 40, np.stack([np.ones(40), np.zeros(40)])
THOUSAND, LABELS = coins_of(1_000, 3), np.arange(400)[::-1]
REFUSED = [
    # Options, for CLEAR and FLAGS.
    ("adjacency='x' is unknown; use", {"adjacency": "x"}), ('pass adjacency="replace"', {"inclusion": "fixed"}),
    ("2ε or 2μ for replaced rows", {"inclusion": "fixed", "adjacency": AddRemove()}),
    ("guess='in' has no meaning for pairs", FIXED | {"guess": "in"}),
    ('guesses=100 has no meaning for method="betting"', {"method": "betting", "guesses": 100}),
    ('use "f-dp"', {"method": "counts", "claim": RenyiDP(2.0, 1.0)}),
    ("boundary of .* is not concave", {"claim": Dented(1.0)}),
    ("too small for the exact test", {"alpha": 1e-10}),
    ("guesses=0 are not numbers of guesses; use whole numbers from 1 to 400", {"guesses": 0}),
    ("guesses=401 are not", {"guesses": 401}), (r"guesses=\[\] are not", {"guesses": []}),
    ("which independent inclusion bits of probability 0.2 give", {"probability": 0.2}),
    # Scores and flags.
    (r"scores of shape \(399,\) and included of shape \(400,\)", {"scores": CLEAR[:-1]}),
    ("scores is not an array of numbers", {"scores": "abc"}),
    ("scores is not an array of numbers .*detach", {"scores": Tensor()}),
    ("scores is not an array of numbers .*complex", {"scores": CLEAR + 0j}),
    ("scores has masked values", {"scores": np.ma.masked_greater(CLEAR, 2.0)}),
    ("1 of 400 scores are NaN, the first at 3", {"scores": np.where(np.arange(400) == 3, np.nan, CLEAR)}),
    ("included=2 at 1 is neither 0 nor 1", {"included": FLAGS + 1}),
    ("different labels", {"scores": pd.Series(CLEAR, LABELS), "included": pd.Series(FLAGS, LABELS[::-1])}),
    ("canaries=7 are too few; use 8 or more", {"scores": CLEAR[:7], "included": FLAGS[:7]}),
    ("all of the 400 canaries are in", {"included": np.ones(400)}),
    ("200 of the 400 canaries are in, half of them", {"included": np.arange(400) < 200}),
    ("runs 0 and 1 agree in 100 of 100 canaries",
     {"scores": CLEAR.reshape(4, 100), "included": np.tile(FLAGS[:100], (4, 1))}),
    ("runs 0 and 1 agree in 0 of 200 canaries",
     {"scores": CLEAR.reshape(2, 200), "included": np.stack([FLAGS[:200], ~FLAGS[:200]])}),
    # Three equal runs, transposed: they would pass as a thousand runs of three canaries.
    ("canaries 0 and 1 agree in 1,000 of 1,000 runs.*transpose",
     {"scores": np.column_stack([even_scores(THOUSAND, 3.0)] * 3), "included": np.column_stack([THOUSAND] * 3)}),
    ("no pairs can be formed", FIXED | {"scores": np.zeros((2, 40)), "included": RUNS_APART}),
    # Unequal coins do not allow both answers or the published bound either.
    ('guess="both" needs probability=0.5',
     {"scores": even_scores(SOME, 1.0), "included": SOME, "probability": 0.2, "guess": "both"}),
    ('method="steinke" is for probability=0.5',
     {"scores": even_scores(SOME, 1.0), "included": SOME, "probability": 0.2, "method": "steinke"}),
]  # fmt: skip


@pytest.mark.parametrize(("match", "given"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused(match, given):
    with pytest.raises(OptionError, match=match):
        check_canaries(**{"scores": CLEAR, "included": FLAGS, "claim": PureDP(1.0), **given})


def test_what_the_tutorial_says_of_one_run():
    """Its first lines: the bounds at (8, 1e-5), and the canaries that find twice the claim."""
    claim = ApproxDP(8.0, 1e-5)
    most = [plan_canaries(number, claim=claim).max_attainable_bound for number in (1_000, 10_000)]
    assert [round(bound, 1) for bound in most] == [5.8, 8.1]
    assert plan_canaries(claim=claim, detect=8.0).canaries == 9_742
    assert plan_canaries(claim=ApproxDP(1.0, 1e-5), detect=1.0).canaries == 139


@pytest.mark.parametrize(
    ("claim", "excess", "options"),
    [
        (PureDP(1.0), 2.5, {"probability": 0.2}), (ApproxDP(1.0, 1e-6), 2.5, {"alpha": 1e-4}),
        (GaussianDP(1.0), 2.5, {}), (PureDP(1.0), 2.5, {"method": "f-dp"}), (ApproxDP(4.0, 1e-6), 0.7, {}),
        (GaussianDP(1.0), 2.5, {"probability": 0.2}), (PureDP(1.0), 1.0, {}),
    ],
)  # fmt: skip
def test_a_plan_for_an_excess_has_about_the_fewest_canaries_and_is_the_plan_of_their_number(claim, excess, options):
    planned = plan_canaries(claim=claim, detect=excess, **options)
    again, fewer = (plan_canaries(int(planned.canaries / by), claim=claim, **options) for by in (1.0, 1.2))
    assert planned.min_detectable_excess <= excess
    assert options or excess < fewer.min_detectable_excess
    assert again == planned or excess == 2.5, "the search may pass the excess by its accuracy"
    assert again.min_detectable_excess == pytest.approx(planned.min_detectable_excess, rel=2e-3)
    assert (again.tests, again.max_attainable_bound) == (planned.tests, planned.max_attainable_bound)


@pytest.mark.parametrize(("alpha", "delta"), [(1e-5, 1e-5), (0.05, 0.1)])
def test_no_plan_refutes_what_delta_alone_explains(alpha, delta):
    with pytest.raises(OptionError, match=f"alpha={alpha:g} is not above delta={delta:g}, so no number of canaries"):
        plan_canaries(claim=ApproxDP(1.0, delta), detect=1.0, alpha=alpha)
    for number in (40, 4_000):
        assert plan_canaries(number, claim=ApproxDP(1.0, delta), alpha=alpha).max_attainable_bound == 0.0


def test_verdict_words():
    result = check_canaries(CLEAR, FLAGS, claim=PureDP(1.0), name="sgd")
    of = result.best_guesses
    assert f"{of[1]:,} of {of[0]:,} guesses were correct, of 400 canaries" in result.sentence
    many = check_canaries(CLEAR, FLAGS, claim=ApproxDP(3.0, 0.02))
    assert many.verdict is Verdict.INCONCLUSIVE
    assert "too many canaries for this delta (400, 95% confidence); canaries × delta = 8" in many.sentence
    assert many.next_step == "use fewer canaries, or claim a smaller delta"
    reveals = check_canaries(CLEAR, FLAGS, claim=ApproxDP(1.0, 0.05))
    assert reveals.verdict is Verdict.INCONCLUSIVE
    assert "delta = 0.05 is not below alpha = 0.05; a training that reveals everything" in reveals.sentence
    assert reveals.next_step == "use a larger alpha or a smaller delta"
    few = check_canaries(CLEAR[:9], FLAGS[:9], claim=PureDP(3.0), inclusion="independent")
    assert (few.verdict, few.min_detectable_excess) == (Verdict.INCONCLUSIVE, math.inf)
    assert "too few canaries (9" in few.sentence
    assert 0.0 < few.max_attainable_bound < 3.0
    weak = check_canaries(np.zeros(400), FLAGS, claim=PureDP(1.0), detect=0.2)
    assert weak.verdict is Verdict.INCONCLUSIVE
    said = f"requested: 0.2; {weak.needed:,} canaries would detect an excess of 0.2; plan_canaries(claim=1, detect=0.2)"
    assert said in weak.sentence


@pytest.mark.parametrize(
    ("claim", "options"),
    [(PureDP(0.3), {}), (GaussianDP(0.3), {}), (PureDP(0.3), FIXED)],
)
def test_canaries_that_would_not_show_twice_the_claim_are_inconclusive(claim, options):
    options = {"inclusion": "independent"} | options
    flags = np.arange(60) < 30
    given = {"scores": even_scores(flags, 0.0), "included": flags, "claim": claim, **options}
    few = check_canaries(**given)
    assert few.min_detectable_excess > claim.parameter
    assert few.verdict is Verdict.INCONCLUSIVE
    assert f"no {claim.parameter_name} below" in few.sentence
    of = "pairs" if options["inclusion"] == "fixed" else "canaries"
    assert few.next_step.startswith(f"{few.needed:,} {of} would detect an excess of 0.3; plan_canaries(claim=")
    assert plan_canaries(few.needed, claim=claim).min_detectable_excess <= claim.parameter
    accepted = check_canaries(**given, detect=few.min_detectable_excess + 0.01)
    assert accepted.verdict is Verdict.NOT_REFUTED
    assert "no number of guesses was correct more often than by chance" in accepted.notes[0]


def test_scores_of_the_wrong_sign_are_noted():
    reversed_ = check_canaries(-CLEAR, FLAGS, claim=PureDP(1.0))
    assert reversed_.verdict is Verdict.NOT_REFUTED
    assert "far fewer than by chance" in reversed_.notes[0]
    assert check_canaries(even_scores(FLAGS, 0.3), FLAGS, claim=PureDP(1.0)).notes == ()
    assert "all scores are equal" in check_canaries(np.zeros(400), FLAGS, claim=PureDP(1.0)).notes[0]
    useless = check_canaries(np.random.default_rng(2).normal(size=400), FLAGS, claim=PureDP(1.0))
    assert (useless.bound, useless.is_refuted) == (0.0, False)
    assert "correct more often than by chance" in useless.notes[0]
    some = coins_of(600, 2, 0.2)
    wrong = check_canaries(-even_scores(some, 3.0), some, claim=PureDP(1.0), probability=0.2)
    assert "far fewer than by chance" in wrong.notes[0]


@pytest.mark.parametrize("turn", [1, -1], ids=["high", "low"])
def test_scores_equal_to_the_median_are_guessed_alike(turn):
    """A perfect binary score is guessed without a mistake, although more than half of the scores are equal."""
    flags = np.arange(400) < 200 - 15 * turn
    result = check_canaries(flags, flags, claim=PureDP(1.0))
    assert result.guesses.correct[-1] == 400
    rng = np.random.default_rng(0)
    few = np.where(flags & (rng.random(400) < 0.2), 1.0, 0.0)  # some that are in show it, and none that is out
    found = check_canaries(few, flags, claim=PureDP(1.0)).guesses
    assert found.correct[-1] == few.sum() + (~flags).sum()


def counted(canaries, guesses, right, **options):
    return CanaryGuesses(canaries=canaries, numbers=(guesses,), correct=(right,), **options)


@pytest.mark.parametrize(
    ("canaries", "guesses", "right", "published", "bound", "pure"),
    [
        (10**4, 10**4, 10**4, 7.834, 8.113, 8.113), (10**5, 10**5, 10**5, 8.128, 10.416, 10.416),
        (10**4, 10**3, 700, 0.729, 0.731, 0.732), (10**4, 10**4, 5_500, 0.167, 0.167, 0.167),
        (10**5, 100, 100, 0.809, 3.423, 3.493), (10**5, 10**3, 950, 2.495, 2.697, 2.702),
    ],
)  # fmt: skip
def test_bounds_from_counts(canaries, guesses, right, published, bound, pure):
    """The first column agrees with the published code of Steinke, Nasr & Jagielski at δ = 1e-5."""
    assert round(epsilon_from_guesses(right, guesses, canaries, delta=1e-5), 3) == bound
    assert round(epsilon_from_guesses(right, guesses, canaries), 3) == pure
    test, guessed = CanaryTest("steinke", guesses, 0.05), counted(canaries, guesses, right)
    assert round(refuted_parameter(test, ApproxDP(0.0, 1e-5), guessed), 3) == published


@pytest.mark.parametrize(
    ("numbers", "options", "error", "match"),
    [
        *((numbers, {}, OptionError, "do not fit; use whole numbers") for numbers in (
            (10, 10, 5), (11, 10), (0, 0), ("a", 10))),
        ((5, 10), {"delta": 1.0}, ClaimError, "delta=1"), ((10, 10), {"delta": 1e-5}, OptionError, "pass canaries"),
    ],
)  # fmt: skip
def test_numbers_of_guesses_that_are_refused(numbers, options, error, match):
    with pytest.raises(error, match=match):
        epsilon_from_guesses(*numbers, **options)
    assert epsilon_from_guesses(10, 10, 10, delta=1e-9) == pytest.approx(epsilon_from_guesses(10, 10), abs=1e-3)


@pytest.mark.parametrize("kind", ["counts", "steinke", "f-dp", "betting"])
@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 1e-3), GaussianDP(0.8)], ids=str)
def test_pvalue_verdict_and_bound_agree_and_are_monotone(kind, claim):
    bounds, tails = [], []
    for right in range(40, 101, 15):
        guesses, test = counted(100, 100, right), CanaryTest(kind, 100, 0.05)
        found, bound = tail(test, claim, guesses), refuted_parameter(test, claim, guesses)
        assert refutes(test, claim, guesses) == (found <= 0.05) == (bound > claim.parameter)
        if bound:
            assert refutes(test, claim.with_parameter(bound), guesses)
        tails.append(found)
        bounds.append(bound)
    assert tails == sorted(tails, reverse=True)
    assert bounds == sorted(bounds)
    assert bounds[0] == 0.0 < bounds[-1]


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 3.0])
def test_recursion_never_refutes_more_than_the_exact_distribution(epsilon):
    for delta in (0.0, 1e-3, 0.05):
        for right in range(1, 31):
            found = [
                tail(CanaryTest(kind, 30, 0.05), ApproxDP(epsilon, delta), counted(40, 30, right))
                for kind in ("f-dp", "counts")
            ]
            assert found[0] >= found[1] * (1.0 - 1e-6) or found[1] > 0.9


CURVES = [
    ZeroConcentratedDP(0.5), ZeroConcentratedDP(20.0), RenyiDP(2.0, 1.0), PureDP(0.5).group(2),
    GaussianDP(0.5).group(2), TradeOffCurve((0.0, 0.1, 0.5), (0.9, 0.7, 0.2), 0.01),
    PrivacyProfile((0.0, 1.0, 2.0), (0.3, 0.1, 0.02)), ApproxDP(1.0, 0.1), GaussianDP(20.0),
]  # fmt: skip


@pytest.mark.parametrize("claim", CURVES, ids=str)
def test_least_wrong_is_never_above_the_curve_and_close_to_it(claim):
    least = least_wrong(claim, counted(10, 10, 5), 1e-6)
    rates = np.concatenate([np.geomspace(1e-6, 0.5, 60), 1.0 - np.geomspace(1e-9, 0.5, 60), [1.0]])
    exact = claim.max_power(1.0 - rates, rates)[1]
    found = np.array([least(float(rate)) for rate in rates])
    assert np.all(found <= exact * (1.0 + 1e-9) + 1e-14)
    assert np.all(found >= exact * (1.0 - 1e-3) - 1e-14)


def test_least_wrong_of_one_answer():
    least = least_wrong(PureDP(1.0), counted(10, 10, 5, answer="in", probability=0.2), 0.01)
    assert [least(rate) for rate in (0.1, 0.2, 0.9)] == pytest.approx([0.8 * 0.5 / math.e, 0.8, 0.8])


def test_plans():
    assert [fixed_numbers(canaries) for canaries in (1_000, 24, 8)] == [(31, 125, 500), (12,), (8,)]

    def kinds(claim, numbers=None):
        tests = plan_tests("auto", numbers, claim, counted(1_000, 1_000, 0), 0.05)
        assert sum(test.alpha for test in tests) == pytest.approx(0.05)
        return [test.kind for test in tests]

    assert kinds(PureDP(1.0)) == kinds(ApproxDP(1.0, 1e-6)) == ["betting"]
    assert kinds(ApproxDP(1.0, 1e-3)) == ["betting", *["counts"] * 3]
    assert kinds(GaussianDP(1.0)) == kinds(RenyiDP(2.0, 1.0)) == ["f-dp"] * 3
    assert kinds(PureDP(1.0), numbers=(5, 7)) == ["counts"] * 2
    assert kinds(GaussianDP(1.0), numbers=(30,)) == ["f-dp"]


def test_best_rates_attain_the_curve():
    fair, biased = counted(1_000, 1_000, 0), counted(1_000, 1_000, 0, answer="in", probability=0.2)
    for claim, guesses in ((PureDP(1.0), fair), (GaussianDP(1.0), fair), (GaussianDP(1.0), biased)):
        numbers, least = [10, 300, 900], least_wrong(claim, guesses, 1e-6)
        for number, rate in zip(numbers, best_rates(claim, guesses, numbers), strict=True):
            assert least(rate * number / 1_000) == pytest.approx((1.0 - rate) * number / 1_000, rel=1e-5)
    assert best_rates(PureDP(1.0), counted(10, 10, 0), [10]) == pytest.approx([math.e / (1 + math.e)])
    assert best_rates(ApproxDP(0.0, 0.5), counted(10, 10, 0), [2]) == pytest.approx([1.0])


@pytest.mark.parametrize("canaries", [12, 100])
def test_detectable_excess_is_the_least_with_the_stated_power(canaries):
    """Independent guesses at the claim's odds: the fewest right ones that refute occur with probability 0.95."""
    test, claim, guesses = CanaryTest("counts", canaries, 0.05), PureDP(0.5), counted(canaries, canaries, 0)
    fewest = next(right for right in range(canaries + 1) if refutes(test, claim, counted(canaries, canaries, right)))
    found = claim.epsilon + smallest_excess((test,), claim, guesses, 0.95)
    power = [binom.sf(fewest - 1, canaries, 1 / (1 + math.exp(-epsilon))) for epsilon in (found - 0.01, found)]
    assert power[0] < 0.95 <= power[1]


@pytest.mark.parametrize(
    ("claim", "options"),
    [
        (ApproxDP(1.0, 1e-4), {}), (PureDP(1.0), {"guess": "in"}), (PureDP(1.0), {"method": "f-dp", "alpha": 0.01}),
    ],
)  # fmt: skip
def test_a_plan_says_what_the_audit_says(claim, options):
    included = np.arange(400) % 2 == 0
    scores = np.random.default_rng(0).normal(size=400)
    result = check_canaries(scores, included, claim=claim, inclusion="independent", **options)
    plan = plan_canaries(400, claim=claim, **options)
    for name in ("max_attainable_bound", "min_detectable_excess", "tests"):
        assert getattr(plan, name) == getattr(result, name)


def test_words_and_options_of_plans():
    few = plan_canaries(50, claim=PureDP(8.0))
    assert math.isinf(few.min_detectable_excess)
    assert "no excess over the claim is detected" in str(few)
    with pytest.raises(OptionError, match=r"canaries=7 is not .*; use"):
        plan_canaries(7, claim=PureDP(1.0))
    with pytest.raises(OptionError, match="pass canaries or detect="):
        plan_canaries(100, claim=PureDP(1.0), detect=1.0)
