"""A training step as a function of a batch and its coins, kept apart because it reads tensors and knows no privacy.

Batches are made as numpy arrays and given to the step as the user's containers, arrays and types. The coins are the
seed of everything random: the generator that the step is given, the global ones, and those made without a seed.
"""

from __future__ import annotations

import copy
import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Final, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from ..errors import AuditError, DatasetError, MechanismError, OptionError, described
from ..events.kinds import is_foreign_array, numpy_of
from ..events.named_parts import label_text, parts_of, refuse_masked
from ..printing import counted, shorten
from ..replay.recorded_run import Runner, other_seed
from ..replay.tape import only_recording
from ..sampling.sampler import as_sampler, mechanism_name

Array: TypeAlias = npt.NDArray[Any]
Doubles: TypeAlias = npt.NDArray[np.float64]

# Batches.


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Examples, as arrays with one example a row, and a description."""

    leaves: tuple[Array, ...]
    words: str

    def __len__(self) -> int:
        return len(self.leaves[0])

    @property
    def form(self) -> list[tuple[int, ...]]:
        """The shapes of an example."""
        return [leaf.shape[1:] for leaf in self.leaves]

    def take(self, places: npt.ArrayLike, words: str) -> Batch:
        """Return the examples at these places."""
        return Batch(tuple(leaf[np.asarray(places, dtype=np.intp)] for leaf in self.leaves), words)

    def plus(self, other: Batch, words: str) -> Batch:
        """Return the examples of both batches."""
        return Batch(tuple(map(np.concatenate, zip(self.leaves, other.leaves, strict=True))), words)

    def with_at(self, place: int, example: Batch, words: str) -> Batch:
        """Return the batch with another example at a place."""
        places = np.arange(len(self))
        places[place] = len(self)
        return self.plus(example, words).take(places, words)

    def mapped(self, change: Callable[[Array], Array], words: str) -> Batch:
        """Return the batch with the numbers changed that may be made up, in the type that they have."""
        with np.errstate(all="ignore"):
            leaves = [change(leaf).astype(leaf.dtype) if is_made_up(leaf) else leaf for leaf in self.leaves]
        return Batch(tuple(leaves), words)


def is_made_up(leaf: Array) -> bool:
    """Whether other numbers may take the place of these: labels, tokens and flags, as 0 and 1, are only permuted."""
    return leaf.dtype.kind == "f" and leaf.size > 0 and not bool(np.isin(leaf, (0.0, 1.0)).all())


# Single examples, given and made up.


def examples_of(base: Batch, more: Batch | None, *, makes_up: bool) -> Iterator[Batch]:
    """Yield single examples: of the batch, given ones, and made-up ones."""
    last = len(base) - 1
    for place, words in {0: "the first example", last // 2: "a middle example", last: "the last example"}.items():
        yield base.take([place], words)
    for place in range(0 if more is None else len(more)):
        yield cast(Batch, more).take([place], f"examples[{place}]")
    if not makes_up or not any(map(is_made_up, base.leaves)):
        return
    one = base.take([last], "the last example")
    for factor in (1e3, 1e6, 1e-3, -1.0, -1e3, -1e6, 0.0):
        yield one.mapped(partial(times, factor), f"the last example times {factor:g}")
    for place, words in ((0, "first"), (-1, "last")):
        for sign in (1.0, -1.0):
            alone = partial(_only, place, sign, base)
            yield one.mapped(alone, f"an example of zeros with {sign * 1e6:g} as its {words} number")
    for value in (math.nan, math.inf, -math.inf):
        yield one.mapped(partial(np.full_like, fill_value=value), f"an example of {value:g}")
    yield one.mapped(_huge, "an example whose squares overflow")


def times(factor: float, leaf: Any) -> Any:
    """Return numbers times a factor, at most the largest of their type."""
    most = np.finfo(leaf.dtype).max
    return np.clip(leaf.astype(np.float64) * factor, -most, most)


def _only(place: int, sign: float, base: Batch, leaf: Any) -> Any:
    """Return zeros with one number, a million times the largest of the batch."""
    own = next(each for each in base.leaves if each.dtype == leaf.dtype and each.shape[1:] == leaf.shape[1:])
    found = np.zeros(leaf.shape)
    found.reshape(-1)[place] = sign * 1e6 * float(np.nanmax(np.abs(own.astype(np.float64))))
    return np.clip(found, np.finfo(leaf.dtype).min, np.finfo(leaf.dtype).max)


def _huge(leaf: Any) -> Any:
    """Return numbers whose squares overflow in their type, with the signs of others."""
    return np.copysign(float(np.finfo(leaf.dtype).max) ** 0.75, leaf)


# The user's containers.


class Container:
    """The user's batch: its containers, and the library, type and shape of its arrays."""

    def __init__(self, tree: Any, name: str = "batch") -> None:
        try:
            self._tree, leaves = tree, list(_leaves_of(tree))
        except RecursionError:
            raise DatasetError(f"{name} is nested too deeply; pass an array, or a container of arrays.") from None
        self.library = next((found for leaf in leaves if (found := library_of(leaf)) != "numpy"), "numpy")
        self._originals = leaves
        devices = {str(leaf.device) for leaf in leaves if self.library == "torch" and hasattr(leaf, "device")}
        if devices - {"cpu"}:
            told = f"{name} is on {', '.join(sorted(devices))}, whose random numbers are not controlled"
            raise DatasetError(f"{told}; move model and batch to the CPU.")
        arrays = tuple(map(numpy_of, leaves))
        if not arrays or any(array.ndim == 0 for array in arrays):
            told = f"{name}={shorten(tree)} has no leading axis of examples; pass an array, or a container of arrays"
            raise DatasetError(f"{told}, one example a row.")
        if len(lengths := {len(array) for array in arrays}) > 1 or 0 in lengths:
            told = f"the arrays of {name} have {' and '.join(map(str, sorted(lengths)))} rows"
            raise DatasetError(f"{told}; pass arrays of the same number of examples, at least one.")
        self.batch = Batch(arrays, f"the batch of {counted(len(arrays[0]), 'example')}")

    def of(self, batch: Batch) -> Any:
        """Return a batch in the user's containers; its arrays share no memory with other batches."""
        return _rebuilt(self._tree, iter(map(_as_original, batch.leaves, self._originals)))


