"""Mechanisms of the published suite alone: their laws against formulas, integrals and runs.

Random tests have a false-alarm probability of 1e-8 each.
"""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from dpaudit.audit.claims.claim import PureDP
from dpaudit.audit.errors import ClaimError, DatasetError, OptionError
from dpaudit.experiments.published.dp_sniper import Rappor, SideBySide, TruncatedGeometric, murmur3_32
from dpaudit.experiments.published.noisy_answers import LargestExponential, NoisyAnswers
from dpaudit.mechanisms import SparseVector, exact_epsilon
from dpaudit.mechanisms.faulty import SparseVectorReleasingValue

ALARM = 1e-8
RUNS = 100_000
CLAIM = PureDP(0.1)


REFUSED = [
    (lambda: Rappor(f=1.5), "f=1.5 is not allowed"),
    (lambda: Rappor(f=0.0, report_one=1.0), "leaves bits without noise"),
    (lambda: Rappor(f=0.5, report_one=0.1), "inverts them"),
    (lambda: Rappor(f=0.5, n_bits=0), "n_bits=0 is not a number of bits"),
    (lambda: Rappor(f=0.5, n_hashes=0), "n_hashes=0 is not a number of hashes"),
    (lambda: TruncatedGeometric(1e-6), "need random integers up to"),
    (lambda: NoisyAnswers(CLAIM, 0), "scale=0 is not allowed"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_parameters_out_of_range_are_refused(make, message):
    with pytest.raises(ClaimError, match=message):
        make()


def test_a_dataset_that_is_no_count_is_refused():
    with pytest.raises(DatasetError, match="dataset=6 is not a count; use an integer from 0 to n=5"):
        TruncatedGeometric(0.1).sample(6, 1, np.random.default_rng(1))


def are_in_limits(hits, probabilities):
    """Return whether counts lie within exact binomial limits, which holds with probability at least 1 − ALARM."""
    hits, probabilities = np.ravel(hits), np.ravel(probabilities)
    each = ALARM / (2 * len(hits))
    low, high = stats.binom.ppf(each, RUNS, probabilities), stats.binom.isf(each, RUNS, probabilities)
    return bool(np.all((hits >= low) & (hits <= high)))


MURMUR3 = [  # published test vectors of the 32-bit variant
    (b"", 0, 0), (b"", 1, 0x514E28B7), (b"", 0xFFFFFFFF, 0x81F16F39), (b"\xff\xff\xff\xff", 0, 0x76293B50),
    (b"\x21\x43\x65\x87", 0, 0xF55B516B), (b"\x21\x43\x65\x87", 0x5082EDEE, 0x2362F9DE),
    (b"\x21\x43\x65", 0, 0x7E4A8634), (b"\x21\x43", 0, 0xA0F7B07A), (b"\x21", 0, 0x72661CF4),
    (b"\0\0\0\0", 0, 0x2362F9DE), (b"aaaa", 0x9747B28C, 0x5A97808A), (b"Hello, world!", 0x9747B28C, 0x24884CBA),
    (b"The quick brown fox jumps over the lazy dog", 0, 0x2E4FF723),
]  # fmt: skip


def test_hashes_are_the_published_ones():
    assert [murmur3_32(data, seed) for data, seed, _ in MURMUR3] == [value for *_, value in MURMUR3]


class TestRappor:
    def test_bits_of_the_values_of_the_suite(self):
        rappor = Rappor(f=0.75)
        assert [rappor.set_bits(value) for value in (0, 1)] == [(0, 11, 18), (3, 10, 13)]
        assert len(set(rappor.set_bits(2)) ^ set(rappor.set_bits(1))) == 5

    def test_the_two_steps_are_equivalent_to_one(self):
        """A bit is kept with probability 1/4 and otherwise a fair coin; then .55 or .45."""
        rappor = Rappor(f=0.75)
        assert rappor.probability_of_one(True) == pytest.approx(0.5125)
        assert rappor.probability_of_one(False) == pytest.approx(0.4875)
        one_time = Rappor(f=0.95, report_zero=0.0, report_one=1.0)
        assert [one_time.probability_of_one(bit) for bit in (True, False)] == pytest.approx([0.525, 0.475])

    def test_the_claim_is_attained_by_values_without_common_bits(self):
        rappor = Rappor(f=0.5, n_bits=2**20, n_hashes=3)
        assert len({*rappor.set_bits(0), *rappor.set_bits(1)}) == 6
        small = Rappor(f=0.5, report_zero=0.2, report_one=0.9, n_bits=64, n_hashes=3)
        assert len({*small.set_bits(0), *small.set_bits(1)}) == 6
        assert exact_epsilon(small.law(0), small.law(1)) == pytest.approx(small.claim.epsilon, rel=1e-12)

    @pytest.mark.evidence
    def test_runs_follow_the_law(self):
        rappor = Rappor(f=0.3, report_zero=0.1, report_one=0.7)
        outputs = rappor.sample(1, RUNS, np.random.default_rng(1))
        assert set(np.unique(outputs)) == {0, 1}
        marginals = np.array([law.probabilities[1] for law in rappor.law(1).marginals])
        assert set(np.flatnonzero(marginals == marginals.max())) == {3, 10, 13}
        assert are_in_limits(outputs.sum(axis=0), marginals)
        both = (outputs[:, :-1] & outputs[:, 1:]).sum(axis=0)
        assert are_in_limits(both, marginals[:-1] * marginals[1:])


class TestTruncatedGeometric:
    def test_it_is_clipped_geometric_noise(self):
        """Compare with the fractions (1 − r)/(1 + r) r^|z − c|, and the tails at the ends."""
        mechanism = TruncatedGeometric(0.1)
        assert (mechanism.k, mechanism.denominator) == (3, 17 * 9**4)
        r, n = Fraction(8, 9), 5
        for count in range(n + 1):
            steps = np.diff(mechanism.distribution(count), prepend=0)
            for z, weight in enumerate(steps.tolist()):
                inside = (1 - r) / (1 + r) * r ** abs(z - count)
                end = r ** abs(z - count) / (1 + r)
                assert Fraction(weight, mechanism.denominator) == (end if z in (0, n) else inside)
            assert mechanism.law(count).probabilities.sum() == pytest.approx(1.0, abs=1e-12)

    @pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.5, 1.0, 3.0])
    def test_its_loss(self, epsilon):
        mechanism = TruncatedGeometric(epsilon)
        laws = [mechanism.law(count) for count in range(6)]
        losses = [exact_epsilon(one, two) for one, two in pairwise(laws)]
        assert max(losses) == pytest.approx(mechanism.loss, rel=1e-12)
        assert (mechanism.loss > epsilon) == (epsilon < 0.2)

    @pytest.mark.evidence
    def test_runs_follow_the_law(self):
        mechanism = TruncatedGeometric(0.5)
        outputs = mechanism.sample(1, RUNS, np.random.default_rng(1))
        assert outputs.dtype == np.int64
        assert are_in_limits(np.bincount(outputs, minlength=6), mechanism.law(1).probabilities)


