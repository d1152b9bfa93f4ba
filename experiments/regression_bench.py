"""Regression testing measured: red sessions, planted bugs, checks of the noise, baselines of rewritten code."""

from __future__ import annotations

from .bench_page import Page
from .regression_noise import NOISE
from .regression_rewrites import BASELINES
from .regression_sessions import PLANTED, SESSIONS

REGRESSION = Page("regression", "Regression testing, measured", (SESSIONS, PLANTED, NOISE, BASELINES), audits=1_000)
