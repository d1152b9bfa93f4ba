"""The pumpkin auction: optimum, sensitivity, the claim on all small auctions, and the false range."""

import itertools
import math
import pickle

import numpy as np
import pytest

from dpaudit import AddRemove, PureDP, check
from dpaudit.audit.errors import ClaimError, DatasetError
from dpaudit.mechanisms import PUMPKIN_BIDS, DiscreteLaw, PostedPriceAuction, Revenue, exact_delta, exact_epsilon
from dpaudit.mechanisms.faulty import PricesFromTheBids

CENTS = tuple(cents / 100 for cents in range(1, 501))
SMALL = (1.0, 2.0, 3.0)


def test_the_best_price_is_the_lowest_bid():
    """K, who bids 3.01, also buys at 1.00: the revenue is 4.00 there and at most 3.01 at other prices."""
    revenue = dict(zip(CENTS, Revenue(CENTS)(PUMPKIN_BIDS).tolist(), strict=True))
    assert revenue[1.00] == 4.00 == max(revenue.values())
    assert (revenue[3.00], revenue[3.01], revenue[3.02]) == (3.00, 3.01, 0.0)
    assert revenue[1.01] == 1.01
    assert sorted(revenue, key=revenue.get)[-4:] == [0.97, 0.98, 0.99, 1.00]


def test_in_the_first_three_bids_a_cent_more_than_the_best_price_loses_everything():
    """The example's point needs bids other than its own."""
    assert Revenue((1.00, 1.01))(PUMPKIN_BIDS[:3]).tolist() == [3.0, 0.0]


def test_revenue_by_counting():
    rng = np.random.default_rng(1)
    bids = rng.choice(CENTS, 40)
    expected = [price * sum(bid >= price for bid in bids) for price in CENTS]
    np.testing.assert_allclose(Revenue(CENTS)(bids), expected, rtol=1e-15)
    assert Revenue(SMALL)([]).tolist() == [0, 0, 0]


def auctions(max_bids):
    bids = (0.0, 1.0, 1.5, 2.0, 3.0, 7.0)
    for size in range(max_bids):
        for others in itertools.combinations_with_replacement(bids, size):
            yield others, bids


@pytest.mark.parametrize("monotone", [False, True])
def test_claim_on_all_small_auctions_whether_a_bid_is_added_or_replaced(monotone):
    auction = PostedPriceAuction(0.7, SMALL, monotone)
    assert auction.claim == PureDP(0.7)
    largest = 0.0
    for others, bids in auctions(3):
        laws = [auction.law([*others, bid]) for bid in bids] + [auction.law(others)]
        largest = max(largest, *(exact_epsilon(p, q) for p, q in itertools.combinations(laws, 2)))
    assert 0.25 < largest <= 0.7


def test_the_price_is_drawn_for_its_revenue():
    auction = PostedPriceAuction(2.0, SMALL)
    weights = np.exp(2.0 / (2 * 3) * np.array([4.0, 2.0, 3.0]))
    law = auction.law(PUMPKIN_BIDS)
    np.testing.assert_allclose(law.probabilities, weights / weights.sum(), rtol=1e-14)
    assert law.values == SMALL
    assert set(auction.sample(PUMPKIN_BIDS, 1000, np.random.default_rng(1)).tolist()) == set(SMALL)


def test_prices_from_the_bids_are_possible_on_one_side_only():
    twin = PricesFromTheBids(1.0)
    with_k, without_k = twin.law(PUMPKIN_BIDS), twin.law(PUMPKIN_BIDS[:3])
    assert (with_k.values, without_k.values) == ((1.0, 3.01), (1.0,))
    assert exact_epsilon(with_k, without_k) == math.inf
    assert twin.truth is None
    p = with_k.probabilities[1]
    assert exact_delta(with_k, without_k, 50.0) == pytest.approx(p, rel=1e-12)
    assert exact_epsilon(with_k, without_k, delta=p) == pytest.approx(0.0, abs=1e-12)
    assert 0.3 < p < 0.5
    assert exact_epsilon(twin.law([1.0, 2.0]), twin.law([1.0, 2.0, 2.0])) < 1.0  # no new price, no new outcome


