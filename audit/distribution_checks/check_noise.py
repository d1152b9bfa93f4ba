"""Is a mechanism's noise what it is said to be? Its scale and shape, too little noise and too much.

Proof: docs/proofs/statements.md
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import DatasetError, MechanismError, OptionError
from ..events.outputs import Outputs, Raised, as_numbers, as_vectors, merge, outcome_words, vector_width
from ..floating_point_errors import with_own_arithmetic
from ..health.run_independence import examine
from ..inference.counts import check_alpha
from ..options import check_jobs, check_runs, check_seed
from ..procedures.pilot import draw_checked
from ..results.statement_result import Point, Series, StatementResult
from ..sampling.block_counts import no_blocks
from ..sampling.draw import plan_blocks
from ..sampling.provenance import provenance_of, versions
from ..sampling.sampler import Sampler, as_sampler
from .goodness_of_fit import (
    LEAST_SIMULATED,
    ad_distance,
    ad_radius,
    cell_limits,
    cell_words,
    chi_square_distance,
    chi_square_radius,
    ks_distance,
    ks_radius,
    least,
)
from .noise_laws import GRID, GeometricNoise, NoiseLaw
from .quantile_plot import quantile_series

Array: TypeAlias = npt.NDArray[np.float64]
Drawn: TypeAlias = tuple[list[Outputs], list[Outputs]]

# The scale has most of alpha: privacy rests on it, and it is what code gets wrong. The two measures of shape see
# different faults, Anderson-Darling those of the tails. One impossible value refutes however small its share is.
_SHARES = {"scale": 0.40, "bias": 0.20, "distance": 0.15, "tails": 0.24, "support": 0.01}
_CHI_SQUARE = 0.25  # of the share of the tails, where the claim is one law of whole numbers


@with_own_arithmetic
def check_noise(
    mechanism: Any,
    dataset: Any,
    *,
    noise: NoiseLaw,
    answer: Any,
    runs: int = 100_000,
    alpha: float = 0.01,
    tolerance: float = 0.0,
    seed: int | None = 0,
    jobs: int | None = None,
    name: str | None = None,
) -> StatementResult:
    """Checks that a mechanism adds independent noise of a known law and scale to an exact answer.

    A mechanism that does is refuted with probability at most `alpha`, for every number of runs. What is looked at:

    - the scale, with an interval that is exact for the law (for Gumbel noise at least as wide as it has to be);
    - the bias: the mean of the noise less that of the law;
    - the Kolmogorov-Smirnov distance from the claimed law, with its exact quantile;
    - the Anderson-Darling distance √(A²/runs), which sees the tails, with the quantile of its limiting law (alpha is
      kept from 40 runs on, as simulated); of whole numbers instead exact limits for the probability of cells of values,
      and the chi-square distance √(χ²/runs) of all cells with a simulated quantile;
    - values that the law cannot give.

    The intervals of scale and bias say where these are if the noise has the claimed shape, that of the first distance
    holds whatever its law is, and that of the second where the claim is true: it serves to refute it.

    Parameters
    ----------
    mechanism : callable or object
        As in `check`; its outputs are numbers, or vectors whose coordinates have independent noise of the same law.
        Rounding to a grid of up to 2⁻³⁰ of the scale is allowed.
    dataset : Any
    noise : NoiseLaw
        `LaplaceNoise`, `GaussianNoise`, `GeometricNoise`, `GumbelNoise` or `ExponentialNoise`.
    answer : float, array of shape (n_coords,), or callable
        What the noise is added to, or a function that finds it from the dataset.
    runs : int
        At least 40. A hundred thousand find a scale that is 2% off.
    alpha : float
        Allowed probability of refuting a mechanism whose noise is as claimed.
    tolerance : float
        Relative error of the scale that is allowed, in [0, 1); the shape is then compared with the nearest law allowed.
    seed, jobs, name
        As in `check`.

    Returns
    -------
    StatementResult
        Inconclusive where the runs are seen not to be independent.

    Raises
    ------
    OptionError, DatasetError
        For arguments outside their range, or an answer of another shape than the outputs.
    MechanismError
        If the mechanism cannot be run, or returns anything but finite numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit.audit.distribution_checks.noise_laws import GaussianNoise
    >>> def noisy_count(rows, size, rng):
    ...     return len(rows) + rng.normal(scale=2.0**2, size=size)  # the variance
    >>> result = check_noise(noisy_count, np.ones(9), noise=GaussianNoise(sigma=2.0), answer=len, runs=10_000)
    >>> result.is_refuted, round(result.points[0].estimate)
    (True, 4)
    >>> "about the square of it, as where the variance is passed" in result.notes[0]
    True
    """
    started = time.perf_counter()
    if not isinstance(noise, NoiseLaw):
        raise OptionError(f"noise={noise!r} is no law of noise; use an instance such as LaplaceNoise(scale=2.0).")
    if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)) or not 0.0 <= tolerance < 1.0:
        raise OptionError(
            f"tolerance={tolerance!r} is no relative error; use 0 <= tolerance < 1, such as 0.01.", tolerance=tolerance
        )
    sampler, alpha, runs, seed = as_sampler(mechanism, name), check_alpha(alpha), check_runs(runs), check_seed(seed)
    drawn = draw_runs(sampler, dataset, runs, seed, check_jobs(jobs))
    outputs = np.concatenate(merge(*drawn))[:runs]
    values = _noise(outputs, _exact_answer(answer, dataset), sampler.name)
    allowed = (noise.value * (1 - tolerance), noise.value * (1 + tolerance))
    shares = {part: share * alpha for part, share in _SHARES.items()}
    scales = _scale_points(values, noise, allowed, shares["scale"])
    biases = _bias_points(values, noise, allowed, shares["bias"])
    ordered = np.sort(values, axis=None)
    shapes = _shape_points(ordered, noise, allowed, shares)
    notes = _notes(noise, scales, biases, shapes)
    points = [*scales, *biases, *shapes]
    series: Series | None = quantile_series(_on_grid(ordered, noise), noise, alpha=shares["distance"])
    if _is_dependent(drawn):
        series = None
        points = [replace(point, lower=-math.inf, upper=math.inf) for point in points]
        notes = [
            "the runs are seen to depend on each other, so that no interval holds, however many they are: draw all "
            "noise from the generator that is passed in; check_independence says where they do"
        ]
    return StatementResult(
        statement=f"{sampler.name} adds independent {noise} to the answer.",
        quantity="noise",
        points=tuple(points),
        alpha=alpha,
        method="exact or Chernoff's limits of the scale and the mean; Kolmogorov-Smirnov (exact); "
        + _shape_method(noise, shapes),
        runs=runs,
        seed=seed,
        notes=tuple(notes),
        series=series,
        provenance=provenance_of(sampler.function),
        versions=versions(),
        environment={"seconds": round(time.perf_counter() - started, 3)},
    )


def _shape_method(noise: NoiseLaw, shapes: list[Point]) -> str:
    if not noise.is_discrete:
        return "Anderson-Darling (limiting law)"
    squares = any(point.at.startswith("chi-square") for point in shapes)
    return "exact limits of cells" + ", and chi-square (simulated)" * squares


def draw_runs(sampler: Sampler, dataset: Any, runs: int, seed: int, jobs: int | None) -> Drawn:
    """Two lists of blocks with half of the runs each (rounded up), all on one dataset.

    Raises
    ------
    MechanismError
        If the mechanism cannot be run, or every run raises.
    """
    plan = plan_blocks(sampler, dataset, dataset, seed, jobs)
    return draw_checked(plan, -(-runs // 2))


def as_matrix(outputs: Outputs, name: str) -> npt.NDArray[Any]:
    """Outputs as finite numbers, shape (runs, n_coords), one coordinate where they are no vectors.

    Raises
    ------
    MechanismError
        Where an output is anything else.
    """
    width = vector_width(outputs)
    numbers = as_numbers(outputs)[:, None] if width is None else as_vectors(outputs, width)
    if numbers.shape[1] == 0:
        raise MechanismError(f"{name} returned empty vectors; return at least one number in each run.", mechanism=name)
    bad = np.flatnonzero(~np.isfinite(numbers).all(axis=1))
    if len(bad):
        first = outputs[bad[0]]
        shown = outcome_words(tuple(first.tolist()) if isinstance(first, np.ndarray) else first)
        gave = shown if isinstance(first, Raised) else f"returned {shown}"
        raise MechanismError(
            f"{name} {gave} where finite numbers are measured, and in {len(bad):,} of {len(outputs):,} runs something "
            "else than those; return a number (or equally long vectors of numbers) in every run, or audit it with "
            "check, which takes any output.",
            mechanism=name,
            runs=len(bad),
        )
    return numbers


def _exact_answer(answer: Any, dataset: Any) -> npt.NDArray[Any]:
    """The answer as an array of finite numbers, shape () or (n_coords,); whole numbers stay whole."""
    if callable(answer):
        try:
            answer = answer(dataset)
        except Exception as error:
            raise DatasetError(
                f"answer raised {type(error).__name__} on the dataset: {error}; pass the exact answer, or a function "
                "that finds it from the dataset."
            ) from error
    try:
        found = np.asarray(answer)
        is_number = found.dtype.kind == "f" or (_is_whole(found) and found.dtype.kind != "b")
    except ValueError:  # lists of different lengths
        is_number = False
    if not is_number or found.ndim > 1 or not np.isfinite(found.astype(np.float64)).all():
        raise OptionError(
            f"answer={answer!r} is no exact answer; pass a finite number, a vector of them, or a function of the "
            "dataset that returns one.",
            answer=answer,
        )
    return found


def _noise(outputs: Outputs, answer: npt.NDArray[Any], name: str) -> Array:
    """Outputs less the answer, shape (runs, n_coords); exact where both are whole numbers, however large."""
    numbers = as_matrix(outputs, name)
    is_vector = outputs.ndim == 2 or (outputs.dtype == object and type(outputs[0]) is tuple)
    if answer.shape != ((numbers.shape[1],) if is_vector else ()):
        wanted = f"a vector of {numbers.shape[1]} numbers" if is_vector else "a number"
        raise OptionError(
            f"answer has shape {answer.shape} and the outputs of {name} are {'vectors' if is_vector else 'numbers'}; "
            f"pass {wanted}.",
            shape=answer.shape,
        )
    if not (_is_whole(outputs) and _is_whole(answer)):
        return np.asarray(numbers.astype(np.float64) - answer.astype(np.float64))
    is_small = all(abs(int(end)) < 2**62 for part in (outputs, answer) for end in (part.min(), part.max()))
    kind = np.int64 if is_small else object
    return np.asarray((outputs.astype(kind) - answer.astype(kind)).astype(np.float64)).reshape(numbers.shape)


def _is_whole(values: npt.NDArray[Any]) -> bool:
    return values.dtype.kind in "biu" or (values.dtype == object and all(type(value) is int for value in values.flat))


def _is_dependent(drawn: Drawn) -> bool:
    """Whether runs are seen to repeat each other or to be correlated, where no independent ones would in a million."""
    return bool(examine(drawn, (no_blocks(), no_blocks()), frozenset()))


def _worst(points: list[Point]) -> Point:
    return max(points, key=lambda point: (point.is_outside, point.excess))


def _scale_points(noise: Array, law: NoiseLaw, allowed: tuple[float, float], alpha: float) -> list[Point]:
    """The scale of all the noise; of vectors also that of the coordinate farthest out, each having half of alpha."""
    width = noise.shape[1]

    def point(at: str, values: Array, share: float) -> Point:
        estimate, lower, upper = law.scale_interval(values, share)
        return Point(at=at, estimate=estimate, lower=lower, upper=upper, low=allowed[0], high=allowed[1])

    if width == 1:
        return [point(law.parameter, noise[:, 0], alpha)]
    # With as many values in each, the ends grow with the estimate: the others' intervals lie between these two.
    estimates = law.estimate(noise)
    ends = {int(estimates.argmin()), int(estimates.argmax())}
    own = [
        point(f"{law.parameter} of coordinate {i} of {width}", noise[:, i], alpha / (2 * width)) for i in sorted(ends)
    ]
    return [point(law.parameter, noise.ravel(), alpha / 2), _worst(own)]


def _bias_points(noise: Array, law: NoiseLaw, allowed: tuple[float, float], alpha: float) -> list[Point]:
    """The mean of the noise less the law's: of all of it, and of vectors also that of the coordinate farthest out."""
    width, means = noise.shape[1], sorted(law.with_value(value).mean - law.mean for value in allowed)

    def point(at: str, values: Array, share: float) -> Point:
        estimate, lower, upper = (end - law.mean for end in law.mean_interval(values, share, allowed[1]))
        return Point(at=at, estimate=estimate, lower=lower, upper=upper, low=means[0], high=means[1])

    if width == 1:
        return [point("bias", noise[:, 0], alpha)]
    own = [point(f"bias of coordinate {i} of {width}", noise[:, i], alpha / (2 * width)) for i in range(width)]
    return [point("bias", noise.ravel(), alpha / 2), _worst(own)]


