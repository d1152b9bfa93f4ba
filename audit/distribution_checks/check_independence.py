"""Check that noise is independent between coordinates, runs and calls.

Proof: docs/proofs/statements.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ..claims.claim import Array
from ..events.outputs import Outputs, merge
from ..floating_point_errors import with_own_arithmetic
from ..health.findings import HealthCheck, checks_to_ignore
from ..known_options import with_known_options
from ..options import Progress, checked_seed
from ..random_streams import Stream, seed_of_coins, sequence_of
from ..results.statement_result import Point, StatementResult
from ..sampling.sampler import Sampler, as_sampler
from .check_noise import HALVES, as_matrix, draw_runs

_FEATURES = ("values", "distances from the median")
_LEAST = 16  # runs of a block: two calls of 8, which have successive runs, also of the 20 runs of a half of the fewest
_LARGEST_TAIL = 0.008  # the normal tail beyond 2.4 standard deviations, where the threshold is conservative


@with_known_options()
@with_own_arithmetic
def check_independence(
    mechanism: Any,
    dataset: Any,
    *,
    runs: int = 100_000,
    alpha: float = 0.01,
    seed: int | None = 0,
    jobs: int | None = None,
    name: str | None = None,
    ignore: str | Iterable[str] = (),
    progress: Progress = None,
) -> StatementResult:
    """Check that a mechanism's noise is independent between coordinates, runs and calls.

    A mechanism with independent noise is refuted with probability at most `alpha`, for any distributions of the
    coordinates. The check compares numbers that should be independent:

    - two coordinates of a vector output;
    - a coordinate of one run and a coordinate of the next run;
    - for a vectorised mechanism, a run of one call and the same run of the next call with the same generator, which are
      alike if the mechanism keeps or reuses noise;
    - a run of one call and the same run of a call with another generator, which are alike if the mechanism fixes a
      seed.

    For each pair the check computes Spearman's correlations of the values, of their distances from the median, and of
    values with distances, so that it detects noise with only a fresh sign. Ties are broken at random. Under
    independence the ranks of one number are then in random order given the ranks of the other, and the correlation r
    has the same distribution for all mechanisms. The threshold is that of the normal distribution for r√(n − 1), which
    is conservative beyond 2.4 standard deviations. The kinds of pairs share alpha equally, and so do the pairs of a
    kind. The result reports the largest correlation of each kind. Its interval is the correlation ∓ the threshold; it
    holds under independence and serves to refute it.

    Parameters
    ----------
    mechanism : callable or object
        As in `check`; its outputs are numbers or vectors.
    dataset : Any
        Dataset that the mechanism is run on, in any form that it takes.
    runs : int
        At least 40. Correlations of about 5/√runs or more are detectable.
    alpha : float
        Allowed probability of refuting a mechanism whose noise is independent, below 1/2.
    seed, jobs, name, ignore, progress : optional
        As in `check`.

    Returns
    -------
    StatementResult
        Inconclusive if the outputs never vary, if so few runs show no correlation of a kind of pairs, however large, if
        the mechanism changes its dataset, or if no correlation is found and a health check fails nevertheless. A
        constant coordinate is omitted and noted.

    Raises
    ------
    MechanismError
        If the mechanism cannot be run, or returns anything but finite numbers.

    See Also
    --------
    check_noise : Scale and shape of the noise.
    check : Audit of the privacy claim itself.

    References
    ----------
    Hotelling & Pabst (1936), Rank correlation and tests of significance involving no assumption of normality.

    Examples
    --------
    >>> import numpy as np
    >>> def histogram(counts, size, rng):  # one noise for all cells
    ...     return np.array(counts) + rng.laplace(size=(size, 1))
    >>> result = check_independence(histogram, (3, 5), runs=10_000)
    >>> result.is_refuted, result.worst.at
    (True, 'coordinates: values of 0 and values of 1')
    """
    sampler, seed = as_sampler(mechanism, name), checked_seed(seed)
    twice = replace(sampler, call=cast(Any, _TwoCalls(sampler))) if sampler.is_block else sampler
    drawn = draw_runs(twice, dataset, runs, seed, jobs, progress, checks_to_ignore(ignore), least=_LEAST)
    sides = [[part for block in blocks for part in _calls(block, sampler.is_block)] for blocks in drawn.blocks]
    outputs = as_matrix(np.concatenate(merge(*sides)), sampler.name)
    calls = np.split(outputs, np.cumsum([len(part) for side in sides for part in side])[:-1])
    varying = np.flatnonzero((outputs != outputs[0]).any(axis=0))
    every = _kinds(outputs, calls, len(sides[0]), sampler.is_block)
    kinds = [kind for kind in every if len(varying) > kind.is_within]
    rng = np.random.default_rng(sequence_of(seed_of_coins(seed, outputs.tobytes()), Stream.TIES))
    points = [_largest(kind, varying, alpha / len(kinds), rng) for kind in kinds]
    notes = [kind.meaning for kind, point in zip(kinds, points, strict=True) if point.is_outside]
    is_shown = bool(notes)
    if len(varying) < outputs.shape[1]:
        still = sorted({*range(outputs.shape[1])} - {*varying.tolist()})
        what = "the output" if outputs.shape[1] == 1 else f"output coordinate {', '.join(map(str, still))}"
        notes.append(f"{what} never varies, so its noise cannot be checked; make sure that the mechanism adds noise")
    # A changed dataset depends on earlier runs, the noise need not.
    findings = tuple(each for each in drawn.findings if each.check is HealthCheck.DATASET_MUTATED or not is_shown)
    notes += [HALVES] * bool(findings)
    return replace(drawn, sampler=sampler, findings=findings).stated(
        statement=f"The noise of {sampler.name} is independent between coordinates, runs and calls.",
        quantity="correlation",
        points=points or [Point(estimate=math.nan, lower=-math.inf, upper=math.inf, low=0.0, high=0.0)],
        alpha=alpha,
        method="Spearman's correlations of values and of distances from the median, ties broken at random, normal "
        "distribution",
        notes=notes,
    )


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of pairs of runs; `pairings` lists their first and second outputs, each of shape (pairs, n_coords)."""

    name: str
    meaning: str
    pairings: tuple[tuple[Array, Array], ...]
    is_within: bool = False  # the pair is one run, of which two coordinates are compared


