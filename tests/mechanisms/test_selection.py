"""Selection of a candidate: laws, claims and the private auction.

The histogram is in test_conformance.py. The equivalence of samplers is one random test here, false alarm 1e-8.
"""

import itertools
import math
import pickle

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

import dpaudit.mechanisms as m
from dpaudit import AddRemove, check
from dpaudit.audit.claims.claim import PureDP
from dpaudit.audit.errors import ClaimError, DatasetError
from dpaudit.mechanisms import faulty

# The exponential mechanism.

RIGHT = m.ExponentialMechanism(1.0)


ONE_UP = [1.0] + [-1.0] * 49


def test_law_by_the_formula():
    utilities = np.array([0.0, 2.0, -1.0, 5.0])
    for monotone, rate in ((False, 0.3 / (2 * 1.5)), (True, 0.3 / 1.5)):
        weights = np.exp(rate * utilities)
        found = m.ExponentialMechanism(0.3, 1.5, monotone=monotone).law(utilities).probabilities
        np.testing.assert_allclose(found, weights / weights.sum(), rtol=1e-13)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6, 1e12, 1e100, 1e300])
@pytest.mark.parametrize("monotone", [False, True])
def test_log_probabilities_are_exact_for_utilities_of_any_size(size, monotone):
    """Relative error against 400 digits, although each exponent is as large as the utilities."""
    mechanism = m.ExponentialMechanism(0.7, 3.0, monotone=monotone)
    utilities = size * np.array([1.0, 0.999999, -0.25, 1.0, 0.0])
    with mpmath.workdps(400):
        rate = mpmath.mpf(0.7) / (3 if monotone else 6)
        exponents = [rate * mpmath.mpf(float(u)) for u in utilities]
        total = mpmath.log(mpmath.fsum(mpmath.exp(e - exponents[0]) for e in exponents)) + exponents[0]
        expected = [float(e - total) for e in exponents]
    np.testing.assert_allclose(mechanism.law(utilities).log_probabilities, expected, rtol=5e-15)


def test_adding_a_constant_to_all_utilities_changes_nothing():
    assert RIGHT.law([1e15, 1e15 + 2]) == RIGHT.law([0.0, 2.0])


def test_a_million_scales_apart_the_claim_still_holds_exactly():
    far = np.array([0.0, 2e6, -3e8])
    assert m.exact_epsilon(RIGHT.law(far), RIGHT.law(far + np.array([1, -1, 1]))) == pytest.approx(1.0, rel=1e-7)


def test_outputs_at_a_million_scales_are_the_best_candidate():
    assert set(RIGHT.sample([0.0, 2e6, 1e6], 1000, np.random.default_rng(1)).tolist()) == {1}


@pytest.mark.parametrize(
    ("x", "y", "loss"),
    [([0.0] * 50, ONE_UP, 0.966), ([0.0, -3.0], [-1.0, -2.0], 0.727), ([0.0, -3.0], [1.0, -4.0], 0.877)],
)
def test_losses_computed_by_hand(x, y, loss):
    assert RIGHT.claim == PureDP(1.0)
    assert m.exact_epsilon(RIGHT.law(x), RIGHT.law(y)) == pytest.approx(loss, abs=5e-4)


def test_claim_is_approached_but_not_exceeded():
    losses = [
        m.exact_epsilon(RIGHT.law([0.0] * k), RIGHT.law([1.0] + [-1.0] * (k - 1))) for k in (2, 10, 1000, 100_000)
    ]
    assert losses == sorted(losses)
    assert losses[-1] < 1.0
    assert losses[-1] > 0.9999


def test_neighbours_drawn_at_random_stay_within_the_claim():
    rng = np.random.default_rng(1)
    for _ in range(200):
        u = rng.normal(0, 3, 6)
        general = m.ExponentialMechanism(0.8, 2.0)
        assert m.exact_epsilon(general.law(u), general.law(u + rng.uniform(-2, 2, 6))) <= 0.8
        monotone = m.ExponentialMechanism(0.8, 2.0, monotone=True)
        assert m.exact_epsilon(monotone.law(u), monotone.law(u + rng.uniform(0, 2, 6))) <= 0.8


def test_monotone_saving_is_false_under_replace():
    mechanism = m.ExponentialMechanism(1.0, monotone=True)
    assert m.exact_epsilon(mechanism.law([0.0] * 50), mechanism.law(ONE_UP)) == pytest.approx(1.880, abs=5e-4)


