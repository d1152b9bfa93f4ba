"""Aggregations by published algorithms: exact losses, slow twins of the code, and exact laws.

Counts of random outcomes are outside their limits with probability at most 1e-8 each.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.audit.claims.claim import ApproxDP, GaussianDP, PureDP
from dpaudit.audit.errors import ClaimError, DatasetError
from dpaudit.mechanisms import analytic_gaussian_scale, exact_epsilon
from dpaudit.mechanisms.aggregates import (
    ApproximateBounds,
    BoundedMoments,
    NoisyAnswers,
    noisy_moments,
    noisy_tree_counts,
)
from dpaudit.mechanisms.noise_samplers import fill_laplace

ALARM = 1e-8
ROWS = [0.5, -3.0, 7.0, 2.0]


def moments(n_moments, **options):
    return noisy_moments(n_moments, -1.0, 3.0, **options)


def tree(**options):
    return noisy_tree_counts(-1.0, 3.0, height=3, branching=2, **options)


MAKERS = {
    "mean": lambda **options: moments(1, **options),
    "variance": lambda **options: moments(2, **options),
    "tree": tree,
}


class TestNoisyAnswers:
    @pytest.mark.parametrize("name", MAKERS)
    @pytest.mark.parametrize(("partitions", "per_partition"), [(1, 1), (3, 1), (1, 4), (3, 4)])
    def test_laplace_noise_loses_epsilon_if_all_of_a_users_rows_meet(self, name, partitions, per_partition):
        noisy = MAKERS[name](epsilon=0.7, partitions=partitions, per_partition=per_partition)
        more = [*ROWS, *[3.0] * (partitions * per_partition)]
        assert exact_epsilon(noisy.law(ROWS), noisy.law(more)) == pytest.approx(0.7, rel=1e-12)
        assert noisy.claim == noisy.tight_claim == PureDP(0.7)

    @pytest.mark.parametrize("name", MAKERS)
    @pytest.mark.parametrize(("partitions", "per_partition"), [(1, 1), (9, 1), (4, 5)])
    def test_gaussian_noise_loses_mu_if_the_rows_are_as_far_as_the_l2_sensitivity(
        self, name, partitions, per_partition
    ):
        noisy = MAKERS[name](epsilon=0.7, delta=1e-5, partitions=partitions, per_partition=per_partition)
        more = [*ROWS, *[3.0] * (math.isqrt(partitions) * per_partition)]
        shift = [
            (a.location - b.location) / a.scale
            for a, b in zip(noisy.law(ROWS).marginals, noisy.law(more).marginals, strict=True)
        ]
        assert isinstance(noisy.tight_claim, GaussianDP)
        assert noisy.tight_claim.mu == pytest.approx(math.hypot(*shift), rel=1e-12)
        assert noisy.claim == ApproxDP(0.7, 1e-5)

    def test_a_tree_uses_all_of_epsilon_and_delta_and_sums_share_them(self):
        whole = GaussianDP(1 / analytic_gaussian_scale(1.0, 1e-5))
        assert tree(epsilon=1.0, delta=1e-5).tight_claim.mu == pytest.approx(whole.mu)
        share = 1 / analytic_gaussian_scale(1.0 / 3, 1e-5 / 3)
        assert moments(2, epsilon=1.0, delta=1e-5).tight_claim.mu == pytest.approx(math.sqrt(3) * share)

    def test_less_noise_loses_more_and_keeps_its_claim_in_name(self):
        twin = moments(2, epsilon=0.7, noise_share=0.5)
        assert exact_epsilon(twin.law(ROWS), twin.law([*ROWS, 3.0])) == pytest.approx(1.4)
        assert twin.claim == PureDP(0.7)
        assert "50% of the noise" in str(twin)

    @pytest.mark.parametrize("delta", [0.0, 1e-3])
    def test_samples_follow_the_law(self, delta):
        noisy = moments(1, epsilon=1.0, delta=delta, noise_share=0.9)
        outputs, law = noisy.sample(ROWS, 4_000, np.random.default_rng(1)), noisy.law(ROWS)
        for column, marginal in zip(outputs.T, law.marginals, strict=True):
            assert stats.kstest(column, marginal.cdf).pvalue > ALARM
        assert stats.spearmanr(*outputs.T).pvalue > ALARM

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"epsilon": 0.0}, "epsilon"),
            ({"epsilon": 1.0, "delta": -0.1}, "delta"),
            ({"epsilon": 1.0, "partitions": 0}, "partitions"),
            ({"epsilon": 1.0, "per_partition": 1.5}, "per_partition"),
            ({"epsilon": 1.0, "noise_share": 0.0}, "noise_share"),
        ],
    )
    def test_parameters_are_checked(self, options, said):
        for make in MAKERS.values():
            with pytest.raises(ClaimError, match=said):
                make(**options)

    def test_a_query_with_other_answers_is_rejected(self):
        claim = PureDP(1.0)
        noisy = NoisyAnswers(
            query=lambda rows: (1.0,), scales=(1.0, 1.0), noise="laplace", claim=claim, tight_claim=claim
        )
        with pytest.raises(DatasetError, match="2 finite numbers"):
            noisy.law([])


class TestMoments:
    @pytest.mark.parametrize(("n_moments", "wanted"), [(1, np.mean), (2, np.var)])
    def test_without_noise_they_are_mean_and_variance_of_the_clipped_rows(self, n_moments, wanted):
        noisy = moments(n_moments, epsilon=1.0)
        made = BoundedMoments(noisy, -1.0, 3.0)
        exact = [law.location for law in noisy.law(ROWS).marginals]
        assert made.from_parts([exact])[0] == pytest.approx(wanted(np.clip(ROWS, -1.0, 3.0)), rel=1e-12)

    def test_results_are_clipped_and_the_count_is_at_least_one(self):
        mean, variance = (BoundedMoments(moments(n, epsilon=1.0), -1.0, 3.0) for n in (1, 2))
        assert mean.from_parts([[-5.0, 1.5], [2.0, 50.0], [2.0, -50.0]]).tolist() == [2.5, 3.0, -1.0]
        assert variance.from_parts([[1.0, 0.0, 90.0], [1.0, 9.0, 1.0], [-9.0, 1.0, 3.0]]).tolist() == [4.0, 0.0, 2.0]

    def test_samples_are_computed_from_the_noisy_sums(self):
        made = BoundedMoments(moments(2, epsilon=1.0), -1.0, 3.0)
        parts = made.parts.sample(ROWS, 50, np.random.default_rng(3))
        assert made.sample(ROWS, 50, np.random.default_rng(3)).tolist() == made.from_parts(parts).tolist()
        assert made.claim == PureDP(1.0)
        assert str(made).startswith("variance of rows in [-1, 3]")

    @pytest.mark.parametrize(("n_moments", "lower", "upper"), [(3, 0.0, 1.0), (1, 1.0, 1.0), (2, 0.0, math.inf)])
    def test_moments_and_bounds_are_checked(self, n_moments, lower, upper):
        with pytest.raises(ClaimError):
            noisy_moments(n_moments, lower, upper, epsilon=1.0)


class TestTree:
    def test_counts_are_those_of_the_intervals(self):
        rows = [-9.0, -1.0, -0.51, -0.5, 0.0, 2.99, 3.0, 8.0]
        counts = iter(law.location for law in tree(epsilon=1.0).law(rows).marginals)
        for level in (1, 2, 3):
            edges = np.linspace(-1.0, 3.0, 2**level + 1)
            wanted, _ = np.histogram(np.clip(rows, -1.0, 3.0), edges)
            assert list(itertools.islice(counts, 2**level)) == wanted.tolist()
        assert list(counts) == []

    @pytest.mark.parametrize(("height", "branching"), [(0, 2), (1, 1)])
    def test_its_shape_is_checked(self, height, branching):
        with pytest.raises(ClaimError):
            noisy_tree_counts(0.0, 1.0, height=height, branching=branching, epsilon=1.0)


class TestApproximateBounds:
    def slow(self, bounds, rows, size, seed):
        """Outputs by loops over bins and thresholds, with the noise that the sampler draws."""
        edges, noise = bounds.edges, np.empty((2 * bounds.bins, size))
        rng = np.random.default_rng(seed)
        for row in noise:
            fill_laplace(row, rng)
        right = [bounds.scale * bounds.base**k for k in range(bounds.bins)]
        counts = [0.0] * (2 * bounds.bins)
        for value in rows:
            place = next((k for k, edge in enumerate(right) if abs(value) <= edge), bounds.bins - 1)
            counts[bounds.bins - 1 - place if value < 0 else bounds.bins + place] += 1
        found = []
        for run in range(size):
            noisy = [
                c + bounds.noise_share * bounds.contributions / bounds.epsilon * e
                for c, e in zip(counts, noise[:, run], strict=True)
            ]
            output = (math.nan, math.nan)
            for threshold in bounds.thresholds:
                reached = [place for place, count in enumerate(noisy) if count >= threshold]
                if reached:
                    output = (edges[reached[0]], edges[reached[-1] + 1])
                    break
            found.append(output)
        return np.array(found)

    @pytest.mark.parametrize(
        "rows", [[9.0] * 14, [-5.0] * 16 + [0.0] * 17 + [1.0] * 15, [99.0] * 30, [2.0] * 15 + [2.1] * 16]
    )
    def test_the_sampler_does_what_the_slow_code_does(self, rows):
        bounds = ApproximateBounds(1.1)
        np.testing.assert_array_equal(
            bounds.sample(rows, 300, np.random.default_rng(5)), self.slow(bounds, rows, 300, 5)
        )

    def test_thresholds_are_quantiles_of_the_largest_noise(self):
        bounds = ApproximateBounds(0.5, contributions=3)
        below = 1 - np.exp(-bounds.thresholds * 0.5 / 3) / 2
        np.testing.assert_allclose(1 - below**10, 1e-9 * 2.0 ** np.arange(10), rtol=1e-6)

    @pytest.mark.parametrize("share", [1.0, 0.8])
    def test_the_law_is_that_of_the_outputs(self, share):
        bounds, rows, runs = ApproximateBounds(1.1, noise_share=share), [3.0] * 15 + [9.0] * 17 + [-2.0] * 12, 20_000
        probabilities = bounds.law(rows).probabilities
        assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
        outputs = bounds.sample(rows, runs, np.random.default_rng(6))
        places = {pair: place for place, pair in enumerate(bounds.outcomes[:-1])}
        found = [places.get((low, high), len(places)) for low, high in outputs.tolist()]
        for place, count in enumerate(np.bincount(found, minlength=len(probabilities))):
            p = float(probabilities[place])
            assert stats.binom.sf(count - 1, runs, p) > ALARM or count == 0
            assert stats.binom.cdf(count, runs, p) > ALARM

    @pytest.mark.parametrize(("epsilon", "contributions"), [(1.1, 1), (3.0, 1), (1.1, 4)])
    def test_its_loss_is_epsilon_near_the_threshold_and_more_with_less_noise(self, epsilon, contributions):
        bounds = ApproximateBounds(epsilon, contributions)
        x = [9.0] * math.ceil(bounds.thresholds[-1])
        y = [*x, *[9.0] * contributions]
        assert exact_epsilon(bounds.law(x), bounds.law(y)) == pytest.approx(epsilon, rel=1e-9)
        twin = ApproximateBounds(epsilon, contributions, noise_share=0.95)
        assert exact_epsilon(twin.law(x), twin.law(y)) == pytest.approx(epsilon / 0.95, rel=1e-9)
        assert "95% of the noise" in str(twin)

    @pytest.mark.parametrize(
        "options", [{"contributions": 0}, {"bins": 0}, {"base": 1.0}, {"scale": 0.0}, {"noise_share": 1.5}]
    )
    def test_parameters_are_checked(self, options):
        with pytest.raises(ClaimError):
            ApproximateBounds(1.0, **options)
