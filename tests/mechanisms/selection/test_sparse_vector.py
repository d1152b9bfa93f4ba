"""The sparse vector technique: its law by other integrals, exact claims on enumerated pairs, the wrong variants.

Random tests have a false-alarm probability of 1e-8 each.
"""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from dpaudit.audit.claims.claim import PureDP
from dpaudit.audit.errors import OptionError
from dpaudit.mechanisms import NoisyThreshold, SparseVector, exact_delta, exact_epsilon
from dpaudit.mechanisms.faulty import (
    SparseVectorReleasingValue,
    SparseVectorUnscaledNoise,
    SparseVectorWithoutCutoff,
    SparseVectorWithoutQueryNoise,
)
from dpaudit.mechanisms.laws.transcripts import ABOVE, BELOW, STOPPED

ALARM = 1e-8
GRID = list(itertools.product((-1.0, 0.0, 1.0), repeat=3))
WITHIN_ONE = [(x, y) for x, y in itertools.combinations(GRID, 2) if max(abs(np.subtract(x, y))) <= 1]
ONE_WAY = [(x, y) for x, y in WITHIN_ONE if len({*np.sign(np.subtract(x, y))} - {0.0}) == 1]


def loss(mechanism, x, y):
    return exact_epsilon(mechanism.law(x), mechanism.law(y))


def rise_and_fall(n_below, n_above):
    """Return a pair whose first answers rise and last answers fall: the worst for transcripts "below …, above …"."""
    return [0.0] * (n_below + n_above), [1.0] * n_below + [-1.0] * n_above


def probability(mechanism, answers, transcript):
    """Return the probability of a transcript by adaptive mpmath quadrature over each noisy threshold in turn.

    It is independent of the law's code: integrals over the threshold instead of its noise, no logarithms, other nodes.
    """
    a, b = mpmath.mpf(mechanism.threshold_scale), mpmath.mpf(mechanism.query_scale)

    def is_above(answer, level):
        if b == 0:
            return mpmath.mpf(answer >= level)
        tail = mpmath.exp(-abs(answer - level) / b) / 2
        return 1 - tail if answer >= level else tail

    def with_one_draw(part):
        def integrand(level):
            density = mpmath.exp(-abs(level - mechanism.threshold) / a) / (2 * a)
            chances = [is_above(answer, level) if code else 1 - is_above(answer, level) for answer, code in part]
            return density * mpmath.fprod(chances)

        stops = sorted({mechanism.threshold, *(answer for answer, _ in part)})
        return mpmath.quad(integrand, [stops[0] - 60 * a, *stops, stops[-1] + 60 * a])

    looked_at = [(answer, code) for answer, code in zip(answers, transcript, strict=True) if code != STOPPED]
    if not mechanism.refresh:
        return float(with_one_draw(looked_at))
    product, part = mpmath.mpf(1), []
    for answer, code in looked_at:
        part.append((answer, code))
        if code == ABOVE:
            product, part = product * with_one_draw(part), []
    return float(product * with_one_draw(part) if part else product)