@pytest.mark.parametrize("seed", range(20))
def test_each_half_of_the_loss_is_within_half_of_epsilon(seed):
    """The proof of Theorem 3.10 in numbers: the candidate's term and the normaliser's add up to the loss."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 10, 5)
    for monotone, step in ((False, rng.uniform(-2, 2, 5)), (True, rng.uniform(0, 2, 5))):
        mechanism = m.ExponentialMechanism(0.6, 2.0, monotone=monotone)
        own, normaliser = mechanism.loss_parts(x + step, x)
        half = 0.6 if monotone else 0.3
        assert np.abs(own).max() <= half
        assert abs(normaliser) <= half
        assert not monotone or normaliser <= 0 <= own.min()
        losses = np.subtract(mechanism.law(x + step).log_probabilities, mechanism.law(x).log_probabilities)
        np.testing.assert_allclose(own + normaliser, losses, atol=1e-13)


def test_without_the_two_each_part_reaches_epsilon():
    own, normaliser = m.ExponentialMechanism(1.0, monotone=True).loss_parts([1.0] + [-1.0] * 10_000, [0.0] * 10_001)
    assert own.max() == 1.0
    assert 0.999 < normaliser < 1.0


def test_parts_of_the_loss_need_one_range():
    with pytest.raises(DatasetError, match="x has 2 candidates and y 3; use the same candidates for every dataset"):
        RIGHT.loss_parts([0.0, 1.0], [0.0, 1.0, 2.0])


def test_any_objects_are_candidates():
    def nearness(salaries, month):
        return -abs(sum(salaries) - month["budget"])

    months = [{"budget": 10}, {"budget": 12}]
    mechanism = m.ExponentialMechanism(2.0, utilities=m.EachCandidate(nearness, months))
    assert mechanism.law([5, 6, 1]) == m.ExponentialMechanism(2.0).law([-2.0, 0.0])


@pytest.mark.parametrize(
    ("utilities", "message"),
    [
        ([], "an empty vector, so there is nothing to choose from; return the score of at least one candidate"),
        (
            [1.0, math.nan],
            "the score of candidate 1 is nan; use finite scores, and leave out a candidate that must never",
        ),
        ([1.0, 2.0, -math.inf], "the score of candidate 2 is -inf; use finite scores"),
        ([math.inf], "the score of candidate 0 is inf"),
        ([[1.0]], "which is not a vector of scores; return one number per candidate"),
        (3.0, "which is not a vector of scores"),
        (["a"], "which is not a vector of scores"),
        (
            [-1.5e308, 1.5e308],
            r"the scores reach from -1.5e\+308 to 1.5e\+308, which a double cannot hold in scales of 2;",
        ),
    ],
    ids=["empty", "nan", "minus infinity", "infinity", "matrix", "number", "word", "spread"],
)
def test_utilities_that_cannot_be_used_are_refused(utilities, message):
    with pytest.raises(DatasetError, match=message):
        RIGHT.law(utilities)


def test_a_scale_that_no_double_holds_is_refused():
    with pytest.raises(DatasetError, match="in scales of 0; bring the scores closer together, or use a larger"):
        m.ExponentialMechanism(1e200, 1e-200).law([0.0, 1.0])


# Permute-and-flip: its law against the algorithm as written, noisy max and the exponential mechanism.

UTILITIES = [[3.0], [0.0, 0.0], [0.0, 1.0, 2.5, 2.5, -1.0], [0.0, 40.0, 39.0], list(np.linspace(0, 9, 6))]


@pytest.mark.parametrize("utilities", UTILITIES)
def test_law_by_all_orders(utilities):
    """In each order, the first candidate whose coin with probability e^{(u − max u)/2} says yes."""
    chances = np.exp((np.array(utilities) - max(utilities)) / 2)
    expected = np.zeros(len(utilities))
    for order in itertools.permutations(range(len(utilities))):
        passed = 1 / math.factorial(len(utilities))
        for candidate in order:
            expected[candidate] += passed * chances[candidate]
            passed *= 1 - chances[candidate]
    np.testing.assert_allclose(m.PermuteAndFlip(1.0).law(utilities).probabilities, expected, rtol=1e-13)


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(
    "utilities", [*UTILITIES, [0.0] * 60, np.linspace(0, 40, 120), [0.0, -1e6, -2.0, -1e300]], ids=range(8)
)
def test_law_is_that_of_exponential_noise(utilities, monotone):
    """Ding et al. (2021): one law is a mean over orders, the other an integral over the winning noise."""
    flips = m.PermuteAndFlip(0.8, 0.5, monotone=monotone).law(utilities)
    noise = m.ReportNoisyMax(0.8, 0.5, monotone=monotone, noise="exponential").law(utilities)
    np.testing.assert_allclose(flips.log_probabilities, noise.log_probabilities, rtol=1e-12, atol=1e-12)
    assert flips.probabilities.sum() == pytest.approx(1.0, abs=1e-12)


def test_two_candidates_in_closed_form_refute_theorem_3_13():
    """The worse of two candidates wins with probability ½ e^{−cε/2}, unlike in the exponential mechanism."""
    for c in (0.5, 3.0, 100.0):
        flips, exponential = (
            kind(0.9).law([0.0, c]).log_probabilities[0] for kind in (m.PermuteAndFlip, m.ExponentialMechanism)
        )
        assert flips == pytest.approx(-math.log(2) - 0.45 * c, rel=1e-14)
        assert exponential == pytest.approx(-0.45 * c - math.log1p(math.exp(-0.45 * c)), rel=1e-14)
        assert flips < exponential - 0.05


@pytest.mark.parametrize("utilities", UTILITIES)
def test_expected_utility_is_never_below_that_of_the_exponential_mechanism(utilities):
    flips, exponential = (kind(0.7).law(utilities).probabilities for kind in (m.PermuteAndFlip, m.ExponentialMechanism))
    assert flips @ utilities >= exponential @ utilities - 1e-12


@pytest.mark.parametrize("monotone", [False, True])
def test_neighbours_drawn_at_random_stay_within_the_claim_of_permute_and_flip(monotone):
    mechanism = m.PermuteAndFlip(0.8, 2.0, monotone=monotone)
    assert mechanism.claim == PureDP(0.8)
    rng = np.random.default_rng(1)
    for _ in range(100):
        utilities = rng.normal(0, 5, 5)
        other = utilities + rng.uniform(0 if monotone else -2, 2, 5)
        assert m.exact_epsilon(mechanism.law(utilities), mechanism.law(other)) <= 0.8 + 1e-12


def test_the_claim_is_approached_and_the_monotone_saving_is_false_where_others_fall():
    x, y = [40.0, 0.0], [39.0, 1.0]
    assert 0.95 < m.exact_epsilon(m.PermuteAndFlip(1.0).law(x), m.PermuteAndFlip(1.0).law(y)) <= 1.0 + 1e-12
    saving = m.PermuteAndFlip(1.0, monotone=True)
    assert m.exact_epsilon(saving.law(x), saving.law(y)) == pytest.approx(2.0, rel=1e-12)


def test_its_sampler_and_that_of_noisy_max_agree():
    """Two algorithms, one law: each count is within its exact binomial limits (false alarm 1e-8)."""
    utilities, runs = [0.0, 1.0, 2.5, 2.5, -1.0], 200_000
    probabilities = m.PermuteAndFlip(1.0).law(utilities).probabilities
    low, high = (stats.binom.ppf(q, runs, probabilities) for q in (1e-8 / 20, 1 - 1e-8 / 20))
    for mechanism in (m.PermuteAndFlip(1.0), m.ReportNoisyMax(1.0, noise="exponential")):
        counts = np.bincount(mechanism.sample(utilities, runs, np.random.default_rng(3)), minlength=5)
        assert np.all((low <= counts) & (counts <= high))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: m.PermuteAndFlip(0), ClaimError, "epsilon=0 is not allowed; use 0 < epsilon < inf"),
        (lambda: m.PermuteAndFlip(1, math.inf), ClaimError, "sensitivity=inf is not allowed"),
        (lambda: m.PermuteAndFlip(1).law([math.nan]), DatasetError, "the score of candidate 0 is nan"),
    ],
    ids=["epsilon", "sensitivity", "nan"],
)
def test_errors_of_permute_and_flip(call, error, message):
    with pytest.raises(error, match=message):
        call()


# Report noisy max: laws against quadrature, permutations and the exponential mechanism; claims on random pairs.

COUNTS = [[3.0], [0.0, 0.0], [0.0, 1.0, 2.5, 2.5, -4.0], [0.0, 40.0, 39.0]]


NOISES = ["laplace", "exponential", "gumbel"]


@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize(("noise", "law"), [("laplace", stats.laplace), ("exponential", stats.expon)])
def test_law_by_adaptive_quadrature(counts, noise, law):
    mechanism = m.ReportNoisyMax(1.0, sensitivity=0.5, noise=noise)  # scale 1
    found = mechanism.law(counts).probabilities
    stops = sorted({min(counts) - 40, *counts, max(counts) + 40})
    for i, count in enumerate(counts):

        def integrand(z, i=i, count=count):
            return law.pdf(z - count) * math.prod(law.cdf(z - c) for j, c in enumerate(counts) if j != i)

        pairs = itertools.pairwise(stops)
        expected = sum(integrate.quad(integrand, a, b, epsabs=1e-13, limit=100)[0] for a, b in pairs)
        assert found[i] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("counts", [*COUNTS, list(np.linspace(0, 30, 60)), [0.0, 900.0], [0.0] * 300])
def test_probabilities_add_to_one(noise, counts):
    assert m.ReportNoisyMax(1.0, noise=noise).law(counts).probabilities.sum() == pytest.approx(1.0, abs=1e-12)


def test_two_laplace_candidates_in_closed_form():
    """The difference of two Laplace variables has the tail e^{−d}(2 + d)/4."""
    for gap in (0.0, 0.3, 7.0, 600.0):
        loser = m.ReportNoisyMax(2.0, noise="laplace").law([gap, 0.0]).log_probabilities[1]
        assert loser == pytest.approx(-gap + math.log((2 + gap) / 4), rel=1e-12, abs=1e-13)


def test_exponential_noise_is_permute_and_flip():
    """In a random order, stop at a candidate with probability e^{(count − largest)/scale}."""
    counts = np.array([0.0, 1.0, 2.5, 2.5, -1.0])
    chances = np.exp((counts - counts.max()) / 2)
    expected = np.zeros(5)
    for order in itertools.permutations(range(5)):
        passed = 1.0
        for candidate in order:
            expected[candidate] += passed * chances[candidate] / math.factorial(5)
            passed *= 1 - chances[candidate]
    found = m.ReportNoisyMax(1.0, noise="exponential").law(counts).probabilities
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("monotone", [False, True])
def test_gumbel_noise_is_the_exponential_mechanism(monotone):
    counts = [0.0, 1.0, -2.0]
    expected = m.ExponentialMechanism(0.7, 2.0, monotone=monotone).law(counts).probabilities
    found = m.ReportNoisyMax(0.7, 2.0, monotone=monotone, noise="gumbel").law(counts).probabilities
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("monotone", [False, True])
def test_neighbours_drawn_at_random_stay_within_the_claim_of_noisy_max(noise, monotone):
    mechanism = m.ReportNoisyMax(0.8, 2.0, monotone=monotone, noise=noise)
    assert mechanism.claim == PureDP(0.8)
    rng = np.random.default_rng(1)
    for _ in range(50):
        counts = rng.normal(0, 5, 5)
        other = counts + rng.uniform(0 if monotone else -2, 2, 5)
        assert m.exact_epsilon(mechanism.law(counts), mechanism.law(other)) <= 0.8 + 1e-12


@pytest.mark.parametrize("noise", NOISES)
def test_claim_is_approached_when_a_far_candidate_rises_and_the_rest_fall(noise):
    mechanism = m.ReportNoisyMax(1.0, noise=noise)
    x, y = [40.0, 0.0], [39.0, 1.0]
    assert m.exact_epsilon(mechanism.law(x), mechanism.law(y)) > 0.95


def test_counts_that_cannot_be_used_are_refused():
    with pytest.raises(DatasetError, match="which is not a vector of scores"):
        m.ReportNoisyMax(1).law(3)
    with pytest.raises(DatasetError, match="too far to integrate their law"):
        m.ReportNoisyMax(1).law([0.0, 1e9])


# The pumpkin auction: optimum, sensitivity, the claim on all small auctions, and the false range.

CENTS = tuple(cents / 100 for cents in range(1, 501))


SMALL = (1.0, 2.0, 3.0)


def test_the_best_price_is_the_lowest_bid():
    """K, who bids 3.01, also buys at 1.00: the revenue is 4.00 there and at most 3.01 at other prices."""
    revenue = dict(zip(CENTS, m.Revenue(CENTS)(m.PUMPKIN_BIDS).tolist(), strict=True))
    assert revenue[1.00] == 4.00 == max(revenue.values())
    assert (revenue[3.00], revenue[3.01], revenue[3.02]) == (3.00, 3.01, 0.0)
    assert revenue[1.01] == 1.01
    assert sorted(revenue, key=revenue.get)[-4:] == [0.97, 0.98, 0.99, 1.00]


def test_in_the_first_three_bids_a_cent_more_than_the_best_price_loses_everything():
    """The example's point needs bids other than its own."""
    assert m.Revenue((1.00, 1.01))(m.PUMPKIN_BIDS[:3]).tolist() == [3.0, 0.0]


