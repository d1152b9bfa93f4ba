"""The tape of a run: it records what each noise primitive was given and returned, or puts recorded values back.

One tape is active in a process at a time, for one thread. A primitive that is called inside another one belongs to it
and is not recorded. Calls from other threads are carried out unchanged and counted.
"""

from __future__ import annotations

import itertools
import linecache
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import Any, Final

import numpy as np

from ..claims.claim import Claim
from ..errors import described
from ..printing import shorten
from ..sampling.object_identity import below_packages
from .laws import Law, copied
from .output_values import NotCopied, kept

# Where a primitive was called: the innermost frame outside the primitive and outside dpaudit's audits.

_INSIDE: Final = (
    "dpaudit.audit.",
    "dpaudit.mechanisms.adapters.",
    "numpy.",
    "scipy.",
    "opendp.",
    "pydp.",
    "random",
    "secrets",
    "functools",
    "contextlib",
)
"""Modules that carry out a call and did not ask for it; a name that ends in a dot stands for what is below it."""

_COMPREHENSIONS: Final = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


@dataclass(frozen=True, slots=True)
class Place:
    """A line of code; `file` is as Python knows it."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{_short(self.file)}:{self.line} in {self.function}"

    @property
    def source(self) -> str:
        """The text of the line; empty if the file cannot be read."""
        return linecache.getline(self.file, self.line).strip()


def place_of_call() -> Place:
    """Return the place that asked for the draw; the outermost frame if every frame is inside."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno, _function(frame.f_code))


def _function(code: CodeType) -> str:
    """Return the name of the function of a frame; of a comprehension, that of the function that contains it."""
    parts = [part for part in code.co_qualname.split(".") if part != "<locals>"]
    while parts and parts[-1] in _COMPREHENSIONS:
        parts.pop()
    return parts[-1] if parts else "<module>"


@lru_cache
def _is_inside(module: str) -> bool:
    return any(module == each or (each.endswith(".") and f"{module}.".startswith(each)) for each in _INSIDE)


def _short(file: str) -> str:
    """Return a path from the working directory, or from the folder of installed packages, or the last two parts."""
    path = Path(file)
    if not path.is_absolute():
        return file
    if (installed := below_packages(path)) is not None:
        return installed
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):
        return "/".join(path.parts[-2:])


# What a run records.


