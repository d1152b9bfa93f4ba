"""Attacks on an audit, and audits that are killed, as a page of the benchmarks."""

from __future__ import annotations

from .bench_page import Page
from .faults_attacks import FAULTS
from .scale_kills import KILLS

FAULTS_PAGE = Page("faults", "Faults, measured", (FAULTS, KILLS))