def _shape_points(values: Array, law: NoiseLaw, allowed: tuple[float, float], shares: dict[str, float]) -> list[Point]:
    """Distances of the sorted noise from the nearest law allowed, cells of whole numbers, and impossible values."""
    n = len(values)

    def point(at: str, distance: Callable[[NoiseLaw], float], radius: float) -> Point:
        found = least(lambda value: distance(law.with_value(value)), allowed)
        return Point(at=at, estimate=found, lower=max(found - radius, 0.0), upper=found + radius, low=0.0, high=0.0)

    points = [
        point(
            "Kolmogorov-Smirnov distance",
            lambda one: ks_distance(_on_grid(values, one), one.cdf, one.cdf_below),
            ks_radius(n, alpha=shares["distance"]) + GRID,  # rounding moves F by less: no density exceeds 1/scale
        )
    ]
    if isinstance(law, GeometricNoise):
        points += _cell_points(values, law, allowed, shares["tails"])
    else:
        points.append(
            point(
                "Anderson-Darling distance",
                lambda one: ad_distance(one.log_cdf(values), one.log_sf(values)),
                ad_radius(n, alpha=shares["tails"]) + GRID,
            )
        )
    if law.impossible:
        hits = np.array([np.count_nonzero(~law.with_value(allowed[1]).is_possible(values))])
        lower, upper = (float(end[0]) for end in cell_limits(hits, n, alpha=shares["support"]))
        share = float(hits[0]) / n
        points.append(Point(at=f"share of {law.impossible}", estimate=share, lower=lower, upper=upper, high=0.0))
    return points


