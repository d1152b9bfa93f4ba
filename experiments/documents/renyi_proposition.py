"""Rényi differential privacy of compositions, and Proposition 4 of Mironov (2017) on the probability of an event."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import Claim, PureDP
from ...audit.claims.mironov_propositions import NFoldComposition, ProbabilityPreservation
from ...audit.datasets.adjacency import Local, Within
from ...audit.errors import OptionError
from ...audit.events.outputs import Outputs
from ...audit.inference.binomial_tails import limits
from ...audit.inference.confidence_bands import renyi_lower
from ...audit.results.statement_result import Point, StatementResult
from ...mechanisms import (
    Distribution,
    FiniteDistribution,
    LaplaceMechanism,
    RandomisedResponseFold,
    UpAndDown,
    composed,
    exact_renyi,
)
from ...mechanisms.noise_samplers import laplace_on_grid, pieces
from ...mechanisms.queries import identity, real_answer
from ..cases.experiment import (
    RUNS,
    Case,
    Experiment,
    exact_parameter,
    fails,
    false_statement,
    holds,
    stated,
    true_statement,
)
from ..statements.simulated import blocks, event_counts, result_of

# Statements: Rényi divergences, and the probabilities of events of all sizes.

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
    If one number is below and the other above all thresholds, the privacy loss is a linear function of the sum, so that
    the sum preserves all of the loss.
    """

    epsilon_each: float
    n: int
    is_adaptive: bool = False

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

    count_x, count_y = cells(x, 0), cells(y, 1)
    distribution_x, distribution_y = (
        FiniteDistribution.from_log_weights(np.log(counts + 0.5)) for counts in (count_x, count_y)
    )
    estimate = exact_renyi(distribution_x, distribution_y, order)
    lower = float(renyi_lower(count_x, count_y, order, alpha=alpha))
    points = [Point(estimate=estimate, lower=lower, upper=math.inf, high=stated)]
    statement = f"The Rényi divergence of order {order:g} is at most {stated:.4g}."
    method = "lower bound from exact limits of nested events; point estimate with half a hit added to each cell"
    return result_of(statement, f"Rényi divergence of order {order:g}", points, method, (runs, alpha, seed))


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
        (counts / runs, *limits(counts.astype(np.float64), runs, alpha=each))
        for counts in (
            event_counts(mechanism, dataset, is_below, runs, seed=seed, stream=stream)
            for stream, dataset in enumerate((x, y))
        )
    )
    allowed, _ = claim.max_power(q_high)
    points: list[Point] = []
    for j in range(len(thresholds)):
        points.append(Point(at=f"event {j + 1} on y", estimate=q[j], lower=q_low[j], upper=q_high[j]))
        high = allowed[j] if allowed[j] < 1 else math.inf  # every probability is at most 1
        points.append(Point(at=f"event {j + 1} on x", estimate=p[j], lower=p_low[j], upper=p_high[j], high=high))
    statement = f"No event crosses the boundary of {claim}."
    method = "exact limits of every probability (Clopper-Pearson), an equal part of alpha each"
    return result_of(statement, "probability", points, method, (runs, alpha, seed))


def _drawn(mechanism: Any, dataset: Any, runs: int, *, seed: int, stream: int) -> Floats:
    """Return all outputs as numbers, shape (runs,)."""
    drawn = [np.asarray(part, dtype=np.float64) for part in blocks(mechanism, dataset, runs, seed=seed, stream=stream)]
    return np.concatenate(drawn)


# The experiments.

EPSILON: Final = 0.1
"""Epsilon of each composed mechanism in R3."""
FOLDS: Final = (1, 10, 100)
_MANY: Final = 1_000_000
_LOCAL: Final = Local()
_INSIDE: Final = {10: (-3, 4), 100: (-15, 16)}
"""Values within reach of a search with n questions, so that the answers change the questions."""
_FAR: Final = {1: 2.5, 10: 1.0, 100: 0.4}  # excess for each fold: all events lie far below the boundary


def experiments() -> list[Experiment]:
    """Return experiments R1 to R3."""
    about = partial(stated, "renyi")
    return [
        about("R1",
            "n adaptively composed epsilon-DP mechanisms have a Rényi divergence of order alpha of at most 2 alpha n "
            "epsilon^2, and even of at most alpha n epsilon^2 / 2.",
            "Mironov (2017), Proposition 1 and Lemma 1; Bun & Steinke (2016), Proposition 3.3",
            (*_divergences(), *_one_more())),
        about("R2",
            "If the Rényi divergence of order alpha is D, an event of probability q on one dataset has at most the "
            "probability (e^D q)^((alpha - 1)/alpha) on the other.",
            "Mironov (2017), Proposition 10", _preservation()),
        about("R3",
            "Under n adaptively composed epsilon-DP mechanisms, an event of probability q on one dataset has at most "
            "the probability q exp(2 epsilon sqrt(n ln(1/q))) on the other.",
            "Mironov (2017), Proposition 4",
            (*_folds(), *_more_folds(), *_events())),
    ]  # fmt: skip


