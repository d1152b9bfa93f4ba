"""Runs of a mechanism on a tape: recorded, with values put back, or with some of them changed."""

from __future__ import annotations

import copy
import gc
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress, islice
from typing import Any, Final, NamedTuple

import numpy as np

from ..clock import now
from ..datasets.contents import Kept
from ..errors import AuditError, MechanismError
from ..events.outputs import Raised
from ..floating_point_errors import under
from ..printing import counted
from ..sampling.sampler import Sampler
from .output_values import NotCopied, kept, same_output
from .primitives import GLOBAL_STATE, outside_patches, recording_generator
from .registered import PrimitiveFamily, imported_families, patched
from .tape import OTHER_THREAD, Drawn, Streams, Tape, comparable, recording_on, state_of

REPEATS: Final = 8
"""Runs on each dataset with its own values put back: a fair coin that is not recorded is missed with 2**-16."""
_OTHERWISE: Final = "something else is random, or is kept between runs"
_DRAWN: Final = (
    "a generator is drawn from in a way that is not recorded, such as one of numpy that was made before the replay; "
    "make it inside the mechanism, or take it as the parameter rng"
)
_CHEAP: Final = 0.2  # seconds for a copy of a dataset
_PYTHON_STATE: Final = random._inst
_OF_RUNS: Final = int.from_bytes(b"replay", "big")
_HELD: Final = 3
"""References to a generator that nothing holds after its run: the tape's list, a loop variable, and the argument."""


class DatasetChangedError(MechanismError):
    """The mechanism changes its dataset, which cannot be copied for each run."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordedRun:
    """A run with its tape and a copy of its output; `error` is the exception that it raised."""

    tape: Tape
    output: Any
    error: Exception | None = None

    @property
    def end(self) -> str:
        """How the run ended, as a verb."""
        return "returns" if self.error is None else str(self.output)

    def is_on_path_of(self, first: RecordedRun) -> bool:
        """Whether the run made the calls of another one, to the end."""
        return self.tape.parted_at is None and len(self.tape.calls) == len(first.tape.calls)


class Unrecorded(NamedTuple):
    """Why the recorded values do not determine a run, and whether what the primitives are given varies as well."""

    reason: str
    is_in_calls: bool


class Runner:
    """Runs a mechanism, with the same generator each time, on copies of its datasets, and counts the runs."""

    def __init__(self, sampler: Sampler, names: tuple[str, ...], seed: int, *, follows: bool = True) -> None:
        self.sampler, self.names, self.seed = sampler, names, seed
        self._follows = follows  # whether it is asked where the random numbers come from, and what is not recorded
        self.runs = 0
        self.changes_datasets = False
        self._copies = True
        self.streams = Streams()
        self._patches: ExitStack | None = None  # while runs may record
        self._patched: list[PrimitiveFamily] = []
        self._left: list[Any] = []

    @contextmanager
    def patching(self) -> Iterator[None]:
        """Let runs record; patches stay in place between them, as they would take most of a short run's time."""
        try:
            with ExitStack() as self._patches:
                self._patches.enter_context(patched(outside_patches()))
                yield
        finally:
            self._patches = None
            self._patched = []
            for source in self._left:  # a program that keeps one takes its numbers for those of the operating system
                _seed_again(source)
            self._left = []

    def run(
        self,
        dataset: Any,
        put_back: Sequence[Drawn] | None = None,
        changed: Mapping[int, Any] | None = None,
        *,
        seed: int | None = None,
    ) -> RecordedRun:
        """Run the mechanism once; again if the run imported a library with primitives.

        `seed` is another one for what draws beside the values that are put back. A `DatasetChangedError` if the run
        changed its dataset, which cannot be copied.
        """
        if self._patches is None:
            raise RuntimeError("a run records only inside patching()")
        seed = self.seed if seed is None else seed
        while True:
            given, is_copy = self._given(dataset)
            families, entropy = imported_families(self.names), entropy_of(seed)
            follows = self._follows and (put_back is None or not changed)  # at other values, only outputs are compared
            tape = Tape(put_back, changed, entropy=entropy, streams=self.streams, follows=follows)
            self.runs += 1
            with ExitStack() as undone:
                for family in families:
                    if family not in self._patched:
                        self._patches.enter_context(patched(family.patches()))
                        self._patched.append(family)
                self._put_states(families, tape, entropy, undone)
                undone.enter_context(recording_on(tape))
                undone.enter_context(under(self.sampler.answers))
                before = Kept(given)
                output, error = self._output(given, tape, entropy)
            self._left += [made for made in islice(tape.made, 1, None) if sys.getrefcount(made) > _HELD]
            self._check(before, is_copy)
            if len(imported_families(self.names)) == len(families):
                return RecordedRun(tape, kept(output), error)

    def _put_states(self, families: Sequence[PrimitiveFamily], tape: Tape, entropy: int, undone: ExitStack) -> None:
        """Put generators of the run in the place of the global ones."""
        for family in families:
            patches = list(family.states(entropy))
            undone.enter_context(patched(patches))
            for patch in patches:
                tape.note_made(patch.replacement, is_fresh=True)

    def drawn(self, draw: Callable[[], Any], seed: int) -> Any:
        """Return what a recorded call draws when it is made again, with nothing recorded."""
        entropy = entropy_of(seed)
        tape = Tape((), entropy=entropy, streams=self.streams, follows=False)
        with ExitStack() as undone:
            self._put_states(imported_families(self.names), tape, entropy, undone)
            undone.enter_context(recording_on(tape))
            undone.enter_context(tape.unseen_inside())
            return kept(draw())

    def _given(self, dataset: Any) -> tuple[Any, bool]:
        """Return a copy of the dataset, or the dataset itself if it cannot be copied at little cost."""
        if self._copies:
            start = now()
            try:
                return copy.deepcopy(dataset), True
            except Exception:  # an object's own copying may raise anything
                self._copies = False
            finally:
                self._copies &= now() - start < _CHEAP
        return dataset, False

    def _check(self, before: Kept, is_copy: bool) -> None:
        is_used_up = hasattr(before.dataset, "__next__")
        if not (is_used_up or before.has_changed()):
            return
        self.changes_datasets = self.changes_datasets or not is_used_up
        if not is_copy:
            raise DatasetChangedError(
                f"{self.sampler.name} changes or uses up its dataset, which cannot be copied for each run, so that the "
                "next run would see another one; let it work on a copy.",
                mechanism=self.sampler.name,
            )

    def _output(self, dataset: Any, tape: Tape, entropy: int) -> tuple[Any, Exception | None]:
        rng, start = recording_generator(entropy), _states() if tape.follows else []
        try:
            if self.sampler.is_block:
                block = self.sampler.call(dataset, 1, rng)
                return (block.iloc[0] if hasattr(block, "iloc") else block[0]), None
            return self.sampler.call(dataset, rng), None
        except AuditError:  # not an output of the mechanism
            raise
        except Exception as error:
            return Raised(type(error).__qualname__), error
        finally:
            if tape.follows and not tape.seeds:
                strayed = (made for made in tape.made if not self.streams.is_known(made))
                if start != _states() or any(strayed):
                    tape.note_unseen(_DRAWN)

    def unrecorded(self, dataset: Any, first: RecordedRun, *, looks_around: bool = False) -> Unrecorded:
        """Return why the recorded values do not determine the run; an empty reason if nothing shows it.

        It looks at all generators of the process if it `looks_around`, which takes a few hundredths of a second.
        """
        reason, unseen = "", Counter(first.tape.unseen)
        for number in range(REPEATS):
            before = _older_generators() if looks_around and number == 0 else {}
            again = self.run(dataset, first.tape.calls, seed=other_seed(self.seed, number))
            unseen |= again.tape.unseen
            is_on_path, pairs = again.is_on_path_of(first), zip(first.tape.calls, again.tape.calls, strict=False)
            if is_on_path and any(comparable(made.state) != state for made, state in before.items()):
                unseen[_DRAWN] += 1
            is_other = not is_on_path or first.tape.seeds != again.tape.seeds
            if is_other or any(a.place != b.place or not a.distribution.is_same_as(b.distribution) for a, b in pairs):
                words = f"with its own values put back, the mechanism made other calls; {_OTHERWISE}"
                return Unrecorded(f"unrecorded: {words}", True)
            is_same = same_output(first.output, again.output)
            if is_same is None:
                verb = "copied" if isinstance(first.output, NotCopied) else "compared"
                kind = first.output.kind if isinstance(first.output, NotCopied) else type(first.output).__name__
                reason = f"unrecorded: outputs of type {kind} cannot be {verb}; pass output= to compare a part"
            elif not is_same:
                reason = f"unrecorded: with its own values put back, the mechanism gave another output; {_OTHERWISE}"
            if reason:
                break
        for what, often in sorted(unseen.items(), key=lambda one: one[0] == OTHER_THREAD):
            reason = f"unrecorded: {what}"
            if what == OTHER_THREAD:
                reason = f"unrecorded: another thread made {counted(often, 'random call')}"
        return Unrecorded(reason, False)


