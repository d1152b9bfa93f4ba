"""Noise that is added outside of its primitive: how far the outputs moved under it.

In ``answer + rng.laplace(scale=s)`` the primitive is not given the answer. With the same noise put back, the outputs on
x and y differ by the move of the answer. To learn what the noise does to the output, each number drawn is changed and
the run repeated: where the output is affine in the noise at all values tried, with the same factors on x and y, the
move of the output is a move of the noise's location.

Proof: docs/proofs/replay.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from .laws import Array, Law
from .other_values import (
    DRAWS,
    MOST_NUMBERS,
    Calls,
    Changes,
    Reruns,
    at_its_middle,
    in_units,
    is_bare_noise,
    is_shifted,
    moved_by,
)
from .output_values import difference
from .replayed_call import ReplayedCall

Flags = npt.NDArray[np.bool_]

MOST_EXPLAINED: Final = 500
"""Most numbers of an output, or of noise, that are explained; the work grows with their third power."""
_STEPS: Final = (3.0, -2.0, -0.5, 0.7)  # scales; the first determines the factors, as the largest
_WHOLE_STEPS: Final = (3, -2, -1, 1)
_FAR_STEPS: Final = (40, -40, 1000, -1000)  # beyond the reach of what clips the output or decides something
_EXACT: Final = 1e-9  # of the changes; what rounds noise to a grid does not keep it
_JOINT: Final = (0.05, 0.5, 2.0, 20.0)  # scales of joint changes


@dataclass(frozen=True, slots=True, eq=False)
class OutputMove:
    """What the outputs show about noise whose location was not handed over.

    `calls` are all calls, with inferred locations where they could be inferred. `unprotected` are the coordinates of
    the output that differ by `moved` although no change of noise affects them; or those whose combination does, since
    the calls `sharing` draw noise for several of them.
    """

    calls: Calls
    unprotected: tuple[int, ...] = ()
    sharing: tuple[int, ...] = ()
    moved: float = 0.0
    is_certain: bool = False
    """Whether the rest of the output determines every value, and these coordinates differ at such values too."""
    is_explained: bool = False
    """Whether the move of the output is that of the inferred locations."""
    is_local: bool = False
    """Whether that holds near the recorded values only, since the output is not affine in the noise farther away."""
    why_not: str = ""
    """Why nothing was explained, if that is known."""


@dataclass(frozen=True, slots=True, eq=False)
class _Factors:
    """Factors of noise on x and y, of shape (outputs, drawn numbers), by call; what else changes the output."""

    on_x: dict[int, Array]
    on_y: dict[int, Array]
    others: Flags
    is_local: bool

    def matrix(self, side: str) -> Array:
        parts = self.on_x if side == "x" else self.on_y
        return np.concatenate([np.zeros((len(self.others), 0)), *parts.values()], axis=1)


def infer_locations(calls: Calls, x: Array, y: Array, reruns: Reruns) -> OutputMove:
    """Return the calls with the locations that the outputs `x` and `y`, equal in length, imply; or why there are none.

    Noise that two coordinates share gives none if these move differently: their combination moved without noise.
    """
    move = _inferred(calls, x, y, reruns)
    if move.is_explained or move.is_local or move.unprotected:
        return move
    return _shared_noise(calls, x, y, reruns) or move


def _inferred(calls: Calls, x: Array, y: Array, reruns: Reruns) -> OutputMove:
    if len(x) > MOST_EXPLAINED:
        return OutputMove(calls, why_not=f"the output has more than {MOST_EXPLAINED} numbers, so none was explained")
    added = {i: call for i, call in enumerate(calls) if is_bare_noise(call) or _has_another_scale(call)}
    found = _factors(added, x, reruns)
    if isinstance(found, str):
        return OutputMove(calls, why_not=found)
    distance = difference(y, x)
    matrices = found.matrix("x"), found.matrix("y")
    noisy = np.any(matrices[0] != 0.0, axis=1) | np.any(matrices[1] != 0.0, axis=1)
    others = found.others | reruns.touched(set(added), len(x))
    free = np.flatnonzero((distance != 0.0) & ~others & ~noisy)
    if len(free):
        is_certain = _is_certain(calls, found, x, distance, free, reruns)
        moved = float(np.abs(distance[free]).sum())
        return OutputMove(calls, unprotected=tuple(map(int, free)), moved=moved, is_certain=is_certain)
    if not added or np.any(others & (noisy | (distance != 0.0))):
        return OutputMove(calls)
    if not all(_is_affine(added, found, side, base, reruns) for side, base in (("x", x), ("y", y))):
        return OutputMove(calls)
    if _agree(*matrices) and all(map(is_bare_noise, added.values())):
        shifts = _shifts(found.on_x, distance, reruns.rounding(x, y))
        inferred = None if shifts is None else {i: _shifted(calls[i], each) for i, each in shifts.items()}
        slopes = np.zeros_like(matrices[0])
    else:
        inferred = _scaled(calls, found, x, y)
        slopes = matrices[1] - matrices[0]
    if inferred is None:
        return OutputMove(calls)
    explained = tuple(inferred.get(i, call) for i, call in enumerate(calls))
    if found.is_local:
        return OutputMove(explained, is_local=True)

    def apart(changed: Changes) -> Array:
        units = [np.ravel(np.asarray(changed.get(i, c.value), float) - np.asarray(c.value)) for i, c in added.items()]
        return np.asarray(distance + slopes @ np.concatenate(units))

    scales = np.concatenate([np.ravel(call.law_on_x.scale) for call in added.values()])  # type: ignore[arg-type]
    why = reruns.disagreement(apart, np.abs(matrices[0]) @ scales)
    return OutputMove(calls, why_not=why) if why else OutputMove(explained, is_explained=True)


def _has_another_scale(call: ReplayedCall) -> bool:
    """Whether a call is noise about 0 on x and on y whose scale differs, such as that of a mean of so many rows."""
    x, y = call.law_on_x, call.law_on_y
    is_same = x.name == y.name and x.shape == y.shape and set(x.differing(y)) == {"scale"}
    return is_same and is_shifted(call) and not call.is_inferred and not np.any(x.location) and not np.any(y.location)


def _factors(added: dict[int, ReplayedCall], x: Array, reruns: Reruns) -> _Factors | str:
    """Return the factors of added noise on x and y, and the coordinates that it affects in another way.

    The words for why not, if there are too many numbers to change.
    """
    n, tried, is_local = len(x), 0, False
    sides: tuple[dict[int, Array], dict[int, Array]] = {}, {}
    others = np.zeros(n, dtype=bool)
    for number, call in added.items():
        size = math.prod(call.law_on_x.shape)
        if size > MOST_EXPLAINED:
            return f"more than {MOST_EXPLAINED} numbers are drawn in one call, so none was changed to see what it does"
        if size == n > 1:
            diagonals = [_diagonal(number, call, side, reruns) for side in ("x", "y")]
            if diagonals[0] is not None and diagonals[1] is not None:
                sides[0][number], sides[1][number] = diagonals  # type: ignore[assignment]
                continue
        tried += size
        if tried > MOST_NUMBERS:
            return f"more than {MOST_NUMBERS} numbers are drawn, so none was changed to see what it does"
        held = np.zeros((2, n, size))
        for place in range(size):
            columns, affected, is_near = _columns(number, call, place, n, reruns)
            is_local |= is_near
            others |= affected
            if columns is not None:
                held[0, :, place], held[1, :, place] = columns
        sides[0][number], sides[1][number] = held[0], held[1]
    return _Factors(*sides, others, is_local)


def _steps_of(call: ReplayedCall, direction: Array) -> list[Array]:
    """Return changes of the value, in its units: near ones, and far ones with the one to the middle of the noise."""
    near = _WHOLE_STEPS if call.law_on_x.is_integer_valued else _STEPS
    far = [in_units(call, step * direction) for step in (*near, *_FAR_STEPS)]
    middle = (np.asarray(at_its_middle(call), float) - np.asarray(call.value)).reshape(direction.shape)
    return [*far, np.where(direction != 0.0, middle, 0.0)]


def _columns(
    number: int, call: ReplayedCall, place: int, n: int, reruns: Reruns
) -> tuple[tuple[Array, Array] | None, Flags, bool]:
    """Return the factors of one number on x and y, the coordinates that it changes otherwise, and whether nearby only.

    No factors if the output is not affine in the number near its recorded value.
    """
    direction = np.zeros(call.law_on_x.shape)
    direction.reshape(-1)[place] = 1.0
    scale = float(np.ravel(call.law_on_x.scale)[place])  # type: ignore[arg-type]
    columns, affected, is_local = [], np.zeros(n, dtype=bool), False
    for side in ("x", "y"):
        base, factor, is_affine = reruns.numbers(side, {}), np.zeros(n), []
        for turn, units in enumerate(_steps_of(call, direction)):
            out = reruns.numbers(side, {number: moved_by(call, units)})
            if base is None or out is None or out.shape != (n,) or base.shape != (n,):
                return None, np.ones(n, dtype=bool), False
            by, moved, slack = float(np.sum(units)), difference(out, base), reruns.rounding(out, base)
            affected |= np.abs(moved) > slack
            if turn == 0:
                factor = np.where(np.abs(moved) > slack, moved / by, 0.0)
            error = np.abs(moved - factor * by)
            is_affine.append(bool(np.all(error <= _EXACT * np.abs(factor) * max(abs(by), scale) + slack)))
        is_near = all(is_affine[: len(_STEPS)])
        is_local |= is_near and not all(is_affine)
        columns.append(factor if is_near else None)
    if columns[0] is None or columns[1] is None:
        return None, affected, False
    strange = affected & ((columns[0] == 0.0) | (columns[1] == 0.0))  # changes only far away, or on one side only
    return ((columns[0], columns[1]), strange, is_local) if not strange.any() else (None, affected, is_local)


def _diagonal(number: int, call: ReplayedCall, side: str, reruns: Reruns) -> Array | None:
    """Return the factors of a vector of noise that is added number by number, as a diagonal matrix; None if not."""
    rng = np.random.default_rng((number, 29))
    base, factor = reruns.numbers(side, {}), None
    scale = np.ravel(call.law_on_x.scale)  # type: ignore[arg-type]
    for turn in range(len(_STEPS) + len(_FAR_STEPS) + 1):
        sizes = rng.choice([-1.0, 1.0], call.law_on_x.shape) * rng.uniform(0.5, 1.0, call.law_on_x.shape)
        units = np.ravel(_steps_of(call, sizes)[turn])
        out = reruns.numbers(side, {number: moved_by(call, units)})
        if base is None or out is None or out.shape != scale.shape or base.shape != scale.shape:
            return None
        moved, slack = difference(out, base), reruns.rounding(out, base)
        if factor is None:
            factor = np.where(np.abs(moved) > slack, moved / units, 0.0)
        if not np.all(
            np.abs(moved - factor * units) <= _EXACT * np.abs(factor) * np.maximum(np.abs(units), scale) + slack
        ):
            return None
    return None if factor is None else np.diag(factor)


def _is_affine(added: dict[int, ReplayedCall], found: _Factors, side: str, base: Array, reruns: Reruns) -> bool:
    """Whether joint changes of all numbers, small and large, do to the output what the factors say."""
    if found.is_local:
        return True  # which holds for small changes of single numbers, and is said to be no more
    rng, matrix = np.random.default_rng(29), found.matrix(side)
    for turn in range(DRAWS):
        changed, units = {}, []
        for number, call in added.items():
            steps = in_units(call, _JOINT[turn % len(_JOINT)] * rng.normal(size=call.law_on_x.shape))
            changed[number] = moved_by(call, steps)
            units.append(np.ravel(steps))
        out, moves = reruns.numbers(side, changed), np.concatenate(units)
        if out is None or out.shape != base.shape:
            return False
        scales = np.concatenate([np.ravel(call.law_on_x.scale) for call in added.values()])  # type: ignore[arg-type]
        allowed = _EXACT * np.abs(matrix) @ np.maximum(np.abs(moves), scales) + 4.0 * reruns.rounding(out, base)
        if not np.all(np.abs(difference(out, base) - matrix @ moves) <= allowed):
            return False
    return True


def _shared_noise(calls: Calls, x: Array, y: Array, reruns: Reruns) -> OutputMove | None:
    """Return coordinates of which a combination differs although no draws change it; None if none is found.

    The combination is orthogonal to all moves of the output that fresh draws cause on x and on y, in more runs than
    there are independent moves, and stays as it is in further runs. It tells x from y for all draws if these
    are noise in which the output is affine: then this is certain.
    """
    distance, drawn = difference(y, x), sum(int(np.size(call.value)) for call in calls)
    most = min(len(x), drawn)
    if len(x) < 2 or most > MOST_NUMBERS or not (np.any(distance != 0.0) and np.isfinite(distance).all()):
        return None
    moves: list[Array] = []
    for changed in (reruns.anew() for _ in range(most + 2 * DRAWS)):
        for side, base in (("x", x), ("y", y)):
            out = reruns.numbers(side, changed)
            if out is None or out.shape != base.shape or not np.isfinite(out).all():
                return None
            moves.append(difference(out, base))
    sizes = [max(float(np.abs(each).max()), np.finfo(float).tiny) for each in moves]
    units = np.array(moves).T / sizes
    learned = units[:, : -2 * DRAWS]
    # Singular values below the root of the precision are those of rounding.
    rest = distance - learned @ np.linalg.lstsq(learned, distance, rcond=1e-8)[0]
    slack = reruns.rounding(x, y)
    if not np.abs(rest).max() > _EXACT * np.abs(distance).max() + 4.0 * slack.max():
        return None
    rest = np.where(np.abs(rest) > 1e-6 * np.abs(rest).max(), rest / np.abs(rest).max(), 0.0)
    kept = np.abs(rest @ np.array(moves).T)
    allowed = np.abs(rest) @ (_EXACT * np.abs(np.array(moves)).T + 4.0 * slack[:, None])
    if np.any(kept > allowed):
        return None
    held = rest != 0.0
    sharing = []
    for number in range(len(calls)):
        out = reruns.numbers("x", reruns.anew(set(range(len(calls))) - {number}))
        if out is not None and np.count_nonzero(difference(out, x)[held]) > 1:
            sharing.append(number)
    if not sharing:
        return None
    return OutputMove(
        calls,
        unprotected=tuple(np.flatnonzero(held).tolist()),
        sharing=tuple(sharing),
        moved=abs(float(rest @ distance)),
        is_certain=_is_all_affine(calls, x, y, reruns),
    )


def _is_all_affine(calls: Calls, x: Array, y: Array, reruns: Reruns) -> bool:
    """Whether everything drawn is noise in which the outputs are affine, on x and on y, as far away as is tried."""
    every = dict(enumerate(calls))
    if not all(map(is_shifted, calls)):
        return False
    found = _factors(every, x, reruns)
    if isinstance(found, str) or found.others.any() or found.is_local:
        return False
    return all(_is_affine(every, found, side, base, reruns) for side, base in (("x", x), ("y", y)))


def _agree(a: Array, b: Array) -> bool:
    """Whether factors agree, each relative to its own size."""
    return bool(np.all(np.abs(a - b) <= _EXACT * np.maximum(np.abs(a), np.abs(b))))


def _shifts(factors: dict[int, Array], distance: Array, slack: Array) -> dict[int, Array] | None:
    """Return by how much each noise must shift for the outputs to agree, if there is exactly one way; else None."""
    matrix = np.concatenate(list(factors.values()), axis=1)
    if not np.any(matrix != 0.0, axis=0).all() or not np.isfinite(distance).all():
        return None  # a draw that does not show in the output may decide something
    size = np.abs(matrix).max(axis=0)
    shift, _, rank, _ = np.linalg.lstsq(matrix / size, distance, rcond=None)
    if rank < matrix.shape[1]:
        return None
    shift = shift / size
    if not np.all(np.abs(matrix @ shift - distance) <= 1e-9 * np.abs(distance) + 2.0 * slack):
        return None
    ends = np.cumsum([part.shape[1] for part in factors.values()])[:-1]
    return dict(zip(factors, np.split(shift, ends), strict=True))


def _shifted(call: ReplayedCall, shift: Array) -> ReplayedCall:
    """Return the call with its location on x, and shifted on y; by a whole number if that is one up to rounding."""
    law, location = call.law_on_x, np.array(call.law_on_x.location, dtype=np.float64)
    if law.is_integer_valued:
        near = np.round(shift)
        shift = np.where(np.abs(shift - near) <= 1e-9 * np.abs(near), near, shift)
    laws = [
        Law(law.name, {**law.parameters, "location": each}, law.shape)
        for each in (location, location + shift.reshape(law.shape))
    ]
    return replace(call, law_on_x=laws[0], law_on_y=laws[1], is_inferred=True)


def _scaled(calls: Calls, found: _Factors, x: Array, y: Array) -> dict[int, ReplayedCall] | None:
    """Return the calls with the laws of the outputs, if each output has at most one draw and each draw one output.

    For factors or scales that differ between x and y, so that the noise has another scale.
    """
    matrix = np.array([found.matrix("x"), found.matrix("y")])
    shows = np.any(matrix != 0.0, axis=0)
    if not np.all(shows.sum(axis=0) == 1) or not np.all(shows.sum(axis=1) <= 1):
        return None
    inferred = {}
    for number in found.on_x:
        call, sides = calls[number], (found.on_x[number], found.on_y[number])
        laws: list[Law] = []
        if call.law_on_x.is_integer_valued:
            return None
        rows = np.argmax(np.any(np.array(sides) != 0.0, axis=0), axis=0)
        for part, output, law in zip(sides, (x, y), (call.law_on_x, call.law_on_y), strict=True):
            factor = part[rows, np.arange(part.shape[1])]
            location = output[rows] - factor * np.ravel(np.asarray(call.value) - law.location)
            scale = np.abs(factor) * np.ravel(law.scale)  # type: ignore[arg-type]
            held = {"location": location.reshape(law.shape), "scale": scale.reshape(law.shape)}
            laws.append(Law(law.name, held, law.shape))
        value = x[rows].reshape(call.law_on_x.shape)
        inferred[number] = replace(call, law_on_x=laws[0], law_on_y=laws[1], value=value, is_inferred=True)
    return inferred


def _is_certain(
    calls: Calls, found: _Factors, x: Array, distance: Array, free: npt.NDArray[np.intp], reruns: Reruns
) -> bool:
    """Whether no values on y give the output of x: the other coordinates allow one, at which these differ still."""
    if not calls:
        return True
    if not all(map(is_shifted, calls)) or found.others.any():
        return False
    handed = {i: call for i, call in enumerate(calls) if i not in found.on_x}
    more = _factors(handed, x, reruns)
    if isinstance(more, str) or more.others.any() or more.is_local or found.is_local:
        return False
    factors = {**found.on_y, **more.on_y}
    rest = np.setdiff1d(np.arange(len(x)), free)
    shifts = _shifts({i: part[rest] for i, part in factors.items()}, -distance[rest], reruns.rounding(x, x)[rest])
    if shifts is None:
        return False
    rng = np.random.default_rng(29)
    for size in (0.0, 1e-3, 1e-3):
        changed = {
            i: moved_by(calls[i], each + in_units(calls[i], size * rng.normal(size=each.shape)))
            for i, each in shifts.items()
        }
        out = reruns.numbers("y", changed)
        if out is None or out.shape != x.shape or not np.all(difference(out, x)[free] != 0.0):
            return False
    return True