def library_of(array: Any) -> str:
    """Return the library of an array: "torch", "jax" or "numpy"."""
    root = type(array).__module__.partition(".")[0]
    return {"torch": "torch", "jax": "jax", "jaxlib": "jax"}.get(root, "numpy")


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic)) or is_foreign_array(value)


def _leaves_of(tree: Any) -> Iterator[Any]:
    if isinstance(tree, Mapping):
        tree = tuple(tree.values())
    if isinstance(tree, (list, tuple)):
        for each in tree:
            yield from _leaves_of(each)
    else:
        yield tree if _is_array(tree) else np.asarray(tree)


def _rebuilt(tree: Any, leaves: Iterator[Any]) -> Any:
    if isinstance(tree, Mapping):
        return {key: _rebuilt(each, leaves) for key, each in tree.items()}
    if isinstance(tree, (list, tuple)):
        parts = [_rebuilt(each, leaves) for each in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return next(leaves)


def _as_original(array: Array, original: Any) -> Any:
    """Return an array in the library and the type of another one."""
    match library_of(original):
        case "torch":
            return sys.modules["torch"].tensor(array).to(original.dtype)
        case "jax":
            return sys.modules["jax"].numpy.asarray(array, dtype=original.dtype)
    return np.array(array)


# Outputs.


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """What a step returned: numbers by name, and the machine epsilon of their type; or the error that it raised."""

    parts: dict[str, Doubles]
    epsilons: dict[str, float]
    error: str = ""

    @property
    def not_finite(self) -> str:
        """The error, or a tensor with numbers that are not finite; empty if there is none."""
        bad = (name or "the output" for name, part in self.parts.items() if not np.isfinite(part).all())
        return self.error or next(bad, "")


def output_of(value: Any, step: str) -> Output:
    """Return the numbers of an output; raise a `MechanismError` for anything but numbers."""
    parts, epsilons = dict[str, Doubles](), dict[str, float]()
    for path, leaf in _named(value, ()):
        name = ".".join(map(label_text, path))
        refuse_masked(leaf, step)
        try:
            array, kind = numpy_of(leaf) if _is_array(leaf) else np.asarray(leaf), getattr(leaf, "dtype", None)
            if array.dtype.kind not in "biuf":
                raise TypeError
            parts[name] = np.array(array, dtype=np.float64)
            epsilons[name] = _epsilon(str(array.dtype if kind is None else kind)) if array.dtype.kind == "f" else 0.0
        except (TypeError, ValueError) as error:
            told = f"{step} returned {shorten(leaf)}{f' as {name}' if name else ''}, which is not made of numbers"
            raise MechanismError(f"{told}; return an array, or named arrays.", mechanism=step) from error
    if not parts:
        told = f"{step} returned {shorten(value)}, without any numbers; return what the step releases"
        raise MechanismError(f"{told}, such as the noisy gradient.", mechanism=step)
    return Output(parts, epsilons)


def _named(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    entries: Iterable[tuple[Any, Any]] | None = () if value is None else parts_of(value)  # as in states of optimisers
    if hasattr(value, "named_parameters"):
        entries = (*value.named_parameters(), *value.named_buffers())
    elif isinstance(value, (list, tuple)) and entries is None:
        entries = enumerate(value)
    if entries is None:
        yield path, value
    for key, part in entries or ():
        yield from _named(part, (*path, key))


def _epsilon(kind: str) -> float:
    """Return the distance from 1 to the next number of a type, by its name in numpy, torch or jax."""
    name = kind.removeprefix("torch.")
    return 2.0**-7 if name == "bfloat16" else float(np.finfo(name).eps)


# The numbers of an output as one vector.


def _is_in(name: str, group: str) -> bool:
    return name == group or name.startswith(f"{group}.")


class Layout:
    """Where each tensor lies in the vector of all numbers."""

    def __init__(self, output: Output, derived: tuple[str, ...]) -> None:
        self.shapes = {name: part.shape for name, part in output.parts.items()}
        sizes = [part.size for part in output.parts.values()]
        is_derived = [any(_is_in(name, each) for each in derived) for name in self.shapes]
        self.size, self.grid = sum(sizes), np.zeros(sum(sizes))  # last binary digit, by number
        self.epsilons = np.repeat([output.epsilons[name] for name in self.shapes], sizes)
        self.is_primary = ~np.repeat(np.array(is_derived, dtype=bool), sizes)
        ends = zip(self.shapes, pairwise(np.cumsum([0, *sizes]).tolist()), strict=True)
        self.spans = {name: slice(start, end) for name, (start, end) in ends if end > start}

    def has(self, name: str) -> bool:
        """Return whether a name is that of a tensor, or begins that of one."""
        return any(_is_in(each, name) for each in self.shapes)

    def misfit(self, output: Output) -> str:
        """Return how an output differs in form; empty if it does not."""
        for name in dict.fromkeys([*self.shapes, *output.parts]):
            own, other = self.shapes.get(name), output.parts[name].shape if name in output.parts else None
            if own != other:
                return f"{name or 'the output'} has shape {other} instead of {own}"
        return ""

    def vector(self, output: Output) -> Doubles:
        """Return the numbers of an output; NaN in place of them if it has another form, or is not finite."""
        if output.not_finite or self.misfit(output):
            return np.full(self.size, np.nan)
        return np.concatenate([np.ravel(output.parts[name]) for name in self.shapes])

    def largest(self, vector: Doubles) -> Doubles:
        """Return for each number the largest size in its tensor."""
        found = np.zeros(self.size)
        for span in self.spans.values():
            found[span] = np.abs(vector[span]).max()
        return found

    def name_at(self, place: int) -> str:
        return next(name for name, span in self.spans.items() if place < span.stop)

    def find_grid(self, draws: Doubles) -> None:
        """Find the median last binary digit of each tensor: that of a difference of parameters is the parameters'."""
        mantissas, exponents = np.frexp(draws)
        whole = np.ldexp(mantissas, 53).astype(np.int64)
        digits = np.where(whole == 0, np.inf, np.ldexp((whole & -whole).astype(np.float64), exponents - 53)).min(axis=0)
        is_known = np.isfinite(digits) & (np.ptp(draws, axis=0) > 0.0) & (self.epsilons > 0.0)
        for span in self.spans.values():
            if is_known[span].any():
                self.grid[span] = np.median(digits[span][is_known[span]])

    def rounding(self, vectors: Iterable[Doubles]) -> Doubles:
        """Return how far rounding may move the difference of two of these outputs.

        Between noise and output lie at most sixteen operations (scale, sum, division, weight decay, momentum, learning
        rate, parameter, …), each with an error of half a digit of the largest number.
        """
        largest = self.largest(np.max(np.abs(list(vectors)), axis=0))
        return np.asarray(16.0 * np.maximum(self.epsilons * largest, self.grid))

    def are_apart(self, one: Doubles, other: Doubles) -> npt.NDArray[np.bool_]:
        """Mark the numbers of two outputs that differ by more than rounding; all of an output without numbers."""
        return ~(np.abs(one - other) <= self.rounding([one, other]))


# Runs with given coins.


class SeededStep:
    """Runs a step on batches with numbered coins, and counts the runs."""

    def __init__(self, step: Any, container: Container, seed: int) -> None:
        self.name = mechanism_name(step)
        self.steps, self.seed, self.container = 0, seed, container
        self.function, self.takes_coins = step, _takes_coins(step)
        self._batch, self._calls, self._outputs = container.batch, 1, list[Output]()
        self._runner = Runner(as_sampler(self._run, self.name), seed, follows=False)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let the step run; the global generators are afterwards as they were."""
        torch = sys.modules.get("torch")
        with (
            only_recording(self.name, "another check; wait for its end, or use another process."),
            self._runner.patching(),
            nullcontext() if torch is None else torch.random.fork_rng(devices=[]),
        ):
            yield

    def __call__(self, batch: Batch, coins: int) -> Output:
        """Return what the step returns on a batch with these coins."""
        (output,) = self.outputs(batch, coins, 1)
        return output

    def outputs(self, batch: Batch, coins: int, calls: int) -> list[Output]:
        """Return the outputs of successive calls with one generator."""
        self._batch, self._calls = batch, calls
        self._runner.run(None, seed=other_seed(self.seed, coins))
        return self._outputs

    def _run(self, dataset: None, rng: np.random.Generator) -> None:
        self._outputs = []  # a run that imports what draws is made again
        seed = int(rng.integers(2**31))  # which every library takes as a seed
        torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
        if torch is not None:
            torch.manual_seed(seed)
        coins: Any = rng
        if self.container.library == "torch" and torch is not None:
            coins = torch.Generator().manual_seed(seed)
        elif self.container.library == "jax" and jax is not None:
            coins = jax.random.key(seed)
        for _ in range(self._calls):
            self.steps += 1
            tree = self.container.of(self._batch)
            try:
                # Made-up examples overflow on purpose, and a warning that is an error would be an output of the step.
                with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                    output = self.function(tree, coins) if self.takes_coins else self.function(tree)
            except AuditError:
                raise
            except Exception as error:  # a step may raise anything
                self._outputs.append(Output({}, {}, described(error)))
                continue
            if self.steps <= 2 and self._has_changed(tree):
                told = f"{self.name} changes its batch; let it work on a copy."
                raise MechanismError(told, mechanism=self.name)
            self._outputs.append(output_of(output, self.name))

    def _has_changed(self, tree: Any) -> bool:
        after = map(numpy_of, _leaves_of(tree))
        return not all(map(partial(np.array_equal, equal_nan=True), after, self._batch.leaves))


_NAMES_OF_COINS: Final = ("rng", "generator", "key", "random_state")
"""Names under which the second parameter of a step is its generator, although it has a default."""


def parameters_by_place(function: Any) -> list[tuple[str, bool]] | None:
    """Return the parameters that are passed by place, and whether they are needed; None for one without a signature."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of a builtin
        return None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [(each.name, each.default is each.empty) for each in parameters if each.kind in kinds]


def _takes_coins(step: Any) -> bool:
    """Whether a step takes a second argument by place."""
    parameters = parameters_by_place(step)
    if parameters is None:
        return False
    if not parameters or sum(is_needed for _, is_needed in parameters) > 2:
        told = f"the step {mechanism_name(step)} takes {inspect.signature(step)}"
        raise MechanismError(f"{told}; use the parameters (batch) or (batch, rng), and bind others with partial.")
    return any(is_needed or name in _NAMES_OF_COINS for name, is_needed in parameters[1:2])


# A step of torch.


def torch_step(
    model: Any, optimiser: Any, loss: Callable[[Any], Any], *, output: str | None = None
) -> Callable[[Any, Any], Any]:
    """Return the step of an optimiser of torch as a function of a batch, which leaves no trace.

    The step calls ``optimiser.zero_grad()``, ``loss(batch).backward()`` and ``optimiser.step()``, and then restores
    parameters, buffers, gradients, and the state of the optimiser. The accountant of Opacus does not count it.

    Parameters
    ----------
    model : torch.nn.Module
        Also a `GradSampleModule` of Opacus, on the CPU.
    optimiser : object
        One of torch, or a `DPOptimizer` of Opacus. Its generator, if it has one, is seeded.
    loss : callable
        Maps a batch to the loss, such as ``lambda batch: criterion(model(batch[0]), batch[1])``.
    output : {"gradients", "parameters"}, optional
        Where the noise is: in the gradients after the step, or only in the parameters. By default the gradients of
        an optimiser of Opacus, and the parameters of others.

    Returns
    -------
    callable
        A step for `check_step`. It returns gradients or parameters, and buffers, by name. The parameters after the step
        of Opacus, and the state of the optimiser, are functions of the noisy gradients; of them only is tested whether
        they depend on the data without noise.

    Raises
    ------
    OptionError
        For another `output`.
    DatasetError
        If a parameter is not on the CPU.

    See Also
    --------
    check_step : The check of the step.

    Examples
    --------
    >>> import sys
    >>> from dpaudit.training import check_step, torch_step
    >>> def checked(model, optimiser, criterion, batch, claim):  # made private by Opacus
    ...     step = torch_step(model, optimiser, lambda batch: criterion(model(batch[0]), batch[1]))
    ...     return check_step(step, batch, claim=claim)
    """
    if output not in (None, "gradients", "parameters"):
        told = f'output={shorten(output)} is unknown; use "gradients" or "parameters".'
        raise OptionError(told, output=output)
    if devices := {str(each.device) for each in model.parameters()} - {"cpu"}:
        told = f"the model is on {', '.join(sorted(devices))}, whose random numbers are not controlled"
        raise DatasetError(f"{told}; move it to the CPU.")
    return _TorchStep(model, optimiser, loss, output or ("gradients" if _is_of_opacus(optimiser) else "parameters"))


def _is_of_opacus(optimiser: Any) -> bool:
    return hasattr(optimiser, "original_optimizer")


@dataclass(frozen=True, slots=True, eq=False)
class _TorchStep:
    """See `torch_step`; `derived` names what is a function of the other outputs."""

    model: Any
    optimiser: Any
    loss: Callable[[Any], Any]
    output: str

    @property
    def __name__(self) -> str:
        return f"step of {type(getattr(self.model, '_module', self.model)).__name__}"

    @property
    def derived(self) -> tuple[str, ...]:
        return ("optimiser", "parameters") if self.output == "gradients" else ("optimiser",)

    def __call__(self, batch: Any, generator: Any) -> Any:
        with self._restored(int(sys.modules["torch"].randint(2**31, (), generator=generator))):
            self.optimiser.zero_grad()
            self.loss(batch).backward()
            self.optimiser.step()
            parameters, buffers = (
                {name.removeprefix("_module."): each for name, each in named}
                for named in (self.model.named_parameters(), self.model.named_buffers())
            )
            gradients = {name: each.grad for name, each in parameters.items() if each.grad is not None}
            names = {id(each): name for name, each in parameters.items()}
            found = {
                "gradients": gradients if self.output == "gradients" else {},
                "parameters": parameters,
                "buffers": buffers,
                "optimiser": {names.get(id(of), "?"): dict(own) for of, own in self._inner.state.items() if own},
            }
            return {name: _copied(part) for name, part in found.items() if part}

    @property
    def _inner(self) -> Any:
        """The optimiser that holds the state."""
        inner = self.optimiser
        while _is_of_opacus(inner):
            inner = inner.original_optimizer
        return inner

    @contextmanager
    def _restored(self, seed: int) -> Iterator[None]:
        torch, inner, optimiser = sys.modules["torch"], self._inner, self.optimiser
        tensors = [*self.model.parameters(), *self.model.buffers()]
        before = [(each, each.detach().clone(), each.grad) for each in tensors]
        state = {of: copy.deepcopy(own) for of, own in inner.state.items()}
        # With what a clipping norm that adapts, or a counter, is set to.
        kept = ("step_hook", "generator")
        held = {name: each for name, each in vars(optimiser).items() if name in kept or isinstance(each, (int, float))}
        try:
            if "step_hook" in held:
                optimiser.step_hook = None  # the accountant's
            if isinstance(held.get("generator"), torch.Generator):
                optimiser.generator = torch.Generator().manual_seed(seed)
            yield
        finally:
            optimiser.zero_grad()
            _forget_failure(self.model)
            with torch.no_grad():
                for each, value, gradient in before:
                    each.copy_(value)
                    each.grad = gradient
            inner.state.clear()
            inner.state.update(state)
            for name, value in held.items():
                setattr(optimiser, name, value)


def _forget_failure(model: Any) -> None:
    """Drop what Opacus keeps of a forward pass without its backward pass, which the next one would take for its own."""
    for module in model.modules():
        if isinstance(held := getattr(module, "activations", None), list):
            held.clear()
    for parameter in model.parameters():
        if hasattr(parameter, "_forward_counter"):
            parameter._forward_counter = 0
        if hasattr(parameter, "_current_grad_sample"):
            del parameter._current_grad_sample


def _copied(part: Any) -> Any:
    """Return named tensors as copies without gradients."""
    if isinstance(part, Mapping):
        return {name: _copied(each) for name, each in part.items()}
    return part.detach().clone() if hasattr(part, "detach") else part
