"""The suite of DP-Sniper: twenty mechanisms, their worst pairs, distributions and published bounds.

Random tests have a false-alarm probability of 1e-8 each.
"""

import functools
import itertools
import math
import pickle
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dpaudit.audit.claims.claim import PureDP
from dpaudit.audit.datasets.domains import Values
from dpaudit.audit.errors import OptionError
from dpaudit.experiments.published.dp_sniper import (
    PUBLISHED,
    Rappor,
    SideBySide,
    TruncatedGeometric,
    entries,
    published_bound,
)
from dpaudit.experiments.published.statdp import LargestExponential, RunningSums
from dpaudit.mechanisms import SparseVector, exact_epsilon
from dpaudit.mechanisms.faulty import LaplaceOfScale, SparseVectorReleasingValue
from dpaudit.mechanisms.faulty.selection import MaximumLaplaceDistribution

ALARM, RUNS = 1e-8, 20_000
CLAIM = PureDP(0.1)
ENTRIES = {entry.name: entry for entry in entries()}
OF_FIVE = ("NoisyHist1", "NoisyHist2")
EXACT = {
    "LaplaceMechanism": 0.1,
    "TruncatedGeometricMechanism": math.log(9 / 8),
    "NoisyHist1": 0.1,
    "NoisyHist2": 10.0,
    "ReportNoisyMax3": 0.25,  # five answers, each half of epsilon
    "ReportNoisyMax4": math.inf,
    "SparseVectorTechnique3": 0.5,  # nine below and a small value: ten times half of epsilon
    "SparseVectorTechnique5": math.inf,
    "Rappor": 6 * math.log(0.5125 / 0.4875),
    "OneTimeRappor": 6 * math.log(0.525 / 0.475),
    "LaplaceParallel": 0.1,
    "PrefixSum": 1.0,
}
CLAIMED = {"SVT34Parallel": 0.2, "Rappor": 8 * math.log(0.5125 / 0.4875), "OneTimeRappor": 8 * math.log(0.525 / 0.475)}


def pairs_of_the_suite(entry):
    """Return the ordered pairs of the suite for a mechanism of this form."""
    if isinstance(entry.domain, Values):
        return list(itertools.permutations(entry.domain.values, 2))
    if np.ndim(entry.x) == 0:
        levels = [(1, 0), (1, 2)]
        return levels + [(y, x) for x, y in levels]
    n = len(entry.x)
    half, ones = n // 2, (1.0,) * n
    others = [(0.0, *ones[1:]), (2.0, *ones[1:])]
    if entry.name not in OF_FIVE:
        others += [(2.0,) + (0.0,) * (n - 1), (0.0,) + (2.0,) * (n - 1), (2.0,) * half + (0.0,) * (n - half)]
        others += [(2.0,) * n, (0.0,) * n]
    pairs = [(ones, other) for other in others]
    if entry.name not in OF_FIVE:
        pairs.append(((1.0,) * half + (0.0,) * (n - half), (0.0,) * half + (1.0,) * (n - half)))
    return pairs + [(y, x) for x, y in pairs]


def largest_loss(distribution_x, distribution_y):
    """Return the loss by the distribution or on a grid; NaN if it is finite and unknown."""
    if isinstance(distribution_x, MaximumLaplaceDistribution):
        z = np.linspace(-300.0, 300.0, 6001)
        return float((distribution_x.log_density(z) - distribution_y.log_density(z)).max())
    if hasattr(distribution_x, "locations"):
        return math.inf if max(distribution_x.locations) < max(distribution_y.locations) else math.nan
    return distribution_x.epsilon_from(distribution_y, 0.0)