def _on_grid(values: Array, law: NoiseLaw) -> Array:
    """Whole numbers that a floating-point difference has missed by a hair are put back."""
    return np.asarray(np.where(law.is_possible(values), np.rint(values), values)) if law.is_discrete else values


def _cell_points(values: Array, law: GeometricNoise, allowed: tuple[float, float], alpha: float) -> list[Point]:
    """Of cells of whole numbers, and the even ones, the farthest from what is allowed; and chi-square of all cells."""
    whole, cells = np.rint(values), law.cells(len(values))
    edges = np.searchsorted(whole, [first for first, _ in cells[1:]])
    inside = np.diff([0, *edges, len(whole)])
    squares = []
    if allowed[0] == allowed[1] and len(cells) > 1 and _CHI_SQUARE * alpha >= LEAST_SIMULATED:
        chances = np.array([law.cell_probability(*cell) for cell in cells])
        radius = chi_square_radius(len(values), tuple(chances.tolist()), alpha=_CHI_SQUARE * alpha)
        found = chi_square_distance(inside, chances)
        lower = max(found - radius, 0.0)
        at = f"chi-square distance of {len(cells)} cells"
        squares.append(Point(at=at, estimate=found, lower=lower, upper=found + radius, low=0.0, high=0.0))
        alpha *= 1 - _CHI_SQUARE
    hits = np.append(inside, np.count_nonzero(whole % 2 == 0))
    lows, highs = cell_limits(hits, len(values), alpha=alpha)
    laws = [law.with_value(float(value)) for value in np.linspace(*allowed, 65 if allowed[0] < allowed[1] else 1)]
    chances = np.array([[*(one.cell_probability(*cell) for cell in cells), one.even_probability()] for one in laws])
    # A cell's probability rises and falls once at most as the scale grows: between two values it is above both by no
    # more than it changes from one to the next.
    slack = np.abs(np.diff(chances, axis=0)).max(axis=0, initial=0.0) + 1e-12
    low, high = chances.min(axis=0) - slack, chances.max(axis=0) + slack
    names = [*map(cell_words, cells), "an even number"]
    worst = _worst(
        [
            Point(
                at=f"probability of {names[i]}",
                estimate=float(hits[i]) / len(values),
                lower=float(lows[i]),
                upper=float(highs[i]),
                low=float(low[i]),
                high=float(high[i]),
            )
            for i in range(len(names))
        ]
    )
    return [worst, *squares]


