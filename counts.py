"""Tests and intervals of counts made elsewhere.

epsilon_lower          lower bound on ε from the counts of one event
epsilon_from_guesses   lower bound on ε from correct guesses of membership
Counts                 counts of an event on both datasets
joint_test             p-value and bound for any claim
parameter_lower        the bound alone
ratio_intervals        simultaneous intervals for likelihood ratios of cells
confidence_band        privacy profile and trade-off curve with a band
renyi_lower            lower bound on a Rényi divergence
total_variation_upper  upper limit of a total variation distance
holm                   adjusted p-values of several audits
"""

from .audit.canaries.canary_tests import epsilon_from_guesses
from .audit.inference.confidence_bands import confidence_band, renyi_lower
from .audit.inference.event_test import Counts, joint_test, parameter_lower
from .audit.inference.multiplicity import holm
from .audit.inference.ratio_intervals import ratio_intervals
from .audit.inference.total_variation import total_variation_upper
from .audit.procedures.epsilon_lower import epsilon_lower

__all__ = [
    "epsilon_lower",
    "epsilon_from_guesses",
    "Counts",
    "joint_test",
    "parameter_lower",
    "ratio_intervals",
    "confidence_band",
    "renyi_lower",
    "total_variation_upper",
    "holm",
]
