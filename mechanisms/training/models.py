"""Records, and models with the gradients of each record for many trainings at once."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from ...audit.errors import DatasetError
from ..noise_samplers import Floats
from ..queries import check_count

# Records of a dataset that scikit-learn ships, scaled by constants, and the record that was zeroed out.
#
# The constants do not depend on the records at hand, so adding or removing a record changes no other one. They are
# ranges published with the data, typed in below. Values outside are clipped.

# Minimum and maximum of each feature as the dataset's description states them.
_LOWEST: Final = (
    6.981, 9.71, 43.79, 143.5, 0.053, 0.019, 0.0, 0.0, 0.106, 0.05,
    0.112, 0.36, 0.757, 6.802, 0.002, 0.002, 0.0, 0.0, 0.008, 0.001,
    7.93, 12.02, 50.41, 185.2, 0.071, 0.027, 0.0, 0.0, 0.156, 0.055,
)  # fmt: skip
_HIGHEST: Final = (
    28.11, 39.28, 188.5, 2501.0, 0.163, 0.345, 0.427, 0.201, 0.304, 0.097,
    2.873, 4.885, 21.98, 542.2, 0.031, 0.135, 0.396, 0.053, 0.079, 0.03,
    36.04, 49.54, 251.2, 4254.0, 0.223, 1.058, 1.252, 0.291, 0.664, 0.208,
)  # fmt: skip


def breast_cancer_records() -> Floats:
    """Wisconsin breast cancer records, shape (569, 32): 30 features in [−1, 1], the constant 1, the class 0 or 1."""
    from sklearn.datasets import load_breast_cancer

    features, labels = load_breast_cancer(return_X_y=True)
    low, high = np.array(_LOWEST), np.array(_HIGHEST)
    scaled = np.clip((2 * features - low - high) / (high - low), -1.0, 1.0)
    return np.column_stack([scaled, np.ones(len(scaled)), labels.astype(np.float64)])


def zeroed(rows: npt.ArrayLike, index: int) -> Floats:
    """The records with one replaced by zeros: it has gradient 0, the neighbour of "replace_special"."""
    changed = np.array(rows, dtype=np.float64)
    changed[index] = 0.0
    return changed


# Gradients of many examples in many runs at once, without an array of runs × examples × parameters.
#
# The gradient of a layer for one example is an outer product of the error that reaches the layer and the layer's input.
# Its norm is the product of two norms, and a weighted sum over the examples is one matrix product, so the gradients
# themselves are never formed.
#
# Source: Goodfellow (2015), Efficient per-example gradient computations.


class GradientBlock(Protocol):
    """Gradients of all examples for one group of parameters, in every run."""

    __slots__ = ()

    @property
    def size(self) -> int:
        """Number of parameters of the group."""

    def squared_norms(self) -> Floats:
        """Squared Euclidean norm of each example's gradient, shape (runs, n), or (1, n) if equal in all runs."""

    def weighted_sum(self, weights: Floats) -> Floats:
        """Sum over the examples of weight × gradient, shape (runs, size), for weights of shape (runs, n)."""


@dataclass(frozen=True, slots=True)
class OuterProducts(GradientBlock):
    """Gradients error ⊗ input of a layer, with the rows of the weight matrix (one per error) one after the other.

    Errors, shape (runs, n, k) or (1, n, k), are the derivatives of an example's loss by the layer's k outputs before
    the activation; inputs have shape (n, d), (1, n, d) or (runs, n, d).
    """

    errors: Floats
    inputs: Floats

    @property
    def size(self) -> int:
        return int(self.errors.shape[-1] * self.inputs.shape[-1])

    def squared_norms(self) -> Floats:
        errors, inputs = (np.einsum("...i,...i->...", part, part) for part in (self.errors, self.inputs))
        return np.atleast_2d(errors * inputs)

    def weighted_sum(self, weights: Floats) -> Floats:
        scaled = (weights[:, :, None] * self.errors).transpose(0, 2, 1)  # (runs, k, n)
        if self.inputs.ndim == 2:  # one large product is several times faster than one for each run
            scaled = scaled.reshape(scaled.shape[0] * scaled.shape[1], len(self.inputs))
        return np.asarray(np.matmul(scaled, self.inputs)).reshape(len(weights), self.size)


def clipped_to(squared_norms: Floats, most: float) -> Floats:
    """Factors min(1, most/norm) that scale vectors of these squared norms to a norm of at most `most`."""
    return most / np.sqrt(np.maximum(squared_norms, most * most))


# Models for the training of many runs at once: losses, and gradients of every example, written out in NumPy.
#
# No model has an intercept: give the records a constant feature instead. A record of zeros then has gradient 0 for any
# weights, so it stands for a record that was zeroed out, the neighbour relation of Chua et al. (2024).
#
# Shapes: `weights` (runs, parameters), `features` (n, d), `labels` (n,), `is_in` (runs, n), losses (runs, n).

