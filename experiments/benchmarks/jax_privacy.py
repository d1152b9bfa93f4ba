"""One training run by DP-SGD with JAX Privacy, apart, because it needs JAX; fair coins include the canaries.

A canary is a row whose gradient has one coordinate, which belongs to no other row: a Dirac canary. The library selects
the batches, clips the gradients of the rows and adds the noise; the loop is that of its own examples.

References
----------
M. Abadi et al. (2016), "Deep learning with differential privacy".
M. Nasr et al. (2023), "Tight auditing of differentially private machine learning" (Dirac canaries).
T. Steinke, M. Nasr, M. Jagielski (2023), "Privacy auditing with one (1) training run".
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ...audit.claims.privacy_profile import PrivacyProfile
from ...audit.errors import OptionError
from ...mechanisms.adapters import claim_from_event
from ...mechanisms.adapters.library_calls import imported

Fault: TypeAlias = Literal["", "half the noise", "clipped mean"]
"""`half the noise` adds noise of half the scale that the claim is for. `clipped mean` clips the mean gradient of a
batch instead of each row's, and scales the noise as if each had been clipped."""

_EXTRA = "jax-privacy"
_CLIP_NORM = 1.0
_CANARY_GRADIENT = 10.0
"""Ten times the clipping norm, so that a canary that is not clipped is seen."""
_RATE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CanaryTraining:
    """What a training run shows of its canaries, and the parameters of its claim, for one added or removed row.

    `included` says whose coins put them into the dataset. `last_scores` are what the last model shows: how far each
    canary's coordinate has moved, in movements by one clipped gradient; in a sound run the number of batches that had
    the canary, plus noise of scale ``noise_multiplier √steps``. `step_scores` are what the noisy gradients of all steps
    show: the log likelihood ratio of a canary that is included to one that is not, by the claim; NaN without noise.
    """

    included: NDArray[np.bool_] = field(repr=False)
    last_scores: NDArray[np.float64] = field(repr=False)
    step_scores: NDArray[np.float64] = field(repr=False)
    noise_multiplier: float
    sampling_rate: float
    steps: int

    def claim(self) -> PrivacyProfile:
        """Return the claim of the library's event for DP-SGD, by the accountant of `dp_accounting`."""
        return claim_from_event(_event(self.noise_multiplier, self.sampling_rate, self.steps), discretization=1e-3)


def jax_privacy_training(
    *,
    canaries: int = 10_000,
    rows: int = 1_000,
    steps: int = 100,
    sampling_rate: float = 0.02,
    noise_multiplier: float = 1.0,
    seed: int = 0,
    fault: Fault = "",
) -> CanaryTraining:
    """Train a logistic regression once; each canary is one of its rows with probability a half.

    The other `rows` are always included. Each batch has every row with probability `sampling_rate` (Poisson sampling).
    The noise has the scale `noise_multiplier` in clipping norms. The same seed gives the same run on the same machine.

    Raises
    ------
    OptionError
        If an option is out of its range.
    MissingExtraError
        If jax-privacy is not installed.
    """
    _check(canaries, rows, steps, sampling_rate, noise_multiplier, fault)
    imported("jax_privacy", _EXTRA)
    rng = np.random.default_rng(seed)
    included = rng.random(canaries) < 0.5
    data = _dataset(rng, rows, np.flatnonzero(included))
    batches = _batches(rng, len(data[0]), steps, sampling_rate)
    summed, bound = _clipped_sum(fault, len(data[0]) * sampling_rate)
    scale = bound * (noise_multiplier / 2 if fault == "half the noise" else noise_multiplier)
    moved, pushes = _train(data, batches, canaries, summed, scale, int(rng.integers(2**31)))
    return CanaryTraining(
        included=included,
        last_scores=moved,
        step_scores=_log_ratios(pushes, noise_multiplier, sampling_rate).sum(axis=0),
        noise_multiplier=noise_multiplier,
        sampling_rate=sampling_rate,
        steps=steps,
    )


def _check(canaries: int, rows: int, steps: int, rate: float, noise: float, fault: str) -> None:
    for name, value, least in (("canaries", canaries, 2), ("rows", rows, 1), ("steps", steps, 1)):
        if value < least:
            raise OptionError(f"{name}={value!r} is too few; use {least} or more.", **{name: value})
    if not 0 < rate <= 1:
        raise OptionError(f"sampling_rate={rate!r} is not a probability above 0; use 0.1, say.", sampling_rate=rate)
    if not 0 <= noise < math.inf:
        raise OptionError(f"noise_multiplier={noise!r} is not a scale; use 0 or more.", noise_multiplier=noise)
    if fault not in get_args(Fault):
        known = ", ".join(repr(name) for name in get_args(Fault))
        raise OptionError(f"fault={fault!r} is unknown; use one of {known}.", fault=fault)


def _event(noise_multiplier: float, sampling_rate: float, steps: int) -> Any:
    events = imported("jax_privacy.accounting", _EXTRA)
    if not hasattr(events, "dpsgd_event"):  # until 2.1
        events = imported("jax_privacy.experimental.accounting", _EXTRA)
    return events.dpsgd_event(noise_multiplier, steps, sampling_prob=sampling_rate)


