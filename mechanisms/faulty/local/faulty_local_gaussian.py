"""Gaussian noise in the local model without the clipping that it relies on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....audit.claims.pure_approx_gaussian import ApproxDP
from ...local.local_gaussian import Domain, LocalGaussianMechanism
from ...noise.gaussian import GaussianMechanism
from ...noise.gaussian_vector import VectorGaussianMechanism
from ...queries import identity
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class UnclippedLocalGaussian(Twin):
    """One person's value with noise for a domain that the value is not clipped to: nothing holds.

    In practice the sensitivity is called max − min, of the data seen so far or of what a sensor should deliver, and the
    value is sent as it is. Shows as soon as a value leaves the domain, the more the farther it does.
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

    @property
    def truth(self) -> None:
        return None