def _divergence_case(
    state: Any, name: str, mechanism: Any, pair: tuple[Any, Any], exact: float, order: float, bound: float, **rest: Any
) -> Case:
    claimed = f"Rényi divergence of order {order:g} at most {bound:.4g}"
    return state(  # type: ignore[no-any-return]
        f"R1-{name}", claimed, partial(divergence, mechanism, *pair, order, bound), exact=exact, **rest
    )


def _divergences() -> list[Case]:
    def case(name: str, mechanism: Any, pair: tuple[Any, Any], exact: float, order: float, factor: float) -> Case:
        bound = factor * order * mechanism.n * mechanism.epsilon_each**2
        runs = RUNS if mechanism.n < 100 else RUNS // 2
        note = f"Rényi bound with the {'tight' if factor == 0.5 else 'stated'} constant {factor:g}"
        return _divergence_case(true_statement, name, mechanism, pair, exact, order, bound, runs=runs, note=note)

    cases: list[Case] = []
    for n, order, factor in ((1, 2, 2), (10, 2, 2), (100, 2, 2), (10, 8, 2), (1, 2, 0.5), (10, 2, 0.5), (10, 8, 0.5)):
        fold = RandomisedResponseFold(0.3 if n < 100 else 0.1, n)
        name = f"response-{n}-order-{order}" + ("-tight" if factor == 0.5 else "")
        cases.append(case(name, fold, (0, 1), _renyi(fold, (0, 1), order), order, factor))
    search = UpAndDown(0.3, 10)
    for name, pair in (("up-and-down", (-10, 11)), ("up-and-down-inside", (0, 3))):
        cases.append(case(f"{name}-10-order-2", search, pair, _renyi(search, pair, 2), 2, 0.5))
    for n in FOLDS:
        laplace = LaplaceFold(0.3 if n < 100 else 0.1, n)
        cases.append(case(f"laplace-{n}-order-2", laplace, (0, 1), laplace_divergence(laplace, 2), 2, 2))
    return cases


def _renyi(mechanism: Any, pair: tuple[Any, Any], order: float) -> float:
    return exact_renyi(mechanism.distribution(pair[0]), mechanism.distribution(pair[1]), order)


def laplace_divergence(fold: LaplaceFold, order: float) -> float:
    """Return the exact divergence between the values 0 and 1: that of `n` independent Laplace mechanisms."""
    return _renyi(composed(LaplaceMechanism(fold.epsilon_each), fold.n), (0.0, 1.0), order)


def _one_more() -> list[Case]:
    two, five, laplace = RandomisedResponseFold(0.5, 2), RandomisedResponseFold(0.5, 5), LaplaceFold(0.5, 2)
    cases: list[Case] = []
    for name, mechanism, exact, runs in (
        ("response-1", two, _renyi(two, (0, 1), 2), RUNS),
        ("response-4", five, _renyi(five, (0, 1), 2), _MANY),
        ("laplace-1", laplace, laplace_divergence(laplace, 2), RUNS),
    ):
        n = mechanism.n - 1
        bound, note = n * mechanism.epsilon_each**2, f"{n + 1} mechanisms, Rényi bound with the tight constant for {n}"
        of: Any = ("one-more-" + name, mechanism, (0, 1), exact, 2.0, bound)
        cases.append(_divergence_case(false_statement, *of, runs=runs, note=note))
    return cases


def _preservation() -> list[Case]:
    one, ten, search = RandomisedResponseFold(0.3, 1), RandomisedResponseFold(0.3, 10), UpAndDown(0.3, 10)
    laplace = LaplaceMechanism(0.3)
    cases: list[Case] = []
    for name, mechanism, pair, order, note in (
        ("response-1-order-8", one, (0, 1), 8, "one randomised response, order 8, nearly tight"),
        ("response-10-order-2", ten, (0, 1), 2, "ten randomised responses, order 2, loose"),
        ("response-10-order-8", ten, (0, 1), 8, "ten randomised responses, order 8"),
        ("up-and-down-10-order-8", search, (0, 3), 8, "ten adaptive responses, larger divergence of both directions"),
        ("laplace-1-order-8", laplace, (0.0, 1.0), 8, "one Laplace mechanism, order 8"),
    ):
        claim = ProbabilityPreservation(order, max(_renyi(mechanism, way, order) for way in (pair, pair[::-1])))
        exact = exact_parameter(claim, mechanism.distribution(pair[0]), mechanism.distribution(pair[1]))
        adjacency = Within("linf") if mechanism is laplace else _LOCAL
        cases.append(holds(f"R2-{name}", mechanism, pair, adjacency, note, claim=claim, exact=exact))
    fold = LaplaceFold(0.3, 10)
    claim, note = ProbabilityPreservation(8, laplace_divergence(fold, 8)), "ten Laplace mechanisms, order 8"
    cases.append(holds("R2-laplace-10-order-8", fold, (0.0, 1.0), _LOCAL, note, claim=claim, exact=None))

    for name, n, k, each, order in (("four-times", 10, 40, 0.1, 8), ("four-times-single", 1, 4, 0.3, 8)):
        few, many = RandomisedResponseFold(each, n), RandomisedResponseFold(each, k)
        claim = ProbabilityPreservation(order, _renyi(few, (0, 1), order))
        note = f"{k} randomised responses, divergence of {n}"
        exact = exact_parameter(claim, many.distribution(0), many.distribution(1))
        cases.append(fails(f"R2-{name}", many, (0, 1), _LOCAL, note, claim=claim, exact=exact))
    return cases


