"""Page on audits of one training run."""

from __future__ import annotations

from ..core.page import Page
from .cost import CANARY_COST
from .false_alarms import FALSE_ALARMS
from .methods_compared import METHODS_COMPARED
from .published_rows import PUBLISHED_ROWS

CANARIES = Page(
    "canaries",
    "Benchmarks of audits of one training run",
    (FALSE_ALARMS, PUBLISHED_ROWS, METHODS_COMPARED, CANARY_COST),
)
