"""The tape of a run: it records what each noise primitive was given and returned, or puts recorded values back.

One tape is active in a process at a time, for one thread. A primitive that is called inside another one belongs to it
and is not recorded. Calls from other threads are carried out unchanged and counted.
"""

from __future__ import annotations

import ctypes
import itertools
import linecache
import math
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from ..claims.claim import Claim
from ..datasets.contents import NotCopied, kept
from ..errors import MechanismError, described
from ..events.named_parts import EXACT
from ..printing import shorten
from ..sampling.object_identity import below_packages, cell_of
from .distributions import INITIAL_WEIGHTS, SYMMETRIC, Distribution, RowMatch, are_alike, copied, is_of_rows

# Where a primitive was called: the innermost frame outside the primitive and outside dpaudit's audits.

_INSIDE: Final = (
    "dpaudit.audit.", "dpaudit.mechanisms.adapters.", "numpy.", "scipy.", "torch.", "opendp.", "pydp.", "random",
    "secrets", "functools", "contextlib",
)  # fmt: skip
"""Modules that carry out a call and did not ask for it; a name that ends in a dot stands for what is below it."""

_COMPREHENSIONS: Final = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


@dataclass(frozen=True, slots=True)
class Place:
    """A line of code; `file` is as Python knows it."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        """A notebook's cell, the path from installed packages or the working directory, or its last two parts."""
        path = Path(self.file)
        short = cell_of(self.file) or (below_packages(path) if path.is_absolute() else self.file)
        if short is None:
            try:
                short = path.relative_to(Path.cwd()).as_posix()
            except (ValueError, OSError):
                short = "/".join(path.parts[-2:])
        return f"{short}:{self.line} in {self.function}"

    @property
    def source(self) -> str:
        """The text of the line; empty if the file cannot be read."""
        return linecache.getline(self.file, self.line).strip()


Line: TypeAlias = tuple[str, Place]
"""A primitive, and where it is called."""


def place_of_call() -> Place:
    """Return the place that asked for the draw; the outermost frame if every frame is inside."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    parts = [part for part in frame.f_code.co_qualname.split(".") if part != "<locals>"]
    while parts and parts[-1] in _COMPREHENSIONS:  # the function that contains it asked
        parts.pop()
    return Place(frame.f_code.co_filename, frame.f_lineno, parts[-1] if parts else "<module>")


@lru_cache
def _is_inside(module: str) -> bool:
    return any(module == each or (each.endswith(".") and f"{module}.".startswith(each)) for each in _INSIDE)


# What a run records.


@dataclass(frozen=True, slots=True)
class Declared:
    """What a primitive states about itself: the sensitivity of its input, and the loss that it promises for it."""

    sensitivity: float | None = None
    epsilon: float | None = None
    delta: float = 0.0
    input: Any = None  # the numbers that the sensitivity is for, if they are not the location of the distribution
    # for two inputs, how far they are apart and the claim that the primitive keeps for so far; None if it does not know
    promise: Callable[[Any, Any], tuple[float, Claim] | None] | None = None
    made: Any = None  # the object that the primitive is, if what it does with its result cannot be seen


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A call of a noise primitive as one run made it."""

    primitive: str
    place: Place
    distribution: Distribution
    value: Any = field(repr=False)
    declared: Declared | None
    draw: Callable[[], Any] = field(repr=False)  # the same call again
    is_added: bool = False  # the value is the sum to which the noise was added after the call
    is_shared: bool = False  # a draw for rows of the dataset, or of initial weights: x and y share it

    @property
    def line(self) -> Line:
        """The line of code that makes the call."""
        return self.primitive, self.place


class Public(NamedTuple):
    """A value that the code states to be independent of the data."""

    name: str
    place: Place
    value: Any
    after: int  # calls of primitives before it


