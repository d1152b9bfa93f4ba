"""Check the scale and the shape of a mechanism's noise against a claimed distribution.

Proof: docs/proofs/statements.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from ..claims.claim import Array
from ..clock import now
from ..errors import DatasetError, MechanismError, OptionError
from ..events.outputs import Outputs, Raised, as_numbers, as_vectors, merge, outcome_list, outcome_words, vector_width
from ..floating_point_errors import with_own_arithmetic
from ..health.event_checks import are_same
from ..health.findings import Finding, HealthCheck, checks_to_ignore, take_snapshot
from ..health.run_independence import examine_draws, examine_in_order
from ..known_options import with_known_options
from ..options import Progress, checked_seed
from ..printing import confidence, shorten
from ..procedures.fixed_size import draw_checked
from ..progress import told
from ..results.statement_result import Point, Series, StatementResult
from ..sampling.draw import plan_blocks
from ..sampling.object_identity import source_of, versions
from ..sampling.sampler import OutputPart, Sampler, as_sampler, picked, provenance_of_part
from ..sampling.tasks import no_blocks
from .noise_distributions import (
    GRID,
    LEAST_SIMULATED,
    GeometricNoise,
    NoiseDistribution,
    ad_distance,
    ad_radius,
    cell_limits,
    chi_square_distance,
    chi_square_radius,
    ks_distance,
    ks_radius,
    least,
)

_PLACES = 41  # quantiles in the figure, the median among them; no test depends on their number
_OUTERMOST = math.log(199)  # logit of the last level: quantiles from .5% to 99.5%


def quantile_series(values: Array, distribution: NoiseDistribution, *, alpha: float) -> Series:
    """Return the quantiles of sorted noise, shape (n,), with those of the distribution.

    If no observed share differs from its probability by more than r, the quantile of level u lies between the observed
    quantiles of levels u − r and u + r. All intervals therefore hold together with probability 1 − alpha, for
    independent draws from any distribution (Doksum & Sievers 1976, Plotting with confidence).
    """
    levels = expit(np.linspace(-_OUTERMOST, _OUTERMOST, _PLACES))
    claimed = distribution_quantiles(distribution, levels)
    places, first, times = np.unique(claimed, return_index=True, return_counts=True)
    levels = levels[first + times // 2]  # for an integer distribution several levels have the same quantile
    radius = ks_radius(len(values), alpha=alpha) + GRID
    return Series(
        x_name="quantile of the claimed distribution",
        y_name="observed quantile",
        x=tuple(places.tolist()),
        estimate=tuple(_observed(values, levels).tolist()),
        lower=tuple(_observed(values, levels - radius).tolist()),
        upper=tuple(_observed(values, levels + radius).tolist()),
        stated=tuple(places.tolist()),
        intervals=f"Kolmogorov-Smirnov band, simultaneous {confidence(alpha)} for any distribution",
    )


def distribution_quantiles(distribution: NoiseDistribution, levels: Array) -> Array:
    """Return the least x with Pr[noise ≤ x] ≥ level, for each level in (0, 1), to 1e-12 of the scale."""
    reach = distribution.value
    lowest, highest = levels.min(), levels.max()
    while distribution.cdf(np.array(-reach)) >= lowest or distribution.cdf(np.array(reach)) < highest:
        reach *= 2
    low, high = np.full(levels.shape, -reach), np.full(levels.shape, reach)
    for _ in range(50):  # halvings, for 1e-14 of the range
        middle = (low + high) / 2
        is_above = distribution.cdf(middle) >= levels
        low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
    return np.asarray(np.rint(high) if distribution.is_discrete else high) + 0.0


def _observed(values: Array, levels: Array) -> Array:
    """Return the empirical quantiles of sorted values; infinite for levels outside (0, 1]."""
    ranks = np.ceil(levels * len(values) - 1e-9).astype(np.int64)
    found = values[np.clip(ranks, 1, len(values)) - 1]
    return np.where(ranks < 1, -np.inf, np.where(ranks > len(values), np.inf, found))


# The scale has the largest share of alpha: privacy depends on it, and bugs affect it most often. The two distances
# detect different faults, Anderson-Darling those of the tails. One impossible value refutes with any share.
_SHARES = {"scale": 0.40, "bias": 0.20, "distance": 0.15, "tails": 0.24, "support": 0.01}
_CHI_SQUARE = 0.25  # part of the share of the tails, if the claim is a single distribution of integers


@with_known_options()
@with_own_arithmetic
def check_noise(
    mechanism: Any,
    dataset: Any,
    *,
    noise: NoiseDistribution,
    answer: Any,
    output: OutputPart | None = None,
    runs: int = 100_000,
    alpha: float = 0.01,
    tolerance: float = 0.0,
    seed: int | None = 0,
    jobs: int | None = None,
    name: str | None = None,
    ignore: str | Iterable[str] = (),
    progress: Progress = None,
) -> StatementResult:
    """Check that a mechanism adds independent noise of a known distribution and scale to an exact answer.

    A mechanism that does so is refuted with probability at most `alpha`, for any number of runs. The check measures

    - the scale, with an exact interval for the distribution (for Gumbel noise a conservative interval);
    - the bias: the mean of the noise minus the mean of the distribution;
    - the Kolmogorov-Smirnov distance from the claimed distribution, with its exact quantile;
    - the Anderson-Darling distance √(A²/runs), which weights the tails, with the quantile of its limiting distribution
      (it keeps alpha from 40 runs on, according to simulations); for integers instead exact limits for the
      probabilities of cells of values, and the chi-square distance √(χ²/runs) over all cells with a simulated quantile;
    - values that are impossible under the distribution.

    The intervals of scale and bias hold if the noise has the claimed shape. The interval of the first distance holds
    for any distribution. The interval of the second distance holds if the claim is true, and serves to refute it.

    Parameters
    ----------
    mechanism : callable or object
        As in `check`; its outputs are numbers, or vectors whose coordinates have independent noise of the same
        distribution. Rounding to a grid of up to 2⁻³⁰ of the scale is allowed.
    dataset : Any
        Dataset that the mechanism is run on, in any form that it takes.
    noise : NoiseDistribution
        `LaplaceNoise`, `GaussianNoise`, `GeometricNoise`, `GumbelNoise` or `ExponentialNoise`.
    answer : float, array of shape (n_coords,), or callable
        The exact answer, or a function that computes it from the dataset.
    output : str, int or callable, optional
        Part of the outputs whose noise is checked, as in `check`.
    runs : int
        At least 40. A hundred thousand runs detect an error of 2% in the scale.
    alpha : float
        Allowed probability of refuting a mechanism whose noise is as claimed.
    tolerance : float
        Allowed relative error of the scale, in [0, 1). The shape is compared with the nearest allowed distribution.
    seed, jobs, name, ignore, progress : optional
        As in `check`.

    Returns
    -------
    StatementResult
        Inconclusive if so few runs would not show that half of the stated noise is added, or if a health check fails:
        runs that share noise, a fixed seed, state that changes over time, a dataset that the mechanism changes.

    Raises
    ------
    OptionError, DatasetError
        If an argument is outside its range, or the answer and the outputs differ in shape.
    MechanismError
        If the mechanism cannot be run, or returns anything but finite numbers.

    See Also
    --------
    check : Audit of the privacy claim itself.
    noise.check_independence : Independence of the noise between coordinates and runs.
    noise.check_slope : Growth of log probabilities with a utility.

    Notes
    -----
    The noise is output − answer. The parts of `alpha` add up by the union bound.

    References
    ----------
    Massart (1990), The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality. Anderson & Darling (1954), A test
    of goodness of fit. Proof: docs/proofs/statements.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit.audit.distribution_checks.noise_distributions import GaussianNoise
    >>> def noisy_count(rows, size, rng):
    ...     return len(rows) + rng.normal(scale=2.0**2, size=size)  # the variance
    >>> result = check_noise(noisy_count, np.ones(9), noise=GaussianNoise(sigma=2.0), answer=len, runs=10_000)
    >>> result.is_refuted, round(result.points[0].estimate)
    (True, 4)
    >>> "about its square, as if the variance were passed" in result.notes[0]
    True
    """
    if not isinstance(noise, NoiseDistribution):
        raise OptionError(
            f"noise={shorten(noise)} is not a distribution of noise; use an instance such as LaplaceNoise(scale=2.0)."
        )
    sampler = picked(as_sampler(mechanism, name), output)
    drawn = draw_runs(sampler, dataset, runs, checked_seed(seed), jobs, progress, checks_to_ignore(ignore))
    values = _noise(drawn.outputs, _exact_answer(answer, dataset), sampler.name)
    allowed = (noise.value * (1 - tolerance), noise.value * (1 + tolerance))
    shares = {part: share * alpha for part, share in _SHARES.items()}
    scales = _scale_points(values, noise, allowed, shares["scale"])
    biases = _bias_points(values, noise, allowed, shares["bias"])
    ordered = np.sort(values, axis=None)
    shapes = _shape_points(ordered, noise, allowed, shares)
    shape_method = "Anderson-Darling (limiting distribution)"
    if noise.is_discrete:
        has_squares = any(point.at.startswith("chi-square") for point in shapes)
        shape_method = "exact limits of cells" + ", and chi-square (simulated)" * has_squares
    return drawn.result(
        statement=f"{sampler.name} adds independent {noise} to the answer.",
        quantity="noise",
        points=[*scales, *biases, *shapes],
        alpha=alpha,
        method=f"exact or Chernoff's limits of the scale and the mean; Kolmogorov-Smirnov (exact); {shape_method}",
        notes=notes_of_equal(drawn.outputs) or _notes(noise, scales, biases, shapes),
        series=quantile_series(_on_grid(ordered, noise), noise, alpha=shares["distance"]),
    )


HALVES = "x and y are the first and the second half of the runs"  # note to the health checks of runs on one dataset


@dataclass(frozen=True, slots=True)
class Drawn:
    """Runs on one dataset, as two lists of blocks with half of the runs each, rounded up, and failed health checks."""

    sampler: Sampler
    runs: int
    seed: int
    started: float  # when the first was drawn
    blocks: tuple[list[Outputs], list[Outputs]]
    findings: tuple[Finding, ...]

    @property
    def outputs(self) -> Outputs:
        """The outputs in order, without those that rounding added."""
        return np.concatenate(merge(*self.blocks))[: self.runs]

    def result(self, *, points: Iterable[Point], notes: Iterable[str], **said: Any) -> StatementResult:
        """Return the result; the intervals of runs that are not independent do not hold for any number of runs."""
        if self.findings:
            points = [replace(point, lower=-math.inf, upper=math.inf) for point in points]
            notes, said = [HALVES], {**said, "series": None}
        return self.stated(points=points, notes=notes, **said)

    def stated(self, *, points: Iterable[Point], notes: Iterable[str], **said: Any) -> StatementResult:
        return StatementResult(
            points=tuple(points),
            notes=tuple(notes),
            runs=self.runs,
            seed=self.seed,
            provenance=provenance_of_part(self.sampler),
            versions=versions(),
            environment={"seconds": round(now() - self.started, 3), **source_of(self.sampler.function)},
            findings=self.findings,
            **said,
        )


def draw_runs(
    sampler: Sampler,
    dataset: Any,
    runs: int,
    seed: int,
    jobs: int | None,
    progress: Progress,
    ignored: frozenset[HealthCheck],
    *,
    least: int = 1,
) -> Drawn:
    """Draw runs on one dataset in as many blocks as in an audit, of at least `least` runs: shared noise shows."""
    started, half, snapshot = now(), -(-runs // 2), take_snapshot(dataset, dataset)
    with told(progress, sampler.name) as meter:
        meter.expect(2 * half)
        meter.ways = ("fewer runs=",)
        plan = plan_blocks(meter.watch(sampler), dataset, dataset, seed, jobs, runs=half)
        blocks = draw_checked(plan.in_blocks(max(plan.block, least)), half)
        meter(runs)
    names = plan.sampler.column_names
    findings = examine_draws(snapshot, plan.changed, blocks, (no_blocks(), no_blocks()), ignored, names)
    findings = findings or examine_in_order([*blocks[0], *blocks[1]], ignored, names)
    return Drawn(sampler, runs, seed, started, blocks, findings)


def notes_of_equal(outputs: Outputs) -> list[str]:
    """Return a note if all outputs are equal."""
    if not are_same(outputs):
        return []
    shown = outcome_words(outcome_list(outputs[:1])[0])
    return [f"all {len(outputs):,} outputs are equal, {shown}; make sure that every run draws new noise"]


def as_matrix(outputs: Outputs, name: str) -> npt.NDArray[Any]:
    """Return outputs as numbers of shape (runs, n_coords); raise a `MechanismError` if one is not finite numbers."""
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
            f"{name} {gave}: {len(bad):,} of {len(outputs):,} outputs are not finite numbers of one shape; return a "
            "number (or vectors of numbers of equal length) in every run, or use check, which accepts any output.",
            mechanism=name,
            runs=len(bad),
        )
    return numbers


def called(name: str, value: Any, dataset: Any) -> Any:
    """Return an argument, evaluated on the dataset if it is a function; its exceptions become a `DatasetError`."""
    if not callable(value):
        return value
    try:
        return value(dataset)
    except Exception as error:
        raise DatasetError(
            f"{name} raised {type(error).__name__} on the dataset: {error}; pass numbers, or a function that computes "
            "them from the dataset."
        ) from error


def _exact_answer(answer: Any, dataset: Any) -> npt.NDArray[Any]:
    """Return the answer as an array of finite numbers, shape () or (n_coords,); integers stay integers."""
    answer = called("answer", answer, dataset)
    try:
        found = np.asarray(answer)
        is_number = found.dtype.kind == "f" or (_is_whole(found) and found.dtype.kind != "b")
        is_finite = is_number and bool(np.isfinite(found.astype(np.float64)).all())
    except (ValueError, OverflowError):  # lists of different lengths, a number beyond the range of doubles
        is_finite = False
    if not is_finite or found.ndim > 1:
        raise OptionError(
            f"answer={shorten(answer)} is not an exact answer; pass a finite number, a vector of finite numbers, or a "
            "function that computes it from the dataset.",
            answer=answer,
        )
    return found


def _noise(outputs: Outputs, answer: npt.NDArray[Any], name: str) -> Array:
    """Return outputs minus the answer, shape (runs, n_coords); the difference of integers of any size is exact."""
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


def _worst(points: list[Point]) -> Point:
    return max(points, key=lambda point: (point.is_outside, point.excess))


def _scale_points(
    noise: Array, distribution: NoiseDistribution, allowed: tuple[float, float], alpha: float
) -> list[Point]:
    def point(at: str, values: Array, share: float) -> Point:
        estimate, lower, upper = distribution.scale_interval(values, share)
        if not (upper < 2.0 * estimate or lower > allowed[1] or upper < allowed[0]):
            lower, upper = -math.inf, math.inf  # half of the noise would not be found, so that nothing was tested
        return Point(at=at, estimate=estimate, lower=lower, upper=upper, low=allowed[0], high=allowed[1])

    # All coordinates have equally many values, so the limits grow with the estimate: the extremes bound the others.
    estimates = distribution.estimate(noise)
    return _points_of(distribution.parameter, noise, {int(estimates.argmin()), int(estimates.argmax())}, alpha, point)


def _bias_points(
    noise: Array, distribution: NoiseDistribution, allowed: tuple[float, float], alpha: float
) -> list[Point]:
    means = sorted(distribution.with_value(value).mean - distribution.mean for value in allowed)

    def point(at: str, values: Array, share: float) -> Point:
        interval = distribution.mean_interval(values, share, allowed[1])
        estimate, lower, upper = (end - distribution.mean for end in interval)
        return Point(at=at, estimate=estimate, lower=lower, upper=upper, low=means[0], high=means[1])

    return _points_of("bias", noise, set(range(noise.shape[1])), alpha, point)


def _points_of(
    name: str, noise: Array, columns: set[int], alpha: float, point: Callable[[str, Array, float], Point]
) -> list[Point]:
    """Return the point of all noise, and for vectors also the worst point of a column; both share alpha equally."""
    width = noise.shape[1]
    if width == 1:
        return [point(name, noise[:, 0], alpha)]
    own = [point(f"{name} of coordinate {i} of {width}", noise[:, i], alpha / (2 * width)) for i in sorted(columns)]
    return [point(name, noise.ravel(), alpha / 2), _worst(own)]


def _shape_points(
    values: Array, distribution: NoiseDistribution, allowed: tuple[float, float], shares: dict[str, float]
) -> list[Point]:
    """Return distances of the sorted noise from the nearest allowed distribution, cells of integers, and impossible
    values.
    """
    n = len(values)

    def nearest(distance: Callable[[NoiseDistribution], float]) -> float:
        return least(lambda value: distance(distribution.with_value(value)), allowed)

    # Rounding to the grid moves F by less than the grid, as no density exceeds 1/scale.
    found = nearest(lambda one: ks_distance(_on_grid(values, one), one.cdf, one.cdf_below))
    points = [_distance("Kolmogorov-Smirnov distance", found, ks_radius(n, alpha=shares["distance"]) + GRID)]
    if isinstance(distribution, GeometricNoise):
        points += _cell_points(values, distribution, allowed, shares["tails"])
    else:
        found = nearest(lambda one: ad_distance(one.log_cdf(values), one.log_sf(values)))
        points.append(_distance("Anderson-Darling distance", found, ad_radius(n, alpha=shares["tails"]) + GRID))
    if distribution.impossible:
        counts = np.array([np.count_nonzero(~distribution.with_value(allowed[1]).is_possible(values))])
        lower, upper = (float(end[0]) for end in cell_limits(counts, n, alpha=shares["support"]))
        at = f"share of {distribution.impossible}"
        points.append(Point(at=at, estimate=float(counts[0]) / n, lower=lower, upper=upper, high=0.0))
    return points


def _distance(at: str, found: float, radius: float) -> Point:
    return Point(at=at, estimate=found, lower=max(found - radius, 0.0), upper=found + radius, low=0.0, high=0.0)


def _on_grid(values: Array, distribution: NoiseDistribution) -> Array:
    """Round the noise of an integer distribution to integers, correcting errors of floating-point differences."""
    if not distribution.is_discrete:
        return values
    return np.where(distribution.is_possible(values), np.rint(values), values)


def _cell_points(
    values: Array, distribution: GeometricNoise, allowed: tuple[float, float], alpha: float
) -> list[Point]:
    """Return the worst probability among cells of integers and the even integers, and chi-square over all cells."""
    whole, cells = np.rint(values), distribution.cells(len(values))
    edges = np.searchsorted(whole, [first for first, _ in cells[1:]])
    inside = np.diff([0, *edges, len(whole)])
    squares = []
    if allowed[0] == allowed[1] and len(cells) > 1 and _CHI_SQUARE * alpha >= LEAST_SIMULATED:
        chances = np.array([distribution.cell_probability(*cell) for cell in cells])
        radius = chi_square_radius(len(values), tuple(chances.tolist()), alpha=_CHI_SQUARE * alpha)
        found = chi_square_distance(inside, chances)
        squares.append(_distance(f"chi-square distance of {len(cells)} cells", found, radius))
        alpha *= 1 - _CHI_SQUARE
    counts = np.append(inside, np.count_nonzero(whole % 2 == 0))
    lowers, uppers = cell_limits(counts, len(values), alpha=alpha)
    scales = np.linspace(*allowed, 65 if allowed[0] < allowed[1] else 1)
    distributions = [distribution.with_value(float(scale)) for scale in scales]
    chances = np.array(
        [[*(one.cell_probability(*cell) for cell in cells), one.even_probability()] for one in distributions]
    )
    # As the scale grows, the probability of a cell rises and falls at most once. Between two grid values it exceeds
    # both by at most its change between the neighbouring values.
    slack = np.abs(np.diff(chances, axis=0)).max(axis=0, initial=0.0) + 1e-12
    limits = np.stack([lowers, uppers, chances.min(axis=0) - slack, chances.max(axis=0) + slack], axis=1)
    points = []
    for words, count, limit in zip([*map(_words, cells), "an even number"], counts, limits.tolist(), strict=True):
        ends = dict(zip(("lower", "upper", "low", "high"), limit, strict=True))
        points.append(Point(at=f"probability of {words}", estimate=float(count) / len(values), **ends))
    return [_worst(points), *squares]


def _words(cell: tuple[float, float]) -> str:
    """Describe a range of integers, ends included."""
    first, last = cell
    if math.isinf(first) or math.isinf(last):
        return f"{last:.0f} or less" if math.isinf(first) else f"{first:.0f} or more"
    return f"{first:.0f}" if first == last else f"{first:.0f} to {last:.0f}"


def _notes(distribution: NoiseDistribution, scales: list[Point], biases: list[Point], shapes: list[Point]) -> list[str]:
    """Explain the consequences of the deviations for privacy and utility."""
    notes = []
    scale, bias = _worst(scales), _worst(biases)
    is_biased = bias.is_outside and (distribution.is_symmetric or not scale.is_outside)
    if is_biased:
        notes.append(
            f"the mean of the noise is off by {bias.estimate:.3g}: the outputs are biased, or `answer` is not the "
            "exact answer. Scale and shape are measured around `answer`, so the bias may explain their deviation"
        )
    if scale.is_outside:
        found = f"{scale.at} {scale.estimate:.4g}, claimed {distribution.value:.4g}{_guess(distribution, scale)}"
        if scale.upper < scale.low:
            notes.append(f"less noise than claimed ({found}): privacy is lost")
        else:
            notes.append(
                f"more noise than claimed ({found}): utility is lost; privacy is kept if the noise has the claimed "
                "shape"
            )
    if any(point.is_outside for point in shapes) and not is_biased:
        notes.append(
            "the shape is compared with the claimed distribution at its claimed scale, so the wrong scale may explain "
            "it"
            if scale.is_outside
            else "the scale fits but the shape does not: a guarantee based on this distribution fails for any scale"
        )
    return notes


def _guess(distribution: NoiseDistribution, point: Point) -> str:
    """Name a likely confusion if the scale is near a number that it explains."""
    value, wrong = distribution.value, []
    if distribution.parameter == "sigma":
        wrong += [
            (value**2, "its square, as if the variance were passed for the standard deviation"),
            (math.sqrt(value), "its square root, as if the standard deviation were passed for the variance"),
        ]
    wrong += [
        (1 / value, "its reciprocal, as if epsilon were passed for the scale"),
        (2 * value, "twice the claim"),
        (value / 2, "half the claim, as if a factor 2 of the sensitivity were missing"),
        (value * math.sqrt(2), "√2 times the claim"),
        (value / math.sqrt(2), "1/√2 times the claim, as if the claim were the standard deviation"),
    ]
    return next((f"; about {words}" for number, words in wrong if point.lower <= number <= point.upper), "")