def test_revenue_by_counting():
    rng = np.random.default_rng(1)
    bids = rng.choice(CENTS, 40)
    expected = [price * sum(bid >= price for bid in bids) for price in CENTS]
    np.testing.assert_allclose(m.Revenue(CENTS)(bids), expected, rtol=1e-15)
    assert m.Revenue(SMALL)([]).tolist() == [0, 0, 0]


def auctions(max_bids):
    bids = (0.0, 1.0, 1.5, 2.0, 3.0, 7.0)
    for size in range(max_bids):
        for others in itertools.combinations_with_replacement(bids, size):
            yield others, bids


@pytest.mark.parametrize("monotone", [False, True])
def test_claim_on_all_small_auctions_whether_a_bid_is_added_or_replaced(monotone):
    auction = m.PostedPriceAuction(0.7, SMALL, monotone)
    assert auction.claim == PureDP(0.7)
    largest = 0.0
    for others, bids in auctions(3):
        laws = [auction.law([*others, bid]) for bid in bids] + [auction.law(others)]
        largest = max(largest, *(m.exact_epsilon(p, q) for p, q in itertools.combinations(laws, 2)))
    assert 0.25 < largest <= 0.7


def test_the_price_is_drawn_for_its_revenue():
    auction = m.PostedPriceAuction(2.0, SMALL)
    weights = np.exp(2.0 / (2 * 3) * np.array([4.0, 2.0, 3.0]))
    law = auction.law(m.PUMPKIN_BIDS)
    np.testing.assert_allclose(law.probabilities, weights / weights.sum(), rtol=1e-14)
    assert law.values == SMALL
    assert set(auction.sample(m.PUMPKIN_BIDS, 1000, np.random.default_rng(1)).tolist()) == set(SMALL)