class TestLaw:
    @pytest.mark.parametrize(
        "mechanism",
        [
            SparseVector(1.0), SparseVector(0.7, 2, threshold=0.3, sensitivity=2.0), SparseVector(2.0, 2, refresh=True),
            SparseVector(3.0, 5, monotone=True),
        ],
        ids=str,
    )  # fmt: skip
    def test_every_transcript_has_its_integral(self, mechanism):
        answers = (-0.5, 2.0, 0.25)
        law = mechanism.law(answers)
        assert sum(map(math.exp, law.log_probabilities)) == pytest.approx(1.0, abs=1e-12)
        for transcript, log_probability in zip(law.transcripts, law.log_probabilities, strict=True):
            exact = probability(mechanism, answers, transcript)
            assert math.exp(log_probability) == pytest.approx(exact, rel=1e-10)

    @pytest.mark.parametrize("twin", [SparseVectorWithoutQueryNoise(1.0), SparseVectorWithoutCutoff(2.0)], ids=str)
    def test_variants_too(self, twin):
        answers, engine = (-0.5, 2.0, 0.25), twin.runs_as
        law = twin.law(answers)
        for transcript, log_probability in zip(law.transcripts, law.log_probabilities, strict=True):
            exact = probability(engine, answers, transcript)
            assert math.exp(log_probability) == pytest.approx(exact, rel=1e-10, abs=1e-25)

    @pytest.mark.parametrize("excess", [0.0, 0.8, -3.0, -60.0])
    def test_one_answer_is_a_difference_of_two_laplace_variables(self, excess):
        """Pr[V − Z ≥ t] = (a² e^{−t/a} − b² e^{−t/b}) / (2 (a² − b²)) for t ≥ 0, by partial fractions."""
        mechanism = SparseVector(0.5, threshold=10.0)
        a, b, t = mechanism.threshold_scale, mechanism.query_scale, abs(excess)
        tail = (a * a * math.exp(-t / a) - b * b * math.exp(-t / b)) / (2 * (a * a - b * b))
        law = mechanism.law([10.0 + excess])
        assert math.exp(law.log_density([ABOVE])) == pytest.approx(tail if excess < 0 else 1 - tail, rel=1e-12)

    def test_rows_that_cannot_be_have_no_mass(self):
        law = SparseVector(1.0, 1).law([0.0, 1.0, 2.0])
        assert law.transcripts == ((0, 0, 0), (0, 0, 1), (0, 1, -1), (1, -1, -1))
        rows = [[1, 0, 0], [1, 1, -1], [0, 0, -1], [2, 0, 0], [0, 1, 1], [math.nan, 1, -1]]
        assert np.all(law.log_density(rows) == -math.inf)
        assert law.log_density(law.transcripts).tolist() == list(law.log_probabilities)

    @pytest.mark.parametrize(("n", "cutoff"), [(1, 1), (4, 1), (4, 2), (4, 4), (3, 9), (9, None)])
    def test_transcripts_are_those_that_the_stop_allows(self, n, cutoff):
        law = NoisyThreshold(PureDP(1.0), 1.0, 1.0, cutoff=cutoff).law([0.0] * n)
        limit = n if cutoff is None else cutoff
        expected = set()
        for codes in itertools.product((BELOW, ABOVE), repeat=n):
            kept, above = [], 0
            for code in codes:
                kept.append(code if above < limit else STOPPED)
                above += code
            expected.add(tuple(kept))
        assert list(law.transcripts) == sorted(expected, key=lambda row: [code == ABOVE for code in row])

    def test_many_answers_with_an_early_stop_are_possible(self):
        law = SparseVector(1.0).law([-20.0] * 60)
        assert len(law.transcripts) == 61
        assert math.exp(law.log_density([[ABOVE] + [STOPPED] * 59])[0]) == pytest.approx(
            probability(SparseVector(1.0), [-20.0], [ABOVE]), rel=1e-10
        )


