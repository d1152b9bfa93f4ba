"""Checks of the options of an audit; each error names an allowed value."""

from __future__ import annotations

import math
import numbers
import secrets
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from .errors import ClaimError, OptionError

LEAST_RUNS = 40
"""Fewest runs on each dataset that an audit can split into a pilot and a test."""
LEAST_SEARCH = 400
"""Fewest executions of a search for the worst pair."""
LEAST_EVALUATIONS = 40
"""Fewest evaluations of a query in a search for its sensitivity."""
_MOST_CELLS = 128


def check_runs(runs: Any) -> int:
    """Return a whole number of runs, at least `LEAST_RUNS`."""
    if not is_whole(runs) or runs < LEAST_RUNS:
        is_few = _number(runs) < LEAST_RUNS
        what = "too few" if is_few else "not a number of runs"
        raise OptionError(f"runs={runs!r} is {what}; use a whole number >= {LEAST_RUNS} for each dataset.", runs=runs)
    return int(runs)


def check_seed(seed: int | None) -> int:
    """Return the random seed; draw one if it is None."""
    if seed is None:
        return secrets.randbits(63)
    if not is_whole(seed) or seed < 0:
        raise OptionError(f"seed={seed!r} is not a seed; use a whole number >= 0, or None for a fresh seed.", seed=seed)
    return int(seed)


def check_jobs(jobs: int | None) -> int | None:
    """Return the number of workers: −1 uses every core, None leaves the number to joblib."""
    if jobs is not None and (not is_whole(jobs) or not (jobs >= 1 or jobs == -1)):
        raise OptionError(f"jobs={jobs!r} is not a number of workers; use 1 or more, or -1 for every core.", jobs=jobs)
    return jobs


def check_search_runs(search_runs: int) -> int:
    """Return a whole number of executions, at least `LEAST_SEARCH`."""
    if not is_whole(search_runs) or search_runs < LEAST_SEARCH:
        raise OptionError(
            f"search_runs={search_runs!r} is not a possible number of executions; use {LEAST_SEARCH} or more.",
            search_runs=search_runs,
        )
    return int(search_runs)


def check_evaluations(evaluations: int) -> int:
    """Return a whole number of evaluations of a query, at least `LEAST_EVALUATIONS`."""
    if not is_whole(evaluations) or evaluations < LEAST_EVALUATIONS:
        raise OptionError(
            f"evaluations={evaluations!r} is not a possible number of evaluations; use a whole number >= "
            f"{LEAST_EVALUATIONS}.",
            evaluations=evaluations,
        )
    return int(evaluations)


def check_progress(progress: Progress) -> Progress:
    """Return whether progress is shown, or the function that is told of it."""
    if progress is None or isinstance(progress, bool) or callable(progress):
        return progress
    raise OptionError(
        f"progress={progress!r} is unknown; use a bool, or a function of the number of runs just finished.",
        progress=progress,
    )


def check_distance(distance: float) -> float:
    """Return a positive distance, as an int if it is whole."""
    number = _number(distance)
    if not 0 < number < math.inf:
        raise ClaimError(f"distance={distance!r} is not a distance; use a positive number.", distance=distance)
    return int(number) if number == int(number) else number


def check_resolution(resolution: float | None) -> float | None:
    """Return a positive excess, or None."""
    if resolution is None:
        return None
    if not 0 < _number(resolution) < math.inf:
        raise OptionError(
            f"resolution={resolution!r} is not an excess; use a positive number in the units of the claim.",
            resolution=resolution,
        )
    return float(resolution)


def check_cells(cells: int, sequential: bool = False) -> int:
    """Return the number of cells; 0 means no cells."""
    if cells and sequential:
        raise OptionError("cells need a fixed number of runs; use sequential=False.", cells=cells)
    if not is_whole(cells) or cells < 0 or cells == 1 or cells > _MOST_CELLS:
        raise OptionError(
            f"cells={cells!r} is not a number of cells; use a whole number from 2 to {_MOST_CELLS}, such as 32, or 0.",
            cells=cells,
        )
    return int(cells)


