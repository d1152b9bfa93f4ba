"""Report noisy max, with Laplace and with one-sided noise, and its law beside the exponential mechanism's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from ...audit.claims.pure_approx_gaussian import PureDP
from ...audit.datasets.adjacency import AddRemove, Local, Replace, Within
from ...mechanisms import CategoryCounts, EachCandidate, ExponentialMechanism, Law, PermuteAndFlip, ReportNoisyMax
from ...mechanisms.faulty import NoisyMaxMissingFactorTwo, NoisyMaxReleasingValue
from ..cases.experiment import AuditCase, Experiment, false_version
from ..cases.pure_cases import pure_version
from .exponential_utility import DOCUMENT

_APART, _CLOSER = (0.0, -3.0), (-1.0, -2.0)
_NAMES: Final = CategoryCounts(("Ann", "Bob", "Eve"))
_DISEASES: Final = ("anaemia", "asthma", "diabetes", "gout", "measles")


def experiments() -> list[Experiment]:
    """Rows E8 to E10."""
    return [
        Experiment(
            id="E8",
            document=DOCUMENT,
            statement="The index of the largest count with Laplace noise is epsilon-DP: at scale 1/epsilon for counts "
            "that rows only raise, at 2/epsilon in general.",
            source="Dwork & Roth (2014), Claim 3.9 (most common name, most common disease)",
            cases=(*_noisy_max("E8", "laplace"), _value_released()),
        ),
        Experiment(
            id="E9",
            document=DOCUMENT,
            statement="The index of the largest count with exponential noise is epsilon-DP: at rate epsilon for counts "
            "that rows only raise, at epsilon/2 in general.",
            source="Dwork & Roth (2014), Section 3.4 (report one-sided noisy arg-max)",
            cases=(*_noisy_max("E9", "exponential"), _permute_and_flip()),
        ),
        Experiment(
            id="E10",
            document=DOCUMENT,
            statement="Noisy max has the law of the exponential mechanism by Gumbel noise, and not by exponential "
            "noise, which gives that of permute-and-flip.",
            source="Dwork & Roth (2014), Theorem 3.13 (which says otherwise); Ding et al. (2021)",
            cases=tuple(_same_laws()),
        ),
    ]


def patients(rows: list[tuple[str, ...]], disease: str) -> int:
    """How many people, each a tuple of diseases, have this one."""
    return sum(disease in row for row in rows)


@dataclass(frozen=True, slots=True)
class NamedMechanism:
    """The mechanism that the dataset names, on fixed utilities: to claim 0-DP is to claim that their laws are equal."""

    utilities: tuple[float, ...]
    mechanisms: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        return " or ".join(name for name, _ in self.mechanisms)

    @property
    def claim(self) -> PureDP:
        return PureDP(0.0)

    def law(self, dataset: str) -> Law:
        """The exact law of the mechanism of this name."""
        law: Law = dict(self.mechanisms)[dataset].law(self.utilities)
        return law

    def sample(self, dataset: str, size: int, rng: np.random.Generator) -> Any:
        return dict(self.mechanisms)[dataset].sample(self.utilities, size, rng)


def _noisy_max(row: str, noise: Literal["laplace", "exponential"]) -> list[AuditCase]:
    """The same for both noises: which scale is enough on which pairs."""
    general = ReportNoisyMax(1.0, noise=noise)
    of_names, names = ReportNoisyMax(1.0, monotone=True, noise=noise, counts=_NAMES), ["Ann"] * 4 + ["Bob"]
    of_diseases = ReportNoisyMax(1.0, monotone=True, noise=noise, counts=EachCandidate(patients, _DISEASES))
    ill = [_DISEASES[1:2]]
    return [
        pure_version(
            f"{row}-general",
            True,
            general,
            (_APART, _CLOSER),
            Within("linf"),
            "twice the noise; one answer falls and the other rises",
        ),
        pure_version(
            f"{row}-names", True, of_names, (names, [*names, "Ann"]), AddRemove(), "most common name, one more Ann"
        ),
        pure_version(
            f"{row}-diseases",
            True,
            of_diseases,
            (ill, [*ill, _DISEASES[1:]]),
            AddRemove(),
            "most common disease; a patient who has all but one raises four counts",
        ),
        pure_version(
            f"{row}-replace",
            True,
            ReportNoisyMax(1.0, noise=noise, counts=_NAMES),
            (names, ["Ann"] * 5),
            Replace(),
            "twice the noise; Bob becomes Ann",
        ),
        pure_version(
            f"{row}-missing-2",
            False,
            NoisyMaxMissingFactorTwo(1.0, noise=noise),
            (_APART, _CLOSER),
            Within("linf"),
            "the noise for counts that only rise, on answers of which one falls",
        ),
        pure_version(
            f"{row}-monotone-replace",
            False,
            of_names,
            (names, ["Ann"] * 5),
            Replace(),
            "the same noise where Bob becomes Ann: one count rises, another falls",
        ),
    ]


def _value_released() -> AuditCase:
    """Its exact loss is reached at values below every count."""
    twin = NoisyMaxReleasingValue(0.5, len(_DISEASES), counts=EachCandidate(patients, _DISEASES))
    x, y = [_DISEASES], [_DISEASES, _DISEASES]
    below = -1.0
    return false_version(
        "E8-value-released",
        twin,
        x,
        y,
        twin.claim,
        AddRemove(),
        exact=float(twin.law(x).log_density(below) - twin.law(y).log_density(below)),
        runs=400_000,
        note="the largest noisy count itself; a patient who has all five diseases shifts five noises",
    )


def _permute_and_flip() -> AuditCase:
    return pure_version(
        "E9-permute-and-flip",
        True,
        PermuteAndFlip(1.0),
        (_APART, _CLOSER),
        Within("linf"),
        "the same law, drawn by coins in a random order",
    )


def _same_laws() -> list[AuditCase]:
    exact, one_sided = ExponentialMechanism(1.0), ReportNoisyMax(1.0, noise="exponential")
    gumbel, coins = ReportNoisyMax(1.0, noise="gumbel"), PermuteAndFlip(1.0)
    two, five = (0.0, 4.0), (0.0, 1.0, 2.0, 3.0, 4.0)

    def case(
        name: str,
        is_true: bool,
        utilities: tuple[float, ...],
        first: tuple[str, Any],
        second: tuple[str, Any],
        note: str,
    ) -> AuditCase:
        either = NamedMechanism(utilities, (first, second))
        return pure_version(name, is_true, either, (first[0], second[0]), Local(), note)

    right = ("the exponential mechanism", exact)
    by_exponential, by_gumbel = ("exponential noise", one_sided), ("Gumbel noise", gumbel)
    return [
        case("E10-gumbel", True, two, by_gumbel, right, "Gumbel noise of scale 2/epsilon"),
        case("E10-gumbel-five", True, five, by_gumbel, right, "the same with five candidates"),
        case(
            "E10-permute-and-flip", True, five, by_exponential, ("permute-and-flip", coins), "equal laws: Ding et al."
        ),
        case("E10-exponential", False, two, by_exponential, right, "the theorem as printed: half as often wrong"),
        case("E10-exponential-five", False, five, by_exponential, right, "the same with five candidates"),
    ]
