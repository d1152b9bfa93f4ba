"""The catalogue of bugs: causes for which mechanisms break their claims, each with a mechanism that does.

Every faulty twin of this library is in it but `ClosedEndLaplace`, which keeps its claim. The entries say on which pair
an audit finds the bug, with how many runs, what is true instead, and how the bug comes to be. The runs were found by
audits at half as many and alpha 2e-9, of which ten with different seeds all had to refute.
"""

from __future__ import annotations

from .catalogue_composition import composition_faults
from .catalogue_fault import Fault
from .catalogue_noise import noise_faults
from .catalogue_normal import normal_faults
from .catalogue_responses import response_faults
from .catalogue_selection import selection_faults
from .catalogue_statistics import statistic_faults
from .catalogue_tables import table_faults

__all__ = ["Fault", "entries"]


def entries() -> list[Fault]:
    """All faults, family by family.

    Examples
    --------
    >>> from dpaudit.experiments.catalogue import entries
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
    ]
    order = {family: place for place, family in enumerate(dict.fromkeys(fault.family for fault in faults))}
    return sorted(faults, key=lambda fault: order[fault.family])
