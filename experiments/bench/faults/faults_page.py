"""Attacks on an audit, and audits that are killed, as a page of the benchmarks."""

from __future__ import annotations

from ..core.page import Page
from .attack_outcomes import FAULTS
from .kill_and_resume import KILLS

FAULTS_PAGE = Page("faults", "Faults, measured", (FAULTS, KILLS))
