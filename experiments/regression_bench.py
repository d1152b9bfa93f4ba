"""Regression testing measured: red sessions, planted bugs, checks of the noise."""

from __future__ import annotations

from .bench_page import Page
from .regression_noise import NOISE
from .regression_sessions import PLANTED, SESSIONS

REGRESSION = Page("regression", "Regression testing, measured", (SESSIONS, PLANTED, NOISE))
