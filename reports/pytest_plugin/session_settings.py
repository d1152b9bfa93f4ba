"""Settings of a session: their defaults, their help, and their form on the command line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

HELP = {
    "alpha": "Probability that one audit refutes a correct mechanism",
    "budget": "Largest sum of the alphas of all audits in a session",
    "runs": "Largest number of runs on each dataset if no resolution is requested",
    "resolution": "Excess over the claim that every audit must be able to detect; determines the number of runs",
    "seconds": "Time limit of an audit in seconds",
    "seed": 'Whole number that determines the random seeds together with the tests\' names, or "random"',
}
_RULES = {
    "alpha": "a probability, 0 < alpha < 1, such as 1e-5",
    "budget": "a probability, 0 < budget < 1, such as 0.01",
    "runs": "a whole number of runs, 40 or more",
    "resolution": "a positive number in the units of the claims",
    "seconds": "a positive number of seconds",
    "seed": 'a whole number >= 0, or "random"',
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a session. Precedence: call, marker, command line, configuration file."""

    alpha: float = 1e-5
    budget: float = 0.01
    runs: int = 100_000
    resolution: float | None = None
    seconds: float | None = None
    seed: int = 0


DEFAULTS: dict[str, Any] = vars(Settings())


def setting_from_text(name: str, text: str) -> Any:
    """Parse a setting from the command line or the configuration file, with a `ValueError` for an invalid one."""
    if name == "seed" and text == "random":
        return text
    digits = text.replace("_", "")
    is_whole = name in ("runs", "seed")
    try:
        value = float(digits)
        if is_whole:
            is_right = value >= (40 if name == "runs" else 0) and value == math.floor(value)
        else:
            is_right = 0.0 < value < (1.0 if name in ("alpha", "budget") else math.inf)
    except (ValueError, OverflowError):
        is_right = False
    if not is_right:
        raise ValueError(
            f"--dp-audit-{name} (or dp_audit_{name} in the configuration) is {text!r}; use {_RULES[name]}."
        )
    if is_whole:
        return int(digits) if digits.isdigit() else int(value)
    return value