Booleans: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Batch:
    """Records in memory, and which of them each run uses in this step; the features may differ from run to run."""

    features: Floats
    labels: Floats
    is_in: Booleans


class Model(Protocol):
    """A model with a loss for each record."""

    __slots__ = ()

    @property
    def n_parameters(self) -> int:
        """Number of weights."""

    @property
    def cells(self) -> int:
        """Numbers that one record takes in one run while its gradient is computed; it bounds the memory."""
        return 1

    def split(self, rows: Any) -> tuple[Floats, Floats]:
        """Features, shape (n, d), and labels, shape (n,), of the records."""

    def blocks(self, weights: Floats, batch: Batch) -> tuple[GradientBlock, ...]:
        """Gradients of all records at these weights, by groups of parameters in the order of the weights."""

    def losses(self, weights: Floats, features: Floats, labels: Floats) -> Floats:
        """Loss of each record in each run, shape (runs, n)."""


def as_rows(rows: Any, columns: int) -> Floats:
    """Records as an array of shape (n, columns); raise a `DatasetError` if they are not finite numbers of this form."""
    table = np.asarray(rows, dtype=np.float64)
    if table.size == 0:
        table = table.reshape(0, columns)
    if table.ndim != 2 or table.shape[1] != columns or not np.isfinite(table).all():
        raise DatasetError(
            f"the dataset has shape {table.shape}, but the model takes records of {columns} finite numbers; use an "
            f"array of shape (n, {columns}), with the label in the last column if the model has one.",
            shape=table.shape,
        )
    return table


@dataclass(frozen=True, slots=True)
class FixedGradients(Model):
    """The loss ⟨weights, record⟩: a record's gradient is the record itself, for any weights, in groups of these sizes.

    With a record of norm `clip` among records of zeros this is the worst case of DP-SGD: what is released is the
    subsampled Gaussian mechanism itself.

    Source: Nasr, Songi, Thakurta, Papernot & Carlini (2021).
    """

    sizes: tuple[int, ...] = (1,)

    def __post_init__(self) -> None:
        for size in self.sizes:
            check_count("sizes", size, "parameters of a group")

    @property
    def n_parameters(self) -> int:
        return sum(self.sizes)

    def split(self, rows: Any) -> tuple[Floats, Floats]:
        features = as_rows(rows, self.n_parameters)
        return features, np.zeros(len(features))

    def blocks(self, weights: Floats, batch: Batch) -> tuple[GradientBlock, ...]:
        ones = np.ones((1, batch.features.shape[-2], 1))
        ends = np.cumsum(self.sizes)
        return tuple(
            OuterProducts(ones, batch.features[..., end - size : end])
            for size, end in zip(self.sizes, ends, strict=True)
        )

    def losses(self, weights: Floats, features: Floats, labels: Floats) -> Floats:
        return np.asarray(weights @ features.T)


@dataclass(frozen=True, slots=True)
class _LinearModel(Model):
    """A model whose loss depends on ⟨weights, features⟩ and the label."""

    n_features: int

    def __post_init__(self) -> None:
        check_count("n_features", self.n_features, "features")

    @property
    def n_parameters(self) -> int:
        return self.n_features

    def split(self, rows: Any) -> tuple[Floats, Floats]:
        table = as_rows(rows, self.n_features + 1)
        return table[:, :-1], table[:, -1]

    def blocks(self, weights: Floats, batch: Batch) -> tuple[GradientBlock, ...]:
        features = batch.features
        is_shared = features.ndim == 2
        scores = weights @ features.T if is_shared else np.matmul(features, weights[:, :, None])[..., 0]
        errors = self._slopes(scores, batch.labels)
        return (OuterProducts(errors[:, :, None], batch.features),)

    @abstractmethod
    def _slopes(self, scores: Floats, labels: Floats) -> Floats:
        """Derivative of the loss by the score."""


@dataclass(frozen=True, slots=True)
class LinearRegression(_LinearModel):
    """Least squares: the loss (⟨weights, features⟩ − label)² / 2."""

    def _slopes(self, scores: Floats, labels: Floats) -> Floats:
        return scores - labels

    def losses(self, weights: Floats, features: Floats, labels: Floats) -> Floats:
        return np.asarray((weights @ features.T - labels) ** 2 / 2)


@dataclass(frozen=True, slots=True)
class LogisticRegression(_LinearModel):
    """Logistic regression for labels 0 and 1: the loss is the negative log-likelihood, in nats."""

    def _slopes(self, scores: Floats, labels: Floats) -> Floats:
        return np.asarray(expit(scores) - labels)

    def losses(self, weights: Floats, features: Floats, labels: Floats) -> Floats:
        scores = weights @ features.T
        return np.asarray(np.logaddexp(0.0, scores) - labels * scores)
