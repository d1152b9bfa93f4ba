"""The parts of a training one by one: how far a record moves a sum, the noise, the batches, and what depends on data.

No privacy loss is estimated. Each part is compared with what the claim assumes; random comparisons have a false-alarm
probability of about 1e-6 each.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2, chi2_contingency, norm

from ....mechanisms.faulty.training.mistaken_training import MistakenTraining
from ....mechanisms.noise_samplers import Floats
from ....mechanisms.training.canary_run import Training
from ....mechanisms.training.dp_sgd import DPSGD
from ....mechanisms.training.models import Batch
from ....mechanisms.training.train import Recipe

_FALSE_ALARM = 1e-6
_WEIGHTS, _DRAWS, _BATCHES = 20, 4_000, 4_000  # weights at which sums are compared; draws of noise; runs of batches
_FEWEST = 10  # expected counts of a cell of the table of batches


def what_differs(training: Training, claimed: DPSGD, x: Any, y: Any, seed: int) -> list[str]:
    """Return what of a training is not as its claim assumes; empty if nothing is seen.

    Parameters
    ----------
    training : DPSGD or MistakenTraining
    claimed : DPSGD
        The training that the claim is for.
    x, y : array_like
        Neighbours.
    seed : int
    """
    rng = np.random.default_rng(seed)
    on_x, on_y = _recipe(training, x), _recipe(training, y)
    found = []
    if (on_x.steps, on_x.batch_size) != (on_y.steps, on_y.batch_size):
        found.append("steps or divisor depend on the data")
    if on_x.steps > claimed.steps:
        found.append(f"{on_x.steps} steps, counted {claimed.steps}")
    allowed = claimed.clip * (2.0 if claimed.neighbours == "replace_one" else 1.0)
    move = _largest_move(on_x, x, y, rng)
    if move > allowed * (1.0 + 1e-9):
        found.append(f"a sum moves by {move:.4g}, allowed {allowed:.4g}")
    return found + _noise(on_x, claimed, rng) + _batches(on_x, claimed, len(np.atleast_2d(x)), rng)


def _recipe(training: Training, rows: Any) -> Recipe:
    if isinstance(training, MistakenTraining) and training.adapt is not None:
        return training.adapt(training.recipe, rows)
    return training.recipe


def _largest_move(recipe: Recipe, x: Any, y: Any, rng: np.random.Generator) -> float:
    """The largest change of a sum between x and y, all records in the batch, at the first and at random weights."""
    first = recipe.first_weights(_WEIGHTS)
    weights = first + np.concatenate([np.zeros_like(first[:1]), rng.normal(size=first[1:].shape)])
    sums = []
    for rows in (x, y):
        features, labels = recipe.model.split(recipe.prepare(rows))
        everyone = np.ones((_WEIGHTS, len(features)), dtype=np.bool_)
        blocks = recipe.model.blocks(weights, Batch(features, labels, everyone))
        sums.append(np.broadcast_to(recipe.gradient(blocks, everyone), weights.shape))
    return float(np.linalg.norm(sums[0] - sums[1], axis=1).max())


def _noise(recipe: Recipe, claimed: DPSGD, rng: np.random.Generator) -> list[str]:
    """The scale of the noise, and correlations between parameters and between steps."""
    rule, size = recipe.noise.begun(), recipe.model.n_parameters
    draws = [rule(np.zeros((_DRAWS, size)), step, rng) for step in range(min(recipe.steps, 4))]
    table: Floats = np.concatenate(draws, axis=1)
    scale, wanted = math.sqrt(float(np.mean(table[:, 0] ** 2))), claimed.noise_multiplier * claimed.clip
    found = []
    if _DRAWS * scale**2 / wanted**2 < chi2.ppf(_FALSE_ALARM, _DRAWS):
        found.append(f"noise of standard deviation {scale:.4g}, assumed {wanted:.4g}")
    if table.shape[1] > 1:
        matrix: Floats = np.asarray(np.corrcoef(table, rowvar=False))
        correlations = matrix[np.triu_indices(table.shape[1], 1)]
        largest = float(np.abs(correlations).max())
        # Fisher's transform is normal with variance 1/(n − 3).
        limit = norm.isf(_FALSE_ALARM / (2 * len(correlations))) / math.sqrt(_DRAWS - 3)
        if math.atanh(min(largest, 1.0 - 1e-12)) > limit:
            found.append(f"noise correlated between parameters or steps ({largest:.3f})")
    return found


def _batches(recipe: Recipe, claimed: DPSGD, records: int, rng: np.random.Generator) -> list[str]:
    """In how many batches a record is, and the size of the first batch, beside the sampling that the claim is for."""
    steps = min(recipe.steps, claimed.steps)
    counts, sizes = [], []
    for sampling in (recipe.sampling, claimed.sampling):
        masks = list(sampling.batches(_BATCHES, records, steps, rng))
        counts.append(np.asarray(np.sum([mask[:, 0] for mask in masks], axis=0, dtype=np.int64)))
        sizes.append(np.asarray(masks[0].sum(axis=1, dtype=np.int64)))
    found = []
    if _have_different_laws(*counts):
        means = [float(each.mean()) / steps for each in counts]
        found.append(f"a record is in another number of batches (rate {means[0]:.3f}, assumed {means[1]:.3f})")
    if _have_different_laws(*sizes):
        found.append(f"batches of other sizes (variance {sizes[0].var():.3g}, assumed {sizes[1].var():.3g})")
    return found


def _have_different_laws(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> bool:
    """Whether two samples of whole numbers have different laws, by a chi-square test; rare values count together."""
    most = int(max(one.max(), other.max()))
    table = np.array([np.bincount(each, minlength=most + 1) for each in (one, other)])
    is_frequent = table.sum(axis=0) >= 2 * _FEWEST
    cells = np.column_stack([table[:, is_frequent], table[:, ~is_frequent].sum(axis=1)])
    cells = cells[:, cells.sum(axis=0) > 0]
    return cells.shape[1] > 1 and bool(chi2_contingency(cells).pvalue < _FALSE_ALARM)
