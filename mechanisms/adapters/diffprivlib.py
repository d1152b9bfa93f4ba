"""Mechanisms of diffprivlib, with the claim read from the object.

A mechanism draws one run at a time, in five to ten microseconds of Python. Its block sampler loops over it: single
runs, each with a copy of its own, take half as long again. Threads share the interpreter and gain nothing; with
`joblib.parallel_config("loky")` blocks go to processes.
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
from .single_runs import released

_REFUSED = Raised("ValueError")
_TRIES = 100  # further runs that have to raise before a dataset is taken to be outside the domain


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DiffprivlibMechanism:
    """A diffprivlib mechanism as a block sampler; `from_diffprivlib` makes one.

    Each block has a copy of the mechanism to itself, whose random state draws from the block's generator.

    Attributes
    ----------
    source : DPMachine or callable
        The mechanism, or a function that makes the one of a dataset.
    query : callable, optional
        From a dataset to the value that is randomised.
    output : callable, optional
        From what `randomise` returns to the output.
    claim : Claim
    claim_source : str
    adjacency : Adjacency
    seeded : bool
        Whether noise comes from the audit's generator, or from where the library takes it.
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
        """`size` outputs; a run that raises is an output as well, unless it is a TypeError, which is a mistake.

        Raises
        ------
        ClaimError
            Where a function made a mechanism for this dataset whose epsilon or delta are not those claimed.
        DatasetError
            Where every run raises ValueError: the library's word for what is outside the mechanism's domain.
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
        """Some run of the mechanism itself does not raise ValueError; a block may have been a single run."""
        for _ in range(_TRIES):
            try:
                own.randomise(*values)
            except ValueError as error:
                reason = error
            else:
                return
        raise DatasetError(
            f"the dataset {shorten(dataset)} is outside the domain of {self} ({' '.join(str(reason).split())}), and "
            "nothing is promised for it; pass one that the mechanism takes.",
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
                "on the data: pass claim= to audit another one.",
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
    """The mechanism with its claim (ε, or ε and δ), ready for `check` and `find_worst_pair`.

    Parameters
    ----------
    mechanism : diffprivlib.mechanisms.DPMachine or callable
        The object; or a function from a dataset to one, such as ``lambda utilities: Exponential(epsilon=1,
        sensitivity=1, utility=list(utilities))``, where what is released is fixed when the object is made.
    adjacency : Adjacency
        What neighbours are: the object does not say. For a mechanism with a sensitivity it is natural to take the
        values as datasets, and ``Within("l1", sensitivity)``; for one of categories ``Local()``; with a `query`
        ``Replace()`` or ``AddRemove()``, whichever the sensitivity was worked out for.
    query : callable, optional
        From a dataset to the value that is randomised; by default a dataset is that value.
    output : callable, optional
        From what `randomise` returns to a number, an array or anything hashable.
    example : Any
        Of a function: any dataset, to read the claim from. The claim of every other dataset must be the same.
    seeded : bool
        Whether the noise is drawn from the audit's generator, by the path that `random_state` takes, so that the audit
        can be repeated. With False the mechanism has a random state of its own, fresh in each block: for one that was
        made without `random_state`, the operating system's entropy, as in production.

    Returns
    -------
    DiffprivlibMechanism

    Raises
    ------
    AdjacencyError
        Without an adjacency, saying what to give.
    ClaimError
        For an infinite epsilon, and for a function without an example.
    MechanismError
        For what is no mechanism of diffprivlib.
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
                f"mechanism={mechanism!r:.60} is no mechanism of diffprivlib; use an object such as Laplace(epsilon=1, "
                f"sensitivity=1), or a function that makes one from a dataset{tool}.",
                mechanism=mechanism,
            )
        if example is None:
            raise ClaimError(
                "example=None: a function has no epsilon to read; pass example=, any dataset to make a mechanism for.",
                example=None,
            )
        made = mechanism(example)
        if not isinstance(made, machine):
            raise MechanismError(
                f"the function returned {type(made).__name__} for the example, which is no mechanism of diffprivlib; "
                "return one such as Exponential(…).",
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
    """The mechanism inside its transformers."""
    while hasattr(machine, "parent"):
        machine = machine.parent
    return machine


def _without_state(machine: Any) -> Any:
    """A copy that can be pickled, and remembers what kind of generator it had.

    Entropy of the operating system has no state that could be copied, so the copy holds the class instead.
    """
    own = machine.copy()
    if hasattr(own, "parent"):
        own.parent = _without_state(own.parent)
    else:
        own._rng = type(own._rng)
    return own


def _with_state(machine: Any, state: np.random.RandomState | None) -> Any:
    """A copy that draws from this state, or from fresh entropy of the kind that the mechanism had.

    The constructor's `random_state` is the public way, but an object made anew would lack whatever was done to this
    one, and what is audited has to be the object at hand.
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
