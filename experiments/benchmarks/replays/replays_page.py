"""Page on record and replay."""

from __future__ import annotations

from ...libraries.installed import left_out
from ..core.page import Page
from .composites import COMPOSITES
from .false_findings import FALSE_FINDINGS

REPLAYS = Page(
    "replays",
    "Benchmarks of record and replay",
    (FALSE_FINDINGS, COMPOSITES),
    audits=1_000,
    left_out=left_out,
)