def test_an_audit_refutes_the_false_range_and_not_the_fixed_one():
    """The right mechanism is refuted with probability at most alpha=5e-9."""
    settings = {"claim": PureDP(1.0), "adjacency": AddRemove(), "runs": 20_000, "seed": 1, "alpha": 5e-9, "jobs": 1}
    assert not check(PostedPriceAuction(1.0, CENTS), PUMPKIN_BIDS, PUMPKIN_BIDS[:3], **settings).is_refuted
    false = check(PricesFromTheBids(1.0), PUMPKIN_BIDS, PUMPKIN_BIDS[:3], **settings)
    assert false.is_refuted
    assert false.bound > 5


def test_auctions_survive_pickling_and_are_one_short_line():
    for auction in (PostedPriceAuction(1.0, list(CENTS), monotone=True), PricesFromTheBids(1.0)):
        assert pickle.loads(pickle.dumps(auction)) == auction
        assert len(str(auction)) <= 72
    assert str(PostedPriceAuction(0.5, CENTS)) == "PostedPrice(epsilon=0.5, 500 prices to 5)"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: PostedPriceAuction(0, SMALL), ClaimError, "epsilon=0 is not allowed"),
        (
            lambda: PostedPriceAuction(1, []),
            ClaimError,
            r"prices=\[\] is not a list of prices; use positive numbers in ascending order, at least one",
        ),
        (lambda: PostedPriceAuction(1, [2.0, 1.0]), ClaimError, "is not a list of prices"),
        (lambda: PostedPriceAuction(1, [1.0, 1.0]), ClaimError, "is not a list of prices"),
        (lambda: PostedPriceAuction(1, [0.0, 1.0]), ClaimError, "is not a list of prices"),
        (lambda: PostedPriceAuction(1, [math.nan]), ClaimError, "is not a list of prices"),
        (lambda: PostedPriceAuction(1, [1.0, math.inf]), ClaimError, "is not a list of prices"),
        (lambda: PostedPriceAuction(1, SMALL).law(["a"]), DatasetError, "is not a list of bids; use one finite number"),
        (lambda: PostedPriceAuction(1, SMALL).law([math.nan]), DatasetError, "is not a list of bids"),
        (lambda: PostedPriceAuction(1, SMALL).law(3.0), DatasetError, "is not a list of bids"),
        (lambda: PricesFromTheBids(-1), ClaimError, "epsilon=-1 is not allowed"),
        (lambda: PricesFromTheBids(1).law([0.0]), DatasetError, "there is no positive bid to take a price from"),
    ],
    ids=range(12),
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


HALF = math.log(0.5)


def test_discrete_laws_by_hand():
    law = DiscreteLaw((-1.0, 0.5, 2.0), tuple(np.log([0.2, 0.3, 0.5])))
    z = [-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0]
    np.testing.assert_allclose(law.cdf(z), [0, 0.2, 0.2, 0.5, 0.5, 1, 1], rtol=1e-14)
    np.testing.assert_allclose(law.sf(z), [1, 0.8, 0.8, 0.5, 0.5, 0, 0], rtol=1e-14)
    np.testing.assert_allclose(np.exp(law.log_density(z)), [0, 0.2, 0, 0.3, 0, 0.5, 0], rtol=1e-14)
    other = DiscreteLaw((0.5, 2.0), (HALF, HALF))
    assert exact_epsilon(law, other) == math.inf
    assert exact_delta(law, other, 0.0) == pytest.approx(0.2)
    assert exact_delta(law, other, math.log(1.5)) == pytest.approx(0.2)
    assert exact_epsilon(other, law, delta=0.2) == pytest.approx(0.0, abs=1e-12)
    assert exact_epsilon(other, DiscreteLaw((0.5, 2.0), tuple(np.log([0.2, 0.8])))) == pytest.approx(math.log(2.5))


@pytest.mark.parametrize(
    ("values", "logs"),
    [((2.0, 1.0), (HALF, HALF)), ((1.0,), (HALF, HALF)), ((1.0, math.nan), (HALF, HALF)), ((1.0,), (HALF,))],
)
def test_values_that_make_no_law_are_refused(values, logs):
    with pytest.raises(ValueError, match="is not allowed; use"):
        DiscreteLaw(values, logs)
