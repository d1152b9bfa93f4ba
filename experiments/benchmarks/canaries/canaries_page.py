"""Page on audits of one training run."""

from __future__ import annotations

from functools import partial

from ...libraries.installed import left_out
from ..core.page import Page
from .cost import CANARY_COST
from .dp_sgd_bounds import DP_SGD_BOUNDS
from .false_alarms import FALSE_ALARMS
from .jax_privacy_runs import JAX_PRIVACY_RUNS
from .published_rows import PUBLISHED_ROWS
from .training_mistakes import TRAINING_MISTAKES

CANARIES = Page(
    "canaries",
    "Benchmarks of audits of one training run",
    (
        FALSE_ALARMS,
        PUBLISHED_ROWS,
        JAX_PRIVACY_RUNS,
        DP_SGD_BOUNDS,
        TRAINING_MISTAKES,
        CANARY_COST,
    ),
    left_out=partial(left_out, ("jax-privacy",)),
)
