"""Every experiment there is, in the order in which they are run and listed."""

from __future__ import annotations

from ..cases.experiment import Experiment
from ..documents import (
    analytic_gaussian,
    definition,
    exponential_mechanism,
    laplace_composition,
    named_mechanisms,
    renyi_proposition,
)
from . import reference_mechanisms

_MODULES = (
    reference_mechanisms,
    exponential_mechanism,
    analytic_gaussian,
    renyi_proposition,
    definition,
    laplace_composition,
    named_mechanisms,
)


def all_experiments() -> list[Experiment]:
    """The reference suite, then the documents' experiments."""
    return [experiment for module in _MODULES for experiment in module.experiments()]
