"""What may be audited: any callable or object that turns a dataset and a random generator into outputs.

A *block sampler* draws many runs in one call: a callable with a parameter named ``size``, or an object with a method
``sample(dataset, size, rng)``. A plain function ``f(dataset, rng)`` or ``f(dataset)`` is a single run and is looped;
an exception it raises is an output like any other, because an adversary sees it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from .errors import MechanismError

Outputs: TypeAlias = npt.NDArray[Any]
"""The outputs of one block: shape (runs,) numeric or of objects, or (runs, n_coords) numeric."""


@runtime_checkable
class Mechanism(Protocol):
    """An object that draws blocks of runs; `sample` returns `size` independent outputs on `dataset`."""

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any: ...


@dataclass(frozen=True, slots=True)
class Raised:
    """The output of a run that raised: the exception's type, which an adversary sees."""

    type: str

    def __str__(self) -> str:
        return f"raises {self.type}"


@dataclass(frozen=True, slots=True)
class Sampler:
    """A mechanism with the way to call it settled.

    Attributes
    ----------
    call : callable
        Takes (dataset, size, rng) for a block sampler, (dataset, rng) for a single run.
    is_block : bool
        Whether one call draws a block of runs (then threads serve) or a single one (then processes do).
    name : str
        For messages and results.
    """

    call: Callable[..., Any]
    is_block: bool
    name: str

    def draw(self, dataset: Any, size: int, rng: np.random.Generator) -> Outputs:
        """`size` outputs on `dataset`, as an array.

        Raises
        ------
        MechanismError
            For a block sampler that raises, or outputs of the wrong number or an unsupported type.
        """
        if not self.is_block:
            return as_outputs([self._run(dataset, rng) for _ in range(size)], size, self.name)
        try:
            raw = self.call(dataset, size, rng)
        except Exception as error:
            raise MechanismError(
                f"{self.name} raised {type(error).__name__} while drawing a block of {size} runs: {error}; "
                "a block sampler must not raise (as a function of one run its exceptions are counted as outputs).",
                mechanism=self.name,
                size=size,
            ) from error
        return as_outputs(raw, size, self.name)

    def _run(self, dataset: Any, rng: np.random.Generator) -> Any:
        try:
            return self.call(dataset, rng)
        except Exception as error:
            return Raised(type(error).__qualname__)


def as_sampler(mechanism: Any, name: str | None = None) -> Sampler:
    """The `Sampler` of whatever the user passed.

    Raises
    ------
    MechanismError
        When `mechanism` is neither callable nor has a `sample` method, or its parameters are not understood.
    """
    method = getattr(mechanism, "sample", None)
    function = method if callable(method) and not inspect.isclass(mechanism) else mechanism
    label = name or mechanism_name(mechanism)
    if not callable(function) or inspect.isclass(mechanism):
        raise MechanismError(
            f"mechanism={mechanism!r} cannot be run; use a function f(dataset, rng), a block sampler "
            "f(dataset, size, rng) or an object with sample(dataset, size, rng).",
            mechanism=label,
        )
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature: one argument is all that is safe to pass
        return Sampler(_Call(function, None, None), False, label)
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    is_block = any(p.name == "size" for p in named)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    others = [p for p in named if p.name != "size" and p is not positional[0]] if positional else []
    needed = [p.name for p in others if p.default is p.empty]
    rng_name = "rng" if any(p.name == "rng" for p in others) else needed[0] if needed else None
    if not positional or positional[0].name == "size" or any(n != rng_name for n in needed):
        shown = ", ".join(p.name for p in parameters)
        raise MechanismError(
            f"{label} takes ({shown}); use the parameters (dataset), (dataset, rng) or (dataset, size, rng).",
            mechanism=label,
            parameters=shown,
        )
    return Sampler(_Call(function, "size" if is_block else None, rng_name), is_block, label)


