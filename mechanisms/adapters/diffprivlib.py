"""Mechanisms and tools of diffprivlib."""

from __future__ import annotations

import inspect
import math
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import ApproxDP, Claim, PureDP
from ...audit.datasets.adjacency import Adjacency, as_adjacency
from ...audit.errors import AdjacencyError, AuditError, ClaimError, DatasetError, MechanismError, OptionError
from ...audit.events.outputs import Raised
from ...audit.printing import shorten
from ...audit.replay.distributions import Distribution
from ...audit.replay.registered import Patch
from ...audit.replay.tape import Declared, Tape, active_tape
from ..selection import race_winners
from .library_calls import Adapted, imported, released

# Shared parts of the diffprivlib adapters: the library, the claim for its epsilon and delta, and the noise source.


def library() -> Any:
    """Return the library; raise an `AuditError` if it cannot be imported."""
    return imported("diffprivlib", "diffprivlib", "scikit-learn")


def named_version() -> str:
    """Return the name of the library and its version."""
    return f"diffprivlib {version('diffprivlib')}"


def claim_of(epsilon: float, delta: float) -> Claim:
    """Return the claim; if epsilon is 0, the audit bounds delta."""
    if delta == 0:
        return PureDP(epsilon)
    return ApproxDP(epsilon, delta, bound_on="delta" if epsilon == 0 else "epsilon")


def random_state(rng: np.random.Generator) -> np.random.RandomState:
    """Return a random state, the generator that diffprivlib expects, on the stream of `rng`, without a new seed."""
    return np.random.RandomState(rng.bit_generator)


def needed_adjacency(adjacency: Adjacency | None, name: str, natural: str) -> Adjacency:
    """Return the adjacency; if it is None, raise an `AdjacencyError` that proposes `natural`."""
    if adjacency is None:
        raise AdjacencyError(
            f"adjacency=None does not say which neighbours the claim of {name} covers, and diffprivlib does not state "
            f"it; use adjacency={natural}.",
            adjacency=None,
        )
    return as_adjacency(adjacency)


# Mechanisms of diffprivlib, with the claim read from the object.
#
# A mechanism draws one run at a time and takes five to ten microseconds of Python per run. The adapter
# loops over runs on one copy of the mechanism; single runs, each with its own copy, take half as long again. Threads
# share the interpreter and gain nothing. With `joblib.parallel_config("loky")`, blocks run in processes.

_REFUSED = Raised("ValueError")
_TRIES = 100  # further runs that must all raise before the dataset counts as outside the domain


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DiffprivlibMechanism(Adapted):
    """Adapter of a diffprivlib mechanism; use `from_diffprivlib` to create one.

    Each block has its own copy of the mechanism, whose random state draws from the block's generator.

    Attributes
    ----------
    source, query, output
        As in `from_diffprivlib`.
    seeded : bool
        Whether the noise comes from the audit's generator instead of the library's own source.
    """

    library = "diffprivlib"
    source: Any = field(repr=False)
    query: Callable[[Any], Any] | None = field(repr=False)
    output: Callable[[Any], Any] | None = field(repr=False)
    seeded: bool

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
        """Return `size` outputs; refuses another budget than the claim, and ValueErrors in every run."""
        is_given = hasattr(self.source, "randomise")
        own = _with_state(self.source if is_given else self._made(dataset), random_state(rng) if self.seeded else None)
        if self.query is not None:
            values: tuple[Any, ...] = (self.query(dataset),)
        else:
            values = (dataset,) if is_given else ()
        outputs = [released(self._run, own, *values) for _ in range(size)]
        if outputs and all(isinstance(output, Raised) and output == _REFUSED for output in outputs):
            self._check_domain(dataset, own, values)
        return outputs

    def _check_domain(self, dataset: Any, own: Any, values: tuple[Any, ...]) -> None:
        """Raise a `DatasetError` if further runs of the mechanism all raise ValueError; a block may be one run."""
        for _ in range(_TRIES):
            try:
                own.randomise(*values)
            except ValueError as error:
                reason = error
            else:
                return
        raise DatasetError(
            f"the dataset {shorten(dataset)} is outside the domain of {self} ({' '.join(str(reason).split())}), and "
            "no claim covers it; pass a dataset that the mechanism accepts.",
            mechanism=str(self),
        ) from reason

    def _run(self, own: Any, *values: Any) -> Any:
        found = own.randomise(*values)
        return found if self.output is None else self.output(found)

    def _made(self, dataset: Any) -> Any:
        made = self.source(dataset)
        claim = claim_of(*_budget_of(made))
        if claim != self.claim:
            raise ClaimError(
                f"the mechanism made for a dataset claims {claim}, the example's {self.claim}; a claim must not depend "
                "on the data: pass claim= to audit another claim.",
                claim=claim,
            )
        return made


