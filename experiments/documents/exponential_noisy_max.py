"""Report noisy max with Laplace and with one-sided noise, compared with the exponential mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import numpy as np

from ...audit.claims.claim import PureDP
from ...audit.datasets.adjacency import AddRemove, Local, Replace, Within
from ...mechanisms import CategoryCounts, EachCandidate, ExponentialMechanism, Law, PermuteAndFlip, ReportNoisyMax
from ...mechanisms.faulty import NoisyMaxMissingFactorTwo, NoisyMaxReleasingValue
from ..cases.audits import fails, holds, stated
from ..cases.experiment import AuditCase, Experiment
from .exponential_utility import DOCUMENT

_NAMES: Final = CategoryCounts(("Ann", "Bob", "Eve"))
_DISEASES: Final = ("anaemia", "asthma", "diabetes", "gout", "measles")


def experiments() -> list[Experiment]:
    """Return experiments E8 to E10."""
    about = partial(stated, DOCUMENT)
    return [
        about(
            "E8",
            "The index of the largest count with Laplace noise is epsilon-DP: with scale 1/epsilon for monotone "
            "counts, with scale 2/epsilon in general.",
            "Dwork & Roth (2014), Claim 3.9 (most common name, most common disease)",
            (*_noisy_max("E8", "laplace"), _value_released()),
        ),
        about(
            "E9",
            "The index of the largest count with exponential noise is epsilon-DP: with rate epsilon for monotone "
            "counts, with rate epsilon/2 in general.",
            "Dwork & Roth (2014), Section 3.4 (report one-sided noisy arg-max)",
            (*_noisy_max("E9", "exponential"), _permute_and_flip()),
        ),
        about(
            "E10",
            "Noisy max with Gumbel noise has the law of the exponential mechanism; with exponential noise it has the "
            "law of permute-and-flip.",
            "Dwork & Roth (2014), Theorem 3.13 (which says otherwise); Ding et al. (2021)",
            _same_laws(),
        ),
    ]


def patients(rows: list[tuple[str, ...]], disease: str) -> int:
    """Count the rows, each a tuple of diseases, that contain the disease."""
    return sum(disease in row for row in rows)


@dataclass(frozen=True, slots=True)
class NamedMechanism:
    """Run the mechanism that the dataset names, on fixed utilities; a 0-DP claim says that all have the same law."""

    utilities: tuple[float, ...]
    mechanisms: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        return " or ".join(name for name, _ in self.mechanisms)

    @property
    def claim(self) -> PureDP:
        return PureDP(0.0)

    def law(self, dataset: str) -> Law:
        """Return the exact law of the mechanism with this name."""
        law: Law = dict(self.mechanisms)[dataset].law(self.utilities)
        return law

    def sample(self, dataset: str, size: int, rng: np.random.Generator) -> Any:
        return dict(self.mechanisms)[dataset].sample(self.utilities, size, rng)


def _noisy_max(row: str, noise: Literal["laplace", "exponential"]) -> list[AuditCase]:
    """Audit the two scales of one noise on monotone and other pairs."""
    general, of_names = ReportNoisyMax(1.0, noise=noise), ReportNoisyMax(1.0, monotone=True, noise=noise, counts=_NAMES)
    of_diseases = ReportNoisyMax(1.0, monotone=True, noise=noise, counts=EachCandidate(patients, _DISEASES))
    twice, missing = ReportNoisyMax(1.0, noise=noise, counts=_NAMES), NoisyMaxMissingFactorTwo(1.0, noise=noise)
    label = f"{noise.capitalize()} noise"
    closer, all_answers = ((0.0, -3.0), (-1.0, -2.0)), Within("linf")
    names, ill = ["Ann"] * 4 + ["Bob"], [_DISEASES[1:2]]
    more, replaced, patient = (names, [*names, "Ann"]), (names, ["Ann"] * 5), (ill, [*ill, _DISEASES[1:]])
    return [
        holds(f"{row}-general", general, closer, all_answers, f"{label}, general scale, one answer down and one up"),
        holds(f"{row}-names", of_names, more, AddRemove(), f"{label}, most common name, one more Ann"),
        holds(
            f"{row}-diseases",
            of_diseases,
            patient,
            AddRemove(),
            f"{label}, most common disease, a patient with four of five",
        ),
        holds(f"{row}-replace", twice, replaced, Replace(), f"{label}, general scale, Bob replaced by Ann"),
        fails(f"{row}-missing-2", missing, closer, all_answers, f"{label}, monotone scale, one answer down"),
        fails(
            f"{row}-monotone-replace", of_names, replaced, Replace(), f"{label}, monotone scale, Bob replaced by Ann"
        ),
    ]


def _value_released() -> AuditCase:
    """Audit the release of the noisy count; its exact loss is reached at values below every count."""
    twin = NoisyMaxReleasingValue(0.5, len(_DISEASES), counts=EachCandidate(patients, _DISEASES))
    pair = [_DISEASES], [_DISEASES, _DISEASES]
    log_x, log_y = (twin.law(rows).log_density(-1.0) for rows in pair)
    note = "release of the largest noisy count, a patient with all five diseases"
    return fails("E8-value-released", twin, pair, AddRemove(), note, exact=float(log_x - log_y), runs=400_000)


def _permute_and_flip() -> AuditCase:
    closer, note = ((0.0, -3.0), (-1.0, -2.0)), "permute-and-flip, the law of noisy max with exponential noise"
    return holds("E9-permute-and-flip", PermuteAndFlip(1.0), closer, Within("linf"), note)


def _same_laws() -> list[AuditCase]:
    right = ("the exponential mechanism", ExponentialMechanism(1.0))
    one_sided = ("exponential noise", ReportNoisyMax(1.0, noise="exponential"))
    gumbel, coins = ("Gumbel noise", ReportNoisyMax(1.0, noise="gumbel")), ("permute-and-flip", PermuteAndFlip(1.0))
    two, five = (0.0, 4.0), (0.0, 1.0, 2.0, 3.0, 4.0)

    def case(
        audit: Any, name: str, utilities: tuple[float, ...], first: tuple[str, Any], second: tuple[str, Any], note: str
    ) -> AuditCase:
        either, pair = NamedMechanism(utilities, (first, second)), (first[0], second[0])
        return audit(f"E10-{name}", either, pair, Local(), note)  # type: ignore[no-any-return]

    return [
        case(holds, "gumbel", two, gumbel, right, "Gumbel noise and the exponential mechanism, two candidates"),
        case(holds, "gumbel-five", five, gumbel, right, "Gumbel noise and the exponential mechanism, five candidates"),
        case(
            holds, "permute-and-flip", five, one_sided, coins, "exponential noise and permute-and-flip, five candidates"
        ),
        case(
            fails,
            "exponential",
            two,
            one_sided,
            right,
            "exponential noise and the exponential mechanism, two candidates",
        ),
        case(
            fails,
            "exponential-five",
            five,
            one_sided,
            right,
            "exponential noise and the exponential mechanism, five candidates",
        ),
    ]
