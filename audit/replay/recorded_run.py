"""Runs of a mechanism on a tape: recorded, with values put back, or with some of them changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from ..errors import AuditError
from ..events.outputs import Raised
from ..floating_point_errors import under
from ..sampling.sampler import Sampler
from .laws import Array
from .numpy_primitives import numpy_patches, recording_generator
from .output_values import numbers_of, same_output
from .patching import patched
from .python_primitives import random_patches
from .registered import imported_families, register_primitives
from .scipy_primitives import scipy_patches
from .tape import Drawn, Tape, recording_on

register_primitives("numpy", "numpy.random", numpy_patches)
register_primitives("random", "random", random_patches)
register_primitives("scipy", "scipy.stats", scipy_patches)

_REPEATS: Final = 8
"""Runs on each dataset with its own values put back: a fair coin that is not recorded is missed with 2**-16."""
_OTHERWISE: Final = "something else is random, or is kept between runs"


@dataclass(frozen=True, slots=True, eq=False)
class RecordedRun:
    """A run with its tape and its output; `error` is the exception that it raised."""

    tape: Tape
    output: Any
    error: Exception | None = None

    @property
    def end(self) -> str:
        """How the run ended, as a verb."""
        return "returns" if self.error is None else str(self.output)


class Unrecorded(NamedTuple):
    """Why the recorded values do not determine a run, and whether what the primitives are given varies as well."""

    reason: str
    is_in_calls: bool


class Runner:
    """Runs a mechanism, with the same generator each time, and counts the runs."""

    def __init__(self, sampler: Sampler, names: tuple[str, ...], seed: int) -> None:
        self.sampler, self.names, self.seed = sampler, names, seed
        self.runs = 0

    def run(
        self, dataset: Any, put_back: Sequence[Drawn] | None = None, changed: Mapping[int, Any] | None = None
    ) -> RecordedRun:
        """Run the mechanism once; again if the run imported a library with primitives."""
        while True:
            families = imported_families(self.names)
            tape = Tape(put_back, changed, seed=self.seed)
            self.runs += 1
            with ExitStack() as undone:
                for family in families:
                    undone.enter_context(patched(family.patches(self.seed)))
                undone.enter_context(recording_on(tape))
                undone.enter_context(under(self.sampler.answers))
                output, error = self._output(dataset)
            if len(imported_families(self.names)) == len(families):
                return RecordedRun(tape, output, error)

    def _output(self, dataset: Any) -> tuple[Any, Exception | None]:
        rng = recording_generator(self.seed)
        try:
            if self.sampler.is_block:
                block = self.sampler.call(dataset, 1, rng)
                return (block.iloc[0] if hasattr(block, "iloc") else block[0]), None
            return self.sampler.call(dataset, rng), None
        except AuditError:  # not an output of the mechanism
            raise
        except Exception as error:
            return Raised(type(error).__qualname__), error

    def unrecorded(self, dataset: Any, first: RecordedRun) -> Unrecorded:
        """Return why the recorded values do not determine the run; an empty reason if nothing shows it."""
        reason = ""
        for _ in range(_REPEATS):
            again = self.run(dataset, first.tape.calls)
            if _differs(first.tape, again.tape):
                words = f"with its own values put back, the mechanism made other calls; {_OTHERWISE}"
                return Unrecorded(f"unrecorded: {words}", True)
            is_same = same_output(first.output, again.output)
            if is_same is None:
                kind = type(first.output).__name__
                reason = f"unrecorded: outputs of type {kind} cannot be compared; pass output= to compare a part"
            elif not is_same:
                reason = f"unrecorded: with its own values put back, the mechanism gave another output; {_OTHERWISE}"
            if reason:
                break
        drew = first.tape.foreign_calls
        if drew:
            reason = f"unrecorded: another thread made {drew} random call{'s' * (drew != 1)}"
        return Unrecorded(reason, False)

    def numbers_with(self, sides: Mapping[str, tuple[Any, RecordedRun]]) -> Callable[..., Array | None]:
        """Return a function that runs a side, "x" or "y", with other values for some calls: the output's numbers.

        The function returns None for a run that takes another path.
        """

        def rerun(side: str, changed: Mapping[int, Any]) -> Array | None:
            dataset, first = sides[side]
            if not changed:
                return numbers_of(first.output)
            again = self.run(dataset, first.tape.calls, changed)
            is_same_path = again.tape.parted_at is None and len(again.tape.calls) == len(first.tape.calls)
            return numbers_of(again.output) if is_same_path and again.error is None else None

        return rerun


def _differs(first: Tape, again: Tape) -> bool:
    """Whether a run with its own values put back made other calls, or calls with other parameters."""
    if again.parted_at is not None or len(first.calls) != len(again.calls) or first.seeds != again.seeds:
        return True
    return any(
        a.place != b.place or a.law.name != b.law.name or bool(a.law.differing(b.law))
        for a, b in zip(first.calls, again.calls, strict=True)
    )


def output_distance(first: Any, second: Any) -> float | None:
    """Return the ℓ1 norm of the difference of two outputs; None if they are not numbers of one shape."""
    a, b = numbers_of(first), numbers_of(second)
    if a is None or b is None or a.shape != b.shape:
        return None
    with np.errstate(invalid="ignore"):
        return float(np.sum(np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))))
