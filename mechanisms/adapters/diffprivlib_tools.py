"""Tools and models of diffprivlib, with the claim that their budget accountant states.

Each is a function of a single run, which the audit distributes to processes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ...audit.claims.claim import Claim
from ...audit.datasets.adjacency import Adjacency
from ...audit.errors import AuditError, ClaimError, MechanismError, OptionError
from ...audit.printing import shorten
from .diffprivlib_parts import claim_of, library, named_version, needed_adjacency, random_state

_OWN_OPTIONS = {
    "random_state": "it seeds every run, or leaves it to the library with seeded=False; to audit a fixed one",
    "accountant": "every run has its own, from which the claim is read; to charge another one too",
}
"""Options of a tool that only the audit may set, and why."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DiffprivlibTool:
    """A tool or model of diffprivlib as a function of a single run; use `from_diffprivlib_tool` to create one.

    Attributes
    ----------
    function : callable
        The tool, or the class of the model.
    options : mapping
        Its arguments other than the data.
    output : callable, optional
        Maps the result, or the fitted model, to the output.
    """

    function: Callable[..., Any] = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)
    output: Callable[[Any], Any] | None = field(repr=False)
    claim: Claim
    claim_source: str
    adjacency: Adjacency
    seeded: bool
    name: str

    def __str__(self) -> str:
        return f"diffprivlib {self.name}"

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

    Raises
    ------
    AdjacencyError, ClaimError, MechanismError
        Without an adjacency, an example, or the output of a model; for a tool that rejects the example, or charges
        nothing for it.
    OptionError
        If the options contain `random_state` or `accountant`, which the audit sets in every run.
    AuditError
        If diffprivlib cannot be imported.
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
