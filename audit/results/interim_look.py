"""An interim analysis of a sequential audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Stop = Literal["refuted", "runs", "time", "request"]


@dataclass(frozen=True, slots=True)
class Look:
    """State of an audit after a batch.

    Attributes
    ----------
    runs : int
        Runs on each dataset so far.
    bound : float
        Running lower bound, valid at all looks together.
    p_value : float
        Anytime-valid p-value of the claim.
    """

    runs: int
    bound: float
    p_value: float