class TestClaims:
    @pytest.mark.parametrize("cutoff", [1, 2, 3])
    @pytest.mark.parametrize("refresh", [False, True])
    def test_all_pairs_of_a_grid_keep_the_claim(self, cutoff, refresh):
        mechanism = SparseVector(1.2, cutoff, threshold=0.5, refresh=refresh)
        laws = {answers: mechanism.law(answers) for answers in GRID}
        losses = [exact_epsilon(laws[x], laws[y]) for x, y in WITHIN_ONE]
        assert 0.2 < max(losses) <= 1.2

    @pytest.mark.parametrize("refresh", [False, True])
    def test_all_one_way_pairs_keep_the_monotone_claim(self, refresh):
        mechanism = SparseVector(1.2, 2, threshold=0.5, monotone=True, refresh=refresh)
        laws = {answers: mechanism.law(answers) for answers in GRID}
        assert 0.2 < max(exact_epsilon(laws[x], laws[y]) for x, y in ONE_WAY) <= 1.2

    @pytest.mark.parametrize("cutoff", [1, 2])
    def test_the_claim_is_nearly_attained_by_many_answers(self, cutoff):
        """No noise is wasted: the limit for many answers is 1/threshold_scale + 2 cutoff/query_scale."""
        mechanism = SparseVector(1.0, cutoff)
        assert 1 / mechanism.threshold_scale + 2 * cutoff / mechanism.query_scale == pytest.approx(1.0)
        assert 0.97 < loss(mechanism, *rise_and_fall(12, cutoff)) <= 1.0

    def test_monotone_noise_is_for_one_way_answers_alone(self):
        """1.5 epsilon if answers move in both directions; nearly epsilon if they move in one."""
        mechanism, below = SparseVector(1.0, monotone=True), 12
        assert 1.49 < loss(mechanism, *rise_and_fall(below, 1)) <= 1.5
        assert 0.99 < loss(mechanism, [0.0] * (below + 1), [1.0] * below + [0.0]) <= 1.0

    def test_scales_are_the_published_ones(self):
        """Lyu, Su & Li (2017): 2Δ/ε and 4cΔ/ε in Algorithm 1, 2cΔ/ε and 4cΔ/ε in Algorithm 2."""
        for refresh, threshold in ((False, 2.0), (True, 6.0)):
            mechanism = SparseVector(0.5, 3, sensitivity=2.0, refresh=refresh)
            assert mechanism.threshold_scale == pytest.approx(threshold * 4)
            assert mechanism.query_scale == pytest.approx(12 * 4)
        assert SparseVector(0.5, 3, sensitivity=2.0, monotone=True).query_scale == pytest.approx(6 * 4)
        assert SparseVector(0.5).claim == PureDP(0.5)

    def test_only_ratios_count(self):
        """A change of unit, or a shift of answers and threshold, changes nothing."""
        law = SparseVector(0.8, 2, threshold=0.5).law([0.0, 1.0, 3.0])
        for other in (
            SparseVector(0.8, 2, threshold=5.0, sensitivity=10.0).law([0.0, 10.0, 30.0]),
            SparseVector(0.8, 2, threshold=7.5).law([7.0, 8.0, 10.0]),
        ):
            assert exact_delta(law, other, 0.0) < 1e-12


