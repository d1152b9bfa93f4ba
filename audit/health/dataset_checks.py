"""Check the two datasets: they differ, and the mechanism does not change them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ..datasets.contents import Kept, hold_the_same
from ..datasets.description import summarise
from .findings import Finding, HealthCheck


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The two datasets, and their contents before the first run."""

    x: Any
    y: Any
    are_equal: bool  # whether their contents were certainly equal
    summaries: tuple[str, str]  # of x and of y
    kept: tuple[Kept, Kept]  # of x and of y

    def examine(self, ignore: frozenset[HealthCheck], changed: Collection[str] = ()) -> tuple[Finding, ...]:
        """Return the failed checks of the datasets after the audit; copies of the `changed` ones did in a worker."""
        found = [*self._equal(), *self._mutated(changed)]
        return tuple(finding for finding in found if finding.check not in ignore)

    def _equal(self) -> list[Finding]:
        if not self.are_equal:
            return []
        what = "are the same object" if self.x is self.y else "have equal contents"
        message = (
            f"x and y {what} ({self.summaries[0]}), so no output is more likely on one than on the other and no audit "
            "can refute a claim; pass two datasets that differ."
        )
        return [Finding(HealthCheck.EQUAL_DATASETS, message)]

    def _mutated(self, elsewhere: Collection[str]) -> list[Finding]:
        changed = []
        for side, kept, summary in zip(("x", "y"), self.kept, self.summaries, strict=True):
            if kept.has_changed():
                after = summarise(kept.dataset)
                changed.append(f"{side} ({f'{summary}, now {after}' if after != summary else 'same size as before'})")
            elif side in elsewhere:
                changed.append(f"{side} (while runs were made)")
        if not changed:
            return []
        if self.x is self.y:
            which, given = f"the dataset in place{changed[0][1:]}", "dataset"
        else:
            which, given = f"{len(changed)} of the 2 datasets in place, {' and '.join(changed)}", "pair"
        message = (
            f"the mechanism changed {which}: later runs were not on the audited {given}, and they depend on earlier "
            "runs; let the mechanism work on a copy."
        )
        return [Finding(HealthCheck.DATASET_MUTATED, message)]


def take_snapshot(x: Any, y: Any) -> Snapshot:
    """Record the present contents of both datasets."""
    summaries = summarise(x), summarise(y)
    may_be_equal = type(x) is type(y) and summaries[0] == summaries[1]
    are_equal = x is y or (may_be_equal and hold_the_same(x, y))
    kept = Kept(x)
    return Snapshot(x, y, are_equal, summaries, (kept, kept if x is y else Kept(y)))
