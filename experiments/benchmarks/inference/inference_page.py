"""Statistics: false alarms, exact size, tightness, runs to a refutation, coverage, cost, dependence and power."""

from __future__ import annotations

from ..core.page import Page
from .dependent_runs import CHECKS, DEPENDENCE
from .exact_sizes_and_coverage import COVERAGE, SIZES
from .false_alarms_and_tightness import FALSE_ALARMS, TIGHTNESS
from .runs_to_refutation import REFUTATION
from .speed import TIMING
from .stated_power import STATED_POWER

INFERENCE = Page(
    "inference",
    "Benchmarks of the statistics",
    (FALSE_ALARMS, SIZES, TIGHTNESS, REFUTATION, COVERAGE, TIMING, DEPENDENCE, CHECKS, STATED_POWER),
)