def _dataset(rng: np.random.Generator, rows: int, included: NDArray[np.intp]) -> tuple[NDArray[Any], ...]:
    """Return features, labels, and the canary's number of each row, -1 for a row that is not a canary."""
    features = np.zeros((rows + len(included), 5), dtype=np.float32)
    features[:rows] = rng.normal(size=(rows, 5))
    labels = np.where(features @ np.arange(-2, 3) + rng.logistic(size=len(features)) > 0, 1, -1).astype(np.float32)
    return features, labels, np.concatenate((np.full(rows, -1), included)).astype(np.int32)


def _batches(rng: np.random.Generator, rows: int, steps: int, rate: float) -> list[NDArray[np.int64]]:
    """Return the places of the rows of each batch, filled up with -1 to the size of the largest."""
    selection = imported("jax_privacy.batch_selection", _EXTRA)
    selected = list(selection.CyclicPoissonSampling(rate, steps).batch_iterator(rows, rng=rng))
    most = max(1, *map(len, selected))
    return [selection.pad_to_multiple_of(batch, most) if len(batch) else np.full(most, -1) for batch in selected]


def _train(
    data: tuple[NDArray[Any], ...],
    batches: list[NDArray[np.int64]],
    canaries: int,
    summed: Callable[..., Any],
    scale: float,
    seed: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how far each canary's coordinate is moved, and by how much in each step, in clipping norms."""
    jax = imported("jax", _EXTRA)
    addition = imported("jax_privacy.noise_addition", _EXTRA)
    noise = addition.gaussian_privatizer(stddev=scale, prng_key=jax.random.key(seed))

    def step(model: Any, state: Any, batch: Any, is_padding: Any) -> tuple[Any, Any, Any]:
        noisy, state = noise.update(summed(model, *batch, is_padding), state)
        moved = jax.tree.map(lambda value, gradient: value - _RATE * gradient, model, noisy)
        return moved, state, noisy["canaries"]

    compiled = jax.jit(step)
    model = {"weights": jax.numpy.zeros(data[0].shape[1]), "canaries": jax.numpy.zeros(canaries)}
    state = noise.init(model)
    pushes = np.empty((len(batches), canaries))
    for place, batch in enumerate(batches):
        model, state, gradient = compiled(model, state, tuple(column[batch] for column in data), batch == -1)
        pushes[place] = -np.asarray(gradient) / _CLIP_NORM
    return np.asarray(model["canaries"], dtype=float) / (_RATE * _CLIP_NORM), pushes


def _clipped_sum(fault: Fault, expected: float) -> tuple[Callable[..., Any], float]:
    """Return the clipped sum of the gradients of a batch, and the bound for one row that it is taken to have."""
    jax, clipping = imported("jax", _EXTRA), imported("jax_privacy.clipping", _EXTRA)
    neighbours = imported("dp_accounting", _EXTRA).NeighboringRelation.ADD_OR_REMOVE_ONE
    options = {"l2_clip_norm": _CLIP_NORM, "keep_batch_dim": False}
    if fault != "clipped mean":
        of_rows = clipping.clipped_grad(_loss, batch_argnums=(1, 2, 3), **options)
        return (
            lambda model, *batch: of_rows(model, *batch[:-1], is_padding_example=batch[-1]),
            of_rows.sensitivity(neighbours),
        )

    def mean(model: Any, features: Any, labels: Any, places: Any, is_padding: Any) -> Any:
        losses = jax.vmap(functools.partial(_loss, model))(features, labels, places)
        return jax.numpy.sum(jax.numpy.where(is_padding, 0.0, losses)) / expected

    of_batch = clipping.clipped_grad(mean, batch_argnums=(1, 2, 3, 4), **options)

    def as_sum(model: Any, *batch: Any) -> Any:
        one_group = (column[None] for column in batch)
        return jax.tree.map(lambda value: value * expected, of_batch(model, *one_group))

    return as_sum, of_batch.sensitivity(neighbours)


def _loss(model: Any, features: Any, label: Any, place: Any) -> Any:
    """Return the logistic loss of a row; a canary pushes its own coordinate upwards."""
    numpy = imported("jax.numpy", _EXTRA)
    of_row = numpy.logaddexp(0.0, -label * numpy.dot(features, model["weights"]))
    return numpy.where(place < 0, of_row, -_CANARY_GRADIENT * model["canaries"][place])


def _log_ratios(pushes: NDArray[np.float64], noise: float, rate: float) -> NDArray[np.float64]:
    """Return the log likelihood ratios of noisy pushes: by a canary that is in a batch at the rate, or by none."""
    if noise == 0:
        return np.full(pushes.shape, np.nan)
    with np.errstate(divide="ignore"):  # at rate 1 no batch is without the canary
        without, within = np.log1p(-rate), np.log(rate) + (2 * pushes - 1) / (2 * noise**2)
    ratios: NDArray[np.float64] = np.logaddexp(without, within)
    return ratios
