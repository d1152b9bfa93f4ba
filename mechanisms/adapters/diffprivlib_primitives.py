"""The noise primitives of diffprivlib for replays: `randomise` of its mechanisms, with law, sensitivity and budget.

Laws are stated for mechanisms whose noise is a known law before it is truncated or folded. The others are recorded with
the sensitivity and the budget that they declare. `Vector` returns a function that is given the data later: its draws
are recorded, and the curvature of the function where it is first evaluated.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...audit.replay.laws import Law
from ...audit.replay.registered import Patch
from ...audit.replay.tape import Declared, Tape, active_tape
from .diffprivlib_parts import library

_AFTER = {"Folded": "folded", "Truncated": "truncated"}
_MOST_CANDIDATES = 1_000  # of permute and flip, whose law takes time of the third power of their number
_STEP = 1e-4  # of the differences of a gradient, whose error is then about 1e-8


def diffprivlib_patches() -> Iterator[Patch]:
    """Yield a patch for each class of mechanisms that has its own `randomise`."""
    for name, kind in vars(library().mechanisms).items():
        if inspect.isclass(kind) and "randomise" in vars(kind) and not inspect.isabstract(kind):
            original = vars(kind)["randomise"]
            yield Patch(kind, "randomise", _recorded_objective(original) if name == "Vector" else _recorded(original))


def _recorded(original: Callable[..., Any]) -> Callable[..., Any]:
    def randomise(self: Any, value: Any = None) -> Any:
        given = () if value is None else (value,)
        tape = active_tape()
        if tape is None:
            return original(self, *given)
        names = _names(self)

        def draw() -> Any:
            found = original(self, *given)
            return found if names is None else names.index(found)

        found = tape.call(
            type(self).__name__,
            lambda: law_of(self, value),
            draw,
            lambda: declared_by(self, value),
            lambda place: names is None or place < len(names),
        )
        return found if names is None else names[found]

    return randomise


def _names(mechanism: Any) -> Sequence[Any] | None:
    """Return the outcomes whose places are recorded; None if the outcome itself is a number."""
    match type(mechanism).__name__:
        case "Exponential" | "PermuteAndFlip":
            return mechanism.candidates or range(len(mechanism.utility))
        case "Binary":
            return [mechanism.value0, mechanism.value1]
        case "ExponentialCategorical" | "ExponentialHierarchical":
            return list(mechanism._normalising_constant)
    return None


def declared_by(mechanism: Any, value: Any) -> Declared:
    """Return the sensitivity, the budget, and the numbers that the sensitivity is for: the value, or the utilities."""
    sensitivity = getattr(mechanism, "sensitivity", None)
    utility = getattr(mechanism, "utility", None)
    held = np.asarray(utility if isinstance(utility, list) else value)
    is_known = held.dtype.kind in "iuf" and held.ndim == (1 if isinstance(utility, list) else 0)
    return Declared(
        sensitivity=None if sensitivity is None else float(sensitivity),
        epsilon=float(mechanism.epsilon),
        delta=float(mechanism.delta),
        input=held if is_known else None,
    )


def law_of(mechanism: Any, value: Any) -> Law:
    """Return the law of what `randomise` draws, or the name of the mechanism with its parameters."""
    name = type(mechanism).__name__
    after = next((word for ending, word in _AFTER.items() if name.endswith(ending)), "")
    if after:
        after = f"{after} to [{float(mechanism.lower)!r}, {float(mechanism.upper)!r}]"
    match name.removesuffix("Folded").removesuffix("Truncated"):
        case "Laplace":
            scale = mechanism.sensitivity / (mechanism.epsilon - math.log1p(-mechanism.delta))
            return Law("laplace", {"location": value, "scale": scale}, after=after)
        case "Gaussian" | "GaussianAnalytic":
            return Law("normal", {"location": value, "scale": float(mechanism._scale)})
        case "Geometric":
            scale = mechanism.sensitivity / mechanism.epsilon
            return Law("two-sided geometric", {"location": value, "scale": scale}, after=after)
        case "Uniform":
            half = mechanism.sensitivity / mechanism.delta / 2.0
            return Law("uniform", {"low": value - half, "high": value + half})
        case "Exponential":
            held = {"probabilities": np.diff(mechanism._probabilities, prepend=0.0)}
            return Law("discrete", held, beside={"candidates": mechanism.candidates})
        case "PermuteAndFlip" if len(mechanism.utility) <= _MOST_CANDIDATES and _are_doubles(mechanism._probabilities):
            held = {"probabilities": _permuted_and_flipped(np.exp(mechanism._probabilities))}
            return Law("discrete", held, beside={"candidates": mechanism.candidates})
        case "Binary":
            other = (1.0 - mechanism.delta) / (math.exp(mechanism.epsilon) + 1.0)
            pair = [1.0 - other, other] if value == mechanism.value0 else [other, 1.0 - other]
            return Law("discrete", {"probabilities": np.array(pair)}, beside={"values": _names(mechanism)})
        case "ExponentialCategorical" | "ExponentialHierarchical":
            weights = np.array([mechanism._get_prob(value, each) for each in mechanism._normalising_constant])
            return Law("discrete", {"probabilities": weights / weights.sum()}, beside={"values": _names(mechanism)})
    held = {name: each for name, each in vars(mechanism).items() if not name.startswith("_") and _is_plain(each)}
    held |= {"candidates": mechanism.candidates} if hasattr(mechanism, "candidates") else {}
    utility = getattr(mechanism, "utility", None)
    if isinstance(utility, list):
        return Law(name, {**held, "input": np.array(utility)})
    return Law(name, {**held, "location" if np.ndim(value) == 0 else "input": value})


def _are_doubles(logarithms: npt.NDArray[np.float64]) -> bool:
    """Whether probabilities are 0 or doubles of full precision, so that no quotient of them is infinite by rounding."""
    return bool(np.all((logarithms > math.log(np.finfo(float).tiny)) | np.isneginf(logarithms)))


def _permuted_and_flipped(accepted: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the probability of each candidate, from those with which the coins accept them; the largest is 1.

    Give each candidate a uniform time in place of a place in the permutation. The candidate with time t is returned if
    its coin accepts it and no other candidate is accepted before: with probability aᵢ ∫ ∏ (1 − t aⱼ) dt over [0, 1],
    j ≠ i. The integrand is a polynomial of degree n − 1, which Gauss-Legendre integrates exactly.

    References
    ----------
    McKenna & Sheldon (2020), Permute-and-flip, Algorithm 1 and Proposition 5.
    """
    nodes, weights = np.polynomial.legendre.leggauss(len(accepted) // 2 + 1)
    factors = 1.0 - np.outer((nodes + 1.0) / 2.0, accepted)  # all positive, as the nodes lie within (0, 1)
    return np.asarray(accepted * (weights @ (factors.prod(axis=1, keepdims=True) / factors)) / 2.0)


def _is_plain(value: Any) -> bool:
    return isinstance(value, (int, float, str))


def _recorded_objective(original: Callable[..., Any]) -> Callable[..., Any]:
    def randomise(self: Any, value: Callable[..., Any]) -> Callable[..., Any]:
        noisy: Callable[..., Any] = original(self, value)
        tape, is_recorded = active_tape(), False

        def evaluate(*args: Any) -> Any:
            nonlocal is_recorded
            if tape is not None and tape is active_tape() and not is_recorded:
                is_recorded = True
                _record_curvature(tape, self, value, args)
            return noisy(*args)

        return evaluate

    return randomise


def _record_curvature(tape: Tape, mechanism: Any, value: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Record n times the trace of the second derivative, which a row may change by c = the two sensitivities' product.

    References
    ----------
    Chaudhuri, Monteleoni & Sarwate (2011), Differentially private empirical risk minimization, Theorem 9: the change
    has rank one and an eigenvalue of at most c.
    """
    start = np.array(args[0], dtype=np.float64)
    if not isinstance(value(*args), tuple):
        return  # no gradient

    def gradient(at: Any) -> Any:
        return np.array(value(at, *args[1:])[1])

    steps = np.eye(start.size).reshape(-1, *start.shape) * _STEP
    changes = [gradient(start + step) - gradient(start - step) for step in steps]
    trace = sum(float(np.sum(change * step)) for change, step in zip(changes, steps, strict=True)) / (2 * _STEP**2)
    tape.call(
        "Vector (trace of the second derivative)",
        lambda: Law("objective perturbation", {"location": mechanism.n * trace}),
        lambda: None,
        lambda: Declared(sensitivity=round_up(mechanism.function_sensitivity * mechanism.data_sensitivity)),
    )


def round_up(sensitivity: float) -> float:
    """Return the sensitivity with room for the error of differences of a gradient."""
    return sensitivity * (1.0 + 1e-6) + 1e-6