class Streams:
    """The generators of a replay's runs: where their random numbers come from, and that no draw repeats another.

    A draw is fresh if it starts at a known state, at which no other draw started: that of a generator at its creation,
    with the entropy of the run or of the operating system, or one at which a recorded draw ended.
    """

    def __init__(self) -> None:
        self.repeated = self.unknown = ""
        self._known: set[Hashable] = set()
        self._starts: dict[Hashable, tuple[Place, int]] = {}
        self._read: set[int] = set()
        self.runs = itertools.count()

    def know(self, source: Any) -> None:
        """Record that a generator stands at the beginning of a stream of fresh numbers."""
        self._known.add(state_of(source))

    def is_known(self, source: Any) -> bool:
        """Whether a generator stands where a stream begins or a recorded draw ended."""
        return state_of(source) in self._known

    def note_read(self, entropy: bytes) -> None:
        """Record what the operating system gave, if it is enough for a seed."""
        if len(entropy) >= _ENOUGH:
            self._read.add(int.from_bytes(entropy, "big"))

    def note_drawn_seed(self, seed: int) -> None:
        """Record a whole number of 64 bits that a recorded generator drew, and that may seed another."""
        self._read.add(seed)

    def was_read(self, seed: Any) -> bool:
        """Whether a seed is what the operating system gave during this replay."""
        number = int.from_bytes(seed, "big") if isinstance(seed, (bytes, bytearray)) else seed
        return isinstance(number, int) and number in self._read

    def note_draw(self, start: Hashable, end: Hashable, run: int, *, is_anew: bool) -> None:
        """Record a draw from one state to another; the draws of runs that draw anew must all start elsewhere."""
        if is_anew and start != end:
            self._check(start, run)
        if start in self._known:
            self._known.add(end)

    def _check(self, start: Hashable, run: int) -> None:
        place = place_of_call()
        first, earlier = self._starts.get(start, (place, None))
        self._starts[start] = place, run
        if earlier == run:
            self.repeated = self.repeated or (
                f"the numbers drawn at {place} were drawn before, at {first}: a state, a copy or a seed of a generator "
                "is used again, so the noise is not independent"
            )
        elif earlier is not None:
            self.unknown = f"the numbers drawn at {place} are the same in every run, or in several"
        if start not in self._known:
            self.unknown = self.unknown or (
                f"the numbers drawn at {place} come from a generator whose seed or state is neither that of rng nor "
                "from the operating system during the run, so they may be the same in every run"
            )


IS_UNUSED: Final = "is_unused"
"""Attribute of the state that stands for the global one: whether nothing has asked it for anything."""


def state_of(source: Any) -> Hashable:
    """Return the state of a generator of numpy or of `random`, such that equal states draw equal numbers."""
    if isinstance(source, random.Random):
        return hash(random.Random.getstate(source))
    if isinstance(source, np.random.Generator):
        return state_of_bits(source.bit_generator)
    if hasattr(source, "initial_seed"):  # of torch
        return hash(source.get_state().numpy().tobytes())
    state = state_of_bits(object.__getattribute__(source, "_bit_generator"))  # which does not count as using it
    try:
        is_unused = object.__getattribute__(source, IS_UNUSED)
    except AttributeError:
        is_unused = False
    held = {"has_gauss": 0} if is_unused else source.get_state(legacy=False)
    return hash((state, held["gauss"])) if held["has_gauss"] else state


def state_of_bits(bits: Any) -> Hashable:
    """Return the state of a bit generator of numpy."""
    if type(bits) is np.random.MT19937:
        # 624 words and a position; the attribute `state` takes 40 microseconds, and is read four times in a run of 200
        return hash(ctypes.string_at(bits.ctypes.state_address, 625 * 4))
    return hash(comparable(bits.state))


def comparable(state: Any) -> Hashable:
    """Return the state of a generator in a form that can be compared; the repr of an array takes milliseconds."""
    if isinstance(state, Mapping):
        return tuple((key, comparable(value)) for key, value in state.items())
    if isinstance(state, np.ndarray):
        return state.tobytes()
    return state if isinstance(state, (int, str)) else repr(state)