def test_all_twenty_mechanisms_are_present():
    assert list(ENTRIES) == list(PUBLISHED)
    assert sum(entry.is_broken for entry in ENTRIES.values()) == 10
    assert pickle.loads(pickle.dumps(ENTRIES["SVT34Parallel"])) == ENTRIES["SVT34Parallel"]


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_is_consistent(name):
    entry = ENTRIES[name]
    entry.adjacency.check(entry.x, entry.y, 1.0)
    if isinstance(entry.domain, Values):
        assert {entry.x, entry.y} <= set(entry.domain.values)
    else:
        pair = np.array([entry.x, entry.y])
        assert pair.shape[1:] == (() if entry.domain.n_answers is None else (entry.domain.n_answers,))
        assert np.all((pair >= entry.domain.low) & (pair <= entry.domain.high))
    assert entry.mechanism.claim == entry.claim
    assert entry.claim.epsilon == pytest.approx(CLAIMED.get(name, 0.1))
    assert entry.exact == pytest.approx(EXACT.get(name, entry.exact), rel=1e-9)
    assert bool(entry.note) or not entry.is_broken


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.evidence if name == "SVT34Parallel" else ()) for name in ENTRIES]
)
def test_no_pair_of_the_suite_loses_more(name):
    entry = ENTRIES[name]
    distribution = functools.cache(entry.mechanism.distribution)
    losses = [largest_loss(distribution(x), distribution(y)) for x, y in pairs_of_the_suite(entry)]
    assert np.nanmax(losses) == pytest.approx(entry.exact, rel=1e-7)


def test_published_bounds_do_not_exceed_the_exact_loss():
    assert [ENTRIES[name].published for name in PUBLISHED] == [published_bound(n, e.exact) for n, e in ENTRIES.items()]
    too_large = {name: [b for b in PUBLISHED[name] if b is not None and b > ENTRIES[name].exact] for name in PUBLISHED}
    assert {name: bounds for name, bounds in too_large.items() if bounds} == {
        "NoisyHist2": [10.0022],
        "Rappor": [0.3008],
    }
    assert (ENTRIES["NoisyHist2"].published, ENTRIES["NumericalSVT"].published) == (9.7169, 0.0345)


@pytest.mark.parametrize("name", ENTRIES)
def test_distributions_of_a_pair_agree_on_what_they_share(name):
    """∫ min(f, g) equals E_x[min(1, g/f)] and E_y[min(1, f/g)], two means of numbers in [0, 1] on independent runs.

    The same holds over the outputs that are more likely on x, where the first mean is a change of measure and the
    second counts runs. The limits follow from Hoeffding's inequality.
    """
    entry = ENTRIES[name]
    distribution_x, distribution_y = entry.mechanism.distribution(entry.x), entry.mechanism.distribution(entry.y)
    shares, likelier = [], []
    for dataset, seed, sign in ((entry.x, 1, 1.0), (entry.y, 2, -1.0)):
        outputs = entry.mechanism.sample(dataset, RUNS, np.random.default_rng(seed))
        with np.errstate(divide="ignore"):
            loss = distribution_x.log_density(outputs) - distribution_y.log_density(outputs)
        ratio = np.exp(-np.maximum(sign * loss, 0.0))
        shares.append(ratio.mean())
        likelier.append((ratio * (loss > 1e-12)).mean())
    margin = math.sqrt(math.log(4 / ALARM) / RUNS)
    assert abs(shares[0] - shares[1]) < margin
    assert abs(likelier[0] - likelier[1]) < margin


class TestRappor:
    def test_bits_of_the_values_of_the_suite(self):
        rappor = Rappor(f=0.75)
        assert [rappor.set_bits(value) for value in (0, 1)] == [(0, 11, 18), (3, 10, 13)]
        assert len(set(rappor.set_bits(2)) ^ set(rappor.set_bits(1))) == 5

    def test_two_steps_are_one_coin_and_the_claim_is_attained_without_common_bits(self):
        """A bit is kept with probability 1/4 and otherwise a fair coin; then .55 or .45."""
        assert [Rappor(f=0.75).probability_of_one(bit) for bit in (True, False)] == pytest.approx([0.5125, 0.4875])
        small = Rappor(f=0.5, report_zero=0.2, report_one=0.9, n_bits=64, n_hashes=3)
        assert len({*small.set_bits(0), *small.set_bits(1)}) == 6
        assert exact_epsilon(small.distribution(0), small.distribution(1)) == pytest.approx(
            small.claim.epsilon, rel=1e-12
        )