def _folds() -> list[Case]:
    cases: list[Case] = []

    def case(
        name: str,
        mechanism: Any,
        pair: tuple[Any, Any],
        distributions: tuple[Distribution, Distribution] | None,
        note: str,
    ) -> None:
        n = mechanism.n
        claim = NFoldComposition(mechanism.epsilon_each, n)
        exact = None if distributions is None else exact_parameter(claim, *distributions)
        options: Any = {"claim": claim, "exact": exact, "detect": _FAR[n]}
        cases.append(holds(f"R3-{name}-{n}", mechanism, pair, _LOCAL, f"{note}, n = {n}", **options))

    for n in FOLDS:
        fold, laplace = RandomisedResponseFold(EPSILON, n), LaplaceMechanism(EPSILON)
        case("response", fold, (0, 1), (fold.distribution(0), fold.distribution(1)), "randomised response")
        known = (laplace.distribution(0.0), laplace.distribution(1.0)) if n == 1 else None
        case("laplace", LaplaceFold(EPSILON, n), (0.0, 1.0), known, "Laplace noise")
    for n, pair in _INSIDE.items():
        each = EPSILON if n < 100 else EPSILON / 2  # at 0.1 no event of this pair is near the boundary
        search, laplace_search = UpAndDown(each, n), LaplaceFold(each, n, is_adaptive=True)
        distributions = search.distribution(pair[0]), search.distribution(pair[1])
        case("response-adaptive", search, pair, distributions, "randomised response, adaptive questions")
        case("laplace-adaptive", laplace_search, pair, None, "Laplace noise, adaptive questions")
        search = UpAndDown(EPSILON, n)
        distributions = search.distribution(-n), search.distribution(n + 1)
        case("response-beyond", search, (-n, n + 1), distributions, "adaptive questions, values beyond all thresholds")
    vector = composed(LaplaceMechanism(EPSILON), 10)
    rest: Any = {"claim": NFoldComposition(EPSILON, 10), "exact": None, "runs": RUNS // 2, "detect": _FAR[10]}
    note = "ten Laplace answers instead of their sum"
    return [*cases, holds("R3-laplace-answers-10", vector, (0.0, 1.0), Within("linf"), note, **rest)]


def _more_folds() -> list[Case]:
    claim = NFoldComposition(EPSILON, 10)
    cases: list[Case] = []
    few, many = RandomisedResponseFold(EPSILON, 20), RandomisedResponseFold(EPSILON, 90)
    for audit, name, mechanism, pair, note in (
        (holds, "twice", few, (0, 1), "20 randomised responses, excess too small to detect"),
        (fails, "four-times", RandomisedResponseFold(EPSILON, 40), (0, 1), "40 randomised responses, claim for 10"),
        (fails, "four-times-adaptive", UpAndDown(EPSILON, 40), (-40, 41), "40 adaptive responses, claim for 10"),
        (fails, "nine-times", many, (0, 1), "90 randomised responses, claim for 10"),
    ):
        exact = exact_parameter(claim, mechanism.distribution(pair[0]), mechanism.distribution(pair[1]))
        runs = _MANY if name.startswith("four") else RUNS
        options: Any = {"claim": claim, "exact": exact, "runs": runs}
        options |= {"detect": _FAR[10]} if audit is holds else {}
        cases.append(audit(f"R3-{name}", mechanism, pair, _LOCAL, note, **options))
    return cases


def _events() -> list[Case]:
    def case(state: Any, name: str, mechanism: Any, pair: tuple[Any, Any], n: int, note: str, runs: int) -> None:
        claimed = f"p <= q exp({2 * EPSILON:g} sqrt({n} ln 1/q)) for every event"
        measure = partial(events_of_all_sizes, mechanism, *pair, NFoldComposition(EPSILON, n))
        cases.append(state(f"R3-events-{name}", claimed, measure, runs=runs, note=note))

    cases: list[Case] = []
    for n in FOLDS:
        rest: Any = (n, f"up to ten events of different sizes, n = {n}", RUNS if n < 100 else RUNS // 2)
        laplace = LaplaceFold(EPSILON, n) if n > 1 else LaplaceMechanism(EPSILON)  # the fold clips the rare events
        case(true_statement, f"response-{n}", RandomisedResponseFold(EPSILON, n), (0, 1), *rest)
        case(true_statement, f"laplace-{n}", laplace, (0, 1), *rest)
        if n in _INSIDE:
            case(true_statement, f"adaptive-{n}", LaplaceFold(EPSILON, n, is_adaptive=True), _INSIDE[n], *rest)
    forty, note = RandomisedResponseFold(EPSILON, 40), "40 randomised responses, claim for 10"
    case(false_statement, "four-times", forty, (0, 1), 10, note, _MANY)
    return cases
