"""Long audits measured: memory, speed, large datasets, clusters."""

from __future__ import annotations

from ..core.page import Page
from .dask_speed import BACKENDS, EXPECTED, SENT
from .large_datasets import LARGE
from .memory import MEMORY
from .startup import START
from .throughput import SCALING, SUITE, THROUGHPUT

SCALE = Page(
    "scale",
    "Long audits, measured",
    (MEMORY, LARGE, SUITE, THROUGHPUT, SCALING, BACKENDS, SENT, EXPECTED, START),
)