class Tape:
    """The calls of one run, in their order.

    With `put_back`, each call returns the recorded value, or that in `changed`, while the calls match those recorded.
    At the first that does not, the paths part, and the rest draws for itself. States of generators are read only if the
    tape `follows` their streams: that takes most of a short run's time.
    """

    def __init__(
        self,
        put_back: Sequence[Drawn] | None = None,
        changed: Mapping[int, Any] | None = None,
        *,
        entropy: int,
        streams: Streams,
        follows: bool = True,
        unfollowed: frozenset[Line] | None = None,
        rows: RowMatch | None = None,
        on_y: bool = False,
    ) -> None:
        self.put_back = put_back
        self.changed = changed or {}
        self.calls: list[Drawn] = []
        self.raised: dict[Line, str] = {}
        self.public: list[Public] = []
        self.parted_at: int | None = None
        self.unseen: Counter[str] = Counter()
        self.seeds: list[tuple[Place, str]] = []
        self.made: list[Any] = []
        self.streams, self.follows = streams, follows
        self.unfollowed = unfollowed  # lines whose noise is not followed to a sum; None if none is
        self.lost: set[Line] = set()
        """Lines whose noise is followed, and is used in another way than to be added once."""
        self.noise: dict[int, Any] = {}
        self._rows, self._on_y = rows, on_y
        self._run = next(streams.runs)
        self._seeds = np.random.SeedSequence(entropy, spawn_key=(UNSEEDED,))
        self._thread = threading.get_ident()
        self._inside = 0
        self._drawing: list[Any] = []

    def note_public(self, name: str, value: Any) -> None:
        """Record a value that is stated to be public, with a copy of it."""
        self.public.append(Public(name, place_of_call(), kept(value), len(self.calls)))

    def fresh_seed(self) -> np.random.SeedSequence:
        """Return the seed of the next generator that the run makes without one."""
        return self._seeds.spawn(1)[0]

    def note_seed(self, seed: Any) -> None:
        """Record that the run seeds a generator, unless the seed is None or a stream that exists already."""
        streams = (np.random.BitGenerator, np.random.Generator, np.random.RandomState)
        if seed is None or isinstance(seed, streams) or self.is_foreign():
            return
        entropy = seed.entropy if isinstance(seed, np.random.SeedSequence) else seed
        if self.streams.was_read(entropy):
            self.unseen[ENTROPY] -= self.unseen[ENTROPY] > 0  # of this seed; what is drawn from it is recorded
        elif not self._is_own(seed) and not self._inside:
            self.seeds.append((place_of_call(), shorten(entropy)))

    def note_made(self, source: Any, *, is_fresh: bool = False) -> None:
        """Record a generator that the run made: is its stream fresh, by its seed or since nothing seeded it?"""
        if self.is_foreign():
            return
        if not is_fresh:
            bits: Any = getattr(source, "bit_generator", getattr(source, "_bit_generator", None))
            sequence = getattr(bits, "seed_seq", None)
            if not isinstance(sequence, np.random.SeedSequence) or (self.follows and self.streams.is_known(source)):
                return
            self.note_seed(sequence)
            is_fresh = self._is_own(sequence) or self.streams.was_read(sequence.entropy)
            if is_fresh and self.follows:
                is_fresh = comparable(type(bits)(sequence).state) == comparable(bits.state)
        if is_fresh:
            self.made.append(source)
            if self.follows:
                self.streams.know(source)

    def _is_own(self, seed: Any) -> bool:
        return isinstance(seed, np.random.SeedSequence) and seed.entropy == self._seeds.entropy

    def drawn(self, source: Any, draw: Callable[[], Any]) -> Any:
        """Return what `draw` draws from a generator; draws of the same generator inside it belong to it."""
        is_inside = any(source is one for one in self._drawing)
        if not self.follows or self.is_foreign() or isinstance(source, random.SystemRandom) or is_inside:
            return draw()
        start = state_of(source)
        self._drawing.append(source)
        try:
            return draw()
        finally:
            self._drawing.pop()
            self.streams.note_draw(start, state_of(source), self._run, is_anew=self.put_back is None)

    def note_outside(self, what: str) -> None:
        """Count a source of randomness outside of Python's generators, unless a recorded primitive asks for it."""
        if not self._inside:
            self.note_unseen(what)

    @contextmanager
    def unseen_inside(self) -> Iterator[None]:
        """Let what reads entropy here pass, because its draws are recorded."""
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1

    def note_unseen(self, what: str) -> None:
        """Count a source of randomness that cannot be recorded."""
        self.unseen[what] += 1

    def call(
        self,
        primitive: str,
        distribution: Callable[[], Distribution],
        draw: Callable[[], Any],
        declared: Callable[[], Declared | None] = lambda: None,
        can_return: Callable[[Any], bool] = lambda value: True,
    ) -> Any:
        """Return what `draw` returns, or the recorded value in its place, and record the call."""
        if self.passes():
            return draw()
        with self.unseen_inside():
            stated, promise, place = distribution().kept(), declared(), place_of_call()
            waits = self.unfollowed is not None and promise is None and stated.shape != () and stated.is_noise_about_0
            is_unfollowed = waits and (primitive, place) in (self.unfollowed or ())
            waits = waits and not is_unfollowed
            if promise is not None:
                promise = replace(promise, input=copied(promise.input))
            try:
                value = self._value(stated, draw, can_return, waits=waits)
            except Exception as error:
                self.raised[primitive, place] = described(error)
                raise
        is_drawn = self.put_back is None or self.parted_at is not None
        self.calls.append(
            Drawn(
                primitive, place, stated.of(value, is_drawn=is_drawn), kept(value), promise, draw,
                is_shared=is_unfollowed or stated.name == INITIAL_WEIGHTS or self._is_of_rows(stated),
            )
        )  # fmt: skip
        if waits and type(value) is np.ndarray:
            return followed(value, Following(self, len(self.calls) - 1))
        return value

    def add(self, number: int, location: Any, factor: Any, value: Any, *, is_drawn: bool) -> Any:
        """Return the sum of a location and the noise of a call, or the recorded one in its place, and record it."""
        if active_tape() is not self:  # noise of an earlier run
            for tape in _ACTIVE:
                tape.lost |= {self.calls[number].line} if tape.unfollowed is not None else set()
            return value
        call = self.calls[number]
        shape, factors = call.distribution.shape, np.asarray(factor, dtype=np.float64)
        is_turned = np.any(factors < 0.0) and call.distribution.name not in SYMMETRIC
        is_sum = value.size == math.prod(shape) and (value.ndim == 0 or np.shape(location) in ((), value.shape))
        is_cut = call.distribution.is_integer_valued and np.any(np.abs(factors) != 1.0)
        is_kept = is_drawn and bool(np.all(factors)) and not (is_turned or is_cut)
        if call.is_added or not is_sum or not is_kept:
            self.lost.add(call.line)
            return value
        found, recorded = (self.changed.get(number) if self.parted_at is None else None), self._recorded(number)
        if self.put_back is None and found is not None and np.size(found) != value.size:
            found = None  # of another path
        if found is None and recorded is not None:
            found = recorded.value
        if found is not None:
            if np.size(found) != value.size:
                self.lost.add(call.line)
                return value
            value = np.reshape(np.array(found, dtype=value.dtype), value.shape)
        if factors.ndim:  # which are in the shape of the sum
            factors = np.reshape(np.broadcast_to(factors, value.shape), shape)
        distribution = call.distribution.added_to(np.reshape(np.broadcast_to(location, value.shape), shape), factors)
        self.calls[number] = replace(
            call, distribution=distribution, value=np.reshape(value.copy(), shape), is_added=True
        )
        return value

    def _is_of_rows(self, distribution: Distribution) -> bool:
        rows = self._rows
        return rows is not None and is_of_rows(distribution, rows.n_y if self._on_y else rows.n_x)

    def _recorded(self, number: int) -> Drawn | None:
        """Return the recorded call of this number, while the calls match."""
        if self.put_back is None or self.parted_at is not None or number >= len(self.put_back):
            return None
        return self.put_back[number]

    @property
    def lost_noise(self) -> set[Line]:
        """The lines whose noise was used in another way than to be added once, or than recorded."""
        recorded = zip(self.put_back or (), self.calls, strict=False) if self.parted_at is None else ()
        return self.lost | {call.line for before, call in recorded if before.is_added != call.is_added}

    def passes(self) -> bool:
        """Whether a call is carried out unrecorded: inside another primitive, or in another thread (counted)."""
        if self.is_foreign():
            self.note_unseen(OTHER_THREAD)
            return True
        return self._inside > 0

    def is_foreign(self) -> bool:
        """Whether another thread than that of the run asks."""
        return threading.get_ident() != self._thread

    def _value(
        self, distribution: Distribution, draw: Callable[[], Any], can_return: Callable[[Any], bool], *, waits: bool
    ) -> Any:
        number = len(self.calls)
        recorded = self._recorded(number)
        is_for_rows = recorded is not None and recorded.is_shared and self._is_of_rows(distribution)
        is_for_rows = is_for_rows and are_alike(recorded.distribution, distribution)  # type: ignore[union-attr]
        if recorded is not None and (is_for_rows or _fits(recorded.distribution, distribution)):
            if recorded.is_added:  # other noise until it is added, also noise that is far off
                self.noise[number] = draw()
                return self.noise[number] * (1, *map(int, FAR))[self._run % (1 + len(FAR))]
            value = kept(self.changed.get(number, recorded.value))
            if is_for_rows and self._rows is not None and not isinstance(value, NotCopied):
                is_of_x = number in self.changed or is_of_rows(recorded.distribution, self._rows.n_x)
                value = self._rows.put_back(value, self._on_y and is_of_x, distribution, draw)
            if not isinstance(value, NotCopied) and can_return(value):
                return value
        found = draw()  # if it raises, the run makes no call here, and may go on as recorded
        if self.put_back is not None and self.parted_at is None:
            self.parted_at = number
        if waits:
            self.noise[number] = kept(found)
        is_changed = self.put_back is None and number in self.changed and not waits
        fits = is_changed and np.shape(self.changed[number]) == distribution.shape
        return kept(self.changed[number]) if fits else found