def test_prices_from_the_bids_are_possible_on_one_side_only():
    twin = faulty.PricesFromTheBids(1.0)
    with_k, without_k = twin.law(m.PUMPKIN_BIDS), twin.law(m.PUMPKIN_BIDS[:3])
    assert (with_k.values, without_k.values) == ((1.0, 3.01), (1.0,))
    assert m.exact_epsilon(with_k, without_k) == math.inf
    assert twin.truth is None
    p = with_k.probabilities[1]
    assert m.exact_delta(with_k, without_k, 50.0) == pytest.approx(p, rel=1e-12)
    assert m.exact_epsilon(with_k, without_k, delta=p) == pytest.approx(0.0, abs=1e-12)
    assert 0.3 < p < 0.5
    assert m.exact_epsilon(twin.law([1.0, 2.0]), twin.law([1.0, 2.0, 2.0])) < 1.0  # no new price, no new outcome


def test_an_audit_refutes_the_false_range_and_not_the_fixed_one():
    """The right mechanism is refuted with probability at most alpha=5e-9."""
    settings = {"claim": PureDP(1.0), "adjacency": AddRemove(), "runs": 20_000, "seed": 1, "alpha": 5e-9, "jobs": 1}
    assert not check(m.PostedPriceAuction(1.0, CENTS), m.PUMPKIN_BIDS, m.PUMPKIN_BIDS[:3], **settings).is_refuted
    false = check(faulty.PricesFromTheBids(1.0), m.PUMPKIN_BIDS, m.PUMPKIN_BIDS[:3], **settings)
    assert false.is_refuted
    assert false.bound > 5