@dataclass(frozen=True, slots=True)
class Declared:
    """What a primitive states about itself: the sensitivity of its input, and the loss that it promises for it.

    `input` holds the numbers that the sensitivity is for, if they are not the location of the law. `promise` returns,
    for two inputs, how far they are apart and the claim that the primitive keeps for so far; None if it does not know.
    `made` is the object that the primitive is, if what it does with its result cannot be seen.
    """

    sensitivity: float | None = None
    epsilon: float | None = None
    delta: float = 0.0
    input: Any = None
    promise: Callable[[Any, Any], tuple[float, Claim] | None] | None = None
    made: Any = None

    def kept(self) -> Declared:
        """Return what is declared with a copy of the input."""
        return replace(self, input=copied(self.input))


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A call of a noise primitive as one run made it."""

    primitive: str
    place: Place
    law: Law
    value: Any = field(repr=False)
    declared: Declared | None = None
    draw: Callable[[], Any] | None = field(default=None, repr=False)  # the same call again


@dataclass(frozen=True, slots=True, eq=False)
class RaisedCall:
    """A call of a noise primitive that raised an exception; `number` calls were recorded before it."""

    primitive: str
    place: Place
    number: int
    error: str


class Streams:
    """The generators of a replay's runs: where their random numbers come from, and that no draw repeats another.

    A draw is fresh if it starts at a state that is known, and at which no other draw started. Known are the states of
    a generator at its creation, if its entropy is that of the run or was read from the operating system during the
    replay, and those at which a recorded draw ended. So the draws of a stream form a chain without overlap, and copies,
    states that are set, equal seeds and seeds from elsewhere end in a reason: `repeated` if numbers were drawn twice,
    `unknown` if it is not known where they come from.

    Proof: docs/proofs/replay.md
    """

    def __init__(self) -> None:
        self.repeated = self.unknown = ""
        self._known: set[Hashable] = set()
        self._starts: dict[Hashable, tuple[Place, int]] = {}
        self._read: set[int] = set()
        self._runs = itertools.count()

    def next_run(self) -> int:
        """Return the number of a run that begins."""
        return next(self._runs)

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

    def was_read(self, seed: Any) -> bool:
        """Whether a seed is what the operating system gave during this replay."""
        number = int.from_bytes(seed, "big") if isinstance(seed, (bytes, bytearray)) else seed
        return isinstance(number, int) and number in self._read

    def drawn(self, source: Any, draw: Callable[[], Any], tape: Tape) -> Any:
        """Return what `draw` draws from the source; the draws of runs that draw for themselves must all differ."""
        before = state_of(source)
        try:
            return draw()
        finally:
            after = state_of(source)
            if tape.put_back is None and before != after:
                self._check(before, tape)
            if before in self._known:
                self._known.add(after)

    def _check(self, start: Hashable, tape: Tape) -> None:
        place = place_of_call()
        first, run = self._starts.get(start, (place, None))
        self._starts[start] = place, tape.run
        if run == tape.run:
            self.repeated = self.repeated or (
                f"the numbers drawn at {place} were drawn before, at {first}: a state, a copy or a seed of a generator "
                "is used again, so the noise is not independent"
            )
        elif run is not None:
            self.unknown = f"the numbers drawn at {place} are the same in every run, or in several"
        if start not in self._known:
            self.unknown = self.unknown or (
                f"the numbers drawn at {place} come from a generator whose seed or state is neither that of rng nor "
                "from the operating system during the run, so they may be the same in every run"
            )


def state_of(source: Any) -> Hashable:
    """Return the state of a generator of numpy or of `random`, such that equal states draw equal numbers."""
    if isinstance(source, random.Random):
        return hash(random.Random.getstate(source))
    if isinstance(source, np.random.RandomState):
        held = dict(source.get_state(legacy=False))
        waiting, number = held.pop("has_gauss"), held.pop("gauss")
        return hash((comparable(held), number)) if waiting else hash(comparable(held))
    return hash(comparable(source.bit_generator.state))


def comparable(state: Any) -> Hashable:
    """Return the state of a generator in a form that can be compared; the repr of an array takes milliseconds."""
    if isinstance(state, Mapping):
        return tuple((key, comparable(value)) for key, value in state.items())
    if isinstance(state, np.ndarray):
        return state.tobytes()
    return state if isinstance(state, (int, str)) else repr(state)


class Tape:
    """The calls of one run, in their order.

    With `put_back`, each call returns the recorded value while the calls match those recorded: the same law and shape.
    At the first that does not, the paths part, and the rest of the run draws for itself. `changed` holds other values
    to return for some calls, by their number; without `put_back`, the others draw for themselves. `raised` are the
    calls that raised. `seeds` are those that the run gives to generators, with their places. `unseen` are the sources
    of randomness that the tape noticed and cannot record, with how often. `made` are the generators of the run.
    """

    def __init__(
        self,
        put_back: Sequence[Drawn] | None = None,
        changed: Mapping[int, Any] | None = None,
        *,
        entropy: int = 0,
        streams: Streams | None = None,
    ) -> None:
        self.put_back = put_back
        self.changed = changed or {}
        self.calls: list[Drawn] = []
        self.raised: list[RaisedCall] = []
        self.parted_at: int | None = None
        self.unseen: Counter[str] = Counter()
        self.seeds: list[tuple[Place, str]] = []
        self.made: list[Any] = []
        self.streams = Streams() if streams is None else streams
        self.run = self.streams.next_run()
        self._seeds = np.random.SeedSequence(entropy, spawn_key=(_UNSEEDED,))
        self._thread = threading.get_ident()
        self._inside = 0
        self._drawing: list[Any] = []

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
        bits: Any = getattr(source, "bit_generator", getattr(source, "_bit_generator", None))
        sequence = getattr(bits, "seed_seq", None)
        if not is_fresh and self.streams.is_known(source):
            return
        if not is_fresh and isinstance(sequence, np.random.SeedSequence):
            self.note_seed(sequence)
            is_seeded = self._is_own(sequence) or self.streams.was_read(sequence.entropy)
            is_fresh = is_seeded and comparable(type(bits)(sequence).state) == comparable(bits.state)
        if is_fresh:
            self.streams.know(source)
            self.made.append(source)

    def _is_own(self, seed: Any) -> bool:
        return isinstance(seed, np.random.SeedSequence) and seed.entropy == self._seeds.entropy

    def drawn(self, source: Any, draw: Callable[[], Any]) -> Any:
        """Return what `draw` draws from a generator; draws of the same generator inside it belong to it."""
        if self.is_foreign() or isinstance(source, random.SystemRandom) or any(source is one for one in self._drawing):
            return draw()
        self._drawing.append(source)
        try:
            return self.streams.drawn(source, draw, self)
        finally:
            self._drawing.pop()

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
        law: Callable[[], Law],
        draw: Callable[[], Any],
        declared: Callable[[], Declared | None] = lambda: None,
        can_return: Callable[[Any], bool] = lambda value: True,
    ) -> Any:
        """Return what `draw` returns, or the recorded value in its place, and record the call.

        `law` and `declared` are read only if the call is recorded, before the draw. A recorded value that the
        primitive cannot return now parts the paths.
        """
        if self.passes():
            return draw()
        self._inside += 1
        try:
            stated, promise, place = law(), declared(), place_of_call()
            stated, promise = stated.kept(), None if promise is None else promise.kept()
            try:
                value = self._value(stated, draw, can_return)
            except Exception as error:
                self.raised.append(RaisedCall(primitive, place, len(self.calls), described(error, shows_data=True)))
                raise
        finally:
            self._inside -= 1
        is_drawn = self.put_back is None or self.parted_at is not None
        self.calls.append(Drawn(primitive, place, stated.of(value, is_drawn=is_drawn), kept(value), promise, draw))
        return value

    def passes(self) -> bool:
        """Whether a call is carried out unrecorded: inside another primitive, or in another thread (counted)."""
        if self.is_foreign():
            self.note_unseen(OTHER_THREAD)
            return True
        return self._inside > 0

    def is_foreign(self) -> bool:
        """Whether another thread than that of the run asks."""
        return threading.get_ident() != self._thread

    def _value(self, law: Law, draw: Callable[[], Any], can_return: Callable[[Any], bool]) -> Any:
        number = len(self.calls)
        if self.put_back is not None and self.parted_at is None:
            if number < len(self.put_back) and _fits(self.put_back[number].law, law):
                value = kept(self.changed.get(number, self.put_back[number].value))
                if not isinstance(value, NotCopied) and can_return(value):
                    return value
            found = draw()  # if it raises, the run makes no call here, and may go on as recorded
            self.parted_at = number
            return found
        found = draw()
        is_changed = self.put_back is None and number in self.changed
        return kept(self.changed[number]) if is_changed and np.shape(self.changed[number]) == law.shape else found


def _fits(recorded: Law, law: Law) -> bool:
    """Whether a value of the recorded law can stand for a draw from this law."""
    if recorded.shape != law.shape:
        return False
    if not recorded.is_known and recorded.name == f"{law.name}, it says":  # the value was not of the stated law
        return True
    are_numbers = recorded.is_known and law.is_known and "discrete" not in (recorded.name, law.name)
    return recorded.name == law.name or are_numbers


_ENOUGH: Final = 12  # bytes: numpy reads 16; of 96 bits, a hundred thousand seeds repeat one with 1e-19
_UNSEEDED: Final = 2**32 - 1
"""First number of the spawn keys of generators that are made without a seed; `rng.spawn` counts from 0."""
OTHER_THREAD: Final = "another thread draws"
ENTROPY: Final = "entropy of the operating system is read"
_LOCK: Final = threading.Lock()
_ACTIVE: list[Tape] = []


def active_tape() -> Tape | None:
    """Return the tape that records in this process, whichever thread asks; None if none does."""
    return _ACTIVE[-1] if _ACTIVE else None


def tape_of_thread() -> Tape | None:
    """Return the tape that records this thread; a call from another thread than that of the run is counted."""
    tape = active_tape()
    if tape is None or not tape.is_foreign():
        return tape
    tape.note_unseen(OTHER_THREAD)
    return None


@contextmanager
def only_recording() -> Iterator[bool]:
    """Hold the right to record in this process; False if a recording holds it already."""
    is_free = _LOCK.acquire(blocking=False)
    try:
        yield is_free
    finally:
        if is_free:
            _LOCK.release()


@contextmanager
def recording_on(tape: Tape) -> Iterator[None]:
    """Make a tape the active one; no tape is active afterwards, even after an error."""
    _ACTIVE.append(tape)
    try:
        yield
    finally:
        _ACTIVE.remove(tape)


def recorded(original: Callable[..., Any], own: Callable[..., Any], seed: str | None = None) -> Callable[..., Any]:
    """Return a function that stands for `original`: while a run is recorded it calls `own` instead.

    Calls from other threads are counted and not recorded. `seed` is the parameter of the seed that the tape notes.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        tape = tape_of_thread()
        if tape is None:
            return original(*args, **kwargs)
        if seed is not None:
            tape.note_seed(args[0] if args else kwargs.get(seed))
        return own(*args, **kwargs)

    return call
