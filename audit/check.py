"""The audit itself: pilot runs choose an event, fresh runs are counted, the counts are tested."""

from __future__ import annotations

import math
import numbers
import secrets
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

import numpy as np
import scipy

from .adjacency import Adjacency
from .claims import ApproxDP, Claim, ClaimAtDistance, PureDP, claim_at
from .datasets import difference, is_empty, summarise
from .errors import ClaimError, DatasetError, MechanismError, OptionError
from .health import Finding, checks_to_ignore, examine, examine_order
from .inference.counts import Counts, check_alpha
from .inference.joint import check_test_alpha, joint_test, strength_lower
from .inference.planning import resolution as reached_resolution
from .mechanism import as_sampler
from .outputs import Outputs, are_equal, as_outputs
from .pilot import Pilot, pilot_notes, run_pilot, split_pilot
from .sampling import count_hits, plan_blocks
from .sketches import sketch
from .verdicts import AuditResult, Pair

_LEAST_RUNS = 40
_POWER = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    """What does not depend on where the outputs come from."""

    claim: Claim
    pair: Pair
    runs: int
    alpha: float
    resolution: float | None
    name: str


def check(
    mechanism: Any,
    x: Any,
    y: Any,
    *,
    claim: Claim | ClaimAtDistance,
    adjacency: Adjacency | None = None,
    distance: float = 1,
    runs: int = 1_000_000,
    alpha: float = 0.05,
    seed: int | None = 0,
    resolution: float | None = None,
    jobs: int | None = None,
    name: str | None = None,
    ignore: str | Iterable[str] = (),
    keep_datasets: bool = False,
    progress: Callable[[int], None] | None = None,
) -> AuditResult:
    """Audits a mechanism's claim on one pair of datasets.

    A mechanism that keeps its claim is refuted with probability at most `alpha`: over all events, both directions and
    every choice made here.

    Parameters
    ----------
    mechanism : callable or object
        ``f(dataset, size, rng)`` (draws `size` runs), an object with ``sample(dataset, size, rng)``, or a single run
        ``f(dataset, rng)`` or ``f(dataset)``. Outputs are numbers, vectors, or anything hashable.
    x, y : Any
        Neighbouring datasets, in whatever form the mechanism takes.
    claim : Claim or callable
        The guarantee at distance 1, or a function from the distance to a claim.
    adjacency : Adjacency, optional
        Checks the pair; without one the caller has declared the pair to be `distance` apart, and the result says so.
    distance : float
        Distance of the pair. Beyond 1 the claim's group version is audited.
    runs : int
        Runs on each dataset, those that choose the event included: one in twenty, at least 2,000 (half of a small
        number), and a third where the best event is rare.
    alpha : float
        Allowed probability of refuting a correct mechanism, in (0, 1).
    seed : int or None
        Fixes every number, whatever the workers; None draws one, which the result records.
    resolution : float, optional
        Excess of the claim's strength that the audit has to be able to find; too few runs for it are INCONCLUSIVE.
    jobs : int, optional
        Workers; by default what `joblib.parallel_config` says, or every core.
    name : str, optional
        Of the mechanism, for the result.
    ignore : str or iterable of str
        Health checks to silence.
    keep_datasets : bool
        Whether the result stores the datasets as text; otherwise only type, size and difference.
    progress : callable, optional
        Called with the number of runs just finished.

    Returns
    -------
    AuditResult

    Raises
    ------
    ClaimError, AdjacencyError, DatasetError, OptionError
        For arguments outside their range.
    MechanismError
        If the mechanism cannot be run, or every pilot run raises.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import AddRemove, PureDP, check
    >>> def noisy_count(rows, size, rng):
    ...     return len(rows) + rng.laplace(scale=0.8, size=size)
    >>> result = check(noisy_count, np.ones(3), np.ones(2), claim=PureDP(1.0), adjacency=AddRemove(), runs=100_000)
    >>> result.is_refuted, 1.2 < result.bound < 1.25
    (True, True)
    """
    started = time.perf_counter()
    sampler, distance, jobs = as_sampler(mechanism, name), _check_distance(distance), _check_jobs(jobs)
    if is_empty(x) and is_empty(y):
        raise DatasetError("both datasets are empty; pass one that holds the row in which neighbours differ.")
    if adjacency is not None:
        if not isinstance(adjacency, Adjacency):
            raise OptionError(
                f"adjacency={adjacency!r} is no neighbour relation; use an instance such as AddRemove() or Replace().",
                adjacency=adjacency,
            )
        adjacency.check(x, y, distance)
    settings = _Settings(
        claim=claim_at(claim, distance),
        pair=_pair(x, y, adjacency, distance, keep_datasets),
        runs=_check_runs(runs),
        alpha=check_test_alpha(alpha),
        resolution=_check_resolution(resolution),
        name=sampler.name,
    )
    ignored = checks_to_ignore(ignore)
    root = _check_seed(seed)
    plan = plan_blocks(sampler, x, y, root, jobs)
    pilot = run_pilot(plan, settings.claim, settings.runs, settings.alpha)
    is_replayable = are_equal(plan.draw("pilot", "x", 0, len(pilot.blocks_x[0])), pilot.blocks_x[0])
    if progress is not None:
        progress(2 * pilot.runs)
    sampled = time.perf_counter()
    shapes = {"x": pilot.blocks_x[0].shape[1:], "y": pilot.blocks_y[0].shape[1:]} if sampler.is_block else None
    main_x, main_y = count_hits(plan, pilot.choice.event, shapes, settings.runs - pilot.runs, progress=progress)
    counted = time.perf_counter()
    counts = Counts(
        hits_x=int(main_x.hits.sum()),
        runs_x=int(main_x.sizes.sum()),
        hits_y=int(main_y.hits.sum()),
        runs_y=int(main_y.sizes.sum()),
    )
    findings = examine((pilot.blocks_x, pilot.blocks_y), (main_x, main_y), ignored)
    result = _conclude(settings, pilot, counts, root, is_replayable, findings)
    finished = time.perf_counter()
    result.environment.update(
        {
            "seconds": round(finished - started, 3),
            "seconds_pilot": round(sampled - started, 3),
            "seconds_main": round(counted - sampled, 3),
            "seconds_test": round(finished - counted, 3),
        }
    )
    return result