def from_diffprivlib(
    mechanism: Any,
    *,
    adjacency: Adjacency | None = None,
    query: Callable[[Any], Any] | None = None,
    output: Callable[[Any], Any] | None = None,
    example: Any = None,
    seeded: bool = True,
) -> DiffprivlibMechanism:
    """Return the mechanism with its claim (ε, or ε and δ), ready for `check` and `find_worst_pair`.

    Parameters
    ----------
    mechanism : DPMachine or callable
        The mechanism, or a function from a dataset to a mechanism, such as ``lambda utilities: Exponential(epsilon=1,
        sensitivity=1, utility=list(utilities))``, if the released data are fixed when the object is created.
    adjacency : Adjacency
        The neighbours, which the object does not state. For a mechanism with a sensitivity, natural datasets are the
        values, with ``Within("l1", sensitivity)``; for a mechanism on categories, ``Local()``; with a `query`,
        ``Replace()`` or ``AddRemove()``, whichever the sensitivity is for.
    query : callable, optional
        Maps a dataset to the value that is randomised; by default the dataset is that value.
    output : callable, optional
        Maps the result of `randomise` to a number, an array or a hashable object.
    example : Any
        Required for a function: any dataset, from which the claim is read. The claim for every other dataset must be
        the same.
    seeded : bool
        Whether the noise comes from the audit's generator, through `random_state`, so that the audit is reproducible.
        If False, the mechanism has a fresh random state in each block; for a mechanism created without `random_state`
        this is the operating system's entropy, as in production.

    Returns
    -------
    DiffprivlibMechanism
        For `check`, `find_worst_pair` and `replay`.

    Raises
    ------
    AdjacencyError, ClaimError, MechanismError, AuditError
        Without an adjacency, which the message proposes, or an example for a function; if epsilon is infinite, the
        object is not a mechanism of diffprivlib, or diffprivlib cannot be imported.

    See Also
    --------
    from_diffprivlib_tool : A tool or model of the library.
    dpaudit.check : Audit of the mechanism on a pair.

    Examples
    --------
    In an environment with diffprivlib:

        from diffprivlib.mechanisms import Laplace

        laplace = from_diffprivlib(Laplace(epsilon=1.0, sensitivity=1.0), adjacency=Within("l1", 1.0))
        result = check(laplace, 0.0, 1.0, runs=100_000, floating_point="ignore")
        print(result.verdict.value)  # not refuted
    """
    machine = library().mechanisms.DPMachine
    made = mechanism
    if not isinstance(mechanism, machine):
        homes = {str(getattr(part, "__module__", None)).partition(".")[0] for part in (mechanism, type(mechanism))}
        if not callable(mechanism) or inspect.isclass(mechanism) or homes & {"diffprivlib", "opendp", "pydp"}:
            tool = "; tools and models go to from_diffprivlib_tool" if "diffprivlib" in homes else ""
            raise MechanismError(
                f"mechanism={mechanism!r:.60} is not a mechanism of diffprivlib; use an object such as Laplace("
                f"epsilon=1, sensitivity=1), or a function that makes one from a dataset{tool}.",
                mechanism=mechanism,
            )
        if example is None:
            raise ClaimError(
                "example=None: a function has no epsilon to read; pass example=, any dataset that it accepts.",
                example=None,
            )
        made = mechanism(example)
        if not isinstance(made, machine):
            raise MechanismError(
                f"the function returned {type(made).__name__} for the example, not a mechanism of diffprivlib; return "
                "one such as Exponential(…).",
                type=type(made).__name__,
            )
    kind = type(_innermost(made)).__name__
    epsilon, delta = _budget_of(made)
    return DiffprivlibMechanism(
        source=mechanism if made is not mechanism else _without_state(mechanism),
        query=query,
        output=output,
        claim=claim_of(epsilon, delta),
        claim_source=f"{'epsilon' if delta == 0 else 'epsilon and delta'} of {kind}, {named_version()}",
        adjacency=needed_adjacency(adjacency, kind, _natural_adjacency(made, made is mechanism and query is None)),
        seeded=seeded,
        name=kind,
    )


