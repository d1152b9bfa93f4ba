"""Models for the training of many runs at once: losses, and gradients of every example, written out in NumPy.

No model has an intercept: give the records a constant feature instead. A record of zeros then has gradient 0 for any
weights, so it stands for a record that was zeroed out, the neighbour relation of Chua et al. (2024).

Shapes: `weights` (runs, parameters), `features` (n, d), `labels` (n,), `is_in` (runs, n), losses (runs, n).

References
----------
Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha & Zhang (2024), How private are DP-SGD implementations?
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_softmax, softmax

from ...audit.errors import DatasetError
from ..noise_samplers import Floats
from ..parameter_checks import check_count
from .gradient_blocks import GradientBlock, OuterProducts

Booleans: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Batch:
    """Records in memory, and which of them each run uses in this step.

    Attributes
    ----------
    features : ndarray, shape (n, d)
        Or (runs, n, d), where they differ from run to run.
    labels : ndarray, shape (n,)
    is_in : ndarray of bool, shape (runs, n)
    """

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
    """The loss ⟨weights, record⟩: a record's gradient is the record itself, for any weights.

    With a record of norm `clip` among records of zeros this is the worst case of DP-SGD: what is released is the
    subsampled Gaussian mechanism itself (Nasr, Songi, Thakurta, Papernot & Carlini 2021).

    Parameters
    ----------
    sizes : tuple of int
        Numbers of parameters in each group (layer).

    References
    ----------
    Nasr, Songi, Thakurta, Papernot & Carlini (2021), Adversary instantiation: lower bounds for differentially private
    machine learning.
    """

    sizes: tuple[int, ...] = (1,)

    def __post_init__(self) -> None:
        for size in self.sizes:
            check_count("sizes", size, "parameters of a group")

    @property
    def n_parameters(self) -> int:
        return sum(self.sizes)

    @property
    def cells(self) -> int:
        return 1

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

    @property
    def cells(self) -> int:
        return 1

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


@dataclass(frozen=True, slots=True)
class OneHiddenLayer(Model):
    """A network with one layer of tanh units and a softmax over the classes 0 … n_classes − 1; no intercepts.

    The weights are the `width` × `n_features` matrix of the first layer, then the `n_classes` × `width` matrix of the
    second, both row by row. At weights 0 all gradients are 0 (a saddle): start from random weights.

    Parameters
    ----------
    n_features, width, n_classes : int
    """

    n_features: int
    width: int
    n_classes: int = 2

    def __post_init__(self) -> None:
        for name in ("n_features", "width", "n_classes"):
            check_count(name, getattr(self, name), "units")

    @property
    def n_parameters(self) -> int:
        return self.width * (self.n_features + self.n_classes)

    @property
    def cells(self) -> int:
        return 3 * self.width + 2 * self.n_classes

    def split(self, rows: Any) -> tuple[Floats, Floats]:
        table = as_rows(rows, self.n_features + 1)
        features, labels = table[:, :-1], table[:, -1]
        if not np.isin(labels, np.arange(self.n_classes)).all():
            raise DatasetError(
                f"the labels are not classes 0 to {self.n_classes - 1}; use whole numbers in the last column.",
                n_classes=self.n_classes,
            )
        return features, labels

    def blocks(self, weights: Floats, batch: Batch) -> tuple[GradientBlock, ...]:
        first, second = self._matrices(weights)
        hidden = self._hidden(first, batch.features)
        errors = softmax(hidden @ second.transpose(0, 2, 1), axis=2)
        errors[:, np.arange(len(batch.labels)), batch.labels.astype(np.intp)] -= 1.0
        back = (errors @ second) * (1.0 - hidden**2)
        return OuterProducts(back, batch.features), OuterProducts(errors, hidden)

    def losses(self, weights: Floats, features: Floats, labels: Floats) -> Floats:
        first, second = self._matrices(weights)
        logs = log_softmax(self._hidden(first, features) @ second.transpose(0, 2, 1), axis=2)
        return np.asarray(-logs[:, np.arange(len(labels)), labels.astype(np.intp)])

    def random_weights(self, seed: int) -> tuple[float, ...]:
        """Starting weights: normal with variance one over the number of inputs of the layer, fixed by the seed."""
        rng = np.random.default_rng(seed)
        first = rng.standard_normal(self.width * self.n_features) / np.sqrt(self.n_features)
        second = rng.standard_normal(self.n_classes * self.width) / np.sqrt(self.width)
        return (*first.tolist(), *second.tolist())

    def _matrices(self, weights: Floats) -> tuple[Floats, Floats]:
        cut = self.width * self.n_features
        shapes = (-1, self.width, self.n_features), (-1, self.n_classes, self.width)
        return weights[:, :cut].reshape(shapes[0]), weights[:, cut:].reshape(shapes[1])

    def _hidden(self, first: Floats, features: Floats) -> Floats:
        """Activations, shape (runs, n, width)."""
        if features.ndim == 2:  # one large product is several times faster than one for each run
            inner = (first.reshape(-1, self.n_features) @ features.T).reshape(len(first), self.width, len(features))
            return np.asarray(np.tanh(inner.transpose(0, 2, 1)))
        return np.asarray(np.tanh(np.matmul(features, first.transpose(0, 2, 1))))
