"""The names of the health checks, findings of failed ones, and the checks of the two datasets.

Datasets differ, and the mechanism does not change them.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from ..datasets.contents import Kept, hold_the_same
from ..datasets.description import summarise
from ..errors import OptionError
from ..options import names_in
from ..printing import shorten

FALSE_ALARM = 1e-8
"""Maximum false-alarm probability of a single check."""

ANY_FALSE_ALARM = 1e-6
"""Maximum false-alarm probability of all checks of an audit together."""


class HealthCheck(enum.Enum):
    """The health checks; `ignore` takes their values."""

    DUPLICATE_OUTPUTS = "duplicate-outputs"
    NONSTATIONARY = "nonstationary"
    SERIAL_DEPENDENCE = "serial-dependence"
    SHARED_RANDOMNESS = "shared-randomness"
    DATASET_MUTATED = "dataset-mutated"
    EQUAL_DATASETS = "equal-datasets"
    CONSTANT_OUTPUT = "constant-output"
    NO_POWER = "no-power"


OF_RUNS = frozenset(
    {
        HealthCheck.DUPLICATE_OUTPUTS,
        HealthCheck.NONSTATIONARY,
        HealthCheck.SERIAL_DEPENDENCE,
        HealthCheck.SHARED_RANDOMNESS,
    }
)
"""Checks that fail if the runs are not independent."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A failed health check, which makes the audit inconclusive."""

    check: HealthCheck
    message: str

    def __str__(self) -> str:
        remedy = " Draw new noise in every run." if self.check in OF_RUNS else ""
        return f"{self.message}{remedy} Silence this check with ignore={self.check.value!r}."


def failed_checks(findings: Iterable[Finding]) -> str:
    """Name the failed health checks: ``failed health check: serial-dependence``."""
    names = list(dict.fromkeys(finding.check.value for finding in findings))
    return f"failed health check{'s' * (len(names) > 1)}: {', '.join(names)}"


def checks_to_ignore(names: str | Iterable[str]) -> frozenset[HealthCheck]:
    """Return the health checks with these names; raise an `OptionError` for an unknown name."""
    known = {check.value: check for check in HealthCheck}
    wanted = names_in(names)
    for name in wanted:
        if not isinstance(name, str) or name not in known:
            raise OptionError(
                f"ignore={shorten(name)} is not a health check; use one of {', '.join(known)}.", name=name
            )
    return frozenset(known[name] for name in wanted)


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
