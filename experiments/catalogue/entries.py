"""The catalogue of bugs: reasons for which mechanisms break their claims, each with a mechanism that does.

It holds every faulty mechanism of this library except `ClosedEndLaplace`, which keeps its claim. An entry states the
pair on which an audit finds the bug, the number of runs, the strongest guarantee known to hold, and how the bug arises.
The runs were chosen by audits at half as many runs and alpha 2e-9, ten of which with different seeds all had to refute.
"""

from __future__ import annotations

from functools import cache

from .fault import Fault
from .noise_faults import noise_faults, normal_faults, oracle_faults, response_faults
from .statistic_faults import composition_faults, selection_faults, statistic_faults
from .table_and_output_faults import synthetic_faults, table_faults

__all__ = ["Fault", "entries"]


@cache
def entries() -> tuple[Fault, ...]:
    """Return all faults, family by family; computed once, because their exact privacy parameters take time.

    >>> from dpaudit.experiments.catalogue.entries import entries
    >>> faults = {fault.name: fault for fault in entries()}
    >>> faults["scale-epsilon"].claim.epsilon, faults["scale-epsilon"].exact
    (0.5, 2.0)
    """
    faults = [
        *noise_faults(),
        *normal_faults(),
        *selection_faults(),
        *response_faults(),
        *table_faults(),
        *statistic_faults(),
        *composition_faults(),
        *oracle_faults(),
        *synthetic_faults(),
    ]
    order = {family: place for place, family in enumerate(dict.fromkeys(fault.family for fault in faults))}
    return tuple(sorted(faults, key=lambda fault: order[fault.family]))
