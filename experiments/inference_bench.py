"""The statistics measured: false alarms, exact sizes, tightness, runs to refutation, coverage, cost, dependence."""

from __future__ import annotations

from .bench_page import Page
from .inference_audits import FALSE_ALARMS, REFUTATION, TIGHTNESS
from .inference_counts import COVERAGE, SIZES
from .inference_dependence import CHECKS, DEPENDENCE
from .inference_power import STATED_POWER
from .inference_timing import TIMING

INFERENCE = Page(
    "inference",
    "The statistics, measured",
    (FALSE_ALARMS, SIZES, TIGHTNESS, REFUTATION, COVERAGE, TIMING, DEPENDENCE, CHECKS, STATED_POWER),
)
