"""What an audit may be asked for: every option checked once, with an error that says what to pass instead."""

from __future__ import annotations

import math
import numbers
import secrets
from typing import Any, Literal

import numpy as np

from .errors import ClaimError, OptionError

LEAST_RUNS = 40
"""Fewest runs on each dataset that an audit can split into learning and testing."""
_MOST_CELLS = 128


def check_runs(runs: int) -> int:
    """A whole number of runs that an audit can be made of."""
    if not _is_whole(runs) or runs < LEAST_RUNS:
        raise OptionError(f"runs={runs!r} is too few; use a whole number >= {LEAST_RUNS} for each dataset.", runs=runs)
    return int(runs)


def check_seed(seed: int | None) -> int:
    """The seed, drawn where it is None."""
    if seed is None:
        return secrets.randbits(63)
    if not _is_whole(seed) or seed < 0:
        raise OptionError(f"seed={seed!r} is no seed; use a whole number >= 0, or None for a fresh one.", seed=seed)
    return int(seed)


def check_jobs(jobs: int | None) -> int | None:
    """A number of workers; −1 is for every core, None for what joblib is told."""
    if jobs is not None and (not _is_whole(jobs) or not (jobs >= 1 or jobs == -1)):
        raise OptionError(f"jobs={jobs!r} is no number of workers; use 1 or more, or -1 for every core.", jobs=jobs)
    return jobs


def check_distance(distance: float) -> float:
    """A positive distance, an int where it is whole."""
    number = _number(distance)
    if not 0 < number < math.inf:
        raise ClaimError(f"distance={distance!r} is no distance; use a positive number.", distance=distance)
    return int(number) if number == int(number) else number


def check_resolution(resolution: float | None) -> float | None:
    """A positive excess; None asks for none."""
    if resolution is None:
        return None
    if not 0 < _number(resolution) < math.inf:
        raise OptionError(
            f"resolution={resolution!r} is no excess; use a positive number in the units of the claim.",
            resolution=resolution,
        )
    return float(resolution)


def check_cells(cells: int, sequential: bool = False) -> int:
    """The number of cells; 0 asks for none."""
    if cells and sequential:
        raise OptionError("cells are counted in a fixed number of runs; use sequential=False.", cells=cells)
    if not _is_whole(cells) or cells < 0 or cells == 1 or cells > _MOST_CELLS:
        raise OptionError(
            f"cells={cells!r} is no number of cells; use a whole number from 2 to {_MOST_CELLS}, such as 32, or 0.",
            cells=cells,
        )
    return int(cells)


def check_claim_source(claim_source: str) -> str:
    """Text, or nothing."""
    if not isinstance(claim_source, str):
        raise OptionError(
            f"claim_source={claim_source!r} is no text; say in words where the claim is from.",
            claim_source=claim_source,
        )
    return claim_source


def check_bits(bits: Bits) -> Bits:
    """Whether low bits belong to the verdict, or are warned of."""
    if not (isinstance(bits, bool) or bits == "warn"):
        raise OptionError(f'bits={bits!r} is unknown; use "warn", True or False.', bits=bits)
    return bits


def check_power(power: float) -> float:
    """A probability between 0 and 1."""
    if not 0.0 < _number(power) < 1.0:
        raise OptionError(f"power={power!r} is no probability to aim at; use 0 < power < 1, such as 0.95.", power=power)
    return float(power)


def check_seconds(seconds: float | None, runs: int | None, *, sequential: bool) -> float | None:
    """A positive time limit, of a sequential audit only; infinite where the runs end it, and None for no limit."""
    if seconds is None:
        return None
    if not sequential:
        raise OptionError(
            f"seconds={seconds!r} needs sequential=True: an audit of fixed size that stops early has no valid bound.",
            seconds=seconds,
        )
    if not _number(seconds) > 0.0:
        raise OptionError(f"seconds={seconds!r} is no time limit; use a positive number.", seconds=seconds)
    if runs is None and seconds == math.inf:
        raise OptionError("seconds=inf and no runs would never end; give one of them.", seconds=seconds)
    return float(seconds)


def check_block_seconds(block_seconds: float | None) -> float | None:
    """A positive time limit for each block; None is for no limit."""
    if block_seconds is not None and not 0.0 < _number(block_seconds) < math.inf:
        raise OptionError(
            f"block_seconds={block_seconds!r} is no time limit; use a positive number.", block_seconds=block_seconds
        )
    return None if block_seconds is None else float(block_seconds)


def _number(value: Any) -> float:
    """The value as a float; NaN, which fails every rule, where it is no number."""
    return float(value) if isinstance(value, numbers.Real) else math.nan


def _is_whole(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        return False
    number = float(value)
    return math.isfinite(number) and number == int(number)


Bits = Literal["warn"] | bool
"""Whether low bits belong to the search and the verdict, are looked at and warned of, or are left alone."""
