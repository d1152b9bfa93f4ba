"""The result of an audit of a training run with canaries: right guesses, and what was decided from them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ..claims.claim import Claim
from ..errors import OptionError
from ..guesses.canary_guesses import CanaryGuesses, CanaryTest
from ..guesses.guess_bets import most_telling
from ..inference.multiplicity import Ledger
from ..options import check_fields, is_whole
from ..printing import confidence as confidence_words
from ..printing import rounded_up, shorten, verdict_text
from .audit_result import Verdict, bound_beside_claim, least_beside, untested_in_words, verdict_of
from .result import Result
from .score_sketch import ScoreSketch


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryResult(Result):
    """A claim audited on guesses of which canaries were in the training data.

    Attributes
    ----------
    mechanism : str
        Name of the training.
    claim : Claim
    claim_source : str
        Where the claim is from, in the caller's words; may be empty.
    adjacency : str
        The neighbours that the coins make: "add-remove" or "replace".
    coins : {"independent", "fixed"}
        Whether each canary had a coin of its own, or a fixed split was paired.
    canaries, runs, included : int
        Canaries of all runs together, runs, and how many canaries were in the training data.
    guesses : CanaryGuesses
        Right guesses by number of guesses.
    tests : tuple of CanaryTest
        The tests that share alpha.
    carried : CanaryTest
        The test that gives the bound, or the smallest p-value where no bound is above 0.
    alpha : float
        Largest probability that a training that keeps the claim is refuted.
    p_value, bound : float
        p-value of the claim, never below 1e-12, and lower bound on the strength of the claim's family at confidence
        1 − alpha.
    resolution : float
        Smallest excess over the claim that is detected with probability `power` where canaries can be guessed as well
        as the claim's family allows; infinite if no excess is.
    ceiling : float
        The bound if every guess had been right: no audit of so many canaries shows more.
    power : float
    requested_resolution : float, optional
        The resolution that the caller requested.
    seed : int
        Random seed of the order of equal scores.
    sketch : ScoreSketch, optional
        Histogram of the scores for a figure.
    notes, versions, environment
        As in `AuditResult`.
    """

    mechanism: str
    claim: Claim
    claim_source: str = ""
    adjacency: str
    coins: str
    canaries: int
    runs: int = 1
    included: int
    guesses: CanaryGuesses
    tests: tuple[CanaryTest, ...]
    carried: CanaryTest
    alpha: float
    p_value: float
    bound: float
    resolution: float
    ceiling: float
    power: float = 0.95
    requested_resolution: float | None = None
    seed: int
    sketch: ScoreSketch | None = None
    notes: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    environment: dict[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        check_fields(self)
        possible = {
            "alpha": 0.0 < self.alpha < 1.0,
            "p_value": 0.0 <= self.p_value <= 1.0,
            "bound": self.bound >= 0.0,
            "resolution": self.resolution > 0.0,
            "ceiling": self.ceiling >= 0.0,
            "canaries": is_whole(self.canaries) and self.canaries > 0,
            "included": 0 <= self.included <= self.canaries,
            "tests": len(self.tests) > 0,
            "carried": isinstance(self.carried, CanaryTest) and self.carried in self.tests,
        }
        for name, holds in possible.items():
            if not holds:
                value = getattr(self, name)
                raise OptionError(
                    f"{name}={shorten(value)} is impossible in a result of canaries={shorten(self.canaries)}; audit "
                    "again.",
                    name=name,
                    value=value,
                )

    @property
    def verdict(self) -> Verdict:
        """REFUTED if and only if the bound exceeds the claim; INCONCLUSIVE if the canaries would not show an excess.

        An excess as large as the claim, or the one that the caller requested.
        """
        if math.isinf(self.resolution) and self.bound <= self.claim.strength:
            return Verdict.INCONCLUSIVE
        return verdict_of(self.claim, self.bound, self.resolution, self.requested_resolution, ())

    @property
    def is_refuted(self) -> bool:
        """Whether the bound exceeds the claim."""
        return self.verdict is Verdict.REFUTED

    @property
    def _limits(self) -> tuple[float, float]:
        return self.bound, math.inf

    @property
    def pvalue(self) -> float:
        """The p-value, by the name that results of scipy.stats have for it."""
        return self.p_value

    @property
    def ledger(self) -> Ledger:
        """How alpha is shared by the tests."""
        return Ledger(self.alpha, tuple((str(test), test.alpha) for test in self.tests))

    @property
    def best_guesses(self) -> tuple[int, int]:
        """The number of guesses that carries the bound, and how many of them were right.

        For bets the number at which right guesses are least like those of coins that the claim allows.
        """
        return best_guesses(self.guesses, self.carried)

    @property
    def detectable_in_words(self) -> str:
        """The smallest detectable excess with its power and condition, or that there is none."""
        if math.isinf(self.resolution):
            return f"no excess, however large, is detected with {100 * self.power:.6g}% power"
        return (
            f"smallest detectable excess: {self.resolution:.2g} ({100 * self.power:.6g}% power, if scores reveal all "
            "that such a claim allows)"
        )

    @property
    def guesses_in_words(self) -> str:
        """For example "117 of 120 guesses were right, of 1,000 canaries"."""
        number, right = self.best_guesses
        of = "pairs" if self.coins == "fixed" else "canaries"
        runs = f" in {self.runs:,} runs" if self.runs > 1 else ""
        return f"{right:,} of {number:,} guesses were right, of {self.guesses.canaries:,} {of}{runs}"

    @property
    def sentence(self) -> str:
        """The verdict in a sentence: bound, claim, confidence, and the guesses that carry it or what is detectable."""
        found, confidence = bound_beside_claim(self.claim, self.bound), confidence_words(self.alpha)
        if self.verdict is Verdict.REFUTED:
            return f"REFUTED: {found} ({confidence}); {self.guesses_in_words}"
        if self.verdict is Verdict.NOT_REFUTED:
            return f"NOT REFUTED: {found} ({confidence}); {self.detectable_in_words}"
        return f"INCONCLUSIVE: {self._why_inconclusive}"

    @property
    def _why_inconclusive(self) -> str:
        of = f"{self.canaries:,}, {confidence_words(self.alpha)}"
        explained = self.guesses.canaries * float(getattr(self.claim, "delta", 0.0))
        if explained >= 1.0:
            return (
                f"too many canaries for this delta ({of}); canaries × delta = {explained:.3g} right guesses may be "
                "slips, so use fewer canaries, or claim a smaller delta"
            )
        if self.ceiling <= self.claim.strength:
            return (
                f"too few canaries ({of}); even if all guesses were right, "
                f"{self.claim.describe_strength(self.ceiling)}; plan_canaries says how many it takes"
            )
        if self.requested_resolution is not None or math.isinf(self.resolution):
            wanted = self.requested_resolution
            asked = "" if wanted is None else f"; requested: {wanted:.2g}"
            return f"too few canaries ({of}); {self.detectable_in_words}{asked}"
        return (
            f"{untested_in_words(self.claim, self.resolution)} ({100 * self.power:.6g}% power at best; "
            f"{self.canaries:,} canaries, {confidence_words(self.alpha)}); use more canaries (plan_canaries), or "
            f"accept this with resolution={rounded_up(self.resolution, 2):g}"
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes, as they are printed below the verdict."""
        return tuple(f"note: {note}" for note in self.notes)

    def __str__(self) -> str:
        return verdict_text(self.sentence, self.remarks)

    def __repr__(self) -> str:
        sign, least, _ = least_beside(self.bound, self.claim.strength)
        return (
            f"<CanaryResult {self.mechanism}: {self.verdict.value}, "
            f"{self.claim.strength_name} {sign} {least}, claim {self.claim}>"
        )


def best_guesses(guesses: CanaryGuesses, test: CanaryTest) -> tuple[int, int]:
    """Return the number of guesses that a test relies on, and the right ones among them."""
    if test.kind != "betting":
        return test.guesses, guesses.right_among(test.guesses)
    place = most_telling(guesses.right, guesses.numbers, test.alpha)
    return guesses.numbers[place], guesses.right[place]
