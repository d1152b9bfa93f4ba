"""How good the chosen candidate is: the exponential mechanism's tail bound, and the worse of two candidates."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from ...mechanisms import ExponentialMechanism, ReportNoisyMax
from ..cases.experiment import Experiment, StatementCase, false_statement, true_statement
from .exponential_statements import candidate_probability, utility_tail

DOCUMENT: Final = "exponential"
EPSILON: Final = 1.0
_RUNS: Final = 100_000
_TS: Final = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
_AHEAD: Final = 8  # of the better of two candidates, in counts: at epsilon 1 the worse wins once in 55 runs
_AHEAD_NOISY: Final = 3


def experiments() -> list[Experiment]:
    """Rows E6 and E7."""
    return [
        Experiment(
            id="E6",
            document=DOCUMENT,
            statement="A candidate of utility (2 sensitivity/epsilon)(ln(|R|/|R_OPT|) + t) below the best, or less, is "
            "chosen with probability at most e^-t.",
            source="Dwork & Roth (2014), Theorem 3.11 and Corollary 3.12",
            cases=tuple(_tails()),
        ),
        Experiment(
            id="E7",
            document=DOCUMENT,
            statement="Of two counts c apart the smaller is chosen with probability 1/(1 + e^(c epsilon/2)), which is "
            "at most 2e^(-c epsilon/2); by exponential noise of rate epsilon with e^(-c epsilon)/2.",
            source="Dwork & Roth (2014), Example 3.6, and a remark on one-sided noise",
            cases=tuple(_best_of_two()),
        ),
    ]


def levels(n_best: int, n_counted: int) -> tuple[float, ...]:
    """Utilities of the best candidates and, for each t, of 20 where the bound that counts `n_counted` of them begins.

    They are a hair lower, so that rounding decides nothing.
    """
    n = n_best + 20 * len(_TS)
    return (0.0,) * n_best + tuple(_edge(n / n_counted, t) for t in _TS for _ in range(20))


def _edge(ratio: float, t: float) -> float:
    return -2 / EPSILON * (math.log(ratio) + t + 1e-9)


def _tails() -> list[StatementCase]:
    def case(
        state: Callable[..., StatementCase],
        name: str,
        mechanism: Any,
        utilities: tuple[float, ...],
        n_best: int,
        note: str,
    ) -> StatementCase:
        measure = partial(utility_tail, mechanism, utilities, EPSILON, _TS, n_best)
        return state(name, "tail at most e^-t", measure, runs=_RUNS, note=note)

    right, half = ExponentialMechanism(EPSILON), ExponentialMechanism(EPSILON / 2)
    at_edges, several = levels(1, 1), levels(5, 5)
    one_edge = (0.0, *(_edge(100, 4.0),) * 99)
    even = tuple(-0.5 * place for place in range(60))
    return [
        case(true_statement, "E6-tail", right, at_edges, 1, "all other candidates where the bound begins to apply"),
        case(true_statement, "E6-tail-even", right, even, 1, "60 candidates at even distances"),
        case(
            true_statement,
            "E6-tail-nearly-reached",
            right,
            one_edge,
            1,
            "99 candidates where the bound for t = 4 begins",
        ),
        case(true_statement, "E6-tail-five-best", right, several, 5, "five best candidates, all of them counted"),
        case(
            true_statement,
            "E6-tail-corollary",
            right,
            levels(5, 1),
            1,
            "five best candidates, of which the corollary counts one",
        ),
        case(false_statement, "E6-tail-half-epsilon", half, at_edges, 1, "run at half of the stated epsilon"),
        case(
            false_statement,
            "E6-tail-five-best-half-epsilon",
            half,
            several,
            5,
            "run at half of the stated epsilon, five best candidates",
        ),
    ]


def _best_of_two() -> list[StatementCase]:
    def case(
        state: Callable[..., StatementCase],
        name: str,
        claimed: str,
        mechanism: Any,
        ahead: int,
        allowed: tuple[float, float],
        note: str,
    ) -> StatementCase:
        counts = (0.0, float(ahead))
        return state(
            name,
            claimed,
            partial(candidate_probability, mechanism, counts, 0, *allowed),
            exact=float(mechanism.law(counts).probabilities[0]),
            runs=_RUNS,
            note=note,
        )

    right, half = ExponentialMechanism(EPSILON), ExponentialMechanism(EPSILON / 2)
    noisy = ReportNoisyMax(EPSILON, monotone=True, noise="exponential")
    at_most = (0.0, 2 * math.exp(-EPSILON * _AHEAD / 2))
    exactly = (1 / (1 + math.exp(EPSILON * _AHEAD / 2)),) * 2
    tail = math.exp(-EPSILON * _AHEAD_NOISY)
    bound, equal = "at most 2e^(-c epsilon/2)", "1/(1 + e^(c epsilon/2))"
    return [
        case(true_statement, "E7-bound", bound, right, _AHEAD, at_most, f"c = {_AHEAD} at epsilon 1"),
        case(true_statement, "E7-exact", equal, right, _AHEAD, exactly, "the logistic law of the difference"),
        case(false_statement, "E7-bound-half-epsilon", bound, half, _AHEAD, at_most, "run at half of the epsilon"),
        case(false_statement, "E7-exact-half-epsilon", equal, half, _AHEAD, exactly, "run at half of the epsilon"),
        case(
            true_statement,
            "E7-noisy-half",
            "e^(-c epsilon)/2",
            noisy,
            _AHEAD_NOISY,
            (tail / 2, tail / 2),
            "one-sided noise: the smaller count must win the race from c behind, and then a fair one",
        ),
        case(
            false_statement,
            "E7-noisy-equal",
            "e^(-c epsilon)",
            noisy,
            _AHEAD_NOISY,
            (tail, tail),
            "the tail of one exponential, read as the probability of the wrong answer",
        ),
    ]
