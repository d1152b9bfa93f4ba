"""Page on attacks on an audit and on killed audits."""

from __future__ import annotations

from ..core.page import Page
from .attacks import OUTCOMES
from .kill_and_resume import KILLS

FAULTS = Page("faults", "Benchmarks of fault handling", (OUTCOMES, KILLS))