def _notes(law: NoiseLaw, scales: list[Point], biases: list[Point], shapes: list[Point]) -> list[str]:
    """What the numbers mean for whoever relies on the noise."""
    notes = []
    scale, bias = _worst(scales), _worst(biases)
    is_biased = bias.is_outside and (law.is_symmetric or not scale.is_outside)
    if is_biased:
        notes.append(
            f"the mean of the noise is off by {bias.estimate:.3g}: the outputs are biased, or `answer` is not what "
            "noise is added to; scale and shape are measured around it, so this alone can make them differ"
        )
    if scale.is_outside:
        found = f"{scale.at} {scale.estimate:.4g}, claimed {law.value:.4g}{_guess(law, scale)}"
        if scale.upper < scale.low:
            notes.append(f"less noise than claimed ({found}): privacy is lost")
        else:
            notes.append(
                f"more noise than claimed ({found}): utility is lost, and privacy is not if the noise has the claimed "
                "shape"
            )
    if any(point.is_outside for point in shapes) and not is_biased:
        if scale.is_outside:
            notes.append(
                "the shape is compared with the claimed law, its scale included: a wrong scale alone makes it differ"
            )
        else:
            notes.append(
                "the scale fits and the shape does not: a guarantee that rests on this law does not hold, whatever the "
                "scale"
            )
    return notes


def _guess(law: NoiseLaw, point: Point) -> str:
    """What the scale may have been taken for, where it is near such a number."""
    value, wrong = law.value, []
    if law.parameter == "sigma":
        wrong += [
            (value**2, "the square of it, as where the variance is passed for the standard deviation"),
            (math.sqrt(value), "its square root, as where the standard deviation is passed for the variance"),
        ]
    wrong += [
        (1 / value, "its reciprocal, as where epsilon is passed for the scale"),
        (2 * value, "twice that"),
        (value / 2, "half of it, as where a factor 2 of the sensitivity is missing"),
        (value * math.sqrt(2), "√2 times that"),
        (value / math.sqrt(2), "1/√2 of it, as where the law's standard deviation was meant"),
    ]
    return next((f"; about {words}" for number, words in wrong if point.lower <= number <= point.upper), "")
