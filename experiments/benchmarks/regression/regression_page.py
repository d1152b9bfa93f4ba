"""Regression testing: failed sessions, planted bugs, checks of noise and baselines of rewritten code."""

from __future__ import annotations

from ..core.page import Page
from .pytest_sessions import PLANTED, SESSIONS
from .rewritten_mechanisms import BASELINES
from .timing_noise import NOISE

REGRESSION = Page("regression", "Benchmarks of regression testing", (SESSIONS, PLANTED, NOISE, BASELINES), audits=1_000)
