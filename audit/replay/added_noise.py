"""Noise that is added outside of its primitive: how far the outputs moved under it.

In ``answer + rng.laplace(scale=s)`` the primitive is not given the answer. With the same noise put back, the outputs on
x and y differ by the move of the answer. To learn what the noise does to the output, each number drawn is changed and
the run repeated: where the output is affine in the noise at all values tried, with the same factors on x and y, the
move of the output is a move of the noise's location.

Proof: docs/proofs/replay.md
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import repeat
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..claims.claim import Claim
from ..printing import counted
from .distributions import Array, Distribution
from .output_values import difference, numbers_of, output_distance, same_form, same_output
from .recorded_run import RecordedRun
from .replay_findings import call_findings
from .replay_result import Finding, FindingKind, ReplayedCall, named
from .reruns import (
    DRAWS,
    MOST_NUMBERS,
    SIDES,
    Calls,
    Changes,
    Reruns,
    UntriedError,
    at_its_middle,
    in_units,
    moved_by,
    one_of,
)

Flags = npt.NDArray[np.bool_]

MOST_EXPLAINED: Final = 500
"""Most numbers of an output, or of noise, that are explained; the work grows with their third power."""
_STEPS: Final = (3.0, -2.0, -0.5, 0.7)  # scales; the first determines the factors, as the largest
_WHOLE_STEPS: Final = (3, -2, -1, 1)
_FAR_STEPS: Final = (40, -40, 1000, -1000)  # beyond the reach of what clips the output or decides something
_TURNS: Final = len(_STEPS) + len(_FAR_STEPS) + 1  # the last moves the noise to its middle
_EXACT: Final = 1e-9  # of the changes; what rounds noise to a grid does not keep it
_JOINT: Final = (0.05, 0.5, 2.0, 20.0)  # scales of joint changes
_INFINITE: Final = math.log(sys.float_info.max)
"""A move of so many scales costs more than any double can say, so what noise remains does not count."""


class Explained(NamedTuple):
    """The calls with the locations that the outputs imply, what moved without noise, and what stays open."""

    calls: Calls
    findings: list[Finding]
    reasons: tuple[str, ...] = ()


def explained(reruns: Reruns, x: RecordedRun, y: RecordedRun, claim: Claim | None) -> Explained:
    """Return what the outputs on x and on y show about noise whose location was not handed over."""
    calls, is_same = reruns.calls, same_output(x.output, y.output)
    if not calls and is_same is False:
        is_certain = reruns.is_fixed()
        vary = () if is_certain else ("unrecorded: the outputs vary, and no random call was recorded",)
        words = "the outputs differ, and no random call was recorded"
        return Explained(calls, [_without_noise(words, is_certain=is_certain)], vary)
    if not calls:
        why = "no random call was recorded; what is random elsewhere shows at some values only"
        return Explained(calls, [], (why,))
    if is_same and not any(call.is_bare_noise for call in calls):
        why = reruns.disagreement()
        return Explained(calls, [], (why,) if why else ())
    found, untried = None, ""
    a, b = numbers_of(x.output), numbers_of(y.output)
    if a is not None and b is not None and len(a) and same_form(x.output, y.output):
        outputs = _Outputs(calls, a, b, reruns)
        try:
            found = outputs.inferred(claim)
        except UntriedError as error:
            untried = str(error)
        found = found or outputs.sharing_noise()
    if found is None:
        found = Explained(calls, [], (untried,) if untried else ())
    elif found.calls is not calls or found.findings[0].kind is FindingKind.WITHOUT_NOISE:
        return found
    return found._replace(reasons=found.reasons + _unexplained(calls, x, y))


def _without_noise(text: str, remedy: str = "", *, is_certain: bool) -> Finding:
    """Return what moved as an excess if no values of the draws hide it; else no change that was tried did."""
    text = f"{text}; loss infinite{remedy}" if is_certain else f"{text} at the values tried{remedy}"
    loss = math.inf if is_certain else None
    return Finding(kind=FindingKind.WITHOUT_NOISE, place=None, message=text, loss=loss, is_excess=is_certain)


def _nearby(calls: Calls, claim: Claim | None) -> Iterator[Finding]:
    """Yield losses that hold near the recorded values: the output is clipped, say, farther away."""
    for found in (finding for call in calls for finding in call_findings(call, claim, 1.0) if finding.is_excess):
        text = f"{found.message}, near the recorded values, where the output is a number plus the noise"
        yield replace(found, kind=FindingKind.NEAR_THE_VALUES, message=text, is_excess=False)


def _unexplained(calls: Calls, x: RecordedRun, y: RecordedRun) -> tuple[str, ...]:
    """Return why the outputs may depend on the data other than through the recorded values."""
    reasons = []
    bare = [call for call in calls if call.is_bare or call.is_bare_noise]
    if bare:
        number = f"{counted(len(bare), 'call')} {'were' if len(bare) > 1 else 'was'}"
        reasons.append(
            f"{number} not handed what the noise is for ({bare[0].distribution_on_x}: {named(bare)}), and the output "
            "is not a number plus the noise; put noise_primitive on the function that adds the noise, or return the "
            "noisy number too"
        )
    if not same_output(x.output, y.output):
        by = output_distance(x.output, y.output)
        reasons.append(
            f"the outputs differ{'' if by is None else f' by {by:.6g}'} with the same values put back, so they depend "
            "on the data by more than the calls were given"
        )
    return tuple(reasons) or ("what the draws do to the output is not explained",)


class _Response:
    """What the noise of some calls does to outputs of `n` numbers: the factors of each drawn number, on x and on y."""

    def __init__(self, noise: dict[int, ReplayedCall], n: int, reruns: Reruns) -> None:
        self.noise, self._reruns, self._n = noise, reruns, n
        self.others = np.zeros(n, dtype=bool)  # coordinates that a number changes in another way
        self.is_local = False  # whether the factors hold near the recorded values only
        self.factors: dict[int, Array] = {}
        """By call, of shape (2, outputs, drawn numbers)."""
        sizes = {number: math.prod(call.distribution_on_x.shape) for number, call in noise.items()}
        if any(size > MOST_EXPLAINED for size in sizes.values()):
            raise UntriedError(
                f"more than {MOST_EXPLAINED} numbers are drawn in one call, so none was changed to see what it does"
            )
        tried = sum(size for size in sizes.values() if not size == n > 1)  # the others may be added number by number
        for number, size in sizes.items():
            if tried <= MOST_NUMBERS and size == n > 1:
                if (diagonals := self._diagonals(number)) is not None:
                    self.factors[number] = diagonals
                    continue
                tried += size
            if tried > MOST_NUMBERS:
                raise UntriedError(
                    f"more than {MOST_NUMBERS} numbers are drawn, so none was changed to see what it does"
                )
            self.factors[number] = np.zeros((2, n, size))
            for place in range(size):
                self.factors[number][:, :, place] = self._columns(number, place)

    @cached_property
    def matrix(self) -> Array:
        """The factors of all numbers, on x and on y."""
        return np.concatenate([np.zeros((2, self._n, 0)), *self.factors.values()], axis=2)

    @cached_property
    def scales(self) -> Array:
        """The scales of all numbers."""
        return np.concatenate([np.empty(0), *(np.ravel(_scale(call)) for call in self.noise.values())])

    def is_affine(self) -> bool:
        """Whether joint changes of all numbers, small and large, do to the outputs what the factors say."""
        if self.is_local:
            return True  # which holds for small changes of single numbers, and is said to be no more
        return all(map(self._is_affine_on, SIDES, self.matrix))

    def _is_affine_on(self, side: str, matrix: Array) -> bool:
        rng = np.random.default_rng(29)
        for turn in range(DRAWS):
            size = _JOINT[turn % len(_JOINT)]
            units = {i: in_units(c, size * rng.normal(size=c.distribution_on_x.shape)) for i, c in self.noise.items()}
            moves = self._reruns.moves(side, {i: moved_by(self.noise[i], each) for i, each in units.items()})
            if moves is None:
                return False
            by = np.concatenate([np.ravel(each) for each in units.values()])
            allowed = _EXACT * np.abs(matrix) @ np.maximum(np.abs(by), self.scales) + 4.0 * moves[1]
            if not np.all(np.abs(moves[0] - matrix @ by) <= allowed):
                return False
        return True

    def _probe(self, number: int, side: str, directions: Iterable[Array]) -> tuple[Array, list[bool], Flags] | None:
        """Return the change of each output per unit, at which steps it is that, and which outputs change.

        A direction is that of one number, or of as many as there are outputs, each of which changes its own. None if an
        output has another form.
        """
        call, factor, is_affine, affected = self.noise[number], np.zeros(self._n), [], np.zeros(self._n, dtype=bool)
        for turn, direction in enumerate(directions):
            units = _step(call, direction, turn)
            moves = self._reruns.moves(side, {number: moved_by(call, units)})
            if moves is None:
                return None
            (change, slack), by, scale = moves, units[direction != 0.0], _scale(call)[direction != 0.0]
            affected |= np.abs(change) > slack
            if turn == 0:
                factor = np.where(affected, change / by, 0.0)
            error = np.abs(change - factor * by)
            is_affine.append(bool(np.all(error <= _EXACT * np.abs(factor) * np.maximum(np.abs(by), scale) + slack)))
        return factor, is_affine, affected

    def _columns(self, number: int, place: int) -> Array:
        """Return the factors of one number on x and y; zeros if the output is not affine in it nearby."""
        direction, none = one_of(self.noise[number], place), np.zeros((2, self._n))
        found = [self._probe(number, side, repeat(direction, _TURNS)) for side in SIDES]
        if found[0] is None or found[1] is None:
            self.others[:] = True
            return none
        factors, affected = np.array([found[0][0], found[1][0]]), found[0][2] | found[1][2]
        is_near = [all(is_affine[: len(_STEPS)]) for _, is_affine, _ in found]  # type: ignore[misc]
        if all(is_near):
            self.is_local |= not all(found[0][1] + found[1][1])
            if not np.any(affected & np.any(factors == 0.0, axis=0)):  # no change only far away, or on one side only
                return factors
        self.others |= affected
        return none

    def _diagonals(self, number: int) -> Array | None:
        """Return the factors of a vector of noise that is added number by number; None if it is not."""
        found = []
        for side in SIDES:
            rng, shape = np.random.default_rng((number, 29)), self.noise[number].distribution_on_x.shape
            directions = (rng.choice([-1.0, 1.0], shape) * rng.uniform(0.5, 1.0, shape) for _ in range(_TURNS))
            probed = self._probe(number, side, directions)
            if probed is None or not all(probed[1]):
                return None
            found.append(np.diag(probed[0]))
        return np.array(found)


def _scale(call: ReplayedCall) -> Array:
    return np.asarray(call.distribution_on_x.scale)


def _step(call: ReplayedCall, direction: Array, turn: int) -> Array:
    """Return a change of the value, in its units: near ones, far ones, and at last that to the middle of the noise."""
    near = _WHOLE_STEPS if call.distribution_on_x.is_integer_valued else _STEPS
    if turn < len(near) + len(_FAR_STEPS):
        return in_units(call, (*near, *_FAR_STEPS)[turn] * direction)
    middle = (np.asarray(at_its_middle(call), float) - np.asarray(call.value)).reshape(direction.shape)
    return np.where(direction != 0.0, middle, 0.0)


class _Outputs:
    """The outputs of the runs on x and y, of which the moves are explained."""

    def __init__(self, calls: Calls, x: Array, y: Array, reruns: Reruns) -> None:
        self.calls, self.x, self.y, self._reruns = calls, x, y, reruns
        self.distance, self.slack = difference(y, x), reruns.rounding(x, y)

    def inferred(self, claim: Claim | None) -> Explained | None:
        """Return the calls with the locations, or scales, that the outputs imply for noise about 0.

        Or what moved although no draw changes it, or what the calls lose near the recorded values; None for nothing.
        """
        if len(self.x) > MOST_EXPLAINED:
            raise UntriedError(f"the output has more than {MOST_EXPLAINED} numbers, so none was explained")
        added = {i: call for i, call in enumerate(self.calls) if call.is_bare_noise or _has_another_scale(call)}
        found = _Response(added, len(self.x), self._reruns)
        noisy, is_moved = np.any(found.matrix != 0.0, axis=(0, 2)), self.distance != 0.0
        others = found.others | self._reruns.touched(set(added), len(self.x))
        free = np.flatnonzero(is_moved & ~others & ~noisy)
        if len(free):
            far, is_certain = float(np.abs(self.distance[free]).sum()), self._differ_always(free, found)
            where = f"coordinate {_listed(free)} of the output" if len(self.x) > 1 else "the output"
            return self._moved(f"{where} moved by {far:.6g}, and no recorded draw changes it", is_certain=is_certain)
        if not added or np.any(others & (noisy | is_moved)) or not found.is_affine():
            return None
        on_x, on_y = found.matrix
        is_same = bool(np.all(np.abs(on_x - on_y) <= _EXACT * np.maximum(np.abs(on_x), np.abs(on_y))))
        if is_same and all(call.is_bare_noise for call in added.values()):
            shifts = _shifts({i: part[0] for i, part in found.factors.items()}, self.distance, self.slack)
            inferred = None if shifts is None else {i: _shifted(self.calls[i], each) for i, each in shifts.items()}
            slopes = np.zeros_like(on_x)
        else:
            inferred, slopes = self._scaled(found), on_y - on_x
        if inferred is None:
            return None
        calls = tuple(inferred.get(i, call) for i, call in enumerate(self.calls))
        if found.is_local:
            near = list(_nearby(calls, claim))
            return Explained(self.calls, near) if near else None

        def apart(changed: Changes) -> Array:
            values = ((np.asarray(changed.get(i, c.value), float), np.asarray(c.value)) for i, c in added.items())
            return np.asarray(self.distance + slopes @ np.concatenate([np.ravel(a - b) for a, b in values]))

        if why := self._reruns.disagreement(apart, np.abs(on_x) @ found.scales):
            raise UntriedError(why)
        return Explained(calls, [])

    def _moved(self, text: str, remedy: str = "", *, is_certain: bool) -> Explained:
        reasons = () if is_certain else ("whether a draw decides about what moved is not known",)
        return Explained(self.calls, [_without_noise(text, remedy, is_certain=is_certain)], reasons)

    def _scaled(self, found: _Response) -> dict[int, ReplayedCall] | None:
        """Return the calls with the distributions of the outputs, if these have at most one draw each, and each draw
        has one.
        """
        shows = np.any(found.matrix != 0.0, axis=0)
        if not np.all(shows.sum(axis=0) == 1) or not np.all(shows.sum(axis=1) <= 1):
            return None
        inferred = {}
        for number, sides in found.factors.items():
            call, distributions = self.calls[number], []
            if call.distribution_on_x.is_integer_valued:
                return None
            rows = np.argmax(np.any(sides != 0.0, axis=0), axis=0)
            for part, output, distribution in zip(
                sides, (self.x, self.y), (call.distribution_on_x, call.distribution_on_y), strict=True
            ):
                factor = part[rows, np.arange(part.shape[1])]
                location = output[rows] - factor * np.ravel(np.asarray(call.value) - distribution.location)
                scale = np.abs(factor) * np.ravel(distribution.scale)  # type: ignore[arg-type]
                held = {"location": location.reshape(distribution.shape), "scale": scale.reshape(distribution.shape)}
                distributions.append(Distribution(distribution.name, held, distribution.shape))
            value = self.x[rows].reshape(call.distribution_on_x.shape)
            inferred[number] = replace(
                call,
                distribution_on_x=distributions[0],
                distribution_on_y=distributions[1],
                value=value,
                is_inferred=True,
            )
        return inferred

    def _differ_always(self, free: npt.NDArray[np.intp], found: _Response) -> bool:
        """Whether no values on y give the output of x: the other coordinates allow one, at which these differ still."""
        if not all(call.is_shifted for call in self.calls) or found.others.any() or found.is_local:
            return False
        more = self._affine({i: call for i, call in enumerate(self.calls) if i not in found.noise})
        if more is None:
            return False
        rest = np.setdiff1d(np.arange(len(self.x)), free)
        factors = {i: part[1, rest] for i, part in {**found.factors, **more.factors}.items()}
        shifts = _shifts(factors, -self.distance[rest], self._reruns.rounding(self.x, self.x)[rest])
        if shifts is None:
            return False
        rng = np.random.default_rng(29)
        for size in (0.0, 1e-3, 1e-3):
            changed = {}
            for i, shift in shifts.items():
                call, near = self.calls[i], size * rng.normal(size=shift.shape)
                changed[i] = moved_by(call, shift + in_units(call, near))
            out = self._reruns.numbers("y", changed)
            if out is None or not np.all(difference(out, self.x)[free] != 0.0):
                return False
        return True

    def _affine(self, noise: dict[int, ReplayedCall]) -> _Response | None:
        """Return what noise does to the outputs; None if they are not affine in it as far away as is tried."""
        try:
            found = _Response(noise, len(self.x), self._reruns)
        except UntriedError:
            return None
        return None if found.others.any() or found.is_local else found

    def sharing_noise(self) -> Explained | None:
        """Return coordinates of which a combination differs although no draws change it; None if none is found.

        It is orthogonal to all moves that fresh draws cause, in more runs than there are independent moves, and stays
        so in further runs. It is certain to tell x from y if the draws are noise in which the output is affine.
        """
        distance, drawn = self.distance, sum(int(np.size(call.value)) for call in self.calls)
        most = min(len(self.x), drawn)
        if len(self.x) < 2 or most > MOST_NUMBERS or not (np.any(distance != 0.0) and np.isfinite(distance).all()):
            return None
        found: list[Array] = []
        for changed in (self._reruns.anew() for _ in range(most + 2 * DRAWS)):
            for side, base in zip(SIDES, (self.x, self.y), strict=True):
                out = self._reruns.numbers(side, changed)
                if out is None or not np.isfinite(out).all():
                    return None
                found.append(difference(out, base))
        moves = np.array(found).T
        learned = (moves / np.maximum(np.abs(moves).max(axis=0), np.finfo(float).tiny))[:, : -2 * DRAWS]
        # Singular values below the root of the precision are those of rounding.
        rest = distance - learned @ np.linalg.lstsq(learned, distance, rcond=1e-8)[0]
        if not np.abs(rest).max() > _EXACT * np.abs(distance).max() + 4.0 * self.slack.max():
            return None
        rest = np.where(np.abs(rest) > 1e-6 * np.abs(rest).max(), rest / np.abs(rest).max(), 0.0)
        far, held = abs(float(rest @ distance)), rest != 0.0
        if not far > _INFINITE * max(float(np.abs(rest @ moves).max()), float(np.abs(rest) @ self.slack)):
            return None
        every, sharing = set(range(len(self.calls))), []
        for number in every:
            alone = self._reruns.moves("x", self._reruns.anew(every - {number}))
            if alone is not None and np.count_nonzero(alone[0][held]) > 1:
                sharing.append(number)
        if not sharing:
            return None
        names = ", ".join(dict.fromkeys(self.calls[number].words for number in sharing))
        text = (
            f"coordinates {_listed(np.flatnonzero(held))} of the output contain the same noise ({names}), and a "
            f"combination of them without noise moved by {far:.6g}"
        )
        is_noise = all(call.is_shifted for call in self.calls)
        response = self._affine(dict(enumerate(self.calls))) if is_noise else None
        is_certain = response is not None and response.is_affine()
        return self._moved(text, "; draw noise for each coordinate", is_certain=is_certain)


def _listed(places: npt.NDArray[np.intp]) -> str:
    return ", ".join(map(str, places[:4])) + ", …" * (len(places) > 4)


def _has_another_scale(call: ReplayedCall) -> bool:
    """Whether a call is noise about 0 on x and on y whose scale differs, such as that of a mean of so many rows."""
    x, y = call.distribution_on_x, call.distribution_on_y
    is_same = call.differing == frozenset({"scale"}) and x.shape == y.shape
    return is_same and call.is_shifted and not call.is_inferred and not np.any(x.location) and not np.any(y.location)


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
    distribution, location = call.distribution_on_x, np.array(call.distribution_on_x.location, dtype=np.float64)
    if distribution.is_integer_valued:
        near = np.round(shift)
        shift = np.where(np.abs(shift - near) <= 1e-9 * np.abs(near), near, shift)
    distributions = [
        Distribution(distribution.name, {**distribution.parameters, "location": each}, distribution.shape)
        for each in (location, location + shift.reshape(distribution.shape))
    ]
    return replace(call, distribution_on_x=distributions[0], distribution_on_y=distributions[1], is_inferred=True)
