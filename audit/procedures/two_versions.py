"""Two versions of a mechanism as one mechanism, whose dataset names the version to run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..events.named_parts import without_class
from ..events.outputs import as_outputs
from ..events.records import Form
from ..random_streams import Stream, sequence_of
from ..sampling.block_plan import Plan
from ..sampling.picked import picked
from ..sampling.picking import OutputPart
from ..sampling.pickling import Parcel, pack
from ..sampling.sampler import Sampler, as_sampler

Version = Literal["old", "new"]


@dataclass(frozen=True, slots=True)
class TwoVersions:
    """Both versions and the dataset they are run on, as one mechanism whose dataset is the version to run."""

    old: Sampler
    new: Sampler
    dataset: Any

    @classmethod
    def of(cls, old: Any, new: Any, dataset: Any, seed: int, output: OutputPart | None = None) -> TwoVersions:
        found = cls(picked(old, output), picked(new, output), dataset)
        if found.old.is_block != found.new.is_block:
            found._check_single_draw(seed)
        return found

    def _check_single_draw(self, seed: int) -> None:
        """Refuses a block sampler whose result for one run is not an output; later it would count as an exception."""
        sampler = self.old if self.old.is_block else self.new
        rng = np.random.default_rng(sequence_of(seed, Stream.FIRST_RUN))
        try:
            raw = sampler.call(self.dataset, 1, rng)
        except Exception:  # an exception is an outcome
            return
        as_outputs(raw, 1, sampler.name)

    def repeats(self, seed: int) -> bool:
        """Whether the new version repeats its outputs; `check` looks at the old version."""
        plan = Plan(as_sampler(self.mechanism, self.name), "old", "new", seed, block=1, jobs=1)
        return plan.repeats("y")

    @property
    def __audit_datasets__(self) -> tuple[Any, Any]:
        """What both versions run on, which must not change."""
        return self.dataset, self.dataset

    @property
    def mechanism(self) -> Callable[..., Any]:
        return self.draw_block if self.old.is_block and self.new.is_block else self.run_once

    @property
    def name(self) -> str:
        old, new = self.old.name, self.new.name
        return f"{old}, old and new" if old == new else f"{old} and {new}"

    @property
    def in_words(self) -> tuple[str, str]:
        return f"the old version {self.old.name}", f"the new version {self.new.name}"

    def draw_block(self, version: Version, size: int, rng: np.random.Generator) -> Any:
        sampler = self.old if version == "old" else self.new
        return sampler.drawn(self.dataset, size, rng)

    def run_once(self, version: Version, rng: np.random.Generator) -> Any:
        sampler = self.old if version == "old" else self.new
        if not sampler.is_block:
            return without_class(sampler.call(self.dataset, rng))
        return as_outputs(sampler.call(self.dataset, 1, rng), 1, sampler.name, Form())[0]

    def __reduce__(self) -> tuple[Callable[[Parcel], TwoVersions], tuple[Parcel]]:
        # A function that a worker cannot import is sent by value, which only its own parcel can decide.
        owners = [self.old.function, self.new.function, self.dataset]
        return _opened, (pack((self.old, self.new, self.dataset), owners, self.name),)


def _opened(parcel: Parcel) -> TwoVersions:
    return TwoVersions(*parcel.open())