class TestVariants:
    @pytest.mark.parametrize("cutoff", [1, 2, 3])
    def test_unscaled_noise_loses_what_was_published(self, cutoff):
        """The loss never exceeds (1 + 6c)/4 epsilon, its limit for many answers below."""
        twin = SparseVectorUnscaledNoise(0.8, cutoff=cutoff)
        assert twin.truth.epsilon == pytest.approx((1 + 6 * cutoff) / 4 * 0.8)
        assert (twin.runs_as.threshold_scale, twin.runs_as.query_scale) == pytest.approx((4 / 0.8, 4 / 2.4))
        laws = {answers: twin.law(answers) for answers in GRID}
        assert max(exact_epsilon(laws[x], laws[y]) for x, y in WITHIN_ONE) <= twin.truth.epsilon
        reached = loss(twin, *rise_and_fall(12, cutoff))
        assert twin.claim.epsilon < 0.99 * twin.truth.epsilon < reached <= twin.truth.epsilon

    def test_without_query_noise_some_transcripts_tell_all(self):
        twin = SparseVectorWithoutQueryNoise(1.0)
        assert loss(twin, [0.0, 1.0], [1.0, 0.0]) == math.inf
        assert loss(twin, [0.0], [1.0]) == pytest.approx(0.5)  # with one answer, the bug has no effect
        assert twin.truth is None
        x, y = twin.law([0.0, 1.0]), twin.law([1.0, 0.0])
        assert math.exp(x.log_density([BELOW, ABOVE])) == pytest.approx(-math.expm1(-0.5) / 2)  # Pr[0 < Z ≤ 1]
        assert y.log_density([BELOW, ABOVE]) == -math.inf

    @pytest.mark.parametrize("half", [1, 2, 3, 4])
    def test_without_a_cutoff_the_loss_grows_with_the_answers(self, half):
        """Lyu, Su & Li's transcript loses at least half·epsilon/2, so no epsilon holds for all lengths."""
        twin = SparseVectorWithoutCutoff(1.0)
        x, y = rise_and_fall(half, half)
        transcript = [BELOW] * half + [ABOVE] * half
        ratio = twin.law(x).log_density(transcript) - twin.law(y).log_density(transcript)
        assert half / 2 <= ratio <= loss(twin, x, y) + 1e-9
        assert twin.truth is None
        assert (loss(twin, x, y) > twin.claim.epsilon) == (half > 1)

    @pytest.mark.parametrize("below", [0, 1, 3])
    def test_a_released_value_follows_its_law(self, below):
        """For answers a + 0 and t ≤ 0, Pr[all below, then a value ≤ t] is a double integral of exponentials.

        If all answers are 1, the probability is e^{−(below + 1)/2·epsilon} times as large.
        """
        twin, runs = SparseVectorReleasingValue(1.0), 200_000
        for answer in (0.0, 1.0):
            outputs = twin.sample([answer] * (below + 1), runs, np.random.default_rng(5))
            is_event = np.isnan(outputs[:, :-1]).all(axis=1) & (outputs[:, -1] <= 0.0)
            exact = math.exp(-answer * (below + 1) / 2) / (4 * 2**below * (below + 1) * (below + 2))
            hits = stats.binom(runs, exact)
            assert hits.ppf(ALARM / 2) <= is_event.sum() <= hits.isf(ALARM / 2)
            assert np.all((~np.isnan(outputs)).sum(axis=1) <= 1)  # stops after one value

    def test_released_values_lie_on_a_grid_around_the_answers(self):
        twin = SparseVectorReleasingValue(1.0, threshold=-1e6, cutoff=2)
        outputs = twin.sample([0.5, 100.5, 7.0], 50_000, np.random.default_rng(3))
        assert np.isnan(outputs[:, 2]).all()
        assert not np.isnan(outputs[:, :2]).any()
        step = 2.0 ** math.floor(math.log2(4.0 * 2**-20))
        assert np.all(outputs[:, :2] % step == 0)
        # The threshold is far below, so each value is its answer plus Laplace noise of scale 2c/ε.
        below = stats.binom(50_000, stats.laplace(100.5, 4.0).cdf(98.0))
        assert below.ppf(ALARM / 2) <= (outputs[:, 1] <= 98.0).sum() <= below.isf(ALARM / 2)

    def test_lines_are_short(self):
        for twin in (SparseVectorReleasingValue(0.125, 100.0, 2.5, cutoff=12), SparseVectorWithoutQueryNoise(0.125)):
            assert len(str(twin)) <= 72
        assert str(SparseVectorUnscaledNoise(1.0)) == "SparseVectorUnscaledNoise(epsilon=1, cutoff=1, sensitivity=1)"
        assert str(SparseVectorWithoutCutoff(1.0)) == "SparseVectorWithoutCutoff(epsilon=1, sensitivity=1)"
        assert str(SparseVector(1.0, 2, monotone=True, refresh=True)) == (
            "SparseVector(epsilon=1, cutoff=2, sensitivity=1, monotone, refresh)"
        )


def test_queries_are_asked_of_the_dataset():
    mechanism = SparseVector(50.0, 3, threshold=1.5, queries=lambda rows: [rows.count(name) for name in ("Ann", "Bob")])
    assert mechanism.sample(["Bob", "Bob", "Bob", "Ann"], 4, np.random.default_rng(0)).tolist() == [[BELOW, ABOVE]] * 4


def test_a_block_is_its_pieces():
    """With more runs than one piece holds, every row has the form of a transcript."""
    outputs = SparseVector(1.0, 2).sample([0.0, 1.0, -1.0, 2.0], 50_000, np.random.default_rng(1))
    law = SparseVector(1.0, 2).law([0.0, 1.0, -1.0, 2.0])
    assert np.isfinite(law.log_density(outputs)).all()


def test_laws_of_other_transcripts_do_not_compare():
    with pytest.raises(OptionError, match="no closed form"):
        exact_epsilon(SparseVector(1.0).law([0.0, 1.0]), SparseVector(1.0).law([0.0]))
