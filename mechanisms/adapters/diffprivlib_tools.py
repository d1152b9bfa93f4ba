"""Tools and models of diffprivlib, with the claim that their budget accountant states.

Each is a function of a single run, which goes to processes by itself.
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
    "accountant": "every run has one of its own, from which its claim is read; to charge another one as well",
}
"""Options of a tool that are the audit's, and why."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DiffprivlibTool:
    """A tool or model of diffprivlib as a function of a single run; `from_diffprivlib_tool` makes one.

    Attributes
    ----------
    function : callable
        The tool, or the class of the model.
    options : mapping
        What it is given besides the data.
    output : callable, optional
        From what is returned, or the fitted model, to the output.
    claim : Claim
    claim_source : str
    adjacency : Adjacency
    seeded : bool
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
        """One output.

        Raises
        ------
        ClaimError
            Where a fresh accountant was charged with something else than what is claimed.
        """
        accountant = library().BudgetAccountant()
        state = random_state(rng) if self.seeded else None
        found = _call(self.function, dataset, {**self.options, "random_state": state, "accountant": accountant})
        spent = claim_of(*accountant.total())
        if spent != self.claim:
            raise ClaimError(
                f"{self} spent {spent} on a dataset, and {self.claim} on the example; a claim must not depend on the "
                "data.",
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
    """A function of `diffprivlib.tools`, or a class of `diffprivlib.models`, with what its accountant says as claim.

    Every run has a `BudgetAccountant` of its own; what it is charged with on the example is the claim, and every run
    of the audit must be charged with the same.

    Parameters
    ----------
    function : callable or class
        Called with the dataset and the options. Of a class of models one is made with the options and fitted: to
        the dataset as an array, whose last column is the target where `fit` needs one.
    example : Any
        Any dataset, on which the function is called once to read the claim.
    adjacency : Adjacency
        What neighbours are. Tools for which the number of rows is public (mean, sum, var, std, count_nonzero) are
        for ``Replace()``, histograms and quantiles hold for ``AddRemove()``; the documentation seldom says.
    output : callable, optional
        From what is returned to a number, an array or anything hashable; for a model needed, such as
        ``lambda model: model.coef_``.
    seeded : bool
        As of `from_diffprivlib`.
    **options
        Of the function or the class: epsilon, bounds and so on.

    Returns
    -------
    DiffprivlibTool

    Raises
    ------
    AdjacencyError, ClaimError, MechanismError
        Without an adjacency, an example, or the output of a model; for a tool that refuses the example, or charges
        nothing for it.
    OptionError
        For `random_state` and `accountant` among the options: the audit gives them to every run.
    AuditError
        If diffprivlib cannot be imported.
    """
    accountant = library().BudgetAccountant()
    name = getattr(function, "__name__", type(function).__name__)
    _check_tool(function, name, options)
    if output is None and inspect.isclass(function):
        raise MechanismError(
            f"output=None says not what of a fitted {name} is released; pass output=, such as lambda model: "
            "model.coef_.",
            mechanism=name,
        )
    if example is None:
        raise ClaimError(
            f"example=None: {name} states what it spends when it runs; pass example=, any dataset to run it on.",
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
            "claim to read; pass options and an example= that it takes.",
            mechanism=name,
        ) from error
    if accountant.total() == (0, 0):
        raise ClaimError(
            f"nothing was charged when {name} ran on the example, so there is no claim to read; a function of your own "
            "has to pass accountant= on to what it calls.",
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
            "LogisticRegression, and its options by name: a model is made and fitted anew in every run.",
            mechanism=name,
        )
    for option, why in _OWN_OPTIONS.items():
        if option in options:
            raise OptionError(
                f"{option}={shorten(options[option])} is the audit's to give: {why}, pass a function of your own that "
                f"takes {option}= and does not pass it on as it is.",
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
