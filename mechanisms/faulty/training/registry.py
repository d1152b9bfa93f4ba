"""All mistakes in training, for tests and benchmarks that iterate over them."""

from __future__ import annotations

from typing import Final

from .clipping_faults import clipping_faults
from .noise_faults import noise_faults
from .sampling_faults import sampling_faults
from .training_fault import TrainingFault

TRAINING_FAULTS: Final[tuple[TrainingFault, ...]] = (*clipping_faults(), *noise_faults(), *sampling_faults())
"""Every mistake once, by kind. Their numbers are computed when they are asked for; that needs dp-accounting."""
