"""Gaussian noise in the local model without the clipping that it relies on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....audit.claims.claim import ApproxDP
from ...local.local_gaussian import Domain, LocalGaussianMechanism
from ...noise.gaussian import GaussianMechanism
from ...noise.gaussian_vector import VectorGaussianMechanism
from ...queries import identity
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class UnclippedLocalGaussian(Twin):
    """A person's value with noise for a domain to which the value is not clipped: no (ε, δ) holds.

    In practice, the sensitivity is taken as max − min of the data seen so far, or of what a sensor should deliver, and
    the value is sent unchanged. The bug shows as soon as a value leaves the domain, and more the farther it lies.
    """

    epsilon: float
    delta: float
    domain: Domain

    def __str__(self) -> str:
        return f"UnclippedLocalGaussian(epsilon={self.epsilon:g}, delta={self.delta:g}, domain={self.domain})"

    @property
    def runs_as(self) -> GaussianMechanism | VectorGaussianMechanism:
        clipped = LocalGaussianMechanism(self.epsilon, self.delta, self.domain)
        return replace(clipped.runs_as, query=identity)

    @property
    def claim(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta)

    truth = None