@dataclass(frozen=True, slots=True)
class _Call:
    """Passes the dataset first, and the number of runs and the generator under the names the function has for them."""

    function: Callable[..., Any]
    size_name: str | None
    rng_name: str | None

    def __call__(self, dataset: Any, *rest: Any) -> Any:
        named: dict[str, Any] = {}
        if self.size_name is not None:
            named[self.size_name] = rest[0]
        if self.rng_name is not None:
            named[self.rng_name] = rest[-1]
        return self.function(dataset, **named)


def mechanism_name(mechanism: Any) -> str:
    """A function's name, or an object's repr where that is short and says more than its type."""
    name = getattr(mechanism, "__name__", None)
    if isinstance(name, str):
        return name
    function = getattr(mechanism, "func", None)  # functools.partial
    if callable(function):
        return mechanism_name(function)
    own = str(mechanism)
    return own if len(own) <= 80 and " at 0x" not in own else type(mechanism).__name__


def as_outputs(raw: Any, size: int, name: str) -> Outputs:
    """`raw` as an array of `size` outputs: numeric of one or two dimensions, or one-dimensional of hashable objects.

    Raises
    ------
    MechanismError
        For a wrong number of outputs, or outputs that are neither numbers, vectors of numbers nor hashable.
    """
    if isinstance(raw, np.ndarray):
        if raw.shape[:1] != (size,):
            raise MechanismError(
                f"{name} returned an array of shape {raw.shape} when asked for {size} outputs; return one output for "
                f"each run: shape ({size},) or ({size}, n_coords).",
                mechanism=name,
                shape=raw.shape,
                size=size,
            )
        if raw.dtype.kind in "biuf" and raw.ndim in (1, 2):
            return raw
        if raw.dtype.kind not in "OUS" or raw.ndim > 2:
            raise MechanismError(
                f"{name} returned outputs of dtype {raw.dtype} and shape {raw.shape}; use real numbers, booleans, "
                "strings or hashable objects, in one or two dimensions.",
                mechanism=name,
                dtype=str(raw.dtype),
            )
        raw = raw.tolist()
    elif isinstance(raw, (str, bytes)) or not isinstance(raw, Sequence):
        raise MechanismError(
            f"{name} returned {type(raw).__name__} when asked for {size} outputs; return an array or a list with one "
            "output for each run.",
            mechanism=name,
            size=size,
        )
    if len(raw) != size:
        raise MechanismError(
            f"{name} returned {len(raw)} outputs when asked for {size}; return one output for each run.",
            mechanism=name,
            returned=len(raw),
            size=size,
        )
    return _pack([_plain(output, name) for output in raw])


def _plain(output: Any, name: str) -> Any:
    """One output in a form that compares and hashes by value: arrays and lists become tuples."""
    if isinstance(output, np.ndarray):
        output = output.tolist()
    elif isinstance(output, np.generic):
        output = output.item()
    if isinstance(output, (list, tuple)) and type(output) in (list, tuple):
        return tuple(_plain(part, name) for part in output)
    if isinstance(output, complex):
        raise MechanismError(f"{name} returned the complex number {output}; use a pair of reals.", mechanism=name)
    try:
        hash(output)
    except TypeError:
        raise MechanismError(
            f"{name} returned an output of type {type(output).__name__}, which is not hashable; return a number, a "
            "string, a tuple, or something else that compares by value.",
            mechanism=name,
        ) from None
    return output


def _is_number(output: Any) -> bool:
    """Whether an array of numbers holds the output without loss: floats, and integers that 64 bits hold."""
    return isinstance(output, float) or (isinstance(output, int) and abs(output) < 2**62)


def _pack(outputs: list[Any]) -> Outputs:
    """Numbers as a numeric vector, equally long tuples of numbers as a matrix, anything else as objects."""
    if all(_is_number(o) for o in outputs):
        return np.array(outputs, dtype=np.int64 if all(isinstance(o, int) for o in outputs) else np.float64)
    first = outputs[0] if outputs else None
    if (
        isinstance(first, tuple)
        and first
        and all(isinstance(o, tuple) and len(o) == len(first) and all(_is_number(v) for v in o) for o in outputs)
    ):
        return np.array(outputs)
    return np.fromiter(outputs, dtype=object, count=len(outputs))
