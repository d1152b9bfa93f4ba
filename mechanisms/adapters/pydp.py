"""Mechanisms of PyDP."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np

from ...audit.claims.claim import ApproxDP, Claim, PureDP
from ...audit.datasets.adjacency import AddRemove, Adjacency, Within, as_adjacency
from ...audit.errors import AdjacencyError, ClaimError, MechanismError
from ...audit.options import checked
from ...audit.replay.distributions import Distribution
from ...audit.replay.registered import Patch
from ...audit.replay.tape import Declared, active_tape
from .library_calls import Adapted, imported, released

# The noise primitives of PyDP for replays: `add_noise` of its numerical mechanisms.
#
# What the aggregates of PyDP draw is drawn in C++ and cannot be seen from Python.


def pydp_patches() -> Iterator[Patch]:
    """Yield the patch of the method that all numerical mechanisms share."""
    kind = imported("pydp.algorithms.numerical_mechanisms", "pydp").NumericalMechanism
    yield Patch(kind, "add_noise", _recorded(kind.add_noise))


def _recorded(original: Callable[..., Any]) -> Callable[..., Any]:
    def add_noise(self: Any, result: Any) -> Any:
        tape = active_tape()
        if tape is None:
            return original(self, result)
        return tape.call(
            type(self).__name__,
            lambda: distribution_of(self, result),
            lambda: original(self, result),
            lambda: declared_by(self),
        )

    return add_noise


def distribution_of(mechanism: Any, value: Any) -> Distribution:
    """Return the distribution of the noise on a value; that on a whole number is rounded."""
    after = "rounded" if isinstance(value, int) else ""
    if hasattr(mechanism, "diversity"):
        return Distribution("laplace", {"location": value, "scale": float(mechanism.diversity)}, after=after)
    return Distribution("normal", {"location": value, "scale": float(mechanism.std)}, after=after)


def declared_by(mechanism: Any) -> Declared:
    """Return the sensitivity and the budget that the mechanism was made with."""
    sensitivity = getattr(mechanism, "sensitivity", None)
    return Declared(
        sensitivity=float(mechanism.l2_sensitivity if sensitivity is None else sensitivity),
        epsilon=float(mechanism.epsilon),
        delta=float(getattr(mechanism, "delta", 0.0)),
    )


# Mechanisms, aggregates and partition selection of PyDP, with the claim read from the object.
#
# PyDP cannot be seeded: its noise comes from BoringSSL's generator, and the audit is marked not reproducible. Its
# objects cannot be copied to worker processes, so blocks are drawn in threads, one after the other, because a call
# holds the interpreter.

_RELEASES = ("add_noise", "quick_result", "should_keep")
"""Methods that return one output: of a mechanism, an aggregate and a partition strategy."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PyDPMechanism(Adapted):
    """Mechanism for a PyDP object; use `from_pydp` to create one.

    Attributes
    ----------
    make, release
        As in `from_pydp`.
    """

    library = "PyDP"
    make: Callable[[], Any] = field(repr=False)
    release: Callable[[Any, Any], Any] = field(repr=False)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
        """Return `size` outputs with PyDP's own entropy."""
        own = self.make()
        rows = dataset.tolist() if isinstance(dataset, np.ndarray) else dataset
        return [released(self.release, own, rows) for _ in range(size)]


