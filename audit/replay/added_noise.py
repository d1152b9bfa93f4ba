"""Noise that is added outside of its primitive: how far the outputs moved under it.

In ``answer + rng.laplace(scale=s)`` the primitive is not given the answer. With the same noise put back, the outputs on
x and y differ by the move of the answer. To learn what the noise does to the output, each number drawn is changed and
the run repeated: where the output is affine in the noise at all values tried, with the same factors on x and y, the
move of the output is a move of the noise's location.

Proof: docs/proofs/replay.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .laws import Array, Law
from .replayed_call import ReplayedCall

Flags = npt.NDArray[np.bool_]
Rerun = Callable[[str, Mapping[int, Any]], Array | None]
"""The numbers of the output on "x" or "y" with other values for some calls; None if the run took another path."""

MOST_NUMBERS: Final = 64
"""Most drawn numbers that are changed one at a time; more only if they are as many as the outputs."""
_STEPS: Final = (3.0, -2.0, -0.5, 0.7)  # scales; the first determines the factors, as the largest
_WHOLE_STEPS: Final = (3, -2, -1, 1)
_FAR_STEPS: Final = (40, -40, 1000, -1000)  # beyond the reach of what clips the output or decides something
_LEVELS: Final = (1e-12, 1e-3, 0.2, 0.5, 0.8, 0.999, 1.0 - 1e-12)
"""Quantiles at which other draws are tried."""
_ROUNDING: Final = 1e-5  # outputs may be rounded to a grid of 2**-20 scales


@dataclass(frozen=True, slots=True, eq=False)
class OutputMove:
    """What the outputs show about noise whose location was not handed over.

    `calls` are all calls, with inferred locations where they could be inferred. `unprotected` are the coordinates of
    the output that differ although no change of a draw affects them.
    """

    calls: tuple[ReplayedCall, ...]
    unprotected: tuple[int, ...] = ()
    is_explained: bool = False
    """Whether the move of the output is that of the inferred locations."""
    is_local: bool = False
    """Whether that holds near the recorded values only, since the output is not affine in the noise farther away."""
    is_too_long: bool = False
    """Whether there are more numbers than `MOST_NUMBERS`, so that none was changed."""


def infer_locations(calls: tuple[ReplayedCall, ...], x: Array, y: Array, rerun: Rerun) -> OutputMove:
    """Return the calls with the locations that the outputs `x` and `y`, equal in length, imply."""
    found = _factors(calls, len(x), rerun)
    if found is None:
        return OutputMove(calls, is_too_long=True)
    factors, others, is_local = found
    distance = _difference(y, x)
    noisy = np.any([np.any(part, axis=1) for sides in factors.values() for part in sides] or [others], axis=0)
    free = np.flatnonzero((distance != 0.0) & ~others & ~noisy)
    if len(free):
        return OutputMove(calls, unprotected=tuple(map(int, free)))
    if np.any(others & (noisy | (distance != 0.0))):
        return OutputMove(calls)
    if all(_agree(*sides) for sides in factors.values()):
        shifts = _shifts({number: on_x for number, (on_x, _) in factors.items()}, distance)
        inferred = None if shifts is None else {i: _shifted(calls[i], each) for i, each in shifts.items()}
    else:
        inferred = _scaled(calls, factors, x, y)
    if inferred is None:
        return OutputMove(calls)
    explained = tuple(inferred.get(i, call) for i, call in enumerate(calls))
    return OutputMove(explained, is_explained=not is_local, is_local=is_local)


def _difference(y: Array, x: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, y - x)


def _is_added(call: ReplayedCall) -> bool:
    scale = call.law_on_x.scale
    return call.is_bare and call.law_on_x.is_shifted and scale is not None and bool(np.all(scale > 0.0))


Sides = tuple[Array, Array]


def _factors(
    calls: tuple[ReplayedCall, ...], n_outputs: int, rerun: Rerun
) -> tuple[dict[int, Sides], Flags, bool] | None:
    """Return the factors of added noise on x and y by call, and the coordinates that other draws affect.

    Factors have the shape (outputs, drawn numbers). Noise that is not added in an affine way counts among the other
    draws; the third value says whether it is affine near the recorded values only. None if there are too many numbers
    to change.
    """
    factors: dict[int, Sides] = {}
    others = np.zeros(n_outputs, dtype=bool)
    tried, is_local = 0, False
    for number, call in enumerate(calls):
        size = math.prod(call.law_on_x.shape)
        if _is_added(call) and size == n_outputs > 1:
            joint = _joint(number, call, rerun)
            if joint is not None:
                factors[number] = joint
                continue
        tried += size
        if tried > MOST_NUMBERS:
            return None
        held = np.zeros((2, n_outputs, size))
        for place in range(size):
            if not _is_added(call):
                others |= _affected(number, call, place, n_outputs, rerun)
                continue
            columns, affected, is_near = _columns(number, call, place, n_outputs, rerun)
            is_local |= is_near
            if columns is None:
                others |= affected
            else:
                held[0, :, place], held[1, :, place] = columns
        if _is_added(call):
            factors[number] = held[0], held[1]
    return factors, others, is_local


def _agree(a: Array, b: Array) -> bool:
    return bool(np.all(np.abs(a - b) <= _ROUNDING * np.abs(a).max(initial=0.0)))


def _changed(call: ReplayedCall, place: int, step: float) -> Any:
    value = np.array(call.value)
    flat = value.reshape(-1)
    flat[place] = flat[place] + step
    return value if np.ndim(call.value) else flat[0].item()


def _columns(
    number: int, call: ReplayedCall, place: int, n_outputs: int, rerun: Rerun
) -> tuple[Sides | None, Flags, bool]:
    """Return the factors of one number of added noise, the coordinates it affects, and whether they hold nearby only.

    No factors if the output is not affine in the number near its recorded value.
    """
    scale = float(np.ravel(call.law_on_x.scale)[place])  # type: ignore[arg-type]
    is_whole = call.law_on_x.is_integer_valued
    columns, affected, is_local = [], np.zeros(n_outputs, dtype=bool), False
    for side in ("x", "y"):
        slopes = []
        base = rerun(side, {})
        for step in (*(_WHOLE_STEPS if is_whole else _STEPS), *_FAR_STEPS):
            by = step if is_whole else step * scale
            out = rerun(side, {number: _changed(call, place, by)})
            if base is None or out is None or out.shape != (n_outputs,) or base.shape != (n_outputs,):
                return None, np.ones(n_outputs, dtype=bool), False
            slopes.append(_difference(out, base) / by)
        affected |= np.any(np.array(slopes) != 0.0, axis=0)
        is_near = all(_agree(slopes[0], each) for each in slopes[: len(_STEPS)])
        is_local |= is_near and not all(_agree(slopes[0], each) for each in slopes)
        columns.append(slopes[0] if is_near else None)
    if columns[0] is None or columns[1] is None:
        return None, affected, False
    if is_local:
        affected &= (columns[0] == 0.0) | (columns[1] == 0.0)  # changes only far away
        return ((columns[0], columns[1]) if not affected.any() else None), affected, is_local
    return (columns[0], columns[1]), affected, is_local


def _affected(number: int, call: ReplayedCall, place: int, n_outputs: int, rerun: Rerun) -> Flags:
    """Return the coordinates that change with a number at other values of its law; all if the law is not known."""
    values = _other_values(call, place)
    found = np.full(n_outputs, values is None)
    for side in ("x", "y"):
        base = rerun(side, {})
        for other in values or ():
            out = rerun(side, {number: other})
            if base is None or out is None or out.shape != base.shape:
                return np.ones(n_outputs, dtype=bool)
            found |= _difference(out, base) != 0.0
    return found


def _other_values(call: ReplayedCall, place: int) -> list[Any] | None:
    """Return the value with one of its numbers at other quantiles of its law; None if they are not known."""
    law = call.law_on_x
    if law.name == "discrete":
        levels = np.flatnonzero(np.asarray(law.parameters["probabilities"]) > 0.0)
        levels = levels[np.unique(np.linspace(0, len(levels) - 1, 16).round().astype(int))]
    elif law.is_known and not law.after:
        with np.errstate(all="ignore"):
            rows = law.frozen().ppf(np.array(_LEVELS).reshape((-1,) + (1,) * len(law.shape)))
        levels = np.array([np.broadcast_to(row, law.shape).reshape(-1)[place] for row in rows])
        levels = levels[np.isfinite(levels)]
    else:
        return None
    values = []
    for level in levels:
        value = np.array(call.value)
        value.reshape(-1)[place] = level
        values.append(value if np.ndim(call.value) else value.item())
    return values


def _joint(number: int, call: ReplayedCall, rerun: Rerun) -> Sides | None:
    """Return the factors of a vector of noise that is added number by number, as diagonal matrices; None if not."""
    scale, shape = np.ravel(call.law_on_x.scale), call.law_on_x.shape  # type: ignore[arg-type]
    is_whole, value = call.law_on_x.is_integer_valued, np.asarray(call.value)
    diagonals = []
    for side in ("x", "y"):
        base, slopes = rerun(side, {}), []
        for turn, step in enumerate((*(_WHOLE_STEPS if is_whole else _STEPS), *_FAR_STEPS)):
            signs = np.where(np.arange(scale.size) % (turn + 2) == 0, 1.0, -1.0)
            steps = step * signs * (1.0 if is_whole else scale)
            out = rerun(side, {number: (value + steps.reshape(shape)).astype(value.dtype)})
            if base is None or out is None or out.shape != scale.shape or base.shape != scale.shape:
                return None
            slopes.append(_difference(out, base) / steps)
        if not all(_agree(slopes[0], each) for each in slopes):
            return None
        diagonals.append(np.diag(slopes[0]))
    return diagonals[0], diagonals[1]


def _shifts(factors: dict[int, Array], distance: Array) -> dict[int, Array] | None:
    """Return by how much each noise must shift for the outputs to agree, if there is exactly one way; else None."""
    if not factors:
        return None
    matrix = np.concatenate(list(factors.values()), axis=1)
    if not np.any(matrix != 0.0, axis=0).all() or not np.isfinite(distance).all():
        return None  # a draw that does not show in the output may decide something
    shift, _, rank, _ = np.linalg.lstsq(matrix, distance, rcond=None)
    if rank < matrix.shape[1]:
        return None
    if not np.allclose(matrix @ shift, distance, rtol=1e-6, atol=1e-9 * np.abs(distance).max(initial=0.0)):
        return None
    ends = np.cumsum([part.shape[1] for part in factors.values()])[:-1]
    return dict(zip(factors, np.split(shift, ends), strict=True))


def _shifted(call: ReplayedCall, shift: Array) -> ReplayedCall:
    """Return the call with location 0 on x and the shift as its location on y."""
    law = call.law_on_x
    rounded = np.round(shift, 6) if law.is_integer_valued else shift
    at = np.where(np.abs(rounded) <= _ROUNDING * np.ravel(law.scale), 0.0, rounded).reshape(law.shape)  # type: ignore[arg-type]
    laws = [Law(law.name, {**law.parameters, "location": each}, law.shape) for each in (np.zeros(law.shape), at)]
    return replace(call, law_on_x=laws[0], law_on_y=laws[1], is_inferred=True)


def _scaled(
    calls: tuple[ReplayedCall, ...], factors: dict[int, Sides], x: Array, y: Array
) -> dict[int, ReplayedCall] | None:
    """Return the calls with the laws of the outputs, if each output has at most one draw and each draw one output.

    For factors that differ between x and y, so that the noise has another scale.
    """
    matrix = np.array([np.concatenate([sides[side] for sides in factors.values()], axis=1) for side in (0, 1)])
    shows = np.any(matrix != 0.0, axis=0)
    if not np.all(shows.sum(axis=0) == 1) or not np.all(shows.sum(axis=1) <= 1):
        return None
    found = {}
    for number, sides in factors.items():
        call = calls[number]
        law, laws = call.law_on_x, []
        if law.is_integer_valued:
            return None
        rows = np.argmax(np.any(np.array(sides) != 0.0, axis=0), axis=0)
        for part, output in zip(sides, (x, y), strict=True):
            factor = part[rows, np.arange(part.shape[1])]
            location = output[rows] - factor * np.ravel(call.value)
            scale = np.abs(factor) * np.ravel(law.scale)  # type: ignore[arg-type]
            held = {"location": location.reshape(law.shape), "scale": scale.reshape(law.shape)}
            laws.append(Law(law.name, held, law.shape))
        value = x[rows].reshape(law.shape)
        found[number] = replace(call, law_on_x=laws[0], law_on_y=laws[1], value=value, is_inferred=True)
    return found
