"""Mechanisms of diffprivlib, with the claim read from the object.

A mechanism draws one run at a time and takes five to ten microseconds of Python per run. The block sampler loops over
runs on one copy of the mechanism; single runs, each with its own copy, take half as long again. Threads share the
interpreter and gain nothing. With `joblib.parallel_config("loky")`, blocks run in processes.
"""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...audit.claims.claim import Claim
from ...audit.datasets.adjacency import Adjacency
from ...audit.errors import ClaimError, DatasetError, MechanismError
from ...audit.events.outputs import Raised
from ...audit.printing import shorten
from .diffprivlib_parts import claim_of, library, named_version, needed_adjacency, random_state
from .library_calls import released

_REFUSED = Raised("ValueError")
_TRIES = 100  # further runs that must all raise before the dataset counts as outside the domain


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DiffprivlibMechanism:
    """Block sampler for a diffprivlib mechanism; use `from_diffprivlib` to create one.

    Each block has its own copy of the mechanism, whose random state draws from the block's generator.

    Attributes
    ----------
    source : DPMachine or callable
        The mechanism, or a function that creates the mechanism for a dataset.
    query : callable, optional
        Maps a dataset to the value that is randomised.
    output : callable, optional
        Maps the result of `randomise` to the output.
    seeded : bool
        Whether the noise comes from the audit's generator instead of the library's own source.
    """

    source: Any = field(repr=False)
    query: Callable[[Any], Any] | None = field(repr=False)
    output: Callable[[Any], Any] | None = field(repr=False)
    claim: Claim
    claim_source: str
    adjacency: Adjacency
    seeded: bool
    name: str

    def __str__(self) -> str:
        return f"diffprivlib {self.name}"

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
        """`size` outputs. A run that raises is an output too, except for a TypeError, which indicates a usage error.

        Raises
        ------
        ClaimError
            If a function creates a mechanism for this dataset whose epsilon or delta differs from the claim.
        DatasetError
            If every run raises ValueError, which is how the library rejects values outside the mechanism's domain.
        """
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

    Raises
    ------
    AdjacencyError
        Without an adjacency; the message proposes one.
    ClaimError
        If epsilon is infinite, or for a function without an example.
    MechanismError
        If the object is not a mechanism of diffprivlib.
    AuditError
        If diffprivlib cannot be imported.
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
    """Return a copy that can be pickled and keeps the kind of its generator.

    The operating system's entropy has no state to copy, so the copy holds the generator's class instead.
    """
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
