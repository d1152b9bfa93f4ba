"""Runs on x and y with other values than those recorded: does the output show a value, do x and y still agree?

Agreement at the recorded values says little where a value decides something. So all values are drawn anew, moved far,
and, where a distribution has few or bounded values, set one by one.

Proof: docs/proofs/replay.md
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, stirling2

from ..claims.claim import Array
from ..datasets.contents import difference, is_of_single_precision, numbers_of, same_form, same_output
from .distributions import SLACK
from .recorded_run import REPEATS, RecordedRun, Runner, other_seed
from .replay_result import Finding, FindingKind, ReplayedCall, named, paired, paired_calls
from .tape import FAR, Drawn, Line

_MORE: Final = 64
"""Runs on each dataset of a mechanism that makes no call and whose outputs differ, before that counts as an excess."""
MOST_NUMBERS: Final = 64
"""Most drawn numbers that are changed one at a time."""
DRAWS: Final = REPEATS
"""Joint draws of all values, as many as repetitions: a difference of probability p is missed with (1 − p)^8."""
_CELLS: Final = (*zip(range(8), range(1, 9), strict=True), (8, 12), (12, 20), (20, 40), (40, 100))
"""Each number of noise takes a random value in each of these ranges, in scales on either side of its location. All
numbers change together, and each goes through the ranges in a random order."""
_SELDOM: Final = 1e-4
"""Noise beyond its quantiles of this probability is not tried value by value."""
_BISECTIONS: Final = 3  # so that a step is missed only if it is narrower than an eighth of a grid's interval
MOST_OUTCOMES: Final = 512
"""Most outcomes of choices that are tried, each on x and on y: ten times the runs of other replays."""
_CHOICES: Final = frozenset({"discrete", "binomial", "integers"})
_MOST_KEPT: Final = 5_000  # calls at other values
_COARSE: Final = (-3.0, -1.5, 1.5, 3.0)
"""Steps, in scales, that show a value in an output that is rounded."""
_ROUNDING: Final = {False: 1e-14, True: 2.0**-22}
"""Of sums of doubles, and of numbers of single precision, relative."""

_BY_CHANCE: Final = 1e-7
"""False alarms of each of the eight tests whether noise is independent: together less than one replay in a million."""

_RANGES: Final = (*((-high, -low) for low, high in _CELLS), *_CELLS)

_APART: Final = "the outputs on x and y differ in another way"
SIDES: Final = ("x", "y")
Calls = tuple[ReplayedCall, ...]
Changes = Mapping[int, Any]


class UntriedError(Exception):
    """There are more values, or numbers, than are tried; the message says of what."""


class Reruns:
    """Runs of both sides with their values put back, but for some."""

    def __init__(self, runner: Runner, calls: Calls, x: tuple[Any, RecordedRun], y: tuple[Any, RecordedRun]) -> None:
        self.calls = calls
        self._runner, self._sides = runner, {"x": x, "y": y}
        self.elsewhere: list[Calls] = []
        """The calls at other values of the draws, where x and y agreed."""
        self.not_kept = 0
        self._paths: set[tuple[Any, ...]] = set()
        self._rng = np.random.default_rng((runner.seed, 29))
        self.relative_rounding = _ROUNDING[is_of_single_precision(x[1].output)]
        moved = Counter(form_of(call) for call in calls if call.is_added and not call.is_unmoved)
        shifted = Counter(form_of(call) for call in calls if call.is_shifted)
        is_all = all(call.is_added or call.is_unmoved for call in calls)
        self.is_seen_often = bool(moved) and is_all and min((*moved.values(), *shifted.values())) >= DRAWS
        """Whether one run tries as many values of the noise as reruns do, because its steps repeat the same lines."""

    def is_fixed(self) -> bool:
        """Whether both sides, which make no call, give the same output in many more runs."""
        seeds = [other_seed(self._runner.seed, REPEATS + number) for number in range(_MORE)]
        runs = ((first, self._runner.run(of, (), seed=seed)) for of, first in self._sides.values() for seed in seeds)
        return all(same_output(first.output, again.output) is True for first, again in runs)

    def freely(self) -> tuple[str, list[Finding]]:
        """Return why the draws of a run are not independent, and the calls that raise in some runs only."""
        if not any(made.tape.calls or made.tape.raised for _, made in self._sides.values()):
            return "", []
        runs: dict[str, list[RecordedRun]] = {"x": [self._sides["x"][1]], "y": []}
        for number, side in enumerate(() if self.is_seen_often else SIDES):
            dataset = self._sides[side][0]
            seeds = (other_seed(self._runner.seed, 1_000 * (number + 1) + turn) for turn in range(2 * DRAWS))
            runs[side] += [self._runner.run(dataset, seed=seed) for seed in itertools.islice(seeds, DRAWS)]
            for seed in seeds:
                noise = {i: call for i, call in enumerate(self.calls) if call.is_shifted and self._rng.random() < 0.5}
                far = {i: self._far(call, float(self._rng.choice(FAR)), None) for i, call in noise.items()}
                self._runner.run(dataset, changed=far, seed=seed)
        repeated = self._runner.streams.repeated or self._why_fixed() or _why_dependent([*runs["x"], *runs["y"]])
        return repeated, list(_raised(runs["x"], runs["y"]))

    def _why_fixed(self) -> str:
        """Return which noise was the same in the runs on x and on y, each of which drew its own before the sum."""
        on_x, on_y = (self._sides[side][1].tape.noise for side in SIDES)
        lines: dict[Line, list[float]] = {}
        for i in on_x.keys() & on_y.keys() & set(range(len(self.calls))):
            call, is_same = self.calls[i], np.array_equal(on_x[i], on_y[i])
            lines.setdefault(call.line, []).append(_chance_of_equal(call) if is_same else 1.0)
        for (primitive, place), chances in lines.items():
            if min(chances) <= _BY_CHANCE or (max(chances) < 1.0 and math.prod(chances) <= _BY_CHANCE):
                return f"{primitive} at {place} draws the same noise on x and on y"
        return ""

    def output(self, side: str, changed: Changes) -> tuple[Any, bool]:
        """Return the output of a side, and whether the run made the same calls; `changed` has calls by number."""
        again = self._run(side, changed)
        return again.output, again.is_on_path_of(self._sides[side][1])

    def _run(self, side: str, changed: Changes) -> RecordedRun:
        dataset, first = self._sides[side]
        return self._runner.run(dataset, first.tape.calls, changed) if changed else first

    def has_distribution_of(self, call: ReplayedCall, number: int, changed: Changes) -> bool:
        """Whether the call of this number is given at other values of the draws what it was given."""
        tapes = [self._run(side, changed).tape for side in SIDES]
        if any(len(tape.calls) <= number for tape in tapes):
            return False
        return has_its_distributions(call, paired(tapes[0].calls[number], tapes[1].calls[number]))

    def rounding(self, *numbers: Array) -> Array:
        """Return by how much sums of such numbers of the outputs may be rounded."""
        with np.errstate(all="ignore"):
            total = np.abs(np.array(numbers)).sum(axis=0)
            return np.asarray(np.nan_to_num(self.relative_rounding * total, nan=0.0, posinf=0.0))

    def numbers(self, side: str, changed: Changes) -> Array | None:
        """Return the numbers of an output of the recorded form; None for other forms, other paths and exceptions."""
        output, is_on_path = self.output(side, changed)
        first = self._sides[side][1]
        if not is_on_path or first.error is not None or not same_form(first.output, output):
            return None
        return numbers_of(output)

    def released(self, side: str, changed: Changes) -> list[Array]:
        """Return the numbers of an output and of each public value; none on another path."""
        again = self._run(side, changed)
        if not again.is_on_path_of(self._sides[side][1]) or again.error is not None:
            return []
        found = (numbers_of(each) for each in (again.output, *(public.value for public in again.tape.public)))
        return [np.empty(0) if each is None else each for each in found]

    def moves(self, side: str, changed: Changes) -> tuple[Array, Array] | None:
        """Return by how much the numbers of an output move, and by how much of that rounding may; None as above."""
        base, out = self.numbers(side, {}), self.numbers(side, changed)
        return None if base is None or out is None else (difference(out, base), self.rounding(out, base))

    def disagreement(self, apart: Callable[[Changes], Array] | None = None, noise: Array | None = None) -> str:
        """Return why the outputs on x and y are not the same at other values, or as far `apart`, or nothing."""
        try:
            apart_from_noise = [*self._combinations(), *(() if self.is_seen_often else self._steps())]
        except UntriedError as why:
            return str(why)
        if self.is_seen_often and len(apart_from_noise) <= 1:
            return ""
        if why_undecided := self._why_undecided():
            return why_undecided
        for changed in (*apart_from_noise, *self._joint()):
            if changed and (reason := self._why_apart(changed, apart, noise)):
                others = named(self.calls[i] for i in changed)
                return f"with other values of {others}, {reason}"
        return ""

    def _combinations(self) -> Iterator[Changes]:
        """Yield all values that the calls of choices can take together: each may lead to another output."""
        outcomes: dict[int, list[Any]] = {}
        for number, call in enumerate(self.calls):
            if call.is_shifted or _is_answer(call) or self._is_tried_by_steps(call):
                continue
            values = outcomes_of(call)
            if call.is_shared:
                yield from ({number: each} for each in values or ())
            elif values is not None:
                outcomes[number] = values
            elif call.distribution_on_x.name in _CHOICES:
                raise UntriedError(f"{call.words} has more than {MOST_OUTCOMES} outcomes, and not all were tried")
            elif call.is_unmoved:
                drawn = f"draws from {call.distribution_on_x} on x and on y, which may decide something"
                raise UntriedError(f"{call.words} {drawn}")
        if math.prod(map(len, outcomes.values())) > MOST_OUTCOMES:
            first = self.calls[next(iter(outcomes))].words
            many = f"have more than {MOST_OUTCOMES} outcomes together, and not all were tried"
            raise UntriedError(f"the draws that may decide something, such as {first}, {many}")
        for each in itertools.product(*outcomes.values()):
            yield dict(zip(outcomes, each, strict=True))

    def _is_tried_by_steps(self, call: ReplayedCall) -> bool:
        """Whether the steps of one run try a draw at as many values as reruns do."""
        if not self.is_seen_often:
            return False
        return sum(each.line == call.line for each in self.calls) >= DRAWS

    def _steps(self) -> Iterator[Changes]:
        """Yield values of whole noise that moved, and one for each step of noise that is rounded afterwards."""
        for number, call in enumerate(self.calls):
            if not call.is_shifted or call.is_inferred or call.is_unmoved or np.size(call.value) != 1:
                continue
            is_whole = call.distribution_on_x.is_integer_valued
            if not is_whole and self._follows(number, np.ones(np.shape(call.value))):
                continue  # near this value the output follows the noise; others are tried at random
            ends = call.distribution_on_x.frozen().ppf, call.distribution_on_x.frozen().isf
            low, high = (float(np.ravel(end(_SELDOM))[0]) for end in ends)
            if is_whole:
                values = np.arange(low, high + 1.0)
                if not len(values):
                    raise UntriedError(f"doubles hold only some of the values of {call.words}, which were not tried")
                if len(values) > MOST_OUTCOMES and not self._is_line(number, values):
                    many = f"more than {MOST_OUTCOMES} values that are not rare, and not all were tried"
                    raise UntriedError(f"{call.words} has {many}")
                values = values[:: -(-len(values) // MOST_OUTCOMES)]
            else:
                values = self._stepvalues(number, np.linspace(low, high, MOST_NUMBERS))
                if len(values) > MOST_OUTCOMES:
                    raise UntriedError(
                        f"{call.words} is rounded to more than {MOST_OUTCOMES} values; not all were tried"
                    )
            yield from ({number: like(call, each)} for each in values)

    def _follows(self, number: int, direction: Array) -> bool:
        """Whether the output changes with a small change of a call's value, on both sides."""
        call = self.calls[number]
        return any(self._shows({number: nudged(call, np.asarray(call.value), s * direction)}) for s in (1.0, -1.0))

    def _is_line(self, number: int, values: Array) -> bool:
        """Whether the numbers of the output on x are an affine function of a drawn number, at some values."""
        tried = values[:: -(-len(values) // MOST_NUMBERS)]
        rows = [self.numbers("x", {number: like(self.calls[number], each)}) for each in tried]
        if any(row is None for row in rows):
            return False
        held = np.array(rows)
        slopes = (held[-1] - held[0]) / (tried[-1] - tried[0])
        return bool(np.all(np.abs(held - held[0] - np.outer(tried - tried[0], slopes)) <= self.rounding(*held)))

    def _stepvalues(self, number: int, grid: Array) -> Array:
        """Return values between which the output on x takes its steps; one narrower than an eighth may be missed."""
        found, todo = [float(grid[0])], [(float(a), float(b), 0) for a, b in itertools.pairwise(grid)][::-1]
        outputs: dict[float, Any] = {}

        def output(at: float) -> Any:
            if at not in outputs:
                outputs[at] = self.output("x", {number: like(self.calls[number], at)})[0]
            return outputs[at]

        while todo and len(found) <= MOST_OUTCOMES:
            low, high, turn = todo.pop()
            if same_output(output(low), output(high)) is True:
                continue
            if turn == _BISECTIONS:
                found.append(high)
                continue
            middle = (low + high) / 2.0
            is_third = all(same_output(output(middle), output(end)) is not True for end in (low, high))
            todo += [(middle, high, 0 if is_third else turn + 1), (low, middle, 0 if is_third else turn + 1)]
        return np.array(found)

    def _why_undecided(self) -> str:
        """Return which noise decides something: it changes the output, but not if it changes by little."""
        tried, steps = 0, Counter[Line]()
        for number, call in enumerate(self.calls):
            if not call.is_unmoved or not (call.is_shifted or _is_answer(call)) or call.is_bare_noise:
                continue
            if call.is_added or (call.is_shared and np.size(call.value) > MOST_NUMBERS):
                steps[call.line] += 1
                if steps[call.line] > DRAWS:  # as many steps of a training as there are reruns
                    continue
                if not self._follows(number, self._rng.choice([-1.0, 1.0], np.shape(call.value))):
                    return f"{call.words} is given the same on x and on y, and the output does not show its values"
                continue
            flags = self.shown(number)
            if not call.is_shifted and not flags.all():
                return f"{call.words} is given the same on x and on y, and the output does not show its value"
            for place in np.flatnonzero(~flags).tolist():
                tried += 1
                if tried > MOST_NUMBERS:
                    return f"more than {MOST_NUMBERS} numbers that are drawn do not show in the output"
                direction = one_of(call, place)
                for far in (*FAR, *(-each for each in FAR)):
                    if self._shows({number: stepped(call, far * direction)}, both=False):
                        return f"{call.words} is given the same on x and on y, and decides something"
        return ""

    def _why_apart(self, changed: Changes, apart: Callable[[Changes], Array] | None, noise: Array | None) -> str:
        on_x, first = self._run("x", changed), self._sides["x"][1]
        pairs = enumerate(zip(first.tape.calls, on_x.tape.calls, strict=False))
        same = next((i for i, (one, other) in pairs if apart is None and one.line != other.line), len(self.calls))
        if not on_x.is_on_path_of(first) or same < len(self.calls):
            return _APART if apart is not None else self._why_apart_elsewhere(on_x, changed, same)
        on_y = self._run("y", changed)
        if not on_y.is_on_path_of(self._sides["y"][1]):
            return _APART
        self._keep(on_x, on_y)
        x, y = on_x.output, on_y.output
        if apart is None or noise is None:
            return "" if same_output(x, y) is True else _APART
        a, b, expected = numbers_of(x), numbers_of(y), apart(changed)
        if a is None or b is None or not same_form(x, y) or len(a) != len(expected):
            return _APART
        with np.errstate(all="ignore"):
            error = np.abs(difference(b, a) - expected)
        is_near = np.all(error <= 1e-9 * noise + 1e-9 * np.abs(expected) + self.rounding(a, b))
        return "" if is_near else _APART

    def _why_apart_elsewhere(self, on_x: RecordedRun, changed: Changes, same: int) -> str:
        """Return why x and y do not agree where a choice leads to calls of other lines, which draw for themselves."""
        runner, calls = self._runner, self._sides["x"][1].tape.calls
        path = tuple(map(form_of, on_x.tape.calls))
        is_new = path not in self._paths and len(self._paths) < MOST_NUMBERS
        self._paths.add(path)
        for _ in range(DRAWS if is_new else 1):
            seed = other_seed(runner.seed, 10_000 + runner.runs)
            on_x = runner.run(self._sides["x"][0], calls[:same], changed, seed=seed)
            on_y = runner.run(self._sides["y"][0], on_x.tape.calls, seed=other_seed(runner.seed, -1))
            if not on_y.is_on_path_of(on_x) or same_output(on_x.output, on_y.output) is not True:
                return _APART
            for call in self._keep(on_x, on_y):
                if call.is_bare_noise or (call.is_unmoved and _may_decide(call)):
                    return f"{call.words} is called as well, and may decide something"
        return ""

    def _keep(self, on_x: RecordedRun, on_y: RecordedRun) -> Calls:
        """Keep the calls of two runs that agree, for their losses."""
        calls = paired_calls(on_x.tape, on_y.tape)
        if len(self.elsewhere) * len(self.calls) < _MOST_KEPT:
            self.elsewhere.append(calls)
        else:
            self.not_kept += 1
        return calls

    def _joint(self) -> Iterator[Changes]:
        """Yield changes of all values: fresh draws, draws at the middle of the noise, and values far away."""
        for _ in range(DRAWS):
            yield self.anew()
        noise = {i: call for i, call in enumerate(self.calls) if call.is_shifted}
        yield from self._sweep_together(noise)
        if not noise:
            return
        for far in FAR:
            for sign in (1.0, -1.0, None):
                yield {**self.anew(set(noise)), **{i: self._far(call, far, sign) for i, call in noise.items()}}
        yield {i: at_its_middle(call) for i, call in noise.items()}

    def _sweep_together(self, noise: dict[int, ReplayedCall]) -> Iterator[Changes]:
        """Yield changes of all numbers of noise, such that each takes a value in each range."""
        unknown = {i: self.spread(call) for i, call in enumerate(self.calls) if _is_of_unknown_distribution(call)}
        swept = [*noise, *unknown]
        sizes = {number: int(np.size(self.calls[number].value)) for number in swept}
        orders = {i: self._rng.permuted(np.tile(np.arange(len(_RANGES)), (n, 1)), axis=1) for i, n in sizes.items()}
        for turn in range(len(_RANGES) if swept else 0):
            changed = self.anew(set(swept))
            for number in swept:
                call, ends = self.calls[number], np.array(_RANGES, dtype=np.float64)[orders[number][:, turn]]
                steps = self._rng.uniform(ends[:, 0], ends[:, 1]).reshape(np.shape(call.value))
                changed[number] = moved_by(call, steps * unknown[number]) if number in unknown else _at(call, steps)
            yield changed

    def spread(self, call: ReplayedCall) -> Array:
        """Return how far apart draws of a call are, each number by itself."""
        found = [value for _ in range(DRAWS) if (value := self._drawn_anew(call)) is not None]
        found = [np.asarray(each, dtype=np.float64) for each in found if np.shape(each) == np.shape(call.value)]
        return np.asarray(np.std(found, axis=0) if found else np.ones(np.shape(call.value)))

    def anew(self, but: set[int] | None = None) -> dict[int, Any]:
        """Return fresh values of all calls but some."""
        found = {}
        for number, call in enumerate(self.calls):
            if number not in (but or ()) and (value := self._drawn_anew(call)) is not None:
                found[number] = value
        return found

    def _drawn_anew(self, call: ReplayedCall) -> Any:
        """Return another value of the call on x; None if there is none."""
        distribution = call.distribution_on_x
        try:
            if call.is_shifted:
                return like(call, distribution.frozen().rvs(size=distribution.shape or None, random_state=self._rng))
            return self._runner.drawn(call.draw_on_x, int(self._rng.integers(2**32)))
        except Exception:  # a primitive may raise anything
            return None

    def touched(self, but: set[int], n: int) -> npt.NDArray[np.bool_]:
        """Return which of n numbers of the output change when all calls but some are drawn anew."""
        found = np.zeros(n, dtype=bool)
        for _ in range(DRAWS if len(but) < len(self.calls) else 0):
            changed = self.anew(but)
            for side in SIDES:
                moves = self.moves(side, changed)
                if moves is None:
                    return np.ones(n, dtype=bool)
                found |= moves[0] != 0.0
        return found

    def _far(self, call: ReplayedCall, far: float, sign: float | None) -> Any:
        signs = self._rng.choice([-1.0, 1.0], call.distribution_on_x.shape) if sign is None else sign
        return stepped(call, far * signs * np.ones(call.distribution_on_x.shape))

    def shown(self, number: int) -> npt.NDArray[np.bool_]:
        """Return which numbers of a call's value show in the output, on x and on y; one flag if it has none."""
        call = self.calls[number]
        value = np.asarray(call.value)
        if value.dtype.kind not in "iuf" or call.distribution_on_x.name == "discrete":
            others = self.other_values(number)
            return np.array([bool(others) and all(self._shows({number: other}) for other in others)])
        flags = np.zeros(value.size, dtype=bool)
        for place in range(min(value.size, MOST_NUMBERS)):
            step = one_of(call, place)
            flags[place] = self._follows(number, step) or (call.is_shifted and self._shows_coarsely(number, step))
        return flags

    def _shows_coarsely(self, number: int, direction: Array) -> bool:
        call = self.calls[number]
        for side in SIDES:
            found = [self._sides[side][1].output]
            for step in _COARSE:
                output, is_on_path = self.output(side, {number: stepped(call, step * direction)})
                if not is_on_path:
                    return False
                if all(same_output(output, other) is False for other in found):
                    found.append(output)
            if len(found) < len(_COARSE):
                return False
        return True

    def _shows(self, changed: Changes, *, both: bool = True) -> bool:
        """Whether a change of values changes the output, on both sides or on one; on one, another path does too."""
        found = []
        for side in SIDES:
            output, is_on_path = self.output(side, changed)
            is_other = same_output(self._sides[side][1].output, output) is False
            found.append(is_on_path and is_other if both else is_other or not is_on_path)
        return all(found) if both else any(found)

    def other_values(self, number: int) -> list[Any]:
        """Return other values of a call: all of few, else some."""
        call = self.calls[number]
        others = outcomes_of(call) or [value for _ in range(DRAWS) if (value := self._drawn_anew(call)) is not None]
        others = [value for value in others if same_output(value, call.value) is False]
        return others[:: max(-(-len(others) // MOST_NUMBERS), 1)]


def form_of(call: ReplayedCall | Drawn) -> tuple[Any, ...]:
    """Return the line of a call, the name of its distribution and the shape of its value."""
    distribution = call.distribution if isinstance(call, Drawn) else call.distribution_on_x
    return call.line, distribution.name, distribution.shape


def _may_decide(call: ReplayedCall) -> bool:
    """Whether a call is neither noise, nor a choice of few outcomes, nor a draw for rows."""
    return not (call.is_shifted or call.is_shared or call.distribution_on_x.name in _CHOICES)


def _chance_of_equal(call: ReplayedCall) -> float:
    """Return a bound on the probability that two draws of noise are equal, also if single numbers often are."""
    distribution, size = call.distribution_on_x, np.size(call.value)
    if distribution.is_integer_valued:
        return float(np.prod(np.tanh(0.5 / np.asarray(distribution.scale))))
    # numbers of a single are held to the eight bits of a bfloat16
    return float((2.0**-26 if np.asarray(call.value).itemsize == 8 else 2.0**-8) ** size)


def _raised(on_x: list[RecordedRun], on_y: list[RecordedRun]) -> Iterator[Finding]:
    """Yield a finding for each line whose call of a primitive raises in some runs and not in others."""
    found: dict[Line, str] = {}
    for run in (*on_x, *on_y):
        found |= run.tape.raised
    for (primitive, place), error in found.items():
        x, y = (sum((primitive, place) in run.tape.raised for run in runs) for runs in (on_x, on_y))
        if (x, y) != (len(on_x), len(on_y)):
            often = f"in {x} of {len(on_x)} runs on x and in {y} of {len(on_y)} on y"
            yield Finding(kind=FindingKind.RAISES, place=place, seen=f"{primitive} raises {error}, {often}")


class _Numbers(NamedTuple):
    """Numbers of noise by row, from their locations and in scales, with a column for each run."""

    names: list[str]
    noise: Array
    near: Array  # how far apart rounding may set equal ones
    chance: Array  # bound on the probability that two independent ones are so near
    rounded: Array  # the same, also where a primitive rounds its values to the grid on which they were found


def _why_dependent(runs: list[RecordedRun]) -> str:
    """Return which noise depends on other noise, also of functions that draw from a source that is not recorded."""
    found = []
    for drawn in zip(*(run.tape.calls for run in runs), strict=False):
        if len({(each.primitive, each.place, each.distribution.name, each.distribution.shape) for each in drawn}) > 1:
            break
        if (numbers := _numbers(drawn)) is not None:
            found.append(numbers)
    if not found:
        return ""
    noise, sums = _joined(found), [total for each in found if len(each.names) > 1 for total in _totals(each)]
    names = [f"the size of {name}" for name in noise.names]
    sizes = _Numbers(names, np.abs(noise.noise), noise.near, 2.0 * noise.chance, 2.0 * noise.rounded)
    few = [noise, sizes, *([_joined(sums)] if sums else [])]
    if len(runs) == 1:
        return _why_in_common(sizes)  # the others compare runs
    tests = [*((_why_few, each) for each in few), (_why_equal, noise), (_why_equal, sizes), (_why_in_common, sizes)]
    return next(filter(None, (test(of) for test, of in (*tests, (_why_monotone, noise), (_why_linear, noise)))), "")


def _why_few(of: _Numbers) -> str:
    """Return which number takes too few values: there are S(n, m) ways in which n runs can have m values."""
    n = of.noise.shape[1]
    values = 1 + np.sum(np.diff(np.sort(of.noise, axis=1), axis=1) > of.near[:, None], axis=1)
    chance = np.where(values == 1, of.chance, of.rounded)
    is_few = (values < n) & (len(values) * stirling2(n, values) * chance ** (n - values) <= _BY_CHANCE)
    if not is_few.any():
        return ""
    first = int(np.argmax(is_few))
    if values[first] == 1:
        return f"{of.names[first]} is the same in all of {n} runs"
    return f"{of.names[first]} takes only {values[first]} values in {n} runs"


def _why_equal(of: _Numbers) -> str:
    """Return which two numbers are the same in every run."""
    d, n = of.noise.shape
    order = np.lexsort(of.noise.T[::-1])
    near = np.minimum(of.near[order[1:]], of.near[order[:-1]])
    is_same = np.all(np.abs(np.diff(of.noise[order], axis=0)) <= near[:, None], axis=1)
    is_same &= d**2 * np.minimum(of.rounded[order[1:]], of.rounded[order[:-1]]) ** n <= _BY_CHANCE
    if not is_same.any():
        return ""
    a, b = order[int(np.argmax(is_same)) :][:2].tolist()
    return f"{of.names[a]} and {of.names[b]} are the same in all of {n} runs"


def _why_in_common(of: _Numbers) -> str:
    """Return which numbers repeat others in any runs: by chance, k of N do with probability (p N²/2)ᵏ/k!."""
    fine = of.rounded <= 2.0 * of.rounded.min()  # coarser ones repeat by chance
    n, values = of.noise.shape[1], of.noise[fine].reshape(-1)
    order = np.argsort(values)
    is_near = np.diff(values[order]) <= of.near[fine].max()
    k, pairs = int(is_near.sum()), len(values) ** 2 / 2.0
    if k == 0 or k * math.log(pairs * of.rounded[fine].max()) - gammaln(k + 1) > math.log(_BY_CHANCE):
        return ""
    at = int(np.argmax(is_near))
    one, other = (of.names[int(np.flatnonzero(fine)[place // n])] for place in order[at : at + 2])
    return f"{k} of {len(values)} numbers of noise in {n} runs repeat others, such as {one} and {other}"


def _why_monotone(of: _Numbers) -> str:
    """Return which number rises or falls with another one, or its size does, in nearly all runs: Kendall's test."""
    n = of.noise.shape[1]  # of more numbers than d, even the same order in all runs would be chance
    d = min(len(of.names), int(math.sqrt(_BY_CHANCE * math.factorial(n) / 8.0)))
    inversions = np.ones(1)
    for size in range(2, n + 1):
        inversions = np.convolve(inversions, np.full(size, 1.0 / size))
    # twice for ties broken at random, twice for both directions, and 2 d (d - 1) pairs of numbers and sizes
    most = int(np.searchsorted(8.0 * d * (d - 1) * np.cumsum(inversions), _BY_CHANCE, side="right")) - 1
    if d < 2:
        return ""
    held, near = np.concatenate([of.noise[:d], np.abs(of.noise[:d])]), np.tile(of.near[:d], 2)[:, None]
    one, other = np.triu_indices(n, 1)
    apart = held[:, one] - held[:, other]
    signs = np.where(np.abs(apart) > near, np.sign(apart), 0.0).astype(np.float32)
    agreement = np.abs(signs @ signs.T)
    agreement[np.tile(np.eye(d, dtype=bool), (2, 2))] = 0.0
    if agreement.max() < len(one) - 2 * most:
        return ""
    a, b = (int(place) % d for place in np.unravel_index(np.argmax(agreement), agreement.shape))
    return f"{of.names[a]} and {of.names[b]}, or their sizes, have the same order in {n} runs, or the reverse"


def _why_linear(of: _Numbers) -> str:
    """Return which of a few successive numbers, or of their squares, are bound by a linear equation with a constant."""
    n = of.noise.shape[1]
    width = min(len(of.names), n - 5)  # leaves five for the test
    fine = np.flatnonzero(len(of.names) * width * (2.0 * of.rounded) ** (n - width) <= _BY_CHANCE)[:MOST_OUTCOMES]
    if len(fine) < 2:
        return ""
    windows = np.lib.stride_tricks.sliding_window_view(of.noise[fine], min(len(fine), width), axis=0)
    for power, what in ((1, ""), (2, "the square of ")):
        equations = np.concatenate([np.ones((*windows.shape[:2], 1)), windows**power], axis=2)
        equations /= np.linalg.norm(equations, axis=1, keepdims=True)
        least = np.linalg.svd(equations, compute_uv=False)[:, -1]
        if least.min() <= _ROUNDING[True]:
            at = int(np.argmin(least))
            factors = np.abs(np.linalg.svd(equations[at])[2][-1, 1:])
            one, other = fine[at + np.sort(np.argsort(factors)[-2:])].tolist()
            return f"a linear equation binds {what}{of.names[one]} and {what}{of.names[other]} in all of {n} runs"
    return ""


def _numbers(drawn: Sequence[Drawn]) -> _Numbers | None:
    """Return the numbers of a call in all runs; None if they are not noise, or rounding hides it."""
    distributions = [each.distribution for each in drawn]
    if any(each.after or not each.is_shifted or each.location is None or each.scale is None for each in distributions):
        return None
    values = np.array([np.asarray(each.value) for each in drawn]).reshape(len(drawn), -1)
    precision = np.finfo(values.dtype if values.dtype.kind == "f" else np.float64).eps
    values = values.astype(np.float64)
    locations = np.reshape([each.location for each in distributions], values.shape)
    scales = np.reshape([each.scale for each in distributions], values.shape)
    with np.errstate(all="ignore"):
        noise = (values - locations) / scales
        rounding = 4.0 * precision * (np.abs(values) + np.abs(locations)) / scales
    near = np.maximum(SLACK, rounding.max(axis=0))
    seen = np.all(np.isfinite(noise) & (scales > 0.0), axis=0) & (near < 1.0)
    if not seen.any():
        return None
    near, least = near[seen], scales[:, seen].min(axis=0)
    # no distribution has a density above 1/2 per scale, nor a whole number a probability above this one
    chance = np.tanh(0.5 / least) if distributions[0].is_integer_valued else near
    seen_values = values[:, seen]
    grid = _grid(seen_values if len(drawn) > 1 else seen_values.T, 4.0 * precision)  # of one run, that of all numbers
    rounded = np.maximum(chance, np.minimum(grid / (2.0 * least), 1.0))
    names = [f"the noise of {drawn[0].primitive} at {drawn[0].place}"] * len(near)
    return _Numbers(names, noise[:, seen].T, near, chance, rounded)


def _grid(values: Array, rounding: float) -> Array:
    """Return, for each column, the coarsest power of 2 or of 10 that divides all its numbers; 0 if none does."""
    grid = np.zeros(values.shape[1])
    for base, powers in ((2.0, range(-26, 11)), (10.0, range(-8, 4))):
        fits = np.ones(len(grid), dtype=bool)
        for step in (base**power for power in powers):
            steps = values / step
            fits &= np.all(np.abs(steps - np.round(steps)) <= rounding * np.abs(steps), axis=0)
            if not fits.any():
                break
            grid[fits] = np.maximum(grid[fits], step)
    return grid


def _totals(of: _Numbers) -> list[_Numbers]:
    """Return the sum of the numbers of a call, and that of their squares: fixed if the noise is centred or normed."""
    found = []
    for power, what in ((1, ""), (2, "the squares of ")):
        total = np.sum(of.noise**power, axis=0, keepdims=True)
        near = np.array([of.near.sum() * np.abs(of.noise).max() ** (power - 1) * power])
        chances = (np.maximum(power * each.max(keepdims=True), near) for each in (of.chance, of.rounded))
        found.append(_Numbers([f"the sum of {what}{of.names[0]}"], total, near, *chances))
    return found


def _joined(parts: list[_Numbers]) -> _Numbers:
    names, *arrays = zip(*parts, strict=True)
    return _Numbers(list(itertools.chain(*names)), *map(np.concatenate, arrays))


def like(call: ReplayedCall, numbers: npt.ArrayLike) -> Any:
    """Return numbers in the shape and type of the call's value, rounded where that has whole numbers."""
    value = np.asarray(call.value)
    found = np.reshape(numbers, value.shape)
    return typed(call.value, np.round(found).astype(np.int64) if value.dtype.kind in "iu" else found)


def typed(value: Any, numbers: Array) -> Any:
    """Return numbers in the type of a value: an array, a number of numpy or of Python, a list."""
    if isinstance(value, np.ndarray):
        return numbers.astype(value.dtype)
    if isinstance(value, np.generic):
        return numbers.astype(value.dtype)[()]
    return numbers.tolist() if isinstance(value, (list, int, float)) else numbers[()]


def has_its_distributions(call: ReplayedCall, other: ReplayedCall) -> bool:
    """Whether another call has the distributions of this one, on x and on y."""
    return all(one.is_same_as(another) for one, another in zip(call.both, other.both, strict=True))


def one_of(call: ReplayedCall, place: int) -> Array:
    """Return the direction in which one number of a call's value changes by 1."""
    direction = np.zeros(np.shape(call.value))
    direction.reshape(-1)[place] = 1.0
    return direction


def stepped(call: ReplayedCall, steps: Array) -> Any:
    """Return the call's value with so many scales added to its numbers, which stay whole numbers if they were."""
    return moved_by(call, in_units(call, steps))


def in_units(call: ReplayedCall, steps: Array) -> Array:
    """Return steps of so many scales in units of the value; whole numbers for a distribution of whole numbers."""
    units: Array = steps * np.asarray(call.distribution_on_x.scale).reshape(np.shape(steps))
    is_whole = call.distribution_on_x.is_integer_valued or np.asarray(call.value).dtype.kind in "iu"
    return np.asarray(np.sign(units) * np.maximum(np.round(np.abs(units)), 1.0)) if is_whole else units


def moved_by(call: ReplayedCall, units: Array) -> Any:
    """Return the call's value plus the units, in the value's type."""
    value = np.asarray(call.value)
    return like(call, value + np.asarray(units).reshape(value.shape))


def _at(call: ReplayedCall, steps: Array) -> Any:
    """Return the value with its numbers so many scales from their location."""
    middle = np.asarray(at_its_middle(call), dtype=np.float64) - np.asarray(call.value)
    return moved_by(call, middle.reshape(steps.shape) + in_units(call, steps))


def at_its_middle(call: ReplayedCall) -> Any:
    """Return the location of the call as its value."""
    return like(call, np.array(call.distribution_on_x.location, dtype=np.float64))


def nudged(call: ReplayedCall, value: Array, direction: Array) -> Any:
    """Return the value moved by a little: a thousandth of the scale, or 1 for whole numbers."""
    if value.dtype.kind in "iu":
        return like(call, value + direction)
    scale = call.distribution_on_x.scale
    unit = np.ones(value.shape) if scale is None else np.broadcast_to(scale, value.shape)
    with np.errstate(all="ignore"):
        unit = np.where((unit > 0.0) & np.isfinite(unit), unit, 1.0 + np.abs(value))
    return like(call, value + 1e-3 * unit * direction)


def _is_answer(call: ReplayedCall) -> bool:
    """Whether a call adds noise to something that is not 0, and then rounds, truncates or folds the sum."""
    distribution = call.distribution_on_x
    return distribution.is_shifted and bool(distribution.after) and bool(np.all(distribution.location != 0.0))


def _is_of_unknown_distribution(call: ReplayedCall) -> bool:
    is_unknown = bool(call.distribution_on_x.after) or not call.distribution_on_x.is_known
    is_moved = is_unknown and not call.is_unmoved and not call.is_shifted
    return is_moved and np.asarray(call.value).dtype.kind in "if"


def outcomes_of(call: ReplayedCall) -> list[Any] | None:
    """Return all values of a choice that are possible on x or on y; None for other calls, and if there are too many."""
    x, y = call.distribution_on_x, call.distribution_on_y
    if x.name not in _CHOICES or x.name != y.name or x.shape != y.shape or x.after:
        return None
    if x.name == "discrete":
        odds = [np.atleast_1d(distribution.probabilities) for distribution in (x, y)]
        most = max(len(each) for each in odds)
        levels = np.flatnonzero(np.sum([np.pad(each, (0, most - len(each))) for each in odds], axis=0))
    else:
        low = np.min(x.parameters.get("low", 0))
        high = np.max(x.parameters["n"]) + 1 if x.name == "binomial" else np.max(x.parameters["high"])
        levels = np.arange(low, min(high, low + MOST_OUTCOMES + 1))
    size = math.prod(x.shape)
    if len(levels) ** min(size, MOST_OUTCOMES) > MOST_OUTCOMES:
        return None
    held = itertools.product(levels.tolist(), repeat=size)
    return [like(call, each) for each in held]
