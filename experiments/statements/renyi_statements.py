"""Statements about compositions: Rényi divergences, and the probabilities of events of all sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import Claim, PureDP
from ...audit.errors import OptionError
from ...audit.events.outputs import Outputs
from ...audit.inference.binomial_tails import limits
from ...audit.inference.renyi_lower_bound import renyi_lower
from ...audit.results.statement_result import Point, StatementResult
from ...mechanisms import FiniteLaw, exact_renyi
from ...mechanisms.local.randomised_response import check_rounds
from ...mechanisms.noise_samplers import laplace_on_grid, pieces
from ...mechanisms.queries import identity, real_answer
from ..cases.simulate import blocks, event_hits

Floats = npt.NDArray[np.float64]

_CELLS: Final = 32
_PILOT: Final = 20_000
_RAREST: Final = 5e-4  # ten runs of the pilot
_EVENTS: Final = 10


@dataclass(frozen=True, slots=True)
class LaplaceFold:
    """The sum of `n` noisy answers about one number: (n·epsilon_each)-DP.

    Each question asks by how much the number exceeds a threshold, clipped to [0, 1], and its answer gets Laplace noise
    of scale 1/epsilon_each. All thresholds are 0 or, if the composition is adaptive, the threshold rises by 1 after an
    answer above ½ and falls by 1 after any other answer. The output is the sum of the answers, each clipped to [0, 1].
    If one number is below and the other above all thresholds, the privacy loss is a linear function of the sum, so
    that the sum preserves all of the loss.

    Parameters
    ----------
    epsilon_each : float
        In nats, positive.
    n : int
        Number of mechanisms, at least 1.
    is_adaptive : bool
        Whether each question depends on the previous answers.
    """

    epsilon_each: float
    n: int
    is_adaptive: bool = False

    def __post_init__(self) -> None:
        check_rounds(self.epsilon_each, self.n)

    def __str__(self) -> str:
        kind = ", adaptive" if self.is_adaptive else ""
        return f"LaplaceFold(epsilon_each={self.epsilon_each:g}, n={self.n}{kind})"

    @property
    def claim(self) -> PureDP:
        return PureDP(self.n * self.epsilon_each)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """Draw `size` independent outputs in [0, n], shape (size,)."""
        value, outputs = real_answer(identity, dataset), np.zeros(size)
        for piece in pieces(size):
            total = outputs[piece]
            threshold = np.zeros(len(total))
            for _ in range(self.n):
                answers = laplace_on_grid(0.0, 1.0 / self.epsilon_each, len(total), rng)
                answers += np.clip(value - threshold, 0.0, 1.0)
                total += np.clip(answers, 0.0, 1.0)
                if self.is_adaptive:
                    threshold += np.where(answers > 0.5, 1.0, -1.0)
        return outputs


def divergence(
    mechanism: Any, x: Any, y: Any, order: float, stated: float, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """Check that the Rényi divergence of the outputs on x from the outputs on y is at most `stated`.

    Outputs are numbers, mostly smaller on x. They are counted in 32 evenly spaced cells over the range of a pilot. The
    interval is a lower confidence bound only: events too rare for the runs may contribute any divergence.
    """
    pilot = np.concatenate(
        [_drawn(mechanism, dataset, _PILOT, seed=seed, stream=2 + side) for side, dataset in enumerate((x, y))]
    )
    edges = np.linspace(pilot.min(), pilot.max(), _CELLS + 1)[1:-1]

    def cells(dataset: Any, stream: int) -> npt.NDArray[np.int64]:
        total = np.zeros(_CELLS, dtype=np.int64)
        for outputs in blocks(mechanism, dataset, runs, seed=seed, stream=stream):
            total += np.bincount(np.searchsorted(edges, np.asarray(outputs), side="right"), minlength=_CELLS)
        return total

    hits_x, hits_y = cells(x, 0), cells(y, 1)
    law_x, law_y = (FiniteLaw.from_log_weights(np.log(hits + 0.5)) for hits in (hits_x, hits_y))
    estimate = exact_renyi(law_x, law_y, order)
    lower = float(renyi_lower(hits_x, hits_y, order, alpha=alpha))
    return StatementResult(
        statement=f"The Rényi divergence of order {order:g} is at most {stated:.4g}.",
        quantity=f"Rényi divergence of order {order:g}",
        points=(Point(estimate=estimate, lower=lower, upper=math.inf, high=stated),),
        alpha=alpha,
        method="lower bound from exact limits of nested events; point estimate with half a hit added to each cell",
        runs=runs,
        seed=seed,
    )


def events_of_all_sizes(
    mechanism: Any, x: Any, y: Any, claim: Claim, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """Check p = Pr_x[S] against the boundary at q = Pr_y[S], for events S = {output ≤ t} with q from about ½ to 5e-4.

    Outputs are numbers, mostly smaller on x. The thresholds t are quantiles of a pilot on y. Every event has two
    points: q, without a stated range, and then p, which is at most the boundary at the upper limit of q.
    """
    pilot = np.sort(_drawn(mechanism, y, _PILOT, seed=seed, stream=3))
    ranks = (np.geomspace(_RAREST, 0.5, _EVENTS) * _PILOT).astype(np.int64)
    thresholds = np.unique(pilot[ranks])
    thresholds = thresholds[thresholds < pilot[-1]]  # without the sure event
    if not len(thresholds):
        raise OptionError(
            f"{mechanism} gave only one output on {y!r:.40}, so no event can be chosen; use a noisier mechanism."
        )

    def is_below(outputs: Outputs) -> npt.NDArray[np.bool_]:
        below: npt.NDArray[np.bool_] = np.asarray(outputs)[:, None] <= thresholds
        return below

    each = alpha / (4 * len(thresholds))
    (p, p_low, p_high), (q, q_low, q_high) = (
        (hits / runs, *limits(hits.astype(np.float64), runs, alpha=each))
        for hits in (
            event_hits(mechanism, dataset, is_below, runs, seed=seed, stream=stream)
            for stream, dataset in enumerate((x, y))
        )
    )
    allowed, _ = claim.max_power(q_high)
    points: list[Point] = []
    for j in range(len(thresholds)):
        points.append(Point(at=f"event {j + 1} on y", estimate=q[j], lower=q_low[j], upper=q_high[j]))
        high = allowed[j] if allowed[j] < 1 else math.inf  # every probability is at most 1
        points.append(Point(at=f"event {j + 1} on x", estimate=p[j], lower=p_low[j], upper=p_high[j], high=high))
    return StatementResult(
        statement=f"No event crosses the boundary of {claim}.",
        quantity="probability",
        points=tuple(points),
        alpha=alpha,
        method="exact limits of every probability (Clopper-Pearson), an equal part of alpha each",
        runs=runs,
        seed=seed,
    )


def _drawn(mechanism: Any, dataset: Any, runs: int, *, seed: int, stream: int) -> Floats:
    """Return all outputs as numbers, shape (runs,)."""
    drawn = [np.asarray(part, dtype=np.float64) for part in blocks(mechanism, dataset, runs, seed=seed, stream=stream)]
    return np.concatenate(drawn)
