"""Published wrong versions of the sparse vector technique.

The four variants are Algorithms 3 to 6 of Lyu, Su & Li (2017), Understanding the sparse vector technique for
differential privacy, who say where each was published and which guarantee is true of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....audit.claims.claim import PureDP
from ...queries import Query, identity
from ...selection.sparse_vector import NoisyThreshold, SparseVector
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class _Variant(Twin):
    """Parameters, claim and errors of `SparseVector`."""

    epsilon: float
    threshold: float = 0.0
    sensitivity: float = 1.0
    queries: Query = identity

    def __post_init__(self) -> None:
        SparseVector(self.epsilon, getattr(self, "cutoff", 1), self.threshold, self.sensitivity)

    def __str__(self) -> str:
        counted = f", cutoff={cutoff}" if (cutoff := getattr(self, "cutoff", None)) else ""
        return f"{type(self).__name__}(epsilon={self.epsilon:g}{counted}, sensitivity={self.sensitivity:g})"

    def _with_scales(
        self, threshold: float, query: float, cutoff: int | None = None, *, release_value: bool = False
    ) -> NoisyThreshold:
        """Comparison with noise of these scales, in units of sensitivity/ε."""
        unit = self.sensitivity / self.epsilon
        return NoisyThreshold(
            self.claim,
            threshold * unit,
            query * unit,
            cutoff=cutoff,
            threshold=self.threshold,
            release_value=release_value,
            queries=self.queries,
        )


@dataclass(frozen=True, slots=True)
class SparseVectorReleasingValue(_Variant):
    """Sparse vector that outputs the noisy answers found above, NaN for the others: no finite ε.

    In practice, the value is at hand and already noisy (Lyu, Su & Li 2017, Algorithm 3). But it bounds the threshold's
    noise from above, and then each answer below carries information. The bug shows on answers that are all 0 or all 1:
    "m below, then a small value" is e^{(m + 1)·ε/2} times as likely where they are 0, with a cutoff of 1.
    """

    cutoff: int = 1

    @property
    def runs_as(self) -> NoisyThreshold:
        return self._with_scales(2.0, 2.0 * self.cutoff, self.cutoff, release_value=True)

    truth = None


@dataclass(frozen=True, slots=True)
class SparseVectorUnscaledNoise(_Variant):
    """Sparse vector whose noise on the answers does not grow with the cutoff c: (1 + 6c)/4·ε.

    In practice, "one answer is compared at a time" (Lyu, Su & Li 2017, Algorithm 4). A quarter of ε is spent on the
    threshold and the remaining three quarters on each answer above, at half the noise needed. The bug shows on many
    answers that rise and end below, and a few that fall and end above.
    """

    cutoff: int = 1

    @property
    def runs_as(self) -> NoisyThreshold:
        return self._with_scales(4.0, 4.0 / 3.0, self.cutoff)

    @property
    def truth(self) -> PureDP:
        return PureDP((1 + 6 * self.cutoff) / 4 * self.epsilon)


@dataclass(frozen=True, slots=True)
class SparseVectorWithoutQueryNoise(_Variant):
    """Sparse vector with noise on the threshold alone, and no cutoff: no finite ε.

    In practice, a noisy threshold hides its place, so that comparing with it looks safe (Lyu, Su & Li 2017, Algorithm
    5). But all answers share one threshold: on (0, 1) the output "below, above" says that it lies between them, and (1,
    0) never gives this output.
    """

    @property
    def runs_as(self) -> NoisyThreshold:
        return self._with_scales(2.0, 0.0)

    truth = None


@dataclass(frozen=True, slots=True)
class SparseVectorWithoutCutoff(_Variant):
    """Sparse vector with noise for a single answer above, and no cutoff: no ε holds for every number of answers.

    In practice, a bit for each answer looks cheap (Lyu, Su & Li 2017, Algorithm 6). But each answer above costs ε, and
    all may be above. The bug shows where half of the answers rise and the others fall.
    """

    @property
    def runs_as(self) -> NoisyThreshold:
        return self._with_scales(2.0, 2.0)

    truth = None