class TestNoisyAnswers:
    def test_running_sums_have_the_losses_of_their_steps(self):
        steps, sums = NoisyAnswers(CLAIM, 2.0), NoisyAnswers(CLAIM, 2.0, running_sums=True)
        answers, other = (1.0, -2.5, 0.3), (1.0, -1.5, 0.3)
        outputs = steps.sample(answers, 1000, np.random.default_rng(1))
        again = sums.sample(answers, 1000, np.random.default_rng(1))
        assert np.array_equal(np.cumsum(outputs, axis=1), again)
        assert steps.law(answers).log_density(outputs) == pytest.approx(sums.law(answers).log_density(again), rel=1e-9)
        for delta in (0.0, 0.1):
            assert exact_epsilon(sums.law(answers), sums.law(other), delta) == exact_epsilon(
                steps.law(answers), steps.law(other), delta
            )
        assert sums.law(answers).delta_from(sums.law(other), 0.1) == pytest.approx(-math.expm1((0.1 - 0.5) / 2))

    @pytest.mark.evidence
    def test_runs_follow_the_law(self):
        outputs = NoisyAnswers(CLAIM, 2.0, running_sums=True).sample((1.0, -2.5), RUNS, np.random.default_rng(2))
        quantiles = np.linspace(0.1, 0.9, 9)
        for column, location in ((outputs[:, 0], 1.0), (np.diff(outputs)[:, 0], -2.5)):
            limits = stats.laplace(location, 2.0).ppf(quantiles)
            assert are_in_limits((column[:, None] <= limits).sum(axis=0), quantiles)
        step = 2.0**-19
        assert np.all(outputs % step == 0)


