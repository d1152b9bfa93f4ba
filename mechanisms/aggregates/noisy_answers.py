"""Several answers on one dataset, each with independent noise of its own scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from ...audit.claims.claim import ApproxDP, Claim, GaussianDP, PureDP, check_number
from ...audit.errors import ClaimError, DatasetError
from ..laws.laws import GaussianLaw, LaplaceLaw
from ..laws.product import ProductLaw
from ..noise.gaussian import analytic_gaussian_scale
from ..noise_samplers import Floats, gaussian_on_grid, laplace_on_grid
from ..parameter_checks import check_count, check_scale

Noise: TypeAlias = Literal["laplace", "gaussian"]
_SAMPLERS = {"laplace": laplace_on_grid, "gaussian": gaussian_on_grid}


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyAnswers:
    """Answers of a query, each with Laplace or Gaussian noise of its own scale, shape (n_answers,).

    Aggregations compute their result from such a vector, so the vector shows all that the result may reveal. Outputs
    are rounded to the grids of `LaplaceMechanism` and `GaussianMechanism`.

    Parameters
    ----------
    query : callable
        Maps the dataset to the exact answers.
    scales : tuple of float
        Scale or standard deviation that the claim needs, for each answer.
    noise : {"laplace", "gaussian"}
    claim : Claim
    tight_claim : Claim
        Strongest claim that this noise keeps: ε-DP for Laplace noise, μ-GDP for Gaussian noise.
    noise_share : float
        Share of the scales that is used. Below 1 the tight claim is broken.
    """

    query: Callable[[Any], tuple[float, ...]]
    scales: tuple[float, ...]
    noise: Noise
    claim: Claim
    tight_claim: Claim
    noise_share: float = 1.0

    def __post_init__(self) -> None:
        check_noise_share(self.noise_share)
        for scale in self.scales:
            check_scale(scale)

    def __str__(self) -> str:
        return f"{len(self.scales)} answers with {self.noise} noise, claim {self.claim}{share_in_words(self)}"

    def law(self, dataset: Any) -> ProductLaw:
        """Return the law of the outputs before rounding to the grids."""
        one = LaplaceLaw if self.noise == "laplace" else GaussianLaw
        return ProductLaw(
            tuple(one(answer, scale) for answer, scale in zip(self._answers(dataset), self._used, strict=True))
        )

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """Draw `size` independent outputs, shape (size, n_answers)."""
        draw, outputs = _SAMPLERS[self.noise], np.empty((size, len(self.scales)))
        for column, (answer, scale) in enumerate(zip(self._answers(dataset), self._used, strict=True)):
            outputs[:, column] = draw(answer, scale, size, rng)
        return outputs

    @property
    def _used(self) -> tuple[float, ...]:
        return tuple(scale * self.noise_share for scale in self.scales)

    def _answers(self, dataset: Any) -> tuple[float, ...]:
        answers = self.query(dataset)
        if len(answers) != len(self.scales) or not all(math.isfinite(answer) for answer in answers):
            raise DatasetError(
                f"the query answered {answers!r:.60}; use a query that returns {len(self.scales)} finite numbers.",
                answers=answers,
            )
        return answers


def calibrated(
    query: Callable[[Any], tuple[float, ...]],
    sensitivities: tuple[float, ...],
    *,
    epsilon: float,
    delta: float,
    partitions: int,
    per_partition: int,
    shares: int,
    at_once: int = 1,
    noise_share: float = 1.0,
) -> NoisyAnswers:
    """Return noisy answers with Laplace noise for delta 0, and otherwise Gaussian noise.

    A user has up to `per_partition` rows in each of up to `partitions` such releases. One row changes `at_once`
    answers of the same noise in each release, by at most their sensitivity. Each answer, or group of answers that a
    row changes at once, has the share 1/`shares` of epsilon and delta.
    """
    check_number("epsilon", epsilon, 0, math.inf, "in nats", closed=False)
    check_number("delta", delta, 0, 1, "0 for Laplace noise", closed=True)
    check_count("partitions", partitions, "partitions of a user")
    check_count("per_partition", per_partition, "rows of a user in a partition")
    releases = partitions * at_once
    if delta == 0:
        scales = tuple(releases * per_partition * one * shares / epsilon for one in sensitivities)
        return NoisyAnswers(
            query=query,
            scales=scales,
            noise="laplace",
            claim=PureDP(epsilon),
            tight_claim=PureDP(epsilon),
            noise_share=noise_share,
        )
    unit = analytic_gaussian_scale(epsilon / shares, delta / shares)
    return NoisyAnswers(
        query=query,
        scales=tuple(unit * math.sqrt(releases) * per_partition * one for one in sensitivities),
        noise="gaussian",
        claim=ApproxDP(epsilon, delta),
        tight_claim=GaussianDP(math.sqrt(shares) / unit),
        noise_share=noise_share,
    )


def check_noise_share(share: float) -> None:
    """Raise a `ClaimError` unless the share of the noise is in (0, 1]."""
    if not 0.0 < share <= 1.0:
        raise ClaimError(f"noise_share={share!r} is not a share of the noise; use 0 < noise_share <= 1.", share=share)


def share_in_words(mechanism: Any) -> str:
    """Return the share of the noise for a mechanism's name; empty for all of the noise."""
    return "" if mechanism.noise_share == 1 else f", {mechanism.noise_share:.0%} of the noise"