@dataclass(frozen=True, slots=True)
class _TwoCalls:
    """Draws a block in two successive calls with one generator; `_calls` splits it again."""

    sampler: Sampler
    size_name: str = "size"  # it draws blocks
    is_one_by_one: bool = False

    @property
    def function(self) -> Callable[..., Any]:
        return self.sampler.function

    def __call__(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        first = self.sampler.draw(dataset, size - size // 2, rng)
        second = self.sampler.draw(dataset, size // 2, rng) if size > 1 else first[:0]
        return np.concatenate(merge([first], [second]))


def _calls(block: Outputs, is_twice: bool) -> list[Outputs]:
    return np.split(block, [len(block) - len(block) // 2]) if is_twice else [block]


def _kinds(outputs: Array, calls: list[Array], n_first: int, is_twice: bool) -> list[_Kind]:
    """Return the kinds of pairs; the first `n_first` calls had other generators than the rest."""
    whole = np.concatenate
    within = "coordinates of one output share noise: together they reveal more than is accounted for each"
    kinds = [_Kind("coordinates", within, ((outputs, outputs),), is_within=True)]
    # Each run is in only one pair of a pairing, so that the pairs are independent.
    steps = [(whole([c[s:-1:2] for c in calls]), whole([c[s + 1 :: 2] for c in calls])) for s in (0, 1)]
    depend = "successive runs depend on each other: the mechanism keeps state or reuses noise from run to run"
    kinds.append(_Kind("successive runs", depend, tuple(steps)))
    if is_twice:
        firsts = [one[: len(two)] for one, two in zip(calls[::2], calls[1::2], strict=True)]
        share = "successive calls with the same generator share noise: the mechanism keeps or reuses it"
        kinds.append(_Kind("successive calls", share, ((whole(firsts), whole(calls[1::2])),)))
    fixed = "calls with different generators share noise: the mechanism fixes a seed"
    others = whole(calls[:n_first]), whole(calls[n_first:])
    return [*kinds, _Kind("calls with other generators", fixed, (others,))]


def _largest(kind: _Kind, varying: npt.NDArray[np.int64], alpha: float, rng: np.random.Generator) -> Point:
    """Return the correlation of a kind that is largest relative to its threshold, among the varying columns."""
    width, n_columns = len(varying), kind.pairings[0][0].shape[1]
    per_pairing = 2 * width * (width - 1) if kind.is_within else 4 * width**2
    z = -float(ndtri(min(alpha / (2 * per_pairing * len(kind.pairings)), _LARGEST_TAIL)))
    found = []
    for first, second in kind.pairings:
        one = _ranks(first[:, varying], rng)
        r = one @ (one if kind.is_within else _ranks(second[:, varying], rng)).T
        if kind.is_within:  # not a column with itself
            column = np.arange(2 * width) % width
            r[column[:, None] == column] = 0.0
        i, j = divmod(int(np.abs(r).round(9).argmax()), 2 * width)  # the first of equal maxima, despite rounding errors
        found.append((abs(r[i, j]) * math.sqrt(len(first) - 1), float(r[i, j]), z / math.sqrt(len(first) - 1), i, j))
    _, r_most, radius, i, j = max(found)
    is_tested = radius < 1.0  # else the largest correlation would not be found
    names = [_FEATURES[k // width] + (f" of {varying[k % width]}" if n_columns > 1 else "") for k in (i, j)]
    return Point(
        at=f"{kind.name}: {names[0]} and {names[1]}",
        estimate=min(max(r_most, -1.0), 1.0),
        lower=max(min(r_most, 1.0) - radius, -1.0) if is_tested else -math.inf,
        upper=min(max(r_most, -1.0) + radius, 1.0) if is_tested else math.inf,
        low=0.0,
        high=0.0,
    )


def _ranks(columns: Array, rng: np.random.Generator) -> Array:
    """Return ranks of the columns, then of their distances from their medians, centred and of length 1.

    The shape is (2 columns, rows). Ties are broken at random, separately in each column: a common order of ties would
    correlate the columns.
    """
    n = len(columns)
    features = np.concatenate([columns.T, np.abs(columns - np.median(columns, axis=0)).T])
    ranks = np.empty(features.shape)
    for feature, rank in zip(features, ranks, strict=True):
        order = np.argsort(feature)
        ordered = feature[order]
        if (ordered[1:] == ordered[:-1]).any():
            order = np.lexsort((rng.random(n), feature))
        rank[order] = np.arange(n)
    return (ranks - (n - 1) / 2) / math.sqrt(n * (n * n - 1.0) / 12)
