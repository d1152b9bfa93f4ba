"""Every experiment there is, in the order in which they are run and listed."""

from __future__ import annotations

from ..cases.experiment import Experiment
from ..documents import (
    analytic_gaussian,
    definition,
    exponential_mechanism,
    laplace_composition,
    renyi_proposition,
)
from ..documents import (
    named_mechanisms as named,
)
from . import reference_mechanisms as reference

_MODULES = (
    reference,
    exponential_mechanism,
    analytic_gaussian,
    renyi_proposition,
    definition,
    laplace_composition,
    named,
)


def all_experiments() -> list[Experiment]:
    """The reference suite, then the documents' experiments."""
    return [experiment for module in _MODULES for experiment in module.experiments()]
