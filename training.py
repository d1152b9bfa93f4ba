"""Parts of private training: checks of a step that clips, adds up and adds noise, and of its batches.

check_step     run a step with the same coins on neighbouring batches
torch_step     the step of a model, an optimiser and a loss of torch, as a function of a batch
check_batches  whether a batch sampler draws as the accountant assumes
StepResult     what a check of a step found, a row for each statement
StepRow        one of these rows; the names of rows for ``ignore=``
BatchesResult  the verdict on a sampler, with a row for each property of the batches
BatchesRow     a property of the batches: what was seen, and what would have been found
"""

from .audit.training.check_batches import BatchesResult, BatchesRow, check_batches
from .audit.training.check_step import check_step
from .audit.training.seeded_step import torch_step
from .audit.training.step_result import StepResult, StepRow

__all__ = ["check_step", "torch_step", "check_batches", "StepResult", "StepRow", "BatchesResult", "BatchesRow"]