def _older_generators() -> dict[np.random.BitGenerator, Any]:
    """Return the generators of numpy that exist, with their states; `isinstance` would run the code of proxies."""
    kinds = {np.random.BitGenerator}
    while more := {below for kind in kinds for below in kind.__subclasses__()} - kinds:
        kinds |= more
    objects = gc.get_objects()
    found = list(compress(objects, map(kinds.__contains__, map(type, objects))))
    return {each: comparable(each.state) for each in found if each is not GLOBAL_STATE._bit_generator}


@lru_cache
def entropy_of(seed: int) -> int:
    """Return the entropy of a run with this seed, which no program states as a seed by chance."""
    return int.from_bytes(np.random.SeedSequence((seed, _OF_RUNS)).generate_state(4).tobytes(), "little")


def other_seed(seed: int, number: int) -> int:
    """Return another seed, for the repetition of this number."""
    return int(np.random.SeedSequence((seed, number + 1)).generate_state(1, np.uint64)[0])


def _states() -> list[Any]:
    """Return the states of the global generators, from which runs do not draw but by ways that are not recorded."""
    return [state_of(GLOBAL_STATE), state_of(_PYTHON_STATE)]


def _seed_again(source: Any) -> None:
    """Seed a generator by the operating system."""
    if isinstance(source, np.random.Generator):
        bits = source.bit_generator
        bits.state = type(bits)().state
    elif isinstance(source, np.random.RandomState):  # whose `seed` is for one kind of bit generators only
        source.set_state(np.random.RandomState(type(source._bit_generator)()).get_state(legacy=False))
    else:
        source.seed()
