"""Statements about drawn outputs: their intervals, refuted where false, rarely where true, and open with few runs.

Random tests have a false-alarm probability of 1e-8 each unless they state another limit.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from scipy import stats

from dpaudit import PureDP, Verdict
from dpaudit import mechanisms as m
from dpaudit.audit.claims.claim import claim_at
from dpaudit.audit.errors import DatasetError, OptionError
from dpaudit.audit.inference.binomial_tails import clopper_pearson
from dpaudit.claims import NFoldComposition
from dpaudit.experiments.documents.definition import (
    equal_rows,
    exposed_counts,
    independent_rows,
    loss_tail,
    nobody_exposed,
    number_exposed,
    posterior_ratio,
)
from dpaudit.experiments.documents.exponential_mechanism import (
    candidate_probability,
    fitted_slope,
    levels,
    loss_halves,
    more_often,
    utility_tail,
)
from dpaudit.experiments.documents.laplace_composition import AtEveryDistance, cdf_distance, exact_distance
from dpaudit.experiments.documents.renyi_proposition import (
    LaplaceFold,
    divergence,
    events_of_all_sizes,
    laplace_divergence,
)
from dpaudit.experiments.statements.simulated import IsBelow, attained_delta, loss_threshold, noise_scale

ALARM = 1e-8
CHECK = {"runs": 50_000, "alpha": 1e-6, "seed": 5}
ONE, FAR = m.ExponentialMechanism(1.0), m.ExponentialMechanism(100.0)
GAUSSIAN, LAPLACE = m.GaussianMechanism(1.0, 0.01), m.LaplaceMechanism(0.5)
HALVES = (0.0, 0.0, 0.0), (1.0, -1.0, 0.0)
TAIL = m.gaussian_loss_tail(0.5, m.GaussianMechanism(0.5, 0.05).scale)
FOLD = 5 * math.log(2 * math.cosh(0.45) / (2 * math.cosh(0.15)))
ODDS = 1 / (1 + math.exp(-0.5))
FALSE = [
    partial(loss_halves, m.ExponentialMechanism(1.0, monotone=True), *HALVES, 0.5),
    partial(fitted_slope, m.ExponentialMechanism(0.8), (0.0, 2.0, 4.0), 0.3),
    partial(more_often, ONE, (0.0, 1.0, 2.0), 1, 2),
    partial(number_exposed, m.NameAndShame(0.2), 5, 0.1),
    partial(nobody_exposed, m.NameAndShame(0.1), 5, 0.9**5 + 0.05),
    partial(loss_tail, m.GaussianMechanism(0.5, 0.05), 1.3 * TAIL, 1.0),
    partial(noise_scale, GAUSSIAN, 0.0, 1.15 * GAUSSIAN.scale),
    partial(noise_scale, GAUSSIAN, 0.0, GAUSSIAN.scale / 1.15),
    partial(cdf_distance, m.LaplaceMechanism(1.0), LAPLACE, 0.0),
    partial(utility_tail, ONE, levels(1, 1), 2.0, (0.0, 2.0), 1),
]
TRUE = [  # and with how many runs
    (partial(loss_halves, ONE, *HALVES, 0.5), 400),
    (partial(fitted_slope, ONE, (0.0, 1.0, 3.0), 0.5), 400),
    (partial(more_often, ONE, (1.0, 1.0, 2.0), 0, 1), 400),
    (partial(candidate_probability, ONE, (0.0, 1.0), 1, ODDS, ODDS), 400),
    (partial(number_exposed, m.NameAndShame(0.1), 5, 0.1), 400),
    (partial(nobody_exposed, m.NameAndShame(0.1), 5, 0.9**5), 400),
    (partial(noise_scale, GAUSSIAN, 0.0, GAUSSIAN.scale), 50),
    (partial(cdf_distance, LAPLACE, LAPLACE, 0.0), 500),
    (partial(divergence, m.RandomisedResponseFold(0.3, 5), 0, 1, 2.0, FOLD), 2_000),
    (partial(posterior_ratio, independent_rows(0.7), 0.7), 5_000),
    (partial(posterior_ratio, equal_rows(1.0), 2.0), 5_000),
]
FEW = [
    (partial(fitted_slope, ONE, (0.0, 1.0), 0.5), 10),
    (partial(more_often, FAR, (0.0, 0.0, 9.0), 0, 1), 10),
    (partial(loss_halves, FAR, (0.0, 0.0, 9.0), (1.0, 0.0, 9.0), 50.0), 10),
    (partial(utility_tail, FAR, (0.0, 9.0), 100.0, (1.0,), 1), 10),
    (partial(attained_delta, m.GaussianMechanism(1.0, 1e-5), 0.0, 1.0), 10_000),
    (partial(cdf_distance, LAPLACE, LAPLACE, 0.0), 500),
    (partial(nobody_exposed, m.NameAndShame(1e-3), 20, 0.99), 1),
    (partial(posterior_ratio, independent_rows(1.0), 1.0), 1),
]


def name_of(measure):
    return measure.func.__name__


@pytest.mark.parametrize("measure", FALSE, ids=name_of)
def test_false_statements_are_refuted(measure):
    assert measure(runs=20_000, alpha=1e-8, seed=1).verdict is Verdict.REFUTED


@pytest.mark.evidence
@pytest.mark.parametrize(("measure", "runs"), TRUE, ids=[name_of(measure) for measure, _ in TRUE])
def test_true_statements_are_refuted_no_more_often_than_allowed(measure, runs):
    """Of 200 checks at alpha .1 the number of refuted ones is below a binomial limit of 1e-8."""
    refuted = sum(measure(runs=runs, alpha=0.1, seed=seed).is_refuted for seed in range(200))
    assert refuted <= stats.binom.isf(1e-8, 200, 0.1)


@pytest.mark.parametrize(("measure", "runs"), FEW, ids=[name_of(measure) for measure, _ in FEW])
def test_statements_without_counts_are_inconclusive(measure, runs):
    assert measure(runs=runs, alpha=1e-6, seed=1).verdict is Verdict.INCONCLUSIVE


class TestExponential:
    def test_halves_cover_the_parts_of_the_exact_loss(self):
        """Intervals cover ±1/scale for the numerators and the ratio of the weights' sums for the normaliser."""
        x, y, mechanism = (0.0, 0.0, 1.0, 0.0), (1.0, -1.0, 0.0, 0.0), m.ExponentialMechanism(1.5)
        own = np.subtract(x, y) / mechanism.scale
        logs = [mechanism.distribution(scores).log_probabilities for scores in (x, y)]
        normaliser = np.subtract(*logs)[0] - own[0]
        points = loss_halves(mechanism, x, y, 0.75, **CHECK).points
        assert [point.at.split()[-1] for point in points] == ["normaliser", "-1", "+1"]
        for point, truth in zip(points, [normaliser, own[1], own[0]], strict=True):  # the moves in ascending order
            assert point.lower < truth < point.upper < point.lower + 0.3
            assert (point.low, point.high) == (-0.75, 0.75)
        with pytest.raises(DatasetError, match="keep one candidate in place"):
            loss_halves(ONE, (0.0, 0.0), (1.0, -1.0), 0.5, **CHECK)

    def test_probabilities_shares_and_tails_have_clopper_pearson_limits(self):
        """Compare with the limits of the exact test of SciPy on the same counts."""
        u, t = (0.0, 1.0, 2.0), 0.0
        p = ONE.distribution(u).probabilities
        found = candidate_probability(ONE, u, 1, 0.0, 0.3, **CHECK).points[0]
        exact = stats.binomtest(round(found.estimate * CHECK["runs"]), CHECK["runs"]).proportion_ci(1 - CHECK["alpha"])
        assert (found.lower, found.upper) == pytest.approx(exact, rel=1e-6)
        assert found.lower < p[1] < found.upper
        share = more_often(ONE, u, 2, 1, **CHECK)
        assert share.points[0].lower < p[2] / (p[1] + p[2]) < share.points[0].upper
        assert not more_often(ONE, (1.0, 1.0, 2.0), 0, 1, **CHECK).is_refuted  # a tie is allowed either way
        at_edges = levels(5, 1)
        tail = utility_tail(ONE, at_edges, 1.0, (t, 2.0), 1, **CHECK)
        below = [ONE.distribution(at_edges).probabilities[5 + 20 * k :].sum() * math.exp(k) for k in (0, 2)]
        for point, truth in zip(tail.points, below, strict=True):
            assert point.lower < truth < point.upper
            assert point.high == 1.0


