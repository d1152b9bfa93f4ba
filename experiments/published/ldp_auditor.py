"""The pure protocols of LDP-Auditor, and the exact probabilities of its attack.

LDP-Auditor guesses a person's value from the report, and bounds ε by how often the guess is value 0 on value 0 and on
value k − 1. In every protocol all incorrect guesses are equally likely, so one probability determines both. Its
published bounds were not found as numbers; `attack` computes the probabilities of the guess and the bound at the
expected counts.

References
----------
Arcolezi & Gambs (2024), Revealing the true cost of locally differentially private protocols: an auditing perspective,
and its code, hharcolezi/ldp-audit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from scipy.stats import beta

from ...audit.datasets.adjacency import Local, Replace
from ...audit.datasets.domains import Values
from ...mechanisms import (
    HistogramMechanism,
    LocalHashing,
    RandomisedResponse,
    SubsetSelection,
    ThresholdedHistogram,
    UnaryEncoding,
)
from ...mechanisms.faulty import TrueBitSetTwice
from .entry import Entry, entry

EPSILON: Final = 1.0
N_VALUES: Final = 25
RUNS: Final = 1_000_000
"""Runs on each value in the paper."""
ALPHA: Final = 0.01
"""Error probability of both limits together in the paper."""


def entries(epsilon: float = EPSILON, k: int = N_VALUES) -> list[Entry]:
    """Return the eight protocols, and unary encoding as in the package in which the paper found a bug."""
    protocols = {
        "GRR": RandomisedResponse(epsilon, k),
        "SS": SubsetSelection(epsilon, k),
        "SUE": UnaryEncoding(epsilon, k),
        "OUE": UnaryEncoding(epsilon, k, is_optimised=True),
        "THE": ThresholdedHistogram(epsilon, k),
        "BLH": LocalHashing(epsilon, k, g=2),
        "OLH": LocalHashing(epsilon, k),
        "SUE of pure-LDP 1.1.2": TrueBitSetTwice(epsilon, k, is_optimised=False),
        "OUE of pure-LDP 1.1.2": TrueBitSetTwice(epsilon, k),
    }
    noisy = HistogramMechanism(epsilon, k, sensitivity=2)
    values, rows = Values(tuple(range(k))), Values(tuple([value] for value in range(k)))
    found = [entry(name, oracle, (0, k - 1), Local(), values) for name, oracle in protocols.items()]
    return [*found, entry("SHE", noisy, ([0], [k - 1]), Replace(), rows)]


@dataclass(frozen=True, slots=True)
class Attack:
    """Probabilities of the guess 0 on value 0 and on value k − 1."""

    true_positive: float
    false_positive: float

    @property
    def loss(self) -> float:
        """Limit of the bound for many runs, in nats."""
        return math.log(self.true_positive / self.false_positive)

    def bound(self, runs: int = RUNS, alpha: float = ALPHA) -> float:
        """Return LDP-Auditor's bound at the expected counts: two Clopper-Pearson limits, alpha/4 each."""
        counts, misses = round(runs * self.true_positive), round(runs * self.false_positive)
        low = beta.ppf(alpha / 4, counts, runs - counts + 1)
        high = beta.ppf(1 - alpha / 4, misses + 1, runs - misses)
        return math.log(low / high)


def attack(protocol: Any) -> Attack:
    """Return the exact probabilities of the attack; for local hashing, those with ideal hash functions.

    The guess is uniform among the values that the report supports: a subset, the bits that are 1, the values with the
    reported hash, or all values if there are none. For noisy bits, the guess is the most likely value.
    """
    match protocol:
        case RandomisedResponse(epsilon=epsilon, k=k):
            right = 1 / (1 + (k - 1) * math.exp(-epsilon))
        case SubsetSelection(k=k):
            right = math.exp(protocol.distribution(0).log_shares[1]) / protocol.n_members
        case UnaryEncoding(k=k) | ThresholdedHistogram(k=k) | TrueBitSetTwice(k=k):
            right = _among_supported(protocol.runs_as.kept, protocol.runs_as.added, k)
        case LocalHashing(epsilon=epsilon, k=k):
            g = protocol.n_reports
            right = _among_supported(1 / (1 + (g - 1) * math.exp(-epsilon)), 1 / g, k)
        case HistogramMechanism(epsilon=epsilon, k=k):
            right = _likeliest(epsilon, k)
        case _:
            raise TypeError(f"{protocol} is not a protocol of LDP-Auditor; use a mechanism of entries().")
    return Attack(right, (1 - right) / (k - 1))


def _among_supported(kept: float, added: float, k: int) -> float:
    """Return the probability of guessing the value: it is supported with `kept`, each other value with `added`."""
    return kept * _share(added, k) + (1 - kept) * (1 - added) ** (k - 1) / k


def _share(added: float, k: int) -> float:
    """Return the mean of 1/(1 + N) for the number N of k − 1 other values, each present with `added`."""
    return (1 - (1 - added) ** k) / (k * added)


def _likeliest(epsilon: float, k: int) -> float:
    """Return the probability that the value is the most likely one given noisy bits; the best is drawn among equals.

    The likelihood of a value increases with its noisy bit from 0 to 1, and is constant below and above.
    """
    from scipy.integrate import quad

    tail = math.exp(-epsilon / 2) / 2  # of a 0 above 1, and of a 1 below 0

    def density(bit: float) -> float:
        """Density of the true bit, times the probability that all others are below."""
        return epsilon / 4 * math.exp((bit - 1) * epsilon / 2) * (1 - math.exp(-bit * epsilon / 2) / 2) ** (k - 1)

    return 0.5 * _share(tail, k) + float(quad(density, 0, 1, epsabs=1e-13)[0]) + tail * 0.5 ** (k - 1) / k
