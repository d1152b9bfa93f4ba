"""The utility of the chosen candidate: the tail bound of the exponential mechanism, and the worse of two candidates."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

from ...mechanisms import ExponentialMechanism, ReportNoisyMax
from ..cases.audits import stated
from ..cases.experiment import Experiment, StatementCase, false_statement, true_statement
from ..statements.exponential_statements import candidate_probability, utility_tail

DOCUMENT: Final = "exponential"
EPSILON: Final = 1.0
_RUNS: Final = 100_000
_TS: Final = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
_AHEAD: Final = 8  # counts between the two candidates: at epsilon 1 the worse one wins once in 55 runs
_AHEAD_NOISY: Final = 3


def experiments() -> list[Experiment]:
    """Return experiments E6 and E7."""
    return [
        stated(
            DOCUMENT,
            "E6",
            "A candidate whose utility is at least (2 sensitivity/epsilon)(ln(|R|/|R_OPT|) + t) below the best is "
            "chosen with probability at most e^-t.",
            "Dwork & Roth (2014), Theorem 3.11 and Corollary 3.12",
            _tails(),
        ),
        stated(
            DOCUMENT,
            "E7",
            "The smaller of two counts c apart is chosen with probability 1/(1 + e^(c epsilon/2)), which is at most "
            "2e^(-c epsilon/2); with exponential noise of rate epsilon the probability is e^(-c epsilon)/2.",
            "Dwork & Roth (2014), Example 3.6, and a remark on one-sided noise",
            _best_of_two(),
        ),
    ]


def levels(n_best: int, n_counted: int) -> tuple[float, ...]:
    """Return the utilities of the best candidates and, for each t, of 20 candidates at the edge of the tail bound.

    The bound counts `n_counted` best candidates. The 20 are slightly below the edge, so that rounding has no effect.
    """
    n = n_best + 20 * len(_TS)
    return (0.0,) * n_best + tuple(_edge(n / n_counted, t) for t in _TS for _ in range(20))


def _edge(ratio: float, t: float) -> float:
    return -2 / EPSILON * (math.log(ratio) + t + 1e-9)


def _tails() -> list[StatementCase]:
    def case(
        state: Any, name: str, mechanism: Any, utilities: tuple[float, ...], n_best: int, note: str
    ) -> StatementCase:
        measure = partial(utility_tail, mechanism, utilities, EPSILON, _TS, n_best)
        return state(f"E6-tail{name}", "tail at most e^-t", measure, runs=_RUNS, note=note)  # type: ignore[no-any-return]

    right, half = ExponentialMechanism(EPSILON), ExponentialMechanism(EPSILON / 2)
    at_edges, several = levels(1, 1), levels(5, 5)
    one_edge = (0.0, *(_edge(100, 4.0),) * 99)
    even = tuple(-0.5 * place for place in range(60))
    others = "one best candidate, all others at utilities where the bound starts to apply"
    five_half = "half of the stated epsilon, five best candidates"
    return [
        case(true_statement, "", right, at_edges, 1, others),
        case(true_statement, "-even", right, even, 1, "60 evenly spaced candidates"),
        case(true_statement, "-nearly-reached", right, one_edge, 1, "99 candidates at the edge for t = 4"),
        case(true_statement, "-five-best", right, several, 5, "five best candidates, all counted"),
        case(
            true_statement, "-corollary", right, levels(5, 1), 1, "five best candidates, one counted by the corollary"
        ),
        case(false_statement, "-half-epsilon", half, at_edges, 1, "one best candidate, half of the stated epsilon"),
        case(false_statement, "-five-best-half-epsilon", half, several, 5, five_half),
    ]


def _best_of_two() -> list[StatementCase]:
    def case(
        state: Any, name: str, claimed: str, mechanism: Any, ahead: int, allowed: tuple[float, float], note: str
    ) -> StatementCase:
        counts = (0.0, float(ahead))
        measure = partial(candidate_probability, mechanism, counts, 0, *allowed)
        exact = float(mechanism.law(counts).probabilities[0])
        return state(f"E7-{name}", claimed, measure, exact=exact, runs=_RUNS, note=note)  # type: ignore[no-any-return]

    right, half = ExponentialMechanism(EPSILON), ExponentialMechanism(EPSILON / 2)
    noisy = ReportNoisyMax(EPSILON, monotone=True, noise="exponential")
    at_most = (0.0, 2 * math.exp(-EPSILON * _AHEAD / 2))
    exactly = (1 / (1 + math.exp(EPSILON * _AHEAD / 2)),) * 2
    tail = math.exp(-EPSILON * _AHEAD_NOISY)
    bound, equal, half_epsilon = (
        "at most 2e^(-c epsilon/2)",
        "1/(1 + e^(c epsilon/2))",
        "exponential mechanism, half of the stated epsilon",
    )
    halved, whole = (tail / 2, tail / 2), (tail, tail)
    race = "one-sided noise: e^(-c epsilon) to catch up, then an even chance"
    misread = "exponential tail misread as the probability of the worse candidate"
    return [
        case(
            true_statement,
            "bound",
            bound,
            right,
            _AHEAD,
            at_most,
            f"exponential mechanism, upper bound at c = {_AHEAD}",
        ),
        case(
            true_statement,
            "exact",
            equal,
            right,
            _AHEAD,
            exactly,
            f"exponential mechanism, exact probability at c = {_AHEAD}",
        ),
        case(false_statement, "bound-half-epsilon", bound, half, _AHEAD, at_most, half_epsilon),
        case(false_statement, "exact-half-epsilon", equal, half, _AHEAD, exactly, half_epsilon),
        case(true_statement, "noisy-half", "e^(-c epsilon)/2", noisy, _AHEAD_NOISY, halved, race),
        case(false_statement, "noisy-equal", "e^(-c epsilon)", noisy, _AHEAD_NOISY, whole, misread),
    ]