def check_claim_source(claim_source: str) -> str:
    """Return the source of the claim, a string that may be empty."""
    if not isinstance(claim_source, str):
        raise OptionError(
            f"claim_source={claim_source!r} is not a string; name the source of the claim.", claim_source=claim_source
        )
    return claim_source


def check_name(name: str | None) -> str | None:
    """Return the name of a mechanism, or None for the mechanism's own."""
    if name is not None and (not isinstance(name, str) or not name.strip() or not name.isprintable()):
        raise OptionError(
            f"name={name!r} is not a name; use one line of text, or None for the mechanism's own.", name=name
        )
    return name


def check_flag(flag: bool, option: str) -> bool:
    """Return the value of an option that is either True or False."""
    if not isinstance(flag, (bool, np.bool_)):
        raise OptionError(f"{option}={flag!r} is unknown; use a bool.", **{option: flag})
    return bool(flag)


def check_sequential(sequential: bool, on_look: Callable[..., Any] | None) -> bool:
    """Return whether an audit may stop early; only such an audit has looks of which `on_look` can be told."""
    if not check_flag(sequential, "sequential") and on_look is not None:
        raise OptionError("on_look is for sequential audits, because no other has looks; use sequential=True.")
    return bool(sequential)


def check_guide(guide: str | None) -> str | None:
    """Return what guides a search for the worst pair, or None."""
    if guide is not None and guide != "replay":
        raise OptionError(f'guide={guide!r} is unknown; use "replay", or None.', guide=guide)
    return guide


def check_listener(listener: Callable[..., Any] | None, option: str) -> Callable[..., Any] | None:
    """Return the function that an audit or a search tells of its progress, or None."""
    if listener is not None and not callable(listener):
        raise OptionError(f"{option}={listener!r} cannot be called; use a function, or None.", **{option: listener})
    return listener


def check_bits(bits: Bits) -> Bits:
    """Return how the audit treats low bits (see `Bits`)."""
    if isinstance(bits, (bool, np.bool_)):
        return bool(bits)
    if not (isinstance(bits, str) and bits == "warn"):
        raise OptionError(f'bits={bits!r} is unknown; use "warn", True or False.', bits=bits)
    return bits


def check_power(power: float) -> float:
    """Return the target power, strictly between 0 and 1."""
    if not 0.0 < _number(power) < 1.0:
        raise OptionError(f"power={power!r} is not a power; use 0 < power < 1, such as 0.95.", power=power)
    return float(power)


def check_seconds(seconds: float | None, runs: int | None, *, sequential: bool) -> float | None:
    """Return the positive time limit of a sequential audit; `runs` must be given if the limit is infinite."""
    if seconds is None:
        return None
    if not sequential:
        raise OptionError(
            f"seconds={seconds!r} is for sequential audits, because an audit of fixed size that stops early has no "
            "valid bound; use sequential=True.",
            seconds=seconds,
        )
    if not _number(seconds) > 0.0:
        raise OptionError(f"seconds={seconds!r} is not a time limit; use a positive number.", seconds=seconds)
    if runs is None and seconds == math.inf:
        raise OptionError("seconds=inf without runs would never end; set runs or a finite time limit.", seconds=seconds)
    return float(seconds)


def check_block_seconds(block_seconds: float | None) -> float | None:
    """Return the positive time limit of each block; None for no limit, as infinity is."""
    if block_seconds is None or block_seconds == math.inf:
        return None
    if not 0.0 < _number(block_seconds) < math.inf:
        raise OptionError(
            f"block_seconds={block_seconds!r} is not a time limit; use a positive number.", block_seconds=block_seconds
        )
    return float(block_seconds)


def _number(value: Any) -> float:
    """Return the value as a float, or NaN, which fails every check, if it is not a number."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    try:
        return float(value) if is_number else math.nan
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number, such as 5 or 5.0, and no bool."""
    if isinstance(value, numbers.Integral):
        return not isinstance(value, (bool, np.bool_))
    number = _number(value)
    return math.isfinite(number) and number == int(number)


Progress = bool | Callable[[int], None] | None
"""Whether progress is shown on standard error, or a function that receives the number of runs just finished."""

Bits = Literal["warn"] | bool
"""True includes low bits in the search and the verdict, "warn" only tests them for a warning, False ignores them."""
