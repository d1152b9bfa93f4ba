"""The exponential mechanism: its loss, its slope, its sensitivity, and a price for pumpkins; experiments E1 to E10."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from ...audit.claims.claim import PureDP
from ...audit.datasets.adjacency import AddRemove, Replace, Within
from ...mechanisms import (
    PUMPKIN_BIDS,
    CategoryCounts,
    EachCandidate,
    ExponentialMechanism,
    PostedPriceAuction,
    utility_sensitivity,
)
from ...mechanisms.faulty import ExponentialMissingFactorTwo, HalfSensitivityExponential, PricesFromTheBids
from ..cases.audits import RUNS, fails, holds, stated
from ..cases.experiment import AuditCase, Experiment, StatementCase, false_statement, true_statement
from ..statements.exponential_statements import fitted_slope, loss_halves, more_often
from ..statements.figures import halves_figure, slopes_figure
from . import exponential_noisy_max, exponential_utility

DOCUMENT: Final = exponential_utility.DOCUMENT
EPSILON: Final = exponential_utility.EPSILON
UTILITIES: Final = tuple(float(place) for place in range(8))  # of experiment E3

_FLAT, _ONE_UP = (0.0,) * 50, (1.0, *(-1.0,) * 49)  # one candidate up and 49 down use up both halves of ε
_CENTS: Final = tuple(cents / 100 for cents in range(1, 501))


def experiments() -> list[Experiment]:
    """Return experiments E1 to E10."""
    about = partial(stated, DOCUMENT)
    return [
        about(
            "E1",
            "The exponential mechanism is epsilon-DP; the numerator and the normaliser each lose at most epsilon/2.",
            "Dwork & Roth (2014), Definition 3.4 and Theorem 3.10",
            (*_right(), *_halves()),
            draw=halves_figure,
        ),
        about(
            "E2",
            "The factor 2 in exp(epsilon u/(2 sensitivity)) is needed unless utilities are monotone; without it, the "
            "excess appears where one utility rises while the others fall.",
            "McSherry & Talwar (2007), Theorem 6; Dwork & Roth (2014), Theorem 3.10",
            _missing(),
        ),
        about(
            "E3",
            "Log-probabilities are linear in the utility, with slope epsilon/(2 sensitivity).",
            "Dwork & Roth (2014), Definition 3.4",
            _slopes(),
            draw=partial(slopes_figure, epsilon=EPSILON, utilities=UTILITIES),
        ),
        about(
            "E4",
            "The sensitivity of a utility is its largest change between neighbours over all candidates; half of this "
            "is too small.",
            "Dwork & Roth (2014), Section 3.4",
            _sensitivities(),
        ),
        about(
            "E5",
            "A posted price for pumpkins is epsilon-DP if the range of prices does not depend on the bids.",
            "Dwork & Roth (2014), Example 3.5",
            (*_auctions(), *_best_prices()),
        ),
        *exponential_utility.experiments(),
        *exponential_noisy_max.experiments(),
    ]


def centrality(rows: list[float], candidate: float) -> float:
    """Return minus the absolute difference of the numbers of rows above and below the candidate.

    It is largest at a median.
    """
    return -abs(float(sum(np.sign(row - candidate) for row in rows)))


def revenue(bids: list[float], price: float) -> float:
    """Return the revenue of a posted price."""
    return price * sum(bid >= price for bid in bids)


def _right() -> list[AuditCase]:
    right, one, three = ExponentialMechanism(EPSILON), Within("linf"), ExponentialMechanism(EPSILON, sensitivity=3.0)
    many = (0.0,) * 400, (1.0, *(-1.0,) * 399)
    threefold = _FLAT, tuple(3 * utility for utility in _ONE_UP)
    spread = tuple(float(place % 7) for place in range(20)), tuple(place % 7 + (-1.0) ** place for place in range(20))
    return [
        holds("E1-one-up", right, (_FLAT, _ONE_UP), one, "one candidate of 50 up, 49 down: loss of nearly epsilon"),
        holds("E1-epsilon-3", ExponentialMechanism(3.0), many, one, "one of 400 candidates up, 399 down, epsilon 3"),
        holds("E1-sensitivity-3", three, threefold, Within("linf", 3.0), "utilities of sensitivity 3, changes of 3"),
        holds("E1-spread", right, spread, one, "20 candidates with seven utilities, alternately up and down"),
    ]


def _halves() -> list[StatementCase]:
    pair, half = ((*_FLAT, 0.0), (*_ONE_UP, 0.0)), EPSILON / 2
    claimed = "numerator and normaliser at most epsilon/2 each"
    right, wrong = ExponentialMechanism(EPSILON), ExponentialMissingFactorTwo(EPSILON)
    note = "one candidate of 51 up, 49 down, and one fixed, which isolates the normaliser"
    measure = partial(loss_halves, right, *pair, half)
    twice = partial(loss_halves, wrong, *pair, half)
    both = "missing factor 2, both parts nearly epsilon"
    return [
        true_statement("E1-halves", claimed, measure, runs=RUNS, note=note),
        false_statement("E1-halves-missing-2", claimed, twice, runs=RUNS, note=both),
    ]


def _missing() -> list[AuditCase]:
    right, wrong, one = ExponentialMechanism(EPSILON), ExponentialMissingFactorTwo(EPSILON), Within("linf")
    monotone = ExponentialMechanism(EPSILON, monotone=True, utilities=CategoryCounts(("Ann", "Bob")))
    names, half = ["Ann"] * 4 + ["Bob"], PureDP(EPSILON / 2)
    one_up, apart = (_FLAT, _ONE_UP), (0.0, -3.0)
    closer, farther = (apart, (-1.0, -2.0)), (apart, (1.0, -4.0))
    one_moves, tie, all_rise = (_FLAT, (1.0, *_FLAT[1:])), ((0.0, 0.0), (1.0, 0.0)), (_FLAT, (0.0, *(1.0,) * 49))
    more, replaced = (names, [*names, "Ann"]), (names, ["Ann"] * 5)
    return [
        holds("E2-one-up", right, one_up, one, "one candidate of 50 up, 49 down: nearly all of epsilon"),
        fails("E2-one-up-missing-2", wrong, one_up, one, "missing factor 2, one up and 49 down: nearly 2 epsilon"),
        holds("E2-two", right, closer, one, "factor 2 present, two candidates moving closer"),
        fails("E2-two-missing-2", wrong, closer, one, "missing factor 2, two candidates moving closer"),
        holds("E2-two-opposite", right, farther, one, "factor 2 present, two candidates moving apart"),
        fails("E2-two-opposite-missing-2", wrong, farther, one, "missing factor 2, two candidates moving apart"),
        holds("E2-one-moves-missing-2", wrong, one_moves, one, "missing factor 2 hidden: one candidate of 50 moves"),
        holds("E2-tie-missing-2", wrong, tie, one, "missing factor 2 hidden: one of two tied candidates moves"),
        holds("E2-all-but-one-missing-2", wrong, all_rise, one, "missing factor 2 hidden: monotone change of 49"),
        holds("E2-monotone", monotone, more, AddRemove(), "monotone counts without the factor 2, under add/remove"),
        fails(
            "E2-monotone-replace", monotone, replaced, Replace(), "monotone counts without the factor 2, under replace"
        ),
        fails("E2-half-loss", right, one_up, one, "claim of epsilon/2, normaliser ignored", claim=half),
    ]


def _slopes() -> tuple[StatementCase, ...]:
    def case(state: Any, name: str, mechanism: Any, sensitivity: float, note: str) -> StatementCase:
        slope = EPSILON / (2 * sensitivity)
        measure = partial(fitted_slope, mechanism, UTILITIES, slope)
        exact = float(np.diff(mechanism.law(UTILITIES).log_probabilities).mean())
        return state(name, f"slope {slope:g}", measure, exact=exact, runs=RUNS, note=note)  # type: ignore[no-any-return]

    return (
        case(true_statement, "E3-slope", ExponentialMechanism(EPSILON), 1.0, "exponential mechanism, utilities 0 to 7"),
        case(
            true_statement,
            "E3-slope-sensitivity-2",
            ExponentialMechanism(EPSILON, 2.0),
            2.0,
            "exponential mechanism, sensitivity 2, half the slope",
        ),
        case(
            false_statement,
            "E3-slope-missing-2",
            ExponentialMissingFactorTwo(EPSILON),
            1.0,
            "missing factor 2, twice the slope",
        ),
    )


def _sensitivities() -> list[AuditCase]:
    """Audit utilities whose sensitivity is computed by enumerating the neighbours on a small domain.

    The larger domain of the audits has the same sensitivity: an added row moves the number of rows on one side of a
    place by 1, and a replaced row moves the numbers on both sides.
    """
    domain, places = (0, 1, 2), tuple(range(11))
    added, replaced = (
        utility_sensitivity(centrality, domain, domain, 4, adjacency) for adjacency in (AddRemove(), Replace())
    )
    utilities = EachCandidate(centrality, places)
    rows = [0] * 5 + [1] * 3 + [10] * 5
    longer, swapped = (rows, [*rows, 10]), (rows, [*rows[1:], 10])
    prices = tuple(range(1, 11))
    bid: tuple[Any, Any] = [], list(prices[-1:])
    of_all, of_one = (utility_sensitivity(revenue, some, (0, *prices), 2, AddRemove()) for some in (prices, prices[:1]))
    by_added, by_replaced = (ExponentialMechanism(EPSILON, size, utilities=utilities) for size in (added, replaced))
    half = HalfSensitivityExponential(EPSILON, replaced, utilities=utilities)
    revenues = EachCandidate(revenue, prices)
    by_all, by_one = (ExponentialMechanism(EPSILON, size, utilities=revenues) for size in (of_all, of_one))
    left = "median under replace, half the sensitivity: one side loses a row, the other gains a row"
    highest, lowest = (
        f"revenue of ten prices, sensitivity {of_all:g} of the highest",
        f"revenue of ten prices, sensitivity {of_one:g} of the lowest",
    )
    return [
        holds("E4-add-remove", by_added, longer, AddRemove(), f"median under add/remove, sensitivity {added:g}"),
        holds("E4-replace", by_replaced, swapped, Replace(), f"median under replace, sensitivity {replaced:g}"),
        fails("E4-half-sensitivity", half, swapped, Replace(), left),
        holds("E4-all-candidates", by_all, bid, AddRemove(), highest),
        fails("E4-one-candidate", by_one, bid, AddRemove(), lowest),
    ]


def _auctions() -> list[AuditCase]:
    fixed, from_bids = PostedPriceAuction(EPSILON, _CENTS), PricesFromTheBids(EPSILON)
    monotone, change = PostedPriceAuction(EPSILON, _CENTS, monotone=True), AddRemove()
    all_four = list(PUMPKIN_BIDS)
    without_k, without_a, high = (all_four, all_four[:-1]), (all_four, all_four[1:]), (all_four, [*all_four, 5.0])
    shared, own = "prices among the bids, removed bid shared by others", "prices among the bids, 3.01 only with K"
    return [
        holds("E5-fixed-prices", fixed, without_k, change, "500 prices, removal of K, who bids 3.01"),
        holds("E5-fixed-prices-high-bid", fixed, high, change, "500 prices, additional bid of 5.00"),
        holds("E5-fixed-prices-monotone", monotone, high, change, "500 prices, monotone revenue, half the noise"),
        holds("E5-prices-from-bids-common", from_bids, without_a, change, shared),
        fails("E5-prices-from-bids", from_bids, without_k, change, own),
    ]


def _best_prices() -> list[StatementCase]:
    auction = PostedPriceAuction(40.0, _CENTS)
    law = auction.law(PUMPKIN_BIDS)
    share = {price: float(law.probabilities[auction.prices.index(price)]) for price in (1.0, 3.01)}

    def case(state: Any, best: float, other: float, note: str) -> StatementCase:
        return state(  # type: ignore[no-any-return]
            f"E5-best-is-{best:.2f}",
            f"{best:.2f} at least as often as {other:.2f}",
            partial(more_often, auction, PUMPKIN_BIDS, best, other),
            exact=share[best] / (share[best] + share[other]),
            runs=RUNS,
            note=note,
        )

    return [
        case(true_statement, 1.0, 3.01, "price 1.00 with K as a buyer: largest revenue, 4.00"),
        case(false_statement, 3.01, 1.0, "printed optimum, revenue 3.01"),
    ]
