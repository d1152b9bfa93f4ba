"""Every experiment there is, in the order in which they are run and listed."""

from __future__ import annotations

from . import reference
from .experiment import Experiment

_MODULES = (reference,)


def all_experiments() -> list[Experiment]:
    """The reference suite, then the documents' experiments."""
    return [experiment for module in _MODULES for experiment in module.experiments()]