def _is_times(noise: Any, call: Drawn, factors: Any, precision: float) -> bool:
    """Whether noise is that of a call times factors, up to the rounding of its type."""
    if np.size(call.value) != np.size(noise):
        return False
    expected = np.reshape(call.value, np.shape(noise)) * factors
    with np.errstate(all="ignore"):
        return bool(np.all((np.abs(noise - expected) <= 16.0 * precision * np.abs(expected)) | ~np.isfinite(expected)))


def _fits(recorded: Distribution, distribution: Distribution) -> bool:
    """Whether a value of the recorded distribution can stand for a draw from this distribution."""
    if recorded.shape != distribution.shape:
        return False
    if not recorded.is_known and recorded.name == f"{distribution.name}, it says":  # which the value was not of
        return True
    are_numbers = recorded.is_known and distribution.is_known and "discrete" not in (recorded.name, distribution.name)
    return recorded.name == distribution.name or are_numbers


FAR: Final = (3.0, 40.0, 1000.0)
"""Scales, beyond the reach of what clips the output or decides something."""
_ENOUGH: Final = 12  # bytes: numpy reads 16; of 96 bits, a hundred thousand seeds repeat one with 1e-19
UNSEEDED: Final = 2**32 - 1
"""First number of the spawn keys of generators that are made without a seed; `rng.spawn` counts from 0."""
OTHER_THREAD: Final = "another thread draws"
ENTROPY: Final = "entropy of the operating system is read"
_LOCK: Final = threading.Lock()
_ACTIVE: list[Tape] = []