class TestGaussian:
    def test_the_attained_delta_counts_the_best_half_line(self):
        """Compare with a count of the same outputs on the half-line where the density ratio exceeds e^ε."""
        mechanism, runs = m.GaussianMechanism(0.7, 0.02), 50_000
        point = attained_delta(mechanism, 0.0, 1.0, runs=runs, alpha=1e-3, seed=4).points[0]
        edge = 0.5 - 0.7 * mechanism.scale**2
        assert loss_threshold(0.0, 1.0, mechanism.scale, 0.7) == pytest.approx(edge)
        shares = [float(m.GaussianDistribution(mean, mechanism.scale).cdf(edge)) for mean in (0, 1)]
        assert shares[0] - math.exp(0.7) * shares[1] == pytest.approx(0.02, rel=1e-8)
        assert point.lower < point.low == 0.02 == point.high < point.upper
        # The width is that of two Clopper-Pearson intervals at the expected counts.
        (p_low, _), (p_high, _) = clopper_pearson(round(shares[0] * runs), runs, alpha=5e-4)
        (q_low, _), (q_high, _) = clopper_pearson(round(shares[1] * runs), runs, alpha=5e-4)
        expected = p_high - p_low + math.exp(0.7) * (q_high - q_low)
        assert point.upper - point.lower == pytest.approx(expected, rel=0.05)

    @pytest.mark.parametrize(
        ("mechanism", "dataset", "n_coordinates"),
        [(GAUSSIAN, 3.0, 1), (m.VectorGaussianMechanism(1.0, 0.01), (1.0, -2.0, 1e5), 3)],
        ids=["number", "vector"],
    )
    def test_the_noise_scale_has_the_chi_square_interval(self, mechanism, dataset, n_coordinates):
        result = noise_scale(mechanism, dataset, mechanism.scale, runs=5000, alpha=1e-3, seed=3)
        point, freedom = result.points[0], 5000 * n_coordinates
        assert result.verdict is Verdict.NOT_REFUTED
        expected = math.sqrt(stats.chi2.isf(5e-4, freedom) / stats.chi2.ppf(5e-4, freedom))
        assert point.upper / point.lower == pytest.approx(expected, rel=1e-9)

    def test_one_bit_of_the_outputs_has_the_whole_delta(self):
        """On the best half-line the bit has the whole delta, on other half-lines less."""
        best = loss_threshold(0.0, 1.0, GAUSSIAN.scale, 1.0)
        deltas = []
        for threshold in (best, best - 0.1, best + 0.1):
            bit = IsBelow(GAUSSIAN, threshold)
            p, q = (float(GAUSSIAN.distribution(answer).cdf(threshold)) for answer in (0.0, 1.0))
            deltas.append(m.exact_delta(bit.distribution(0.0), bit.distribution(1.0), 1.0))
            assert deltas[-1] == pytest.approx(p - math.e * q, rel=1e-9)
        assert deltas[0] == pytest.approx(
            m.exact_delta(GAUSSIAN.distribution(0.0), GAUSSIAN.distribution(1.0), 1.0), rel=1e-9
        )
        assert max(deltas[1:]) < deltas[0]
        bits, outputs = (each.sample(0.0, 1000, np.random.default_rng(1)) for each in (bit, GAUSSIAN))
        assert np.array_equal(bits, outputs <= best + 0.1)