def _budget_of(machine: Any) -> tuple[float, float]:
    innermost = _innermost(machine)
    return innermost.epsilon, innermost.delta


def _innermost(machine: Any) -> Any:
    """Return the mechanism inside its transformers."""
    while hasattr(machine, "parent"):
        machine = machine.parent
    return machine


def _without_state(machine: Any) -> Any:
    """Return a copy that can be pickled: entropy of the operating system, without a state, becomes its class."""
    own = machine.copy()
    if hasattr(own, "parent"):
        own.parent = _without_state(own.parent)
    else:
        own._rng = type(own._rng)
    return own


def _with_state(machine: Any, state: np.random.RandomState | None) -> Any:
    """Return a copy that draws from this state, or from fresh entropy of the mechanism's own kind if it is None.

    The public way is the constructor's `random_state`. A new object, however, would lack later changes to this one, and
    the audit must run the object at hand.
    """
    own = machine.copy()
    if hasattr(own, "parent"):
        own.parent = _with_state(own.parent, state)
        return own
    own.random_state = own._rng = _fresh(own._rng) if state is None else state
    return own


def _fresh(generator: Any) -> Any:
    kind = generator if isinstance(generator, type) else type(generator)
    if issubclass(kind, np.random.Generator):
        return np.random.default_rng()
    return np.random.RandomState() if issubclass(kind, np.random.RandomState) else secrets.SystemRandom()


def _natural_adjacency(mechanism: Any, takes_values: bool) -> str:
    sensitivity = getattr(_innermost(mechanism), "sensitivity", None)
    if takes_values and sensitivity:
        return f'Within("l1", {sensitivity:g}), as its sensitivity is {sensitivity:g}'
    if takes_values and sensitivity is None:
        return "Local(), for any two values"
    return 'AddRemove() or Replace() for rows, Within("linf", sensitivity) for utilities'


# The noise primitives of diffprivlib for replays: `randomise` of its mechanisms, with distribution, sensitivity and
# budget.
#
# Distributions are stated for mechanisms whose noise is a known distribution before it is truncated or folded. The
# others are recorded with the sensitivity and the budget that they declare. `Vector` returns a function that is given
# the data later: its draws are recorded, and the curvature of the function where it is first evaluated.

_AFTER = {"Folded": "folded", "Truncated": "truncated"}
_MOST_CANDIDATES = 1_000  # of permute and flip, whose distribution takes time of the third power of their number
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
            lambda: distribution_of(self, value),
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


def distribution_of(mechanism: Any, value: Any) -> Distribution:
    """Return the distribution of what `randomise` draws, or the name of the mechanism with its parameters."""
    name = type(mechanism).__name__
    after = next((word for ending, word in _AFTER.items() if name.endswith(ending)), "")
    if after:
        after = f"{after} to [{float(mechanism.lower)!r}, {float(mechanism.upper)!r}]"
    match name.removesuffix("Folded").removesuffix("Truncated"):
        case "Laplace":
            scale = mechanism.sensitivity / (mechanism.epsilon - math.log1p(-mechanism.delta))
            return Distribution("laplace", {"location": value, "scale": scale}, after=after)
        case "Gaussian" | "GaussianAnalytic":
            return Distribution("normal", {"location": value, "scale": float(mechanism._scale)})
        case "Geometric":
            scale = mechanism.sensitivity / mechanism.epsilon
            return Distribution("two-sided geometric", {"location": value, "scale": scale}, after=after)
        case "Uniform":
            half = mechanism.sensitivity / mechanism.delta / 2.0
            return Distribution("uniform", {"low": value - half, "high": value + half})
        case "Exponential":
            held = {"probabilities": np.diff(mechanism._probabilities, prepend=0.0)}
            return Distribution("discrete", held, beside={"candidates": mechanism.candidates})
        case "PermuteAndFlip" if len(mechanism.utility) <= _MOST_CANDIDATES and _are_doubles(mechanism._probabilities):
            held = {"probabilities": np.exp(race_winners(np.asarray(mechanism._probabilities)))}
            return Distribution("discrete", held, beside={"candidates": mechanism.candidates})
        case "Binary":
            other = (1.0 - mechanism.delta) / (math.exp(mechanism.epsilon) + 1.0)
            pair = [1.0 - other, other] if value == mechanism.value0 else [other, 1.0 - other]
            return Distribution("discrete", {"probabilities": np.array(pair)}, beside={"values": _names(mechanism)})
        case "ExponentialCategorical" | "ExponentialHierarchical":
            weights = np.array([mechanism._get_prob(value, each) for each in mechanism._normalising_constant])
            return Distribution(
                "discrete", {"probabilities": weights / weights.sum()}, beside={"values": _names(mechanism)}
            )
    plain = {key: each for key, each in vars(mechanism).items() if isinstance(each, (int, float, str))}
    held = {key: each for key, each in plain.items() if not key.startswith("_")}
    held |= {"candidates": mechanism.candidates} if hasattr(mechanism, "candidates") else {}
    utility = getattr(mechanism, "utility", None)
    if isinstance(utility, list):
        return Distribution(name, {**held, "input": np.array(utility)})
    return Distribution(name, {**held, "location" if np.ndim(value) == 0 else "input": value})


