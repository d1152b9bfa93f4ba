"""Checks of the two datasets: that they differ, and that the mechanism leaves them as they are."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ..datasets.contents import Kept, hold_the_same
from ..datasets.description import summarise
from .findings import Finding, HealthCheck


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the two datasets held before anything was drawn.

    Attributes
    ----------
    x, y : Any
        The datasets themselves.
    are_equal : bool
        Whether they certainly held the same.
    summaries, kept : tuple
        Of x and of y.
    """

    x: Any
    y: Any
    are_equal: bool
    summaries: tuple[str, str]
    kept: tuple[Kept, Kept]

    def examine(self, ignore: frozenset[HealthCheck], changed: Collection[str] = ()) -> tuple[Finding, ...]:
        """The checks of the datasets that fail, after the audit.

        Parameters
        ----------
        changed : collection of {"x", "y"}
            The datasets whose copies were changed in a worker process. Copies of large datasets are looked at after
            one task in 256, the first among them.
        """
        found = [*self._equal(), *self._mutated(changed)]
        return tuple(finding for finding in found if finding.check not in ignore)

    def _equal(self) -> list[Finding]:
        if not self.are_equal:
            return []
        what = "are one and the same object" if self.x is self.y else "hold the same"
        return [
            Finding(
                HealthCheck.EQUAL_DATASETS,
                f"x and y {what} ({self.summaries[0]}), so no output can be likelier on one than on the other and the "
                "audit would find nothing in any mechanism; pass two datasets that differ.",
            )
        ]

    def _mutated(self, elsewhere: Collection[str]) -> list[Finding]:
        changed = []
        for side, kept, summary in zip(("x", "y"), self.kept, self.summaries, strict=True):
            if kept.has_changed():
                after = summarise(kept.dataset)
                changed.append(f"{side} ({f'{summary}, now {after}' if after != summary else 'its size is as before'})")
            elif side in elsewhere:
                changed.append(f"{side} (its copy in a worker process)")
        if not changed:
            return []
        return [
            Finding(
                HealthCheck.DATASET_MUTATED,
                f"the mechanism changed {len(changed)} of the 2 datasets it was given in place, {' and '.join(changed)}"
                ": its runs were not all on the pair that was to be audited, and one run depends on those before it; "
                "let the mechanism work on a copy.",
            )
        ]


def take_snapshot(x: Any, y: Any) -> Snapshot:
    """What both datasets hold now."""
    summaries = summarise(x), summarise(y)
    may_be_equal = type(x) is type(y) and summaries[0] == summaries[1]
    are_equal = x is y or (may_be_equal and hold_the_same(x, y))
    return Snapshot(x, y, are_equal, summaries, (Kept(x), Kept(y)))
