"""The exponential mechanism: its loss, its slope, its sensitivity, and a price for pumpkins; all rows E1 to E10."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from ...audit.claims.pure_approx_gaussian import PureDP
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
from ..cases.experiment import AuditCase, Case, Experiment, StatementCase, false_statement, true_statement
from ..cases.pure_cases import pure_version
from . import exponential_noisy_max, exponential_utility
from .exponential_figures import halves_figure, slopes_figure
from .exponential_statements import fitted_slope, loss_halves, more_often

DOCUMENT: Final = exponential_utility.DOCUMENT
EPSILON: Final = exponential_utility.EPSILON
UTILITIES: Final = tuple(float(place) for place in range(8))  # of row E3

_RUNS: Final = 200_000
_FLAT, _ONE_UP = (0.0,) * 50, (1.0, *(-1.0,) * 49)  # one candidate up and 49 down: both halves of ε are used up
_APART, _CLOSER, _FARTHER = (0.0, -3.0), (-1.0, -2.0), (1.0, -4.0)
_CENTS: Final = tuple(cents / 100 for cents in range(1, 501))


def experiments() -> list[Experiment]:
    """Rows E1 to E10."""
    return [
        _experiment(
            "E1",
            "The exponential mechanism is epsilon-DP; the numerator and the normaliser each lose epsilon/2 at most.",
            "Dwork & Roth (2014), Definition 3.4 and Theorem 3.10",
            (*_right(), *_halves()),
            draw=halves_figure,
        ),
        _experiment(
            "E2",
            "The 2 in exp(epsilon u/(2 sensitivity)) is needed unless utilities are monotone, and it shows where one "
            "utility rises while the others fall.",
            "McSherry & Talwar (2007), Theorem 6; Dwork & Roth (2014), Theorem 3.10",
            _missing(),
        ),
        _experiment(
            "E3",
            "Log-probabilities are linear in the utility, of slope epsilon/(2 sensitivity).",
            "Dwork & Roth (2014), Definition 3.4",
            _slopes(),
            draw=partial(slopes_figure, epsilon=EPSILON, utilities=UTILITIES),
        ),
        _experiment(
            "E4",
            "The sensitivity of a utility is its largest change between neighbours, over all candidates; half of it is "
            "not enough.",
            "Dwork & Roth (2014), Section 3.4",
            _sensitivities(),
        ),
        _experiment(
            "E5",
            "A posted price for pumpkins is epsilon-DP where the range of prices does not depend on the bids.",
            "Dwork & Roth (2014), Example 3.5",
            (*_auctions(), *_best_prices()),
        ),
        *exponential_utility.experiments(),
        *exponential_noisy_max.experiments(),
    ]


def _experiment(name: str, statement: str, source: str, cases: tuple[Case, ...], **rest: Any) -> Experiment:
    return Experiment(id=name, document=DOCUMENT, statement=statement, source=source, cases=cases, **rest)


def centrality(rows: list[float], candidate: float) -> float:
    """How near the candidate is to a median: less by as many rows as are on one side of it rather than the other."""
    return -abs(float(sum(np.sign(row - candidate) for row in rows)))


def revenue(bids: list[float], price: float) -> float:
    """Of a posted price."""
    return price * sum(bid >= price for bid in bids)


def _right() -> list[AuditCase]:
    right, one = ExponentialMechanism(EPSILON), Within("linf")
    many = (0.0,) * 400, (1.0, *(-1.0,) * 399)
    threefold = _FLAT, tuple(3 * utility for utility in _ONE_UP)
    spread = tuple(float(place % 7) for place in range(20)), tuple(place % 7 + (-1.0) ** place for place in range(20))
    return [
        pure_version(
            "E1-one-up", True, right, (_FLAT, _ONE_UP), one, "one of 50 up and 49 down: nearly all of epsilon"
        ),
        pure_version(
            "E1-epsilon-3", True, ExponentialMechanism(3.0), many, one, "one of 400 up and 399 down, at epsilon 3"
        ),
        pure_version(
            "E1-sensitivity-3",
            True,
            ExponentialMechanism(EPSILON, sensitivity=3.0),
            threefold,
            Within("linf", 3.0),
            "utilities that move by 3, and are divided by it",
        ),
        pure_version("E1-spread", True, right, spread, one, "20 candidates of seven utilities, up and down in turn"),
    ]


def _halves() -> list[StatementCase]:
    pair, half = ((*_FLAT, 0.0), (*_ONE_UP, 0.0)), EPSILON / 2
    claimed = "numerator and normaliser at most epsilon/2 each"
    return [
        true_statement(
            "E1-halves",
            claimed,
            partial(loss_halves, ExponentialMechanism(EPSILON), *pair, half),
            runs=_RUNS,
            note="one of 51 up, 49 down, and one in place, which shows the normaliser's part",
        ),
        false_statement(
            "E1-halves-missing-2",
            claimed,
            partial(loss_halves, ExponentialMissingFactorTwo(EPSILON), *pair, half),
            runs=_RUNS,
            note="both parts are nearly epsilon without the 2",
        ),
    ]


def _missing() -> tuple[AuditCase, ...]:
    right, wrong, one = ExponentialMechanism(EPSILON), ExponentialMissingFactorTwo(EPSILON), Within("linf")
    monotone = ExponentialMechanism(EPSILON, monotone=True, utilities=CategoryCounts(("Ann", "Bob")))
    names = ["Ann"] * 4 + ["Bob"]
    return (
        pure_version("E2-one-up", True, right, (_FLAT, _ONE_UP), one, "one of 50 up and 49 down, with the 2"),
        pure_version(
            "E2-one-up-missing-2", False, wrong, (_FLAT, _ONE_UP), one, "the same without it: nearly 2 epsilon"
        ),
        pure_version(
            "E2-two", True, right, (_APART, _CLOSER), one, "two candidates move towards each other, with the 2"
        ),
        pure_version("E2-two-missing-2", False, wrong, (_APART, _CLOSER), one, "the same without it"),
        pure_version("E2-two-opposite", True, right, (_APART, _FARTHER), one, "two candidates move apart, with the 2"),
        pure_version("E2-two-opposite-missing-2", False, wrong, (_APART, _FARTHER), one, "the same without it"),
        pure_version(
            "E2-one-moves-missing-2",
            True,
            wrong,
            (_FLAT, (1.0, *_FLAT[1:])),
            one,
            "where one of 50 moves alone, the bug does not show",
        ),
        pure_version(
            "E2-tie-missing-2", True, wrong, ((0.0, 0.0), (1.0, 0.0)), one, "nor where one of two that were equal does"
        ),
        pure_version(
            "E2-all-but-one-missing-2",
            True,
            wrong,
            (_FLAT, (0.0, *(1.0,) * 49)),
            one,
            "nor where all that move rise: what monotone utilities do",
        ),
        pure_version(
            "E2-monotone", True, monotone, (names, [*names, "Ann"]), AddRemove(), "no 2 is needed for counts of rows"
        ),
        pure_version(
            "E2-monotone-replace",
            False,
            monotone,
            (names, ["Ann"] * 5),
            Replace(),
            "unless a row is replaced: one count rises, another falls",
        ),
        pure_version(
            "E2-half-loss",
            False,
            right,
            (_FLAT, _ONE_UP),
            one,
            "with the 2, but a loss of epsilon/2 claimed: the normaliser's part forgotten",
            claim=PureDP(EPSILON / 2),
        ),
    )


def _slopes() -> tuple[StatementCase, ...]:
    def case(state: Any, name: str, mechanism: Any, sensitivity: float, note: str) -> StatementCase:
        slope = EPSILON / (2 * sensitivity)
        found: StatementCase = state(
            name,
            f"slope {slope:g}",
            partial(fitted_slope, mechanism, UTILITIES, slope),
            exact=float(np.diff(mechanism.law(UTILITIES).log_probabilities).mean()),
            runs=_RUNS,
            note=note,
        )
        return found

    return (
        case(true_statement, "E3-slope", ExponentialMechanism(EPSILON), 1.0, "utilities 0 to 7"),
        case(true_statement, "E3-slope-sensitivity-2", ExponentialMechanism(EPSILON, 2.0), 2.0, "half as steep"),
        case(false_statement, "E3-slope-missing-2", ExponentialMissingFactorTwo(EPSILON), 1.0, "twice as steep"),
    )


def _sensitivities() -> tuple[AuditCase, ...]:
    """The sensitivity of nearness to a median, found by going through the neighbours on a small domain.

    It is the same on the larger domain of the audits: a row added moves the rows below a place, or above it, by 1, and
    a row replaced moves both.
    """
    domain, places = (0, 1, 2), tuple(range(11))
    added, replaced = (
        utility_sensitivity(centrality, domain, domain, 4, adjacency) for adjacency in (AddRemove(), Replace())
    )
    utilities = EachCandidate(centrality, places)
    rows = [0] * 5 + [1] * 3 + [10] * 5
    swapped, longer = [*rows[1:], 10], [*rows, 10]
    prices = tuple(range(1, 11))
    bid: tuple[Any, Any] = [], list(prices[-1:])
    of_all, of_one = (utility_sensitivity(revenue, some, (0, *prices), 2, AddRemove()) for some in (prices, prices[:1]))
    revenues = EachCandidate(revenue, prices)
    return (
        pure_version(
            "E4-add-remove",
            True,
            ExponentialMechanism(EPSILON, added, utilities=utilities),
            (rows, longer),
            AddRemove(),
            f"a median: sensitivity {added:g}, as going through a small domain finds",
        ),
        pure_version(
            "E4-replace",
            True,
            ExponentialMechanism(EPSILON, replaced, utilities=utilities),
            (rows, swapped),
            Replace(),
            f"a median where rows are replaced: sensitivity {replaced:g}, found likewise",
        ),
        pure_version(
            "E4-half-sensitivity",
            False,
            HalfSensitivityExponential(EPSILON, replaced, utilities=utilities),
            (rows, swapped),
            Replace(),
            "half of it, which is the sensitivity to a row added: a row leaves one side and enters the other",
        ),
        pure_version(
            "E4-all-candidates",
            True,
            ExponentialMechanism(EPSILON, of_all, utilities=revenues),
            bid,
            AddRemove(),
            f"revenues of ten prices: sensitivity {of_all:g}, that of the highest",
        ),
        pure_version(
            "E4-one-candidate",
            False,
            ExponentialMechanism(EPSILON, of_one, utilities=revenues),
            bid,
            AddRemove(),
            f"the change {of_one:g} of the lowest price's revenue taken for all",
        ),
    )


def _auctions() -> list[AuditCase]:
    fixed, from_bids = PostedPriceAuction(EPSILON, _CENTS), PricesFromTheBids(EPSILON)
    all_four, without_k, without_a = list(PUMPKIN_BIDS), list(PUMPKIN_BIDS[:-1]), list(PUMPKIN_BIDS[1:])
    return [
        pure_version(
            "E5-fixed-prices", True, fixed, (all_four, without_k), AddRemove(), "500 prices; K, who bids 3.01, leaves"
        ),
        pure_version(
            "E5-fixed-prices-high-bid",
            True,
            fixed,
            (all_four, [*all_four, 5.0]),
            AddRemove(),
            "500 prices; one who bids 5.00 joins",
        ),
        pure_version(
            "E5-fixed-prices-monotone",
            True,
            PostedPriceAuction(EPSILON, _CENTS, monotone=True),
            (all_four, [*all_four, 5.0]),
            AddRemove(),
            "revenue is monotone, so half the noise is enough",
        ),
        pure_version(
            "E5-prices-from-bids-common",
            True,
            from_bids,
            (all_four, without_a),
            AddRemove(),
            "prices among the bids; A, whose bid two others made, leaves unnoticed",
        ),
        pure_version(
            "E5-prices-from-bids",
            False,
            from_bids,
            (all_four, without_k),
            AddRemove(),
            "prices among the bids: 3.01 is possible only while K is there",
        ),
    ]


def _best_prices() -> list[StatementCase]:
    auction = PostedPriceAuction(40.0, _CENTS)
    law = auction.law(PUMPKIN_BIDS)
    one, three = (float(law.probabilities[auction.prices.index(price)]) for price in (1.0, 3.01))
    return [
        true_statement(
            "E5-best-is-1.00",
            "1.00 at least as often as 3.01",
            partial(more_often, auction, PUMPKIN_BIDS, 1.0, 3.01),
            exact=one / (one + three),
            runs=_RUNS,
            note="K buys at 1.00 too: the revenue is 4.00, the best there is",
        ),
        false_statement(
            "E5-best-is-3.01",
            "3.01 at least as often as 1.00",
            partial(more_often, auction, PUMPKIN_BIDS, 3.01, 1.0),
            exact=three / (one + three),
            runs=_RUNS,
            note="the optimum as printed, with revenue 3.01",
        ),
    ]