def _are_doubles(logarithms: npt.NDArray[np.float64]) -> bool:
    """Whether probabilities are 0 or doubles of full precision, so that no quotient of them is infinite by rounding."""
    return bool(np.all((logarithms > math.log(np.finfo(float).tiny)) | np.isneginf(logarithms)))


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

    Source: Chaudhuri, Monteleoni & Sarwate (2011), Journal of Machine Learning Research 12, Theorem 9: the
    change has rank one and an eigenvalue of at most c.
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
        lambda: Distribution("objective perturbation", {"location": mechanism.n * trace}),
        lambda: None,
        lambda: Declared(sensitivity=round_up(mechanism.function_sensitivity * mechanism.data_sensitivity)),
    )


def round_up(sensitivity: float) -> float:
    """Return the sensitivity with room for the error of differences of a gradient."""
    return sensitivity * (1.0 + 1e-6) + 1e-6


# Tools and models of diffprivlib, with the claim that their budget accountant states.
#
# Each is a function of a single run, which the audit distributes to processes.

_OWN_OPTIONS = {
    "random_state": "it seeds every run, or leaves it to the library with seeded=False; to audit a fixed one",
    "accountant": "every run has its own, from which the claim is read; to charge another one too",
}
"""Options of a tool that only the audit may set, and why."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DiffprivlibTool(Adapted):
    """A tool or model of diffprivlib as a function of a single run; use `from_diffprivlib_tool` to create one.

    Attributes
    ----------
    function, options, output
        As in `from_diffprivlib_tool`.
    seeded : bool
        Whether the noise comes from the audit's generator instead of the library's own source.
    """

    library = "diffprivlib"
    function: Callable[..., Any] = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)
    output: Callable[[Any], Any] | None = field(repr=False)
    seeded: bool

    def __call__(self, dataset: Any, rng: np.random.Generator) -> Any:
        """Return one output; raise a `ClaimError` if the run charges a fresh accountant with other than the claim."""
        accountant = library().BudgetAccountant()
        state = random_state(rng) if self.seeded else None
        found = _call(self.function, dataset, {**self.options, "random_state": state, "accountant": accountant})
        spent = claim_of(*accountant.total())
        if spent != self.claim:
            raise ClaimError(
                f"{self} spent {spent} on a dataset, and {self.claim} on the example; use a tool whose claim does not "
                "depend on the data.",
                claim=spent,
            )
        return found if self.output is None else self.output(found)


def from_diffprivlib_tool(
    function: Callable[..., Any],
    *,
    example: Any = None,
    adjacency: Adjacency | None = None,
    output: Callable[[Any], Any] | None = None,
    seeded: bool = True,
    **options: Any,
) -> DiffprivlibTool:
    """Return a function of `diffprivlib.tools` or class of `diffprivlib.models` with its accountant's total as claim.

    Every run has its own `BudgetAccountant`. The charge on the example is the claim, and every run of the audit must
    charge the same.

    Parameters
    ----------
    function : callable or class
        A function is called with the dataset and the options. A class of models is instantiated with the options and
        fitted to the dataset as an array; if `fit` needs a target, it is the last column.
    example : Any
        Any dataset. The function is called on it once to read the claim.
    adjacency : Adjacency
        The neighbours. Tools that treat the number of rows as public (mean, sum, var, std, count_nonzero) are for
        ``Replace()``; histograms and quantiles hold for ``AddRemove()``. The documentation rarely states this.
    output : callable, optional
        Maps the result to a number, an array or a hashable object. Required for a model, such as ``lambda model:
        model.coef_``.
    seeded : bool
        As for `from_diffprivlib`.
    **options
        Arguments of the function or the class: epsilon, bounds and so on.

    Returns
    -------
    DiffprivlibTool
        For `check`, `find_worst_pair` and `replay`.

    Raises
    ------
    AdjacencyError, ClaimError, MechanismError, OptionError, AuditError
        Without an adjacency, an example, or the output of a model; for a tool that rejects the example, or charges
        nothing for it; for the options `random_state` and `accountant`, which the audit sets in every run; if
        diffprivlib cannot be imported.

    See Also
    --------
    from_diffprivlib : A single mechanism of the library.
    dpaudit.check : Audit of the tool on a pair.

    Examples
    --------
    In an environment with diffprivlib:

        from diffprivlib import tools

        counts = from_diffprivlib_tool(
            tools.histogram, example=[0.5], adjacency=AddRemove(), output=lambda found: found[0], epsilon=1.0, bins=2,
            range=(0, 1),
        )
        print(counts.claim)  # 1-DP
    """
    accountant = library().BudgetAccountant()
    name = getattr(function, "__name__", type(function).__name__)
    _check_tool(function, name, options)
    if output is None and inspect.isclass(function):
        raise MechanismError(
            f"output=None does not say which part of a fitted {name} is released; pass output=, such as lambda "
            "model: model.coef_.",
            mechanism=name,
        )
    if example is None:
        raise ClaimError(
            f"example=None: {name} states its budget only when it runs; pass example=, any dataset that it accepts.",
            example=None,
        )
    try:
        _call(function, example, {**options, "accountant": accountant})
    except AuditError:
        raise
    except (TypeError, ValueError) as error:
        kind = ClaimError if isinstance(error, ValueError) else MechanismError
        raise kind(
            f"{name} raised {type(error).__name__} on the example ({' '.join(str(error).split())}), so there is no "
            "claim to read; pass options and an example= that it accepts.",
            mechanism=name,
        ) from error
    if accountant.total() == (0, 0):
        raise ClaimError(
            f"nothing was charged when {name} ran on the example, so there is no claim to read; a function of your own "
            "must pass accountant= on to the tools that it calls.",
            mechanism=name,
        )
    return DiffprivlibTool(
        function=function,
        options=options,
        output=output,
        claim=claim_of(*accountant.total()),
        claim_source=f"BudgetAccountant().total() after {name}, {named_version()}",
        adjacency=needed_adjacency(adjacency, name, "Replace(), or AddRemove() where the number of rows is not public"),
        seeded=seeded,
        name=name,
    )


def _check_tool(function: Any, name: str, options: Mapping[str, Any]) -> None:
    held = function
    while isinstance(held, partial):
        held = held.func
    if not callable(function) or (inspect.isclass(held) and held is not function):
        raise MechanismError(
            f"function={shorten(function)} is neither a function nor a class of models; pass the class itself, such as "
            "LogisticRegression, and its options by name: every run creates and fits a new model.",
            mechanism=name,
        )
    for option, why in _OWN_OPTIONS.items():
        if option in options:
            raise OptionError(
                f"{option}={shorten(options[option])} is set by the audit: {why}, pass a function of your own that "
                f"takes {option}= and does not pass it on unchanged.",
                **{option: options[option]},
            )


def _call(function: Callable[..., Any], dataset: Any, options: dict[str, Any]) -> Any:
    if not inspect.isclass(function):
        return function(dataset, **options)
    model: Any = function(**options)
    rows = np.asarray(dataset)
    target = inspect.signature(model.fit).parameters.get("y")
    if target is None or target.default is not target.empty:
        return model.fit(rows)
    return model.fit(rows[:, :-1], rows[:, -1])
