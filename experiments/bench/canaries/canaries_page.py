"""Page on audits of one training run."""

from __future__ import annotations

from ..core.page import Page
from .cost import CANARY_COST
from .dp_sgd_bounds import DP_SGD_BOUNDS
from .false_alarms import FALSE_ALARMS
from .methods_compared import METHODS_COMPARED
from .published_rows import PUBLISHED_ROWS
from .training_mistakes import TRAINING_MISTAKES

CANARIES = Page(
    "canaries",
    "Benchmarks of audits of one training run",
    (FALSE_ALARMS, PUBLISHED_ROWS, METHODS_COMPARED, DP_SGD_BOUNDS, TRAINING_MISTAKES, CANARY_COST),
)
