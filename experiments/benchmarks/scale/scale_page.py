"""Long audits: memory, speed, large datasets, clusters and start-up."""

from __future__ import annotations

from ..core.page import Page
from .large_datasets import LARGE
from .memory import MEMORY
from .throughput import BACKENDS, SCALING, START, SUITE, THROUGHPUT

SCALE = Page(
    "scale",
    "Benchmarks of long audits",
    (MEMORY, LARGE, SUITE, THROUGHPUT, SCALING, BACKENDS, START),
)
