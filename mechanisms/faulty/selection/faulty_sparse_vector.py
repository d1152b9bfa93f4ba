"""The sparse vector technique as it was published wrongly: with too little noise, none, or too much in its output.

The four variants are Algorithms 3 to 6 of Lyu, Su & Li (2017), Understanding the sparse vector technique for
differential privacy, who name where each was published and give what is true of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....audit.claims.pure_approx_gaussian import PureDP
from ...queries import Query, identity
from ...selection.sparse_vector import NoisyThreshold, SparseVector
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class _Variant(Twin):
    """What the variants share: the parameters of `SparseVector`, its claim, and its errors."""

    epsilon: float
    threshold: float = 0.0
    sensitivity: float = 1.0
    queries: Query = identity

    def __post_init__(self) -> None:
        SparseVector(self.epsilon, getattr(self, "cutoff", 1), self.threshold, self.sensitivity)  # what it should be

    def __str__(self) -> str:
        counted = f", cutoff={cutoff}" if (cutoff := getattr(self, "cutoff", None)) else ""
        return f"{type(self).__name__}(epsilon={self.epsilon:g}{counted}, sensitivity={self.sensitivity:g})"

    def _with_scales(
        self, threshold: float, query: float, cutoff: int | None = None, *, release_value: bool = False
    ) -> NoisyThreshold:
        """With noise of these scales, in sensitivities over epsilon."""
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
    """Outputs the noisy answers that were found above, NaN for the others: no finite epsilon.

    In practice the value lies at hand, and is noisy already. But it bounds the threshold's noise from above, and then
    each answer below tells something. Shows on answers that are all 0 or all 1: "m below, then a small value" is
    e^{(m + 1)·epsilon/2} times as likely where they are 0, with a cutoff of 1.
    """

    cutoff: int = 1

    @property
    def runs_as(self) -> NoisyThreshold:
        return self._with_scales(2.0, 2.0 * self.cutoff, self.cutoff, release_value=True)

    @property
    def truth(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class SparseVectorUnscaledNoise(_Variant):
    """Noise on the answers that does not grow with the cutoff c: (1 + 6c)/4·epsilon.

    A quarter of epsilon goes to the threshold, and to each answer above what is left, at half the noise that it takes.
    In practice "one answer is compared at a time". Shows on many answers that rise and end below, and a few that fall
    and end above.
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
    """Noise on the threshold alone, and no end: no finite epsilon.

    In practice a noisy threshold hides where it lies, so that comparing with it looks safe. But it is one for all: on
    (0, 1) the output "below, above" says that it lies between, and (1, 0) never gives it.
    """

    @property
    def runs_as(self) -> NoisyThreshold:
        return self._with_scales(2.0, 0.0)

    @property
    def truth(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class SparseVectorWithoutCutoff(_Variant):
    """Noise for a single answer, and no end: no finite epsilon for all numbers of answers.

    In practice a bit for each answer looks cheap. But each answer above costs epsilon, and all may be above. Shows
    where half of the answers rise and the others fall.
    """

    @property
    def runs_as(self) -> NoisyThreshold:
        return self._with_scales(2.0, 2.0)

    @property
    def truth(self) -> None:
        return None
