"""Experiment D1: how much one row of the dataset changes the posterior of its value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ...audit.inference.ratio_intervals import ratio_intervals
from ...audit.results.statement_result import Point, StatementResult
from ...mechanisms import GeometricMechanism, GroupTightMechanism
from ...mechanisms.noise_samplers import draw_indices
from ..cases.audits import stated
from ..cases.experiment import Experiment, StatementCase, false_statement, true_statement

_BLOCK = 1 << 17
_RARE = 0.02
"""Prior probability of the secret; the ratios approach their limits as it goes to 0."""


@dataclass(frozen=True, slots=True)
class World:
    """A prior on datasets, and a mechanism applied to a statistic of the dataset.

    Attributes
    ----------
    states : tuple of (int, int, int, float)
        The value of the secret row, the statistic, the statistic with a dummy in place of the row, and the prior
        probability.
    mechanism : object
        The mechanism; its dataset is the statistic.
    events : tuple of (float, float)
        The events, closed intervals of outputs.
    """

    states: tuple[tuple[int, int, int, float], ...]
    mechanism: Any
    events: tuple[tuple[float, float], ...]

    @property
    def secrets(self) -> list[int]:
        """Values of the secret row in ascending order."""
        return sorted({state[0] for state in self.states})

    def log_ratios(self) -> npt.NDArray[np.float64]:
        """Return the exact log posterior ratios, with the row to without the row, shape (n_events, n_secrets)."""
        return np.array(
            [np.log(self._posterior(event, 1)) - np.log(self._posterior(event, 2)) for event in self.events]
        )

    def _posterior(self, event: tuple[float, float], column: int) -> npt.NDArray[np.float64]:
        joint = np.zeros(len(self.secrets))
        for state in self.states:
            law = self.mechanism.law(state[column])
            inside = float(law.cdf(event[1]) - law.cdf(math.nextafter(event[0], -math.inf)))
            joint[self.secrets.index(state[0])] += state[3] * inside
        return np.asarray(joint / joint.sum())

    def hits(self, column: int, runs: int, *, seed: int) -> npt.NDArray[np.int64]:
        """Count each secret with each event in `runs` joint draws, shape (n_events, n_secrets)."""
        total = np.zeros((len(self.events), len(self.secrets)), dtype=np.int64)
        for secret, output in self._draws(column, runs, seed):
            for row, (low, high) in enumerate(self.events):
                inside = secret[(output >= low) & (output <= high)]
                total[row] += [np.count_nonzero(inside == value) for value in self.secrets]
        return total

    def _draws(self, column: int, runs: int, seed: int) -> Iterator[tuple[Any, Any]]:
        secrets = np.array([state[0] for state in self.states])
        for number, first in enumerate(range(0, runs, _BLOCK)):
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(column, number)))
            drawn = draw_indices([state[3] for state in self.states], min(_BLOCK, runs - first), rng)
            output = np.empty(len(drawn), dtype=np.int64)
            for index, state in enumerate(self.states):
                here = np.flatnonzero(drawn == index)
                output[here] = self.mechanism.sample(state[column], len(here), rng)
            yield secrets[drawn], output


def posterior_ratio(world: World, limit: float, *, runs: int, alpha: float, seed: int) -> StatementResult:
    """Check that the log posterior ratios of every event and secret lie within ±`limit`.

    Given the number of runs in an event, the number of these with the secret is binomial, with and without the row.
    The intervals for ratios of two probabilities therefore apply, with alpha shared equally by the events.
    """
    with_row, without = (world.hits(column, runs, seed=seed) for column in (1, 2))
    points = []
    for (low, high), x, y in zip(world.events, with_row, without, strict=True):
        seen = int(x.sum()), int(y.sum())
        if min(seen) > 0:
            found = ratio_intervals(x, seen[0], y, seen[1], alpha=alpha / len(world.events))
            rows = list(zip(found.observed, found.lower, found.upper, strict=True))
        else:  # no run in the event, so no estimate
            rows = [(math.nan, -math.inf, math.inf)] * len(world.secrets)
        for secret, (estimate, lower, upper) in zip(world.secrets, rows, strict=True):
            at, ends = f"row = {secret}, {_words(low, high)}", {"lower": float(lower), "upper": float(upper)}
            points.append(Point(at=at, estimate=float(estimate), **ends, low=-limit, high=limit))
    return StatementResult(
        statement=f"An output changes the posterior of a row by a factor within e^±{limit:g}.",
        quantity="ln posterior ratio",
        points=tuple(points),
        alpha=alpha,
        method="exact limits of ratios of two proportions, shared alpha",
        runs=runs,
        seed=seed,
        largest_width=limit,
    )


def _words(low: float, high: float) -> str:
    if low == high:
        return f"output = {low:g}"
    return f"output ≤ {high:g}" if low == -math.inf else f"output ≥ {low:g}"


def independent_rows(epsilon: float) -> World:
    """Return three independent bits, the first rarely 1, whose sum gets geometric noise; the dummy is 0."""
    states = tuple(
        (bit, bit + others, others, (_RARE if bit else 1 - _RARE) * math.comb(2, others) / 4)
        for bit in (0, 1)
        for others in (0, 1, 2)
    )
    return World(states, GeometricMechanism(epsilon), ((-math.inf, 0.0), (3.0, math.inf)))


def equal_rows(epsilon: float) -> World:
    """Return two equal rows (b, b), b rarely 1, and a mechanism that outputs one bit.

    The probability of the bit grows by e^ε from (0, 0) to a mixed pair and again to (1, 1). With a dummy in place of
    the first row the pair is mixed, and the bit is independent of b.
    """
    states = ((0, 0, 1, 1 - _RARE), (1, 2, 1, _RARE))
    corner = 1 / (1 + math.exp(epsilon))
    return World(states, GroupTightMechanism(epsilon, start=corner * math.exp(-epsilon)), ((0.0, 0.0), (1.0, 1.0)))


def experiment() -> Experiment:
    """Return experiment D1, at ε = 1."""
    worlds = {"independent": independent_rows(1.0), "equal": equal_rows(1.0)}

    def case(state: Any, name: str, world: str, limit: float, note: str) -> StatementCase:
        return state(  # type: ignore[no-any-return]
            f"D1-{name}",
            f"|ln posterior ratio| <= {'' if limit == 1 else f'{limit:g} '}epsilon",
            partial(posterior_ratio, worlds[world], limit),
            exact=float(np.abs(worlds[world].log_ratios()).max()),
            runs=400_000,
            note=note,
        )

    twice, once = "two equal rows, corrected bound of 2 epsilon", "two equal rows, printed bound of epsilon"
    return stated(
        "definition",
        "D1",
        "The posterior of a row given the output is within a factor e^±ε of its posterior given the output without the "
        "row.",
        "Vadhan (2017), The complexity of differential privacy, Section 1 (the Bayesian reading)",
        (
            case(true_statement, "independent", "independent", 1.0, "independent rows, secret row replaced by a dummy"),
            case(true_statement, "correlated-twice", "equal", 2.0, twice),
            case(false_statement, "correlated", "equal", 1.0, once),
        ),
    )