def test_auctions_survive_pickling_and_are_one_short_line():
    for auction in (m.PostedPriceAuction(1.0, list(CENTS), monotone=True), faulty.PricesFromTheBids(1.0)):
        assert pickle.loads(pickle.dumps(auction)) == auction
        assert len(str(auction)) <= 72
    assert str(m.PostedPriceAuction(0.5, CENTS)) == "PostedPrice(epsilon=0.5, 500 prices to 5)"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: m.PostedPriceAuction(0, SMALL), ClaimError, "epsilon=0 is not allowed"),
        (
            lambda: m.PostedPriceAuction(1, []),
            ClaimError,
            r"prices=\[\] is not a list of prices; use positive numbers in ascending order, at least one",
        ),
        (lambda: m.PostedPriceAuction(1, [2.0, 1.0]), ClaimError, "is not a list of prices"),
        (lambda: m.PostedPriceAuction(1, [1.0, 1.0]), ClaimError, "is not a list of prices"),
        (lambda: m.PostedPriceAuction(1, [0.0, 1.0]), ClaimError, "is not a list of prices"),
        (lambda: m.PostedPriceAuction(1, [math.nan]), ClaimError, "is not a list of prices"),
        (lambda: m.PostedPriceAuction(1, [1.0, math.inf]), ClaimError, "is not a list of prices"),
        (
            lambda: m.PostedPriceAuction(1, SMALL).law(["a"]),
            DatasetError,
            "is not a list of bids; use one finite number",
        ),
        (lambda: m.PostedPriceAuction(1, SMALL).law([math.nan]), DatasetError, "is not a list of bids"),
        (lambda: m.PostedPriceAuction(1, SMALL).law(3.0), DatasetError, "is not a list of bids"),
        (lambda: faulty.PricesFromTheBids(-1), ClaimError, "epsilon=-1 is not allowed"),
        (lambda: faulty.PricesFromTheBids(1).law([0.0]), DatasetError, "there is no positive bid to take a price from"),
    ],
    ids=range(12),
)
def test_errors_of_posted_price_auction(call, error, message):
    with pytest.raises(error, match=message):
        call()