def from_pydp(
    make: Any,
    *,
    claim: Claim | None = None,
    claim_source: str = "",
    adjacency: Adjacency | None = None,
    release: Callable[[Any, Any], Any] | None = None,
) -> PyDPMechanism:
    """Return a PyDP object with its claim (ε, or ε and δ), ready for `check` and `find_worst_pair`.

    Parameters
    ----------
    make : callable or object
        The object, such as ``Count(epsilon=1.0)``, or a function without parameters that creates it. A function is
        called for every block and, unlike the object, can be sent to worker processes.
    claim : Claim, optional
        By default the `epsilon` and `delta` of the object.
    claim_source : str
        Source of a claim that is passed.
    adjacency : Adjacency, optional
        By default the object's own: ``Within("l1", sensitivity)`` for `LaplaceMechanism`, ``Within("l2",
        l2_sensitivity)`` for `GaussianMechanism`, ``AddRemove()`` for an aggregate to which a user contributes one
        value (l0_sensitivity = linf_sensitivity = 1), ``Within("l1", 1)`` for the number of users of a partition.
    release : callable, optional
        Maps the object and a dataset to one output; by default ``add_noise(value)``, ``quick_result(rows)`` or
        ``should_keep(users)``, whichever the object has. With rows (user, value): ``lambda total, rows:
        total.quick_result([value for _, value in rows])``.

    Returns
    -------
    PyDPMechanism
        For `check`, `find_worst_pair` and `replay`.

    Raises
    ------
    MechanismError, ClaimError, AdjacencyError, AuditError
        If the object is not of these kinds, states no epsilon, such as a `GaussianMechanism` created from a standard
        deviation, or does not determine the neighbours; if PyDP cannot be imported.

    See Also
    --------
    dpaudit.check : Audit of the mechanism on a pair.
    from_opendp : The same for OpenDP.

    Examples
    --------
    >>> from pydp.algorithms.laplacian import BoundedSum
    >>> total = from_pydp(lambda: BoundedSum(epsilon=1.0, lower_bound=0.0, upper_bound=2.0, dtype="float"))
    >>> print(total.claim, total.adjacency, sep="; ")
    1-DP; add/remove one row
    """
    imported("pydp", "pydp")
    made = _made(make)
    method = next((name for name in _RELEASES if hasattr(made, name)), None)
    name = type(made).__name__
    if method is None and release is None:
        raise MechanismError(
            f"make={make!r:.60} gives {name}, which has none of {', '.join(_RELEASES)}; use a mechanism, an aggregate "
            "or a partition strategy of PyDP, or pass release=.",
            type=name,
        )
    if claim is None:
        claim, claim_source = _claim_of(made, name)
    return PyDPMechanism(
        make=(lambda: made) if made is make else make,  # calls take turns because each holds the interpreter
        release=(lambda own, dataset: getattr(own, str(method))(dataset)) if release is None else release,
        claim=claim,
        claim_source=checked("claim_source", claim_source),
        adjacency=_adjacency_of(made, name) if adjacency is None else as_adjacency(adjacency),
        name=name,
    )


def _made(make: Any) -> Any:
    """Return the object, or the object that a function creates."""
    if inspect.isclass(make):
        raise MechanismError(
            f"make={make.__name__} is a class, not an object with chosen parameters; use an object such as "
            f"{make.__name__}(epsilon=1.0, …), or a function that makes one.",
            make=make,
        )
    if any(hasattr(make, name) for name in _RELEASES) or not callable(make):
        return make
    try:
        made = make()
    except TypeError as error:
        raise MechanismError(
            f"make={make!r:.60} cannot be called without arguments ({error}); use an object of PyDP, or a function "
            "without parameters that makes one.",
            make=make,
        ) from error
    return _made(made) if inspect.isclass(made) else made


def _claim_of(made: Any, name: str) -> tuple[Claim, str]:
    epsilon, delta = getattr(made, "epsilon", None), getattr(made, "delta", None) or 0.0
    if not epsilon:
        raise ClaimError(
            f"epsilon={epsilon!r} of {name} is not a claim; pass claim=, such as GaussianDP(sensitivity / std).",
            epsilon=epsilon,
        )
    said = f"{'epsilon and delta' if delta else 'epsilon'} of {name}, python-dp {version('python-dp')}"
    return (ApproxDP(epsilon, delta) if delta else PureDP(epsilon)), said


def _adjacency_of(made: Any, name: str) -> Adjacency:
    if hasattr(made, "l2_sensitivity"):
        return Within("l2", made.l2_sensitivity)
    if hasattr(made, "sensitivity"):
        return Within("l1", made.sensitivity)
    if hasattr(made, "should_keep"):
        return Within("l1", 1.0)
    # An aggregate without these bounds takes one value per user.
    bounds = [getattr(made, f"{norm}_sensitivity", 1) for norm in ("l0", "linf")]
    if all(bound in (1, "Not set") for bound in bounds):
        return AddRemove()
    raise AdjacencyError(
        f"a user contributes {bounds[1]} values to each of {bounds[0]} partitions of {name}, so neighbours differ in "
        "all rows of a user; pass adjacency=, such as UserLevel(0) for rows (user, value), and release= to extract the "
        "values.",
        l0_sensitivity=bounds[0],
        linf_sensitivity=bounds[1],
    )
