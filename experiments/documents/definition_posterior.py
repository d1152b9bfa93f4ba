"""Row D1: what an output tells of one row, beyond what it would tell without the row."""

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
from ..cases.experiment import Experiment, false_statement, true_statement

_BLOCK = 1 << 17
_RARE = 0.02
"""Prior probability of the secret: the rarer, the nearer the ratios come to their limits."""


@dataclass(frozen=True, slots=True)
class World:
    """A prior on datasets and a mechanism that sees a statistic of them.

    Attributes
    ----------
    states : tuple of (int, int, int, float)
        The secret row's value, the statistic, the statistic with a dummy in the row's place, and the prior probability.
    mechanism : object
        Its dataset is the statistic.
    events : tuple of (float, float)
        The outputs looked at, as closed intervals.
    """

    states: tuple[tuple[int, int, int, float], ...]
    mechanism: Any
    events: tuple[tuple[float, float], ...]

    @property
    def secrets(self) -> list[int]:
        """The values of the secret row."""
        return sorted({state[0] for state in self.states})

    def log_ratios(self) -> npt.NDArray[np.float64]:
        """ln Pr[secret | event] − ln Pr[secret | event without the row], exact: shape (n_events, n_secrets)."""
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
        """How often each secret came with each event in `runs` draws of both, shape (n_events, n_secrets)."""
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
    """Intervals for the log posterior ratios of every event and secret, against ±`limit`.

    Given how many runs are in an event, those with the secret among them are binomial, on either side; so the
    intervals for ratios of two probabilities apply, with alpha shared by the events.
    """
    with_row, without = (world.hits(column, runs, seed=seed) for column in (1, 2))
    points = []
    for (low, high), x, y in zip(world.events, with_row, without, strict=True):
        seen = int(x.sum()), int(y.sum())
        if min(seen) > 0:
            found = ratio_intervals(x, seen[0], y, seen[1], alpha=alpha / len(world.events))
            rows = list(zip(found.observed, found.lower, found.upper, strict=True))
        else:  # a posterior without a run to show it
            rows = [(math.nan, -math.inf, math.inf)] * len(world.secrets)
        for secret, (estimate, lower, upper) in zip(world.secrets, rows, strict=True):
            at = f"row = {secret}, {_words(low, high)}"
            points.append(
                Point(at=at, estimate=float(estimate), lower=float(lower), upper=float(upper), low=-limit, high=limit)
            )
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
    """Three independent bits, the first rarely 1; their number with geometric noise. The dummy is 0."""
    states = tuple(
        (bit, bit + others, others, (_RARE if bit else 1 - _RARE) * math.comb(2, others) / 4)
        for bit in (0, 1)
        for others in (0, 1, 2)
    )
    return World(states, GeometricMechanism(epsilon), ((-math.inf, 0.0), (3.0, math.inf)))


def equal_rows(epsilon: float) -> World:
    """Two rows (b, b), b rarely 1, and a bit whose probability grows by e^ε from (0, 0) to any mixed pair to (1, 1).

    A dummy in the place of the first row makes the pair a mixed one, and then the bit says nothing of b.
    """
    states = ((0, 0, 1, 1 - _RARE), (1, 2, 1, _RARE))
    corner = 1 / (1 + math.exp(epsilon))
    return World(states, GroupTightMechanism(epsilon, start=corner * math.exp(-epsilon)), ((0.0, 0.0), (1.0, 1.0)))


def experiment() -> Experiment:
    """The row, at ε = 1."""
    independent, equal = independent_rows(1.0), equal_rows(1.0)
    exact = {world: float(np.abs(world.log_ratios()).max()) for world in (independent, equal)}
    bounded = "|ln posterior ratio| <= epsilon"
    return Experiment(
        id="D1",
        document="definition",
        statement="An output changes what is believed of a row by a factor within e^±ε of what it would without it.",
        source="Vadhan (2017), The complexity of differential privacy, Section 1 (the Bayesian reading)",
        cases=(
            true_statement(
                "D1-independent",
                bounded,
                partial(posterior_ratio, independent, 1.0),
                exact=exact[independent],
                runs=400_000,
                note="independent rows, one of them replaced by a dummy",
            ),
            true_statement(
                "D1-correlated-twice",
                "|ln posterior ratio| <= 2 epsilon",
                partial(posterior_ratio, equal, 2.0),
                exact=exact[equal],
                runs=400_000,
                note="the corrected bound for rows that depend on each other",
            ),
            false_statement(
                "D1-correlated",
                bounded,
                partial(posterior_ratio, equal, 1.0),
                exact=exact[equal],
                runs=400_000,
                note="X = (b, b): without its row the other one still tells b, or stops doing so",
            ),
        ),
    )
