"""Health checks by name, and what a failed one says."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import OptionError

FALSE_ALARM = 1e-8
"""Of each single check, on one side or on both."""

ANY_FALSE_ALARM = 1e-6
"""Of all checks of an audit together, at most."""


class HealthCheck(enum.Enum):
    """What is looked for; the values are the names by which a check is silenced."""

    REPEATED_BLOCKS = "repeated-blocks"
    UNSTEADY_HITS = "unsteady-hits"
    SERIAL_DEPENDENCE = "serial-dependence"
    SHARED_RANDOMNESS = "shared-randomness"
    DATASET_MUTATED = "dataset-mutated"
    EQUAL_DATASETS = "equal-datasets"
    CONSTANT_OUTPUT = "constant-output"
    IDLE_EVENT = "idle-event"


@dataclass(frozen=True, slots=True)
class Finding:
    """A failed health check: the audit is inconclusive."""

    check: HealthCheck
    message: str

    def __str__(self) -> str:
        return f"{self.message} Silence this check with ignore={self.check.value!r}."


def checks_to_ignore(names: str | Iterable[str]) -> frozenset[HealthCheck]:
    """The health checks with these names; an `OptionError` for a name that is none."""
    wanted = [names] if isinstance(names, str) else list(names)
    known = {check.value: check for check in HealthCheck}
    for name in wanted:
        if name not in known:
            raise OptionError(f"ignore={name!r} is no health check; use one of {', '.join(known)}.", name=name)
    return frozenset(known[name] for name in wanted)