def active_tape() -> Tape | None:
    """Return the tape that records in this process, whichever thread asks; None if none does."""
    return _ACTIVE[-1] if _ACTIVE else None


def drawn_from(source: Any, draw: Callable[[], Any]) -> Any:
    """Return what `draw` draws, on the active tape: a call that holds its own would be a cycle."""
    tape = active_tape()
    return draw() if tape is None else tape.drawn(source, draw)


def tape_of_thread() -> Tape | None:
    """Return the tape that records this thread; a call from another thread than that of the run is counted."""
    tape = active_tape()
    if tape is None or not tape.is_foreign():
        return tape
    tape.note_unseen(OTHER_THREAD)
    return None


@contextmanager
def only_recording(name: str, remedy: str) -> Iterator[None]:
    """Hold the right to record in this process; a MechanismError if a recording holds it already."""
    if not _LOCK.acquire(blocking=False):
        raise MechanismError(f"another replay is recording in this process, perhaps {remedy}", mechanism=name)
    try:
        yield
    finally:
        _LOCK.release()


@contextmanager
def recording_on(tape: Tape) -> Iterator[None]:
    """Make a tape the active one; no tape is active afterwards, even after an error."""
    _ACTIVE.append(tape)
    try:
        yield
    finally:
        _ACTIVE.remove(tape)