def check_outputs(
    xs: Any,
    ys: Any,
    *,
    claim: Claim | ClaimAtDistance,
    distance: float = 1,
    alpha: float = 0.05,
    seed: int = 0,
    resolution: float | None = None,
    name: str = "outputs",
    ignore: str | Iterable[str] = (),
) -> AuditResult:
    """Audits a claim on outputs that were drawn elsewhere: `xs` on one dataset, `ys` on a neighbour.

    The outputs must be independent runs, which is checked as far as their order tells (sorted ones are taken as
    sorted later). A random part of them, fixed by `seed`, chooses the event; the rest is counted. A mechanism that
    keeps its claim is refuted with probability at most `alpha`.

    Parameters
    ----------
    xs, ys : array_like or sequence
        One output for each run: shape (runs,), (runs, n_coords), or a sequence of anything hashable. At least 40 each.

    Raises
    ------
    MechanismError
        For outputs of an unsupported type.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> result = check_outputs(rng.laplace(0, 1, 20_000), rng.laplace(1, 1, 20_000), claim=PureDP(0.5))
    >>> result.is_refuted
    True
    """
    started = time.perf_counter()
    root, distance = _check_seed(seed), _check_distance(distance)
    given = [_given(values, name) for values in (xs, ys)]
    findings = examine_order(given[0], given[1], checks_to_ignore(ignore))
    sides = [_shuffled(outputs, side, root) for side, outputs in enumerate(given)]
    runs = min(len(side) for side in sides)
    settings = _Settings(
        claim=claim_at(claim, distance),
        pair=Pair(
            x=f"{len(sides[0]):,} outputs",
            y=f"{len(sides[1]):,} outputs",
            difference="not seen",
            adjacency="declared neighbours by the caller",
            distance=distance,
        ),
        runs=_check_runs(runs),
        alpha=check_test_alpha(alpha),
        resolution=_check_resolution(resolution),
        name=name,
    )
    pilot, main_x, main_y = split_pilot(sides[0], sides[1], settings.claim, settings.runs, settings.alpha)
    counts = Counts(
        hits_x=pilot.choice.event.count(main_x),
        runs_x=len(main_x),
        hits_y=pilot.choice.event.count(main_y),
        runs_y=len(main_y),
    )
    result = _conclude(settings, pilot, counts, root, True, findings)
    result.environment["seconds"] = round(time.perf_counter() - started, 3)
    return result


def epsilon_lower(
    hits_x: int,
    runs_x: int,
    hits_y: int,
    runs_y: int,
    *,
    alpha: float,
    delta: float = 0.0,
    method: Literal["joint", "clopper-pearson"] = "joint",
) -> float:
    """Lower confidence bound on epsilon from bare counts of one event, at the given delta.

    If the mechanism is (ε, delta)-DP, the returned value exceeds ε with probability at most `alpha`, provided that the
    event and the direction (likelier on x) were chosen without looking at these runs.

    Parameters
    ----------
    hits_x, runs_x, hits_y, runs_y : int
        Runs inside the event and runs in all, on each dataset.
    alpha : float
        In (0, 1).
    delta : float
        In [0, 1).
    method : {"joint", "clopper-pearson"}
        The exact joint test, or for comparison two Clopper-Pearson limits at alpha/2 each, as other tools do.

    Examples
    --------
    >>> round(epsilon_lower(20, 10**6, 0, 10**6, alpha=0.05), 1)
    2.1
    >>> round(epsilon_lower(20, 10**6, 0, 10**6, alpha=0.05, method="clopper-pearson"), 1)
    1.2
    """
    counts = Counts(hits_x=hits_x, runs_x=runs_x, hits_y=hits_y, runs_y=runs_y)
    claim = ApproxDP(0.0, delta) if delta else PureDP(0.0)
    if method == "joint":
        return strength_lower(counts, claim, alpha=alpha)
    if method != "clopper-pearson":
        raise OptionError(f'method={method!r} is unknown; use "joint" or "clopper-pearson".', method=method)
    from statsmodels.stats.proportion import proportion_confint  # slow to import, and only for comparison

    low = proportion_confint(counts.hits_x, counts.runs_x, alpha=check_alpha(alpha), method="beta")[0]
    high = proportion_confint(counts.hits_y, counts.runs_y, alpha=alpha, method="beta")[1]
    return max(0.0, float(claim.strength_of(low, high)))