class TestTruncatedGeometric:
    def test_it_is_clipped_geometric_noise(self):
        """Compare with the fractions (1 − r)/(1 + r) r^|z − c|, and the tails at the ends."""
        mechanism, r, n = TruncatedGeometric(0.1), Fraction(8, 9), 5
        assert (mechanism.k, mechanism.denominator) == (3, 17 * 9**4)
        for count in range(n + 1):
            steps = np.diff(mechanism.cumulative(count), prepend=0)
            for z, weight in enumerate(steps.tolist()):
                inside = (1 - r) / (1 + r) * r ** abs(z - count)
                end = r ** abs(z - count) / (1 + r)
                assert Fraction(weight, mechanism.denominator) == (end if z in (0, n) else inside)

    @pytest.mark.parametrize("epsilon", [0.05, 0.5, 3.0])
    def test_its_loss(self, epsilon):
        mechanism = TruncatedGeometric(epsilon)
        losses = [exact_epsilon(one, two) for one, two in pairwise(mechanism.distribution(count) for count in range(6))]
        assert max(losses) == pytest.approx(mechanism.loss, rel=1e-12)
        assert (mechanism.loss > epsilon) == (epsilon < 0.2)


def test_running_sums_have_the_losses_of_their_steps():
    steps = LaplaceOfScale(2.0, CLAIM)
    sums = RunningSums(steps)
    answers, other = (1.0, -2.5, 0.3), (1.0, -1.5, 0.3)
    outputs, again = (one.sample(answers, 1000, np.random.default_rng(1)) for one in (steps, sums))
    assert np.array_equal(np.cumsum(outputs, axis=1), again)
    assert steps.distribution(answers).log_density(outputs) == pytest.approx(
        sums.distribution(answers).log_density(again), rel=1e-9
    )
    assert exact_epsilon(sums.distribution(answers), sums.distribution(other)) == 0.5
    assert sums.distribution(answers).delta_from(sums.distribution(other), 0.1) == pytest.approx(
        -math.expm1((0.1 - 0.5) / 2)
    )


class TestLargestExponential:
    ANSWERS = (0.25, 1.0, -3.0)

    def cdf(self, z):
        return math.prod(-math.expm1(-(z - answer) / 2.0) for answer in self.ANSWERS) if z > 1.0 else 0.0

    def test_the_density_is_that_of_the_product(self):
        distribution = LargestExponential(CLAIM, 2.0).distribution(self.ANSWERS)
        for z in (1.001, 1.7, 12.0):
            slope = (self.cdf(z + 1e-5) - self.cdf(z - 1e-5)) / 2e-5
            assert math.exp(distribution.log_density(z)) == pytest.approx(slope, rel=1e-6)
        at_the_edge = math.expm1(-0.75 / 2) * math.expm1(-4.0 / 2) / 2  # other distribution functions, density at 0
        assert math.exp(distribution.log_density(1.0)) == pytest.approx(at_the_edge)
        assert np.isneginf(distribution.log_density([0.9, 0.5, -10.0])).all()
        assert distribution.log_density(4000.0) - distribution.log_density(4002.0) == pytest.approx(1.0)

    def test_an_output_rounded_down_at_the_edge_is_possible(self):
        """The largest answer lies between two grid points, and the noise may be close to 0."""
        distribution = LargestExponential(CLAIM, 2.0).distribution((1.0 + 0.4 * 2.0**-19, 0.0))
        assert np.isfinite(distribution.log_density(1.0))
        assert np.isneginf(distribution.log_density(1.0 - 2.0**-19))

    def test_the_loss_is_infinite_in_one_direction(self):
        low, high = (LargestExponential(CLAIM, 2.0).distribution(answers) for answers in ((0.0, 1.0), (1.0, 2.0)))
        assert low.epsilon_from(high, 0.0) == math.inf
        with pytest.raises(OptionError, match="no closed form"):
            high.epsilon_from(low, 0.0)


def test_densities_claims_and_largest_losses_side_by_side_add_up():
    both = SideBySide((SparseVectorReleasingValue(1.0), SparseVector(1.0)))
    distributions = [both.distribution(answers) for answers in ((0.0, 1.0), (1.0, 2.0))]
    outputs = both.sample((0.0, 1.0), 200, np.random.default_rng(1))
    total = distributions[0].parts[0].log_density(outputs[:, :2]) + distributions[0].parts[1].log_density(
        outputs[:, 2:]
    )
    assert np.array_equal(distributions[0].log_density(outputs), total)
    assert both.claim == PureDP(2.0)
    losses = [
        one.epsilon_from(two, 0.0) for one, two in zip(distributions[0].parts, distributions[1].parts, strict=True)
    ]
    assert distributions[0].epsilon_from(distributions[1], 0.0) == pytest.approx(sum(losses))
    with pytest.raises(OptionError, match="use delta=0"):
        distributions[0].epsilon_from(distributions[1], 0.1)