# Noise that is added after it was drawn.
#
# In ``total + rng.normal(scale=s, size=d)`` the primitive is not handed the total. While a tape follows added noise,
# the array that a primitive returns may be multiplied by numbers, and is then added to something, once. The tape
# records that sum as if the primitive had been handed the total, and puts it back as a whole: the later steps of a
# training start from the same weights on x and on y. On a run with recorded sums the array holds other noise than that
# of the sum, so a program that uses it in any other way gives another output. What is seen of such uses is noted by
# line, and the replay is made again without following the noise of these lines.

_SIGNS: Final = {"add": (1.0, 1.0), "subtract": (1.0, -1.0)}
"""The sign of each operand of a sum."""
_HARMLESS: Final = frozenset({
    "following", "shape", "size", "ndim", "dtype", "itemsize", "nbytes", "flags", "view", "reshape", "ravel", "astype",
    "_as", "__class__", "__dict__", "__array_ufunc__", "__array_function__", "__array_finalize__", "__array_priority__",
})  # fmt: skip
_FACTORS: Final = frozenset({"multiply", "divide", "negative"})


@dataclass(frozen=True, slots=True)
class Following:
    """The call that drew the noise of an array, and what the noise was multiplied by since."""

    tape: Tape
    number: int
    factor: Any = 1.0

    def times(self, factor: Any) -> Following:
        """Return the same for the noise times a number, or times numbers in the shape of the noise."""
        return replace(self, factor=self.factor * factor)

    def sum(self, location: Any, noise: Any, value: Any, precision: float | None = None) -> Any:
        """Return what the tape has for the sum of a location and the noise, which is `value`, and record it.

        The precision is that of the type of the noise, if that is narrower than the arrays show.
        """
        if precision is None:
            precision = float(np.finfo(noise.dtype).eps) if noise.dtype.kind == "f" else 0.0
        is_drawn = _is_times(noise, self.tape.calls[self.number], self.factor, precision)
        return self.tape.add(self.number, location, self.factor, value, is_drawn=is_drawn)


