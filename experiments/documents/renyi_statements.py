"""What is measured of compositions: Rényi divergences, and the probabilities of events of all sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import Claim
from ...audit.claims.pure_approx_gaussian import PureDP
from ...audit.errors import OptionError
from ...audit.events.outputs import Outputs
from ...audit.inference.binomial_tails import limits
from ...audit.inference.renyi_lower_bound import renyi_lower
from ...audit.results.statement_result import Point, StatementResult
from ...mechanisms import FiniteLaw, LaplaceLaw, Law, exact_renyi
from ...mechanisms.laws.divergences import no_closed_form
from ...mechanisms.local.repeated_response import check_rounds
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
    """What `n` Laplace mechanisms say of one number, all in one: (n·epsilon_each)-DP.

    Each asks how far the number is above a threshold, between 0 and 1, and adds Laplace noise of scale 1/epsilon_each.
    The threshold is 0 for all, or, if the composition is adaptive, higher by 1 after an answer above ½ and lower by 1
    after any other. The output is the sum of the answers, each clipped to [0, 1]: where one number is below and the
    other above all thresholds, the privacy loss is proportional to it, so nothing is lost.

    Parameters
    ----------
    epsilon_each : float
        In nats, positive.
    n : int
        Number of mechanisms, at least 1.
    is_adaptive : bool
        Whether each question depends on the answers so far.
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
        """`size` independent outputs in [0, n], shape (size,)."""
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


def best_events(law_x: Law, law_y: Law) -> tuple[Floats, Floats, Floats, Floats]:
    """(p, 1 − p, q, 1 − q) of the events that tell x from y best (Neyman-Pearson), all but the sure one.

    For finite laws the outcomes are taken in by decreasing ratio of x to y. For Laplace laws of one scale the events
    are 4001 half-lines that end between the locations; beyond, p/q is constant, so that nothing is gained.

    Raises
    ------
    OptionError
        For other laws.
    """
    match law_x, law_y:
        case FiniteLaw(), FiniteLaw():
            loss = np.asarray(law_x.log_probabilities) - np.asarray(law_y.log_probabilities)
            order = np.argsort(-loss, kind="stable")
            p, q = law_x.probabilities[order], law_y.probabilities[order]
            (p_sum, q_sum), (p_rest, q_rest) = (
                [np.cumsum(values) for values in (p, q)],
                [np.cumsum(values[::-1])[::-1] for values in (p, q)],
            )
            return p_sum[:-1], p_rest[1:], q_sum[:-1], q_rest[1:]
        case LaplaceLaw(), LaplaceLaw() if law_x.scale == law_y.scale:
            ends = np.linspace(law_x.location, law_y.location, 4001)
            if law_x.location <= law_y.location:
                return law_x.cdf(ends), law_x.sf(ends), law_y.cdf(ends), law_y.sf(ends)
            return law_x.sf(ends), law_x.cdf(ends), law_y.sf(ends), law_y.cdf(ends)
    raise no_closed_form(law_x, law_y)


def exact_strength(claim: Claim, law_x: Law, law_y: Law) -> float:
    """The smallest strength of the claim's family whose boundary no best event crosses, in either direction."""
    return max(
        float(claim.strength_of(p, q, p_rest, q_rest).max())
        for p, p_rest, q, q_rest in (best_events(law_x, law_y), best_events(law_y, law_x))
    )


def divergence(
    mechanism: Any, x: Any, y: Any, order: float, stated: float, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """A lower confidence bound on the Rényi divergence of the outputs on x from those on y, against the stated one.

    Outputs are numbers, mostly smaller on x. They are counted in 32 cells, evenly spaced as far as a pilot reaches.
    There is no upper bound: what is rarer than the runs can show may have any divergence.
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
    smoothed = [FiniteLaw.from_log_weights(np.log(hits + 0.5)) for hits in (hits_x, hits_y)]
    return StatementResult(
        statement=f"the Rényi divergence of order {order:g} is at most {stated:.4g}",
        quantity=f"Rényi divergence of order {order:g}",
        points=(
            Point(
                estimate=exact_renyi(smoothed[0], smoothed[1], order),
                lower=float(renyi_lower(hits_x, hits_y, order, alpha=alpha)),
                upper=math.inf,
                high=stated,
            ),
        ),
        alpha=alpha,
        method="lower bound from exact limits of nested events; estimate with half a hit more in each of 32 cells",
        runs=runs,
        seed=seed,
    )


def events_of_all_sizes(
    mechanism: Any, x: Any, y: Any, claim: Claim, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """p = Pr_x[S] against the boundary at q = Pr_y[S], for events S = {output ≤ t} from q near ½ to some 1e-4.

    Outputs are numbers, mostly smaller on x. The thresholds t are quantiles of a pilot on y. Every event has two
    numbers: q, of which nothing is stated, and then p, of which the boundary at the upper limit of q is.
    """
    pilot = np.sort(_drawn(mechanism, y, _PILOT, seed=seed, stream=3))
    ranks = (np.geomspace(_RAREST, 0.5, _EVENTS) * _PILOT).astype(np.int64)
    thresholds = np.unique(pilot[ranks])
    thresholds = thresholds[thresholds < pilot[-1]]  # not the sure event
    if not len(thresholds):
        raise OptionError(f"{mechanism} gave one output only on {y!r:.40}, so that no event can be looked at.")

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
        high = allowed[j] if allowed[j] < 1 else math.inf  # a probability of at most 1 is no statement
        points.append(Point(at=f"event {j + 1} on x", estimate=p[j], lower=p_low[j], upper=p_high[j], high=high))
    return StatementResult(
        statement=f"no event crosses the boundary of {claim}",
        quantity="probability",
        points=tuple(points),
        alpha=alpha,
        method="exact limits of every probability (Clopper-Pearson), an equal part of alpha each",
        runs=runs,
        seed=seed,
    )


def _drawn(mechanism: Any, dataset: Any, runs: int, *, seed: int, stream: int) -> Floats:
    """All outputs, as numbers, shape (runs,)."""
    drawn = [np.asarray(part, dtype=np.float64) for part in blocks(mechanism, dataset, runs, seed=seed, stream=stream)]
    return np.concatenate(drawn)
