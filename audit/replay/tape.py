"""The tape of a run: it records what each noise primitive was given and returned, or puts recorded values back.

One tape is active in a process at a time, for one thread. A primitive that is called inside another one belongs to it
and is not recorded. Calls from other threads are carried out unchanged and counted.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from ..claims.claim import Claim
from ..printing import shorten
from .laws import Law
from .output_values import NotCopied, kept
from .parameters import copied
from .places import Place, place_of_call


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


class Tape:
    """The calls of one run, in their order.

    With `put_back`, each call returns the recorded value while the calls match those recorded: the same law and shape.
    At the first that does not, the paths part, and the rest of the run draws for itself. `changed` holds other values
    to return for some calls, by their number. `seeds` are those that the run gives to generators, with their places.
    `unseen` are the sources of randomness that the tape noticed and cannot record, with how often.
    """

    def __init__(
        self, put_back: Sequence[Drawn] | None = None, changed: Mapping[int, Any] | None = None, *, seed: int = 0
    ) -> None:
        self.put_back = put_back
        self.changed = changed or {}
        self.calls: list[Drawn] = []
        self.parted_at: int | None = None
        self.unseen: Counter[str] = Counter()
        self.seeds: list[tuple[Place, str]] = []
        self._seeds = np.random.SeedSequence(seed)
        self._thread = threading.get_ident()
        self._inside = 0

    def fresh_seed(self) -> np.random.SeedSequence:
        """Return the seed of the next generator that the run makes without one."""
        return self._seeds.spawn(1)[0]

    def note_seed(self, seed: Any) -> None:
        """Record that the run seeds a generator, unless the seed is None or a stream that exists already."""
        streams = (np.random.BitGenerator, np.random.Generator, np.random.RandomState)
        if isinstance(seed, np.random.SeedSequence) and self._is_own(seed.entropy):
            return  # made of the seed of a generator of this run
        if seed is not None and not isinstance(seed, streams) and not self.is_foreign() and not self._inside:
            self.seeds.append((place_of_call(), shorten(seed)))

    def note_stream(self, bit_generator: Any) -> None:
        """Record the seed of a stream of numpy that the run made from something small, such as a number of the data."""
        entropy = getattr(getattr(bit_generator, "seed_seq", None), "entropy", None)
        if not self._is_own(entropy):
            self.note_seed(entropy)
        elif entropy != self._seeds.entropy and self.unseen[ENTROPY] > 0:
            self.unseen[ENTROPY] -= 1  # of the seed of this stream, whose draws are recorded

    def _is_own(self, entropy: Any) -> bool:
        return isinstance(entropy, int) and (entropy == self._seeds.entropy or entropy >= _SMALL)

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
            value = self._value(stated, draw, can_return)
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
            self.parted_at = number
        return draw()


def _fits(recorded: Law, law: Law) -> bool:
    """Whether a value of the recorded law can stand for a draw from this law."""
    if recorded.shape != law.shape:
        return False
    if not recorded.is_known and recorded.name == f"{law.name}, it says":  # the value was not of the stated law
        return True
    are_numbers = recorded.is_known and law.is_known and "discrete" not in (recorded.name, law.name)
    return recorded.name == law.name or are_numbers


_SMALL: Final = 2**96  # seeds from the operating system have 128 bits
OTHER_THREAD: Final = "another thread draws"
ENTROPY: Final = "entropy of the operating system is read"
_LOCK: Final = threading.Lock()
_ACTIVE: list[Tape] = []


def active_tape() -> Tape | None:
    """Return the tape that records in this process, whichever thread asks; None if none does."""
    return _ACTIVE[-1] if _ACTIVE else None


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
        tape = active_tape()
        if tape is None or tape.is_foreign():
            if tape is not None:
                tape.note_unseen(OTHER_THREAD)
            return original(*args, **kwargs)
        if seed is not None:
            tape.note_seed(args[0] if args else kwargs.get(seed))
        return own(*args, **kwargs)

    return call