def _conclude(
    settings: _Settings,
    pilot: Pilot,
    counts: Counts,
    seed: int,
    is_replayable: bool,
    findings: tuple[Finding, ...],
) -> AuditResult:
    """The result of testing the counts of the chosen event."""
    choice, directed, claim = pilot.choice, counts, settings.claim
    if choice.likelier_on == "y":
        directed, claim = counts.swapped(), settings.claim.reversed()
    p_value, bound = joint_test(directed, claim, alpha=settings.alpha)
    q = (directed.hits_y + 0.5) / (directed.runs_y + 1.0)
    return AuditResult(
        mechanism=settings.name,
        claim=settings.claim,
        pair=settings.pair,
        event=choice.event,
        likelier_on=choice.likelier_on,
        counts=counts,
        alpha=settings.alpha,
        p_value=p_value,
        bound=bound,
        resolution=reached_resolution(claim, directed.runs_x, directed.runs_y, q, alpha=settings.alpha, power=_POWER),
        power=_POWER,
        requested_resolution=settings.resolution,
        runs=settings.runs,
        pilot_runs=pilot.runs,
        seed=seed,
        is_replayable=is_replayable,
        findings=findings,
        notes=pilot_notes(pilot.x, pilot.y),
        sketch=sketch(pilot.x, pilot.y),
        versions=_versions(),
    )


def _pair(x: Any, y: Any, adjacency: Adjacency | None, distance: float, keep: bool) -> Pair:
    return Pair(
        x=summarise(x),
        y=summarise(y),
        difference=difference(x, y) if adjacency is None else adjacency.difference(x, y),
        adjacency="declared neighbours by the caller" if adjacency is None else str(adjacency),
        distance=distance,
        contents=(repr(x), repr(y)) if keep else None,
    )


def _check_runs(runs: int) -> int:
    if not _is_whole(runs) or runs < _LEAST_RUNS:
        raise OptionError(f"runs={runs!r} is too few; use a whole number >= {_LEAST_RUNS} for each dataset.", runs=runs)
    return int(runs)


def _check_seed(seed: int | None) -> int:
    if seed is None:
        return secrets.randbits(63)
    if not _is_whole(seed) or seed < 0:
        raise OptionError(f"seed={seed!r} is no seed; use a whole number >= 0, or None for a fresh one.", seed=seed)
    return int(seed)


def _check_jobs(jobs: int | None) -> int | None:
    if jobs is not None and (not _is_whole(jobs) or jobs == 0):
        raise OptionError(f"jobs={jobs!r} is no number of workers; use 1 or more, or -1 for every core.", jobs=jobs)
    return jobs


def _check_distance(distance: float) -> float:
    number = float(distance)
    if not 0 < number < math.inf:
        raise ClaimError(f"distance={distance!r} is no distance; use a positive number.", distance=distance)
    return int(number) if number == int(number) else number


def _is_whole(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        return False
    number = float(value)
    return math.isfinite(number) and number == int(number)


def _check_resolution(resolution: float | None) -> float | None:
    if resolution is not None and not 0 < float(resolution) < math.inf:
        raise OptionError(
            f"resolution={resolution!r} is no excess; use a positive number in the units of the claim.",
            resolution=resolution,
        )
    return resolution


def _given(values: Any, name: str) -> Outputs:
    """Outputs made elsewhere, as an array."""
    if not hasattr(values, "__len__"):
        raise MechanismError(
            f"{name} of type {type(values).__name__} are no runs; pass an array or a list with one output a run.",
            mechanism=name,
        )
    return as_outputs(values, len(values), name)


def _shuffled(outputs: Outputs, side: int, seed: int) -> Outputs:
    """The outputs in random order, so that sorted ones serve as well."""
    rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(side,))))
    return outputs[rng.permutation(len(outputs))]


def _versions() -> tuple[tuple[str, str], ...]:
    try:
        own = version("dpaudit")
    except PackageNotFoundError:  # run from a source tree that is not installed
        own = "not installed"
    python = ".".join(map(str, sys.version_info[:3]))
    return (("dpaudit", own), ("python", python), ("numpy", np.__version__), ("scipy", scipy.__version__))