class Noise(np.ndarray):
    """An array of noise that was drawn and is not added yet."""

    following: Following | None = None

    def __array_finalize__(self, source: Any) -> None:
        """A view or a copy may be used beside the array."""
        spoil(source)

    def __getattribute__(self, name: str) -> Any:
        """Return an attribute; those that show or change numbers are uses beside a sum."""
        if name not in _HARMLESS:
            spoil(self)
        return object.__getattribute__(self, name)

    def _spoiled(name: str) -> Any:  # type: ignore[misc]  # noqa: N805
        def use(self: Any, *args: Any) -> Any:
            spoil(self)
            return getattr(np.ndarray, name)(_plain(self), *args)

        return use

    __getitem__, __setitem__, __iter__ = map(_spoiled, ("__getitem__", "__setitem__", "__iter__"))
    __float__, __int__, __bool__ = map(_spoiled, ("__float__", "__int__", "__bool__"))

    def reshape(self, *shape: Any, **options: Any) -> Any:
        return self._as(_plain(self).reshape(*shape, **options), in_order=options in ({}, {"order": "C"}))

    def ravel(self, *order: Any) -> Any:
        return self._as(_plain(self).ravel(*order), in_order=order in ((), ("C",)))

    def astype(self, *dtype: Any, **options: Any) -> Any:
        return self._as(_plain(self).astype(*dtype, **options), in_order=True)

    def _as(self, values: Any, *, in_order: bool) -> Any:
        if self.following is None or not in_order or np.ndim(self.following.factor):
            spoil(self)
            return values
        return followed(values, self.following)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Carry out any other function of numpy on plain arrays."""
        spoil(self)
        return super().__array_function__(function, types, args, kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **options: Any) -> Any:
        """Carry out an operation: noise stays noise under factors, and ends as a sum."""
        plain, into = [_plain(each) for each in inputs], tuple(map(_plain, out))
        name, noise = ufunc.__name__, [each for each in inputs if isinstance(each, Noise)]
        if method == "__call__" and not options and len(noise) == 1 and noise[0].following is not None:
            place, following = (0 if inputs[0] is noise[0] else 1), noise[0].following
            other = np.asarray(plain[1 - place] if len(inputs) == 2 else -1.0)
            # Else an imaginary part, or the last digits of a whole number, would be lost.
            is_double = other.dtype.kind in "bf" or (other.dtype.kind in "iu" and np.all(np.abs(other) <= EXACT))
            if name in _SIGNS and is_double:
                signs, drawn = _SIGNS[name], np.array(plain[place])  # copies: an operand may be overwritten
                location = signs[1 - place] * np.array(other, dtype=np.float64)
                value = ufunc(*plain, **_given(into))
                found = following.times(signs[place]).sum(location, signs[place] * drawn, value)
                if not into:
                    return found
                into[0][...] = found
                if out[0] is noise[0]:
                    noise[0].following = None  # it holds the sum now
                return out[0]
            if name in _FACTORS and not (name == "divide" and place == 1):
                value, factor = ufunc(*plain), 1.0 / other if name == "divide" else other
                if value.shape == self.shape and (not out or out[0] is noise[0]):
                    made = followed(value, following.times(factor))
                    if not out:
                        return made
                    into[0][...], noise[0].following = value, made.following
                    return noise[0]
        for each in (*inputs, *out):
            spoil(each)
        return getattr(ufunc, method)(*plain, **_given(into), **options)


def followed(values: Any, following: Following) -> Noise:
    """Return numbers as an array of noise."""
    made: Noise = np.asarray(values).view(Noise)
    made.following = following
    return made


def _given(into: tuple[Any, ...]) -> dict[str, Any]:
    return {"out": into} if into else {}


def spoil(values: Any) -> None:
    """Note that noise is used in another way than to be added once."""
    following = getattr(values, "following", None)
    if following is not None:
        following.tape.lost.add(following.tape.calls[following.number].line)


def _plain(values: Any) -> Any:
    return values.view(np.ndarray) if isinstance(values, Noise) else values
