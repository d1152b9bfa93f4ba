"""Record a run on x, put its random values back on y, and compare what each noise primitive was given.

Most defects of private libraries are mistakes of sensitivity: a primitive is given a number that moves further between
neighbours than its noise is for. That shows in two runs, without statistics.

Proof: docs/proofs/replay.md
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..claims.claim import Claim, claim_at
from ..errors import MechanismError, OptionError, described
from ..floating_point_errors import with_own_arithmetic
from ..known_options import with_known_options
from ..options import checked, in_a_tuple
from ..printing import did_you_mean, shorten
from ..procedures.check import stated
from ..sampling.sampler import OutputPart, as_sampler, picked
from .comparison import call_findings, path_findings
from .excess import judged
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
    is_unmoved,
    moved_by,
)
from .output_values import difference, numbers_of, output_distance, same_form, same_output
from .recorded_run import DatasetChangedError, RecordedRun, Runner, other_seed
from .registered import registered_names
from .replay_result import ReplayResult, is_kept, is_larger, loss_words
from .replayed_call import Finding, FindingKind, ReplayedCall, paired_calls, total_loss
from .tape import Tape, only_recording

# Noise that is added outside of its primitive: how far the outputs moved under it.
#
# In ``answer + rng.laplace(scale=s)`` the primitive is not given the answer. With the same noise put back, the outputs
# on x and y differ by the move of the answer. To learn what the noise does to the output, each number drawn is changed
# and the run repeated: where the output is affine in the noise at all values tried, with the same factors on x and y,
# the move of the output is a move of the noise's location.

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


@with_known_options()
@with_own_arithmetic
def replay(
    mechanism: Any,
    x: Any,
    y: Any,
    *,
    claim: Any = None,
    adjacency: Any = None,
    distance: float = 1.0,
    output: OutputPart | None = None,
    primitives: Iterable[str] | None = None,
    seed: int | None = 0,
) -> ReplayResult:
    """Compare what each noise primitive is given on x and on y, where y is given the random values of x.

    The loss of each call is exact where both laws are known. The sum over the calls bounds the loss of the output on
    this path where every random value is recorded and nothing but those values carries the data to the output. Both are
    tested, by runs with other values. An excess is a finding at a line of code, not a refutation: `check` tests it.

    Parameters
    ----------
    mechanism : callable or object
        As in `check`; a block sampler draws a block of one run. The generator that it is given records. So do functions
        of `numpy.random` and `random`, generators that the mechanism creates by `numpy.random.default_rng`, `rvs` of
        scipy.stats, functions with `noise_primitive`, mechanisms of diffprivlib, measurements of OpenDP and
        `add_noise` of PyDP, wherever they are called.
    x, y : dataset
        Two neighbouring datasets.
    claim : Claim, float, (float, float) or callable, optional
        As in `check`; by default the mechanism's own, if it has one. Without a claim, the only excesses are moves
        beyond declared sensitivities and infinite losses.
    adjacency : Adjacency or str, optional
        As in `check`: the pair is checked.
    distance : float
        Distance between x and y, as in `check`.
    output : str, int or callable, optional
        Part of the output to compare, as in `check`; such as ``lambda model: model.coef_``.
    primitives : iterable of str, optional
        The families to record: "numpy", "random", "scipy", "diffprivlib", "opendp", "pydp"; all by default. The
        generator that is handed to the mechanism and functions with `noise_primitive` are always recorded.
    seed : int or None
        Fixes the path: the values drawn on x. None draws a seed.

    Returns
    -------
    ReplayResult

    Raises
    ------
    ClaimError, AdjacencyError
        For a claim that is none, or a pair that is not adjacent.
    OptionError
        For unknown primitives or an invalid seed.
    MechanismError
        If the mechanism cannot be run, raises on both datasets, or another replay is recording in this process.

    Examples
    --------
    >>> from dpaudit import replay
    >>> def clipped_sum(rows, rng):            # clips to [0, 2]; the noise is for [0, 1]
    ...     return rng.laplace(np.clip(rows, 0, 2).sum(), 1.0)
    >>> result = replay(clipped_sum, [1.0, 5.0], [1.0], claim=1.0, adjacency="add-remove")
    >>> result.calls[0].moved, result.calls[0].worst_loss, result.has_excess
    (2.0, 2.0, True)
    """
    names = _checked_names(primitives)
    checked_seed = checked("seed", seed)
    sampler = picked(as_sampler(mechanism), output)
    held, claim_or_none = _claim(mechanism, claim, adjacency, distance)
    if held is not None:
        held.check(x, y, distance)
    if sampler.check_pair is not None:
        sampler.check_pair(x, y, distance)
    with only_recording() as is_free:
        if not is_free:
            raise MechanismError(
                "another replay is recording in this process, perhaps the one that runs this mechanism; replays cannot "
                "be nested or run at the same time: wait for its end, or use another process.",
                mechanism=sampler.name,
            )
        runner = Runner(sampler, names, checked_seed)
        try:
            with runner.patching():
                return _compared(runner, x, y, claim_or_none, distance)
        except DatasetChangedError as error:
            return _stopped(runner, claim_or_none, error)


def _checked_names(primitives: Iterable[str] | None) -> tuple[str, ...]:
    known = registered_names()
    given = known if primitives is None else primitives
    names = (given,) if isinstance(given, str) else in_a_tuple(given)
    for name in names:
        if not isinstance(name, str) or name not in known:
            meant = did_you_mean(shorten(name), known, otherwise=".")
            raise OptionError(
                f"primitives={shorten(name)} is not a family of noise primitives{meant} Use some of "
                f"{', '.join(known)}.",
                primitives=name,
            )
    return names


def _claim(mechanism: Any, claim: Any, adjacency: Any, distance: float) -> tuple[Any, Claim | None]:
    """Return the adjacency and the claim at the distance; None if no claim is given."""
    if claim is None and not hasattr(mechanism, "claim"):
        return stated(mechanism, 0.0, adjacency, "").adjacency, None
    said = stated(mechanism, claim, adjacency, "")
    return said.adjacency, claim_at(said.claim, distance)


def _stopped(runner: Runner, claim: Claim | None, error: DatasetChangedError) -> ReplayResult:
    """Return the result of a replay that ended because the next run would not see the datasets that were passed."""
    return ReplayResult(
        mechanism=runner.sampler.name,
        claim=claim,
        findings=(),
        calls=(),
        unrecorded=True,
        open_reasons=(f"unrecorded: {error}",),
        output_on_x=None,
        output_on_y=None,
        output_moved=None,
        seed=runner.seed,
        runs=runner.runs,
    )


def _compared(runner: Runner, x: Any, y: Any, claim: Claim | None, distance: float) -> ReplayResult:
    """Return the result of a run on x and one on y with the values of x put back."""
    on_x = runner.run(x)
    on_y = runner.run(y, on_x.tape.calls, seed=other_seed(runner.seed, -1))
    name = runner.sampler.name
    if on_x.error is not None and on_y.error is not None:
        if isinstance(on_x.error, OptionError):
            raise on_x.error
        raise MechanismError(
            f"{name} raises on both datasets: {described(on_x.error)}. There is nothing to compare; pass datasets on "
            "which it runs.",
            mechanism=name,
        ) from on_x.error
    calls = paired_calls(on_x.tape, on_y.tape)
    varies = [runner.unrecorded(x, on_x, looks_around=True), runner.unrecorded(y, on_y)]
    unrecorded = varies[0].reason or varies[1].reason
    reruns = Reruns(runner, calls, (x, on_x), (y, on_y))
    repeated, raised = reruns.freely()
    unknown = "" if repeated else runner.streams.unknown
    findings = [*raised, *path_findings(on_x.tape, on_y.tape, on_x.end, on_y.end)]
    reasons: tuple[str, ...]
    if findings:
        reasons = ("the runs on x and y do not take the same path, so their outputs are not compared",)
    elif unrecorded or repeated or unknown:
        reasons = ()  # outputs that differ may differ by what is not recorded, or noise by what was drawn before
    else:
        calls, free, reasons = _explained(reruns, on_x, on_y, claim)
        if not free and not reasons:
            reasons = tuple(filter(None, [_worse_elsewhere(calls, reruns, claim)]))
        findings += free
    findings += judged(
        calls,
        claim,
        distance,
        reruns,
        (on_x.tape, on_y.tape),
        is_recorded=not (unrecorded or repeated or (unknown and not on_x.tape.seeds)),
        is_determined=not any(each.is_in_calls for each in varies),
    )
    return ReplayResult(
        mechanism=name,
        claim=claim,
        findings=tuple(sorted(findings, key=lambda found: not found.is_excess)),
        calls=calls,
        unrecorded=bool(unrecorded),
        open_reasons=tuple(
            filter(
                None,
                (
                    unrecorded,
                    *reasons,
                    *_fixed_seeds(on_x.tape),
                    repeated,
                    unknown,
                    *_other_primitives(calls),
                    *_promises(calls),
                ),
            )
        ),
        remarks=tuple(_remarks(runner, reruns)),
        output_on_x=on_x.output,
        output_on_y=on_y.output,
        output_moved=output_distance(on_x.output, on_y.output),
        seed=runner.seed,
        runs=runner.runs,
    )


def _remarks(runner: Runner, reruns: Reruns) -> Iterator[str]:
    """Yield what leaves nothing open, and what was not looked at."""
    if runner.changes_datasets:
        yield "the mechanism changes its dataset; each run was given a copy"
    if reruns.not_kept:
        seen = len(reruns.elsewhere)
        yield (
            f"there are so many calls that their losses were compared at {seen:,} of {seen + reruns.not_kept:,} other "
            "values of the draws"
        )


def _fixed_seeds(tape: Tape) -> Iterator[str]:
    """Yield a reason for a generator whose noise does not change from run to run."""
    for place, seed in tape.seeds[:1]:
        same = "its noise is the same in every run"
        yield f"a generator is seeded with {seed} at {place}; if that does not change, {same}"


def _other_primitives(calls: Calls) -> Iterator[str]:
    """Yield a reason for a primitive that is another object on y, whose way with its result cannot be compared."""
    for call in calls:
        x, y = call.declared_on_x, call.declared_on_y
        if x is not None and y is not None and x.made is not y.made:
            yield (
                f"not the same measurement: {call.primitive} at {call.place} is another object on x and on y, and what "
                "it does with its result cannot be compared; make it once, outside of the mechanism"
            )
            return


def _promises(calls: Calls) -> Iterator[str]:
    """Yield a reason for a primitive whose loss is not that of known laws, but what it states about itself."""
    for call in calls:
        if call.is_promise:
            yield (
                f"the loss of {call.primitive} at {call.place} is the one that it states for itself, which is not "
                "tested here; confirm it with check"
            )
            return


def _worse_elsewhere(calls: Calls, reruns: Reruns, claim: Claim | None) -> str:
    """Return which calls lose more than the claim allows at other values of the draws than those recorded."""
    recorded = total_loss(calls)
    for others in reruns.elsewhere:
        for before, call, other in zip(reruns.calls, calls, others, strict=True):
            is_moved = is_unmoved(before) and not is_unmoved(other)
            if call.is_inferred and (is_moved or not _has_its_laws(before, other)):
                return f"the noise of {call.primitive} at {call.place} is another one at other values of the draws"
        pairs = list(zip(calls, others, strict=True))
        if claim is None or all(call.is_inferred or _has_its_laws(call, other) for call, other in pairs):
            continue
        together = tuple(call if call.is_inferred else other for call, other in pairs)
        loss = total_loss(together)
        if is_larger(loss, recorded) and is_kept(claim, calls) and not is_kept(claim, together):
            return f"at other values of the draws, the calls lose more than the claim allows: {loss_words(loss)}"
    return ""


def _has_its_laws(call: ReplayedCall, other: ReplayedCall) -> bool:
    laws = (call.law_on_x, other.law_on_x), (call.law_on_y, other.law_on_y)
    return all(a.name == b.name and not a.differing(b) for a, b in laws)


def _explained(
    reruns: Reruns, x: RecordedRun, y: RecordedRun, claim: Claim | None
) -> tuple[Calls, list[Finding], tuple[str, ...]]:
    """Return the calls with the locations that the outputs imply, what moved without noise, and what stays open."""
    calls, is_same = reruns.calls, same_output(x.output, y.output)
    if not calls and is_same is False:
        is_certain = reruns.is_fixed()
        vary = () if is_certain else ("unrecorded: the outputs vary, and no random call was recorded",)
        words = "the outputs differ, and no random call was recorded"
        return calls, [_without_noise(words, is_certain=is_certain)], vary
    if not calls:
        return calls, [], ("no random call was recorded; what is random elsewhere shows at some values only",)
    if is_same and not any(map(is_bare_noise, calls)):
        return calls, [], tuple(filter(None, [reruns.disagreement()]))
    a, b = numbers_of(x.output), numbers_of(y.output)
    if a is None or b is None or not len(a) or not same_form(x.output, y.output):
        return calls, [], _unexplained(calls, x, y)
    move = infer_locations(calls, a, b, reruns)
    if move.unprotected:
        places = list(move.unprotected)
        shown = ", ".join(map(str, places[:4])) + ", …" * (len(places) > 4)
        where = f"coordinate {shown} of the output" if len(a) > 1 else "the output"
        text = f"{where} moved by {move.moved:.6g}, and no recorded draw changes it"
        if move.sharing:
            names = ", ".join(dict.fromkeys(f"{calls[i].primitive} at {calls[i].place}" for i in move.sharing))
            text = (
                f"coordinates {shown} of the output contain the same noise ({names}), and a combination of them "
                f"without noise moved by {move.moved:.6g}"
            )
        why = [] if move.is_certain else ["whether a draw decides about what moved is not known"]
        remedy = "; draw noise for each coordinate" if move.sharing else ""
        return calls, [_without_noise(text, remedy, is_certain=move.is_certain)], tuple(why)
    if move.is_explained:
        return move.calls, [], ()
    reasons = tuple(filter(None, [move.why_not])) + _unexplained(calls, x, y)
    nearby = [found for call in move.calls for found in call_findings(call, claim, 1.0)] if move.is_local else []
    return calls, [_only_nearby(found) for found in nearby if found.is_excess], reasons


def _only_nearby(found: Finding) -> Finding:
    """Return the finding as one that holds near the recorded values: the output is clipped, say, farther away."""
    text = f"{found.message}, near the recorded values, where the output is a number plus the noise"
    return replace(found, kind=FindingKind.NEAR_THE_VALUES, message=text, is_excess=False)


def _without_noise(text: str, remedy: str = "", *, is_certain: bool) -> Finding:
    """Return what moved as an excess if no values of the draws hide it; else no change that was tried did."""
    text = f"{text}; loss infinite{remedy}" if is_certain else f"{text} at the values tried{remedy}"
    loss = math.inf if is_certain else None
    return Finding(kind=FindingKind.WITHOUT_NOISE, place=None, message=text, loss=loss, is_excess=is_certain)


def _unexplained(calls: Calls, x: RecordedRun, y: RecordedRun) -> tuple[str, ...]:
    """Return why the outputs may depend on the data other than through the recorded values."""
    reasons = []
    bare = [call for call in calls if call.is_bare or is_bare_noise(call)]
    if bare:
        places = list(dict.fromkeys(f"{call.primitive} at {call.place}" for call in bare))
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        number = f"{len(bare)} call{'s were' if len(bare) > 1 else ' was'}"
        reasons.append(
            f"{number} not handed what the noise is for ({bare[0].law_on_x}: {places[0]}{more}), and the output is not "
            "a number plus the noise; put noise_primitive on the function that adds the noise, or return the noisy "
            "number too"
        )
    if not same_output(x.output, y.output):
        by = output_distance(x.output, y.output)
        reasons.append(
            f"the outputs differ{'' if by is None else f' by {by:.6g}'} with the same values put back, so they depend "
            "on the data by more than the calls were given"
        )
    return tuple(reasons) or ("what the draws do to the output is not explained",)
