"""Registry of all experiments, in the order in which they run and are listed."""

from __future__ import annotations

from functools import cache

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


@cache
def all_experiments() -> tuple[Experiment, ...]:
    """Return the reference suite, then the experiments of the documents."""
    return tuple(experiment for module in _MODULES for experiment in module.experiments())