HALF = math.log(0.5)


def test_discrete_laws_by_hand():
    law = m.DiscreteLaw((-1.0, 0.5, 2.0), tuple(np.log([0.2, 0.3, 0.5])))
    z = [-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0]
    np.testing.assert_allclose(law.cdf(z), [0, 0.2, 0.2, 0.5, 0.5, 1, 1], rtol=1e-14)
    np.testing.assert_allclose(law.sf(z), [1, 0.8, 0.8, 0.5, 0.5, 0, 0], rtol=1e-14)
    np.testing.assert_allclose(np.exp(law.log_density(z)), [0, 0.2, 0, 0.3, 0, 0.5, 0], rtol=1e-14)
    other = m.DiscreteLaw((0.5, 2.0), (HALF, HALF))
    assert m.exact_epsilon(law, other) == math.inf
    assert m.exact_delta(law, other, 0.0) == pytest.approx(0.2)
    assert m.exact_delta(law, other, math.log(1.5)) == pytest.approx(0.2)
    assert m.exact_epsilon(other, law, delta=0.2) == pytest.approx(0.0, abs=1e-12)
    assert m.exact_epsilon(other, m.DiscreteLaw((0.5, 2.0), tuple(np.log([0.2, 0.8])))) == pytest.approx(math.log(2.5))


@pytest.mark.parametrize(
    ("values", "logs"),
    [((2.0, 1.0), (HALF, HALF)), ((1.0,), (HALF, HALF)), ((1.0, math.nan), (HALF, HALF)), ((1.0,), (HALF,))],
)
def test_values_that_make_no_law_are_refused(values, logs):
    with pytest.raises(ValueError, match="is not allowed; use"):
        m.DiscreteLaw(values, logs)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: m.ExponentialMechanism(0), ClaimError, "epsilon=0 is not allowed; use 0 < epsilon < inf"),
        (lambda: m.ExponentialMechanism(math.nan), ClaimError, "epsilon=nan is not allowed"),
        (
            lambda: m.ExponentialMechanism(1, -2.0),
            ClaimError,
            "sensitivity=-2.0 is not allowed; use 0 < sensitivity < inf",
        ),
        (
            lambda: m.ExponentialMechanism(1, 0),
            ClaimError,
            "sensitivity=0 is not allowed; use 0 < sensitivity < inf (a score's ",
        ),
        (lambda: m.ExponentialMechanism(1, 0), ClaimError, "if none ever changes, publish the best candidate"),
        (lambda: m.EachCandidate(max, ()), ClaimError, "candidates=() is an empty range; give at least one"),
        (lambda: m.ReportNoisyMax(0), ClaimError, "epsilon=0 is not allowed; use 0 < epsilon < inf"),
        (lambda: m.ReportNoisyMax(math.nan), ClaimError, "epsilon=nan is not allowed"),
        (lambda: m.ReportNoisyMax(1, math.inf), ClaimError, "sensitivity=inf is not allowed"),
        (
            lambda: m.ReportNoisyMax(1, noise="cauchy"),
            ClaimError,
            "noise='cauchy' is unknown; use one of laplace, exponential, gumbel.",
        ),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind) as caught:
        call()
    assert message in str(caught.value)