class TestLargestExponential:
    ANSWERS = (0.25, 1.0, -3.0)

    def cdf(self, z):
        return math.prod(-math.expm1(-(z - answer) / 2.0) for answer in self.ANSWERS) if z > 1.0 else 0.0

    def test_the_density_is_that_of_the_product(self):
        law = LargestExponential(CLAIM, 2.0).law(self.ANSWERS)
        for z in (1.001, 1.7, 4.0, 12.0):
            slope = (self.cdf(z + 1e-5) - self.cdf(z - 1e-5)) / 2e-5
            assert math.exp(law.log_density(z)) == pytest.approx(slope, rel=1e-6)
        at_the_edge = (
            -math.expm1(-0.75 / 2) * -math.expm1(-4.0 / 2) / 2
        )  # the product of the other distribution functions and the density at 0
        assert math.exp(law.log_density(1.0)) == pytest.approx(at_the_edge)
        assert np.isneginf(law.log_density([0.9, 0.5, -10.0])).all()

    def test_the_log_density_does_not_underflow_in_the_tail(self):
        law = LargestExponential(CLAIM, 2.0).law(self.ANSWERS)
        assert law.log_density(4000.0) - law.log_density(4002.0) == pytest.approx(1.0)

    @pytest.mark.evidence
    def test_runs_follow_the_law(self):
        mechanism = LargestExponential(CLAIM, 2.0)
        outputs = mechanism.sample(self.ANSWERS, RUNS, np.random.default_rng(1))
        limits = (1.001, 1.5, 2.0, 3.0, 5.0, 8.0)
        assert are_in_limits([np.sum(outputs <= z) for z in limits], [self.cdf(z) for z in limits])
        assert np.all(outputs % 2.0**-19 == 0)
        assert outputs.min() >= 1.0

    def test_an_output_rounded_down_at_the_edge_is_possible(self):
        """The largest answer lies between two grid points, and the noise may be close to 0."""
        law = LargestExponential(CLAIM, 2.0).law((1.0 + 0.4 * 2.0**-19, 0.0))
        assert np.isfinite(law.log_density(1.0))
        assert np.isneginf(law.log_density(1.0 - 2.0**-19))

    def test_the_loss_is_infinite_in_one_direction(self):
        low, high = (LargestExponential(CLAIM, 2.0).law(answers) for answers in ((0.0, 1.0), (1.0, 2.0)))
        assert low.epsilon_from(high, 0.0) == math.inf
        with pytest.raises(OptionError, match="no closed form"):
            high.epsilon_from(low, 0.0)


class TestSideBySide:
    BOTH = SideBySide((SparseVectorReleasingValue(1.0), SparseVector(1.0)))
    ANSWERS = (0.0, 1.0)

    def test_densities_and_claims_add_up(self):
        values, codes = self.BOTH.parts
        outputs = self.BOTH.sample(self.ANSWERS, 200, np.random.default_rng(1))
        assert outputs.shape == (200, 4)
        total = values.law(self.ANSWERS).log_density(outputs[:, :2]) + codes.law(self.ANSWERS).log_density(
            outputs[:, 2:]
        )
        assert np.array_equal(self.BOTH.law(self.ANSWERS).log_density(outputs), total)
        assert self.BOTH.claim == PureDP(2.0)
        assert str(self.BOTH) == "SideBySide(2 mechanisms, 2-DP)"

    def test_the_largest_losses_add_up(self):
        laws = [self.BOTH.law(answers) for answers in (self.ANSWERS, (1.0, 2.0))]
        parts = [exact_epsilon(one, two) for one, two in zip(*(law.parts for law in laws), strict=True)]
        assert exact_epsilon(*laws) <= sum(parts) + 1e-12
        assert laws[0].epsilon_from(laws[1], 0.0) == pytest.approx(
            sum(one.epsilon_from(two, 0.0) for one, two in zip(*(law.parts for law in laws), strict=True))
        )
        with pytest.raises(OptionError, match="use delta=0"):
            laws[0].epsilon_from(laws[1], 0.1)

    @pytest.mark.evidence
    def test_parts_are_independent(self):
        outputs = self.BOTH.sample(self.ANSWERS, RUNS, np.random.default_rng(5))
        first = np.array([np.sum(~np.isnan(outputs[:, 0])), np.sum(outputs[:, 2] == 1)])
        law = self.BOTH.parts[1].law(self.ANSWERS)
        above = math.exp(law.log_density([[1, -1]])[0])
        silent = math.exp(self.BOTH.parts[0].law(self.ANSWERS).log_density([[math.nan, math.nan]])[0])
        both = np.sum(np.isnan(outputs[:, :2]).all(axis=1) & (outputs[:, 2] == 1))
        assert are_in_limits([first[1], both], [above, above * silent])
