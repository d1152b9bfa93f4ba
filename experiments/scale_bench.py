"""Long audits measured: memory, speed, large datasets, clusters."""

from __future__ import annotations

from .bench_page import Page
from .scale_cluster import BACKENDS, EXPECTED, SENT
from .scale_large import LARGE
from .scale_memory import MEMORY
from .scale_speed import SCALING, SUITE, THROUGHPUT
from .scale_start import START

SCALE = Page(
    "scale",
    "Long audits, measured",
    (MEMORY, LARGE, SUITE, THROUGHPUT, SCALING, BACKENDS, SENT, EXPECTED, START),
)
