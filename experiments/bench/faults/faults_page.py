"""Page on attacks on an audit and on killed audits."""

from __future__ import annotations

from ..core.page import Page
from .attack_outcomes import FAULTS
from .kill_and_resume import KILLS

FAULTS_PAGE = Page("faults", "Measured handling of faults", (FAULTS, KILLS))