class TestDefinition:
    @pytest.mark.parametrize("world", [independent_rows(1.0), equal_rows(1.0)], ids=["independent", "equal"])
    def test_posterior_intervals_hold_the_exact_ratios(self, world):
        result = posterior_ratio(world, 2.0, runs=100_000, alpha=1e-9, seed=5)
        for point, value in zip(result.points, world.log_ratios().ravel(), strict=True):
            assert point.lower < value < point.upper

    def test_the_loss_tail_is_the_gaussian_tail(self):
        mechanism = m.GaussianMechanism(0.5, 0.05)
        exact = stats.norm.sf(0.5 * mechanism.scale - 0.5 / mechanism.scale)
        assert pytest.approx(exact, rel=1e-9) == TAIL
        point = loss_tail(mechanism, exact, exact, runs=100_000, alpha=1e-9, seed=2).points[0]
        assert point.lower < exact < point.upper < 1.2 * exact

    def test_exposed_people_are_binomial(self):
        """Counts of 0 to 4 people exposed are within exact limits of the distribution."""
        counts, runs = exposed_counts(m.NameAndShame(0.3), 4, 20_000, seed=3), 20_000
        distribution = stats.binom(runs, stats.binom(4, 0.3).pmf(range(5)))
        assert np.all((distribution.ppf(1e-9) <= counts) & (counts <= distribution.isf(1e-9)))
        result = number_exposed(m.NameAndShame(0.1), 5, 0.1, runs=20_000, alpha=1e-9, seed=1)
        assert result.verdict is Verdict.NOT_REFUTED
        assert [point.at for point in result.points] == ["mean", "Pr[0]", "Pr[1]", "Pr[2 or more]"]
        assert result.points[0].low == pytest.approx(0.5)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Return these outputs repeatedly."""

    outputs: tuple[float, ...]

    def sample(self, dataset, size, rng):
        return np.resize(self.outputs, size)


class TestLaplace:
    def test_the_distance_of_given_outputs(self):
        """Compare four outputs with SciPy; NaN counts as above every number."""
        measure = partial(cdf_distance, right=m.LaplaceMechanism(1.0), dataset=0.0, runs=4, alpha=0.5, seed=0)
        outputs = (-1.0, 0.5, 0.5, 2.0)
        (point,) = measure(Fixed(outputs)).points
        assert point.estimate == pytest.approx(stats.kstest(outputs, "laplace").statistic, rel=1e-12)
        assert point.upper - point.estimate == pytest.approx(math.sqrt(math.log(4) / 8), rel=1e-12)
        (point,) = measure(Fixed((0.0, math.nan, math.nan, math.inf))).points
        assert point.estimate == pytest.approx(0.75)  # a quarter of the outputs is finite
        assert claim_at(AtEveryDistance(PureDP(0.5)), 7) == PureDP(0.5)

    def test_exact_distances_have_closed_forms(self):
        """1 − e^{−d/2} for a shift of d scales; 1/8 for scales 1 and 2, where e^{−z} = e^{−z/2}/2 at z = 2 ln 2."""
        shifted = exact_distance(m.LaplaceDistribution(0.0, 1.0), m.LaplaceDistribution(1.0, 1.0), -39.5, 40.5)
        assert shifted == pytest.approx(1 - math.exp(-0.5), rel=1e-6)
        wider = exact_distance(m.LaplaceDistribution(0.0, 1.0), m.LaplaceDistribution(0.0, 2.0), -40, 40)
        assert wider == pytest.approx(1 / 8, rel=1e-4)
        found = cdf_distance(m.LaplaceMechanism(1.0), LAPLACE, 0.0, runs=20_000, alpha=ALARM, seed=1).points[0]
        assert found.lower < wider < found.upper


class TestRenyi:
    @pytest.mark.parametrize(
        ("mechanism", "exact"),
        [(m.RandomisedResponseFold(0.3, 5), FOLD), (LaplaceFold(0.3, 5), laplace_divergence(LaplaceFold(0.3, 5), 2.0))],
        ids=["response", "laplace"],
    )
    def test_the_divergence_is_a_lower_bound_near_the_truth(self, mechanism, exact):
        measure = partial(divergence, mechanism, 0, 1, 2.0, runs=100_000, alpha=ALARM, seed=3)
        (point,) = measure(exact).points
        assert 0.8 * exact < point.lower < min(point.estimate, exact)
        assert point.estimate == pytest.approx(exact, rel=0.05)
        assert measure(0.75 * exact).verdict is Verdict.REFUTED

    def test_events_cover_their_probabilities_and_cross_a_false_boundary(self):
        """Each pair of intervals holds the exact (q, p) of one half-line."""
        claim = NFoldComposition(0.1, 10)
        measure = partial(events_of_all_sizes, x=0, y=1, claim=claim, alpha=ALARM, seed=2)
        result = measure(m.RandomisedResponseFold(0.1, 10), runs=50_000)
        p, q = (np.asarray(m.RandomisedResponseFold(0.1, 10).distribution(bit).cdf(np.arange(11))) for bit in (0, 1))
        on_y, on_x = result.points[::2], result.points[1::2]
        assert len(on_y) == len(on_x) >= 5
        for two, one in zip(on_y, on_x, strict=True):
            assert ((two.lower <= q) & (q <= two.upper) & (one.lower <= p) & (p <= one.upper)).any()
            assert one.high == float(claim.max_power(two.upper)[0])
            assert two.allowed == "nothing stated"
        assert on_y[0].estimate < 0.02 < 0.4 < on_y[-1].estimate
        assert result.verdict is Verdict.NOT_REFUTED
        assert measure(m.RandomisedResponseFold(0.1, 90), runs=100_000).verdict is Verdict.REFUTED
        with pytest.raises(OptionError, match="gave only one output on 1, so no event can be chosen"):
            measure(m.RandomisedResponse(40.0), runs=10)

    def test_the_sum_of_clipped_answers_is_the_privacy_loss(self):
        """The log density ratio of a row of answers is ε(n − 2·sum), a function of the sum."""
        answers = np.random.default_rng(1).normal(scale=3, size=(200, 7))
        loss = sum(sign * m.LaplaceDistribution(at, 1 / 0.3).log_density(answers) for sign, at in ((1, 0.0), (-1, 1.0)))
        assert loss.sum(axis=1) == pytest.approx(0.3 * (7 - 2 * np.clip(answers, 0, 1).sum(axis=1)), abs=1e-12)

    @pytest.mark.parametrize(
        ("value", "is_adaptive", "total"),
        [(0.25, False, 2.5), (99, False, 10), (3, True, 6), (-99, True, 0), (99, True, 10)],
    )
    def test_a_laplace_fold_without_noise_is_the_sum_of_its_questions(self, value, is_adaptive, total):
        """At 3 the search rises to 3 and then alternates, 1 + 1 + 1 + 0 + 1 + 0 + …; noise of 1e-6 is negligible."""
        fold = LaplaceFold(1e6, 10, is_adaptive)
        assert fold.sample(value, 20, np.random.default_rng(1)) == pytest.approx([total] * 20, abs=1e-3)

    def test_a_laplace_fold_of_one_is_a_clipped_laplace_answer(self):
        outputs, distribution = (
            LaplaceFold(0.5, 1).sample(1, 20_000, np.random.default_rng(1)),
            m.LaplaceDistribution(1.0, 2.0),
        )
        counts = [np.sum(outputs == 0), np.sum(outputs == 1), np.sum(outputs <= 0.5)]
        limits = stats.binom(
            20_000, [float(distribution.cdf(0.0)), float(distribution.sf(1.0)), float(distribution.cdf(0.5))]
        )
        assert np.all((limits.ppf(ALARM / 6) <= counts) & (counts <= limits.isf(ALARM / 6)))
        assert (outputs.min(), outputs.max()) == (0, 1)
