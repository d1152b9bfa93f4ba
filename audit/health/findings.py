"""The names of the health checks, and the finding of a failed check."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

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
