"""The result of an audit of a training run with canaries: correct guesses, and what was decided from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ..errors import OptionError
from ..guesses.canary_guesses import CanaryGuesses, CanaryTest, Guess
from ..guesses.guess_bets import most_telling
from ..inference.multiplicity import ErrorBudget
from ..options import is_whole
from ..printing import confidence as confidence_words
from ..printing import rounded_up
from .audit_result import ClaimResult
from .verdict import Verdict, bound_beside_claim, claim_in_call, required_excess, untested_in_words

# A small table of the scores for the figures of a report.

_USUAL_ALPHA = 0.05  # the default of `plan_canaries`
_MOST_BINS = 64
_EACH = 20  # canaries in a bin, about, where there are few
_FAR = 3.0  # ranges between the outer deciles by which scores are drawn beyond them


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSketch:
    """Canaries by score, those that were in and those that were out, and which scores were guessed.

    Attributes
    ----------
    edges : tuple of float
        Edges of the bins, one more than the counts; scores beyond them are counted in the outer bins.
    inside, outside : tuple of int
        Canaries in each bin that were in, and those that were out. For pairs, whose score is the difference between
        the first canary and the second one, pairs whose first canary was in, and the others.
    said_out, said_in : float, optional
        The guesses that carry the verdict were "out" for scores up to the first number, and "in" for scores that reach
        the second one; None if that was not guessed.
    """

    edges: tuple[float, ...]
    inside: tuple[int, ...]
    outside: tuple[int, ...]
    said_out: float | None = None
    said_in: float | None = None

    def __post_init__(self) -> None:
        bins = len(self.edges) - 1
        is_rising = all(low < high for low, high in pairwise(self.edges))
        if not (1 <= bins <= _MOST_BINS and is_rising and len(self.inside) == len(self.outside) == bins):
            raise OptionError(
                f"{bins} bins with {len(self.inside)} and {len(self.outside)} counts are not a histogram; use "
                f"increasing edges, and at most {_MOST_BINS} counts of each kind, one fewer than the edges.",
                bins=bins,
            )


def score_sketch(
    scores: npt.NDArray[np.float64], included: npt.NDArray[np.bool_], *, guessed: int, said: Guess, middle: float | None
) -> ScoreSketch:
    """Return the table of finite scores; those farthest from the middle, by default the median, were guessed."""
    ends, low, high = np.quantile(scores, [0.1, 0.9]), float(scores.min()), float(scores.max())
    room = _FAR * float(ends[1] / 2 - ends[0] / 2) * 2
    if room > 0.0:
        low, high = max(low, float(ends[0]) - room), min(high, float(ends[1]) + room)
    if not high - low > 1e-9 * max(abs(low), abs(high)):
        around = max(1.0, abs(low)) / 2
        low, high = low - around, high + around
    bins = int(np.clip(len(scores) // _EACH, 8, _MOST_BINS))
    edges = np.linspace(low, high, bins + 1)
    kept = np.clip(scores, low, high)
    inside, outside = (np.histogram(kept[included == flag], edges)[0] for flag in (True, False))
    said_out, said_in = _guessed(np.sort(scores), guessed, said, middle)
    return ScoreSketch(
        edges=tuple(edges.tolist()), inside=tuple(inside.tolist()), outside=tuple(outside.tolist()),
        said_out=said_out, said_in=said_in,
    )  # fmt: skip


def _guessed(
    ordered: npt.NDArray[np.float64], guessed: int, said: Guess, middle: float | None
) -> tuple[float | None, float | None]:
    """The largest score that was guessed to be out, and the smallest one that was guessed to be in."""
    if said == "in":
        return None, float(ordered[-guessed])
    if said == "out":
        return float(ordered[guessed - 1]), None
    centre = float(np.median(ordered)) if middle is None else middle
    least = np.sort(np.abs(ordered - centre))[-guessed]
    below, above = ordered[ordered <= centre - least], ordered[ordered >= centre + least]
    return (float(below[-1]) if len(below) else None), (float(above[0]) if len(above) else None)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CanaryResult(ClaimResult):
    """A claim audited on guesses of which canaries were in the training data; no health check can fail.

    The minimum detectable excess is for canaries that can be guessed as well as the claim's family allows; infinite if
    no excess is detected. The seed is that of the order of equal scores.

    Attributes
    ----------
    adjacency : str
        The neighbours that the inclusion bits make: "add-remove", "replace" or "zero-out".
    inclusion : {"independent", "fixed"}
        Whether the canaries had independent inclusion bits, or a fixed number of them was included and paired with
        the others.
    canaries, included : int
        Canaries of all runs together, and how many of them were in the training data.
    guesses : CanaryGuesses
        Correct guesses by number of guesses.
    tests : tuple of CanaryTest
        The tests that share alpha.
    deciding_test : CanaryTest
        The test that gives the bound, or the smallest p-value if no bound is above 0.
    max_attainable_bound : float
        The bound if every guess had been correct: no audit of so many canaries shows more.
    needed : int, optional
        Canaries, or pairs, that detect the excess which this inconclusive audit had to detect; None if no number does.
    sketch : ScoreSketch, optional
        Histogram of the scores for a figure.
    """

    kind: ClassVar = "canaries"
    adjacency: str
    inclusion: str
    canaries: int
    runs: int = 1
    included: int
    guesses: CanaryGuesses
    tests: tuple[CanaryTest, ...]
    deciding_test: CanaryTest
    max_attainable_bound: float
    needed: int | None = None
    sketch: ScoreSketch | None = None

    def __post_init__(self) -> None:
        ClaimResult.__post_init__(self)
        self._refuse_impossible(
            max_attainable_bound=self.max_attainable_bound >= 0.0,
            canaries=is_whole(self.canaries) and self.canaries > 0,
            included=0 <= self.included <= self.canaries,
            tests=len(self.tests) > 0,
            deciding_test=isinstance(self.deciding_test, CanaryTest) and self.deciding_test in self.tests,
        )
        spent = math.fsum(test.alpha for test in self.tests)
        self._refuse_impossible(alpha=spent <= self.alpha * (1.0 + 1e-9))  # rounding

    @property
    def error_budget(self) -> ErrorBudget:
        """How alpha is shared by the tests."""
        return ErrorBudget(self.alpha, tuple((str(test), test.alpha) for test in self.tests))

    @property
    def best_guesses(self) -> tuple[int, int]:
        """The number of guesses that carries the bound, and how many of them were right.

        For bets the number at which correct guesses are least like those of inclusion bits that the claim allows.
        """
        return best_guesses(self.guesses, self.deciding_test)

    @property
    def _excess_basis_in_words(self) -> str:
        return "if scores reveal all that such a claim allows"

    @property
    def guesses_in_words(self) -> str:
        """For example "117 of 120 guesses were correct, of 1,000 canaries"."""
        number, right = self.best_guesses
        of = "pairs" if self.inclusion == "fixed" else "canaries"
        runs = f" in {self.runs:,} runs" if self.runs > 1 else ""
        return f"{right:,} of {number:,} guesses were correct, of {self.guesses.canaries:,} {of}{runs}"

    @property
    def _found(self) -> str:
        found, confidence = bound_beside_claim(self.claim, self.bound), confidence_words(self.alpha)
        if self.verdict is Verdict.REFUTED:
            return f"{found} ({confidence})"
        if self.verdict is Verdict.NOT_REFUTED:
            return f"{found} ({confidence}); {self.detectable_in_words}"
        return self._inconclusive[0]

    @property
    def seen(self) -> str:
        """The guesses that refute the claim; empty for another verdict."""
        return self.guesses_in_words if self.verdict is Verdict.REFUTED else ""

    @property
    def next_step(self) -> str:
        """Where to look after a refutation, and what makes an inconclusive audit conclusive."""
        if self.verdict is Verdict.REFUTED:
            return "look at the clipping, the noise and the sampling of the training"
        return self._inconclusive[1] if self.verdict is Verdict.INCONCLUSIVE else ""

    @property
    def sentence(self) -> str:
        """The verdict in a sentence: bound, claim, confidence, and the guesses that carry it or what is detectable."""
        remedy = self.next_step if self.verdict is Verdict.INCONCLUSIVE else ""
        return "; ".join(filter(None, (f"{self.verdict.value.upper()}: {self._found}", self.seen, remedy)))

    def _plan(self, needed: int) -> str:
        """What the needed canaries detect, and the call that plans other numbers."""
        excess, alpha = required_excess(self.claim, self.detect), f", alpha={self.alpha:g}"
        call = f"claim={claim_in_call(self.claim)}, detect={excess:.4g}"
        of = "pairs" if self.inclusion == "fixed" else "canaries"
        options = call + alpha * (self.alpha != _USUAL_ALPHA)
        return f"{needed:,} {of} would detect an excess of {excess:.4g}; plan_canaries({options})"

    @property
    def _inconclusive(self) -> tuple[str, str]:
        """Why the audit is inconclusive, and the remedy."""
        of = f"{self.canaries:,}, {confidence_words(self.alpha)}"
        more = "use more canaries, or several runs with new inclusion bits"
        more, delta = more if self.needed is None else self._plan(self.needed), float(getattr(self.claim, "delta", 0.0))
        if delta >= self.alpha:
            why = "a training that reveals everything with probability delta keeps the claim"
            return (
                f"delta = {delta:g} is not below alpha = {self.alpha:g}; {why}",
                "use a larger alpha or a smaller delta",
            )
        explained = self.guesses.canaries * delta
        if explained >= 1.0:
            slips = f"canaries × delta = {explained:.3g} correct guesses may be slips"
            fewer = "use fewer canaries" if self.needed is None else more
            return f"too many canaries for this delta ({of}); {slips}", f"{fewer}, or claim a smaller delta"
        if self.max_attainable_bound <= self.claim.parameter:
            most = self.claim.describe_parameter(self.max_attainable_bound)
            return f"too few canaries ({of}); even if all guesses were correct, {most}", more
        assert self.min_detectable_excess is not None
        if self.detect is not None or math.isinf(self.min_detectable_excess):
            wanted = self.detect
            asked = "" if wanted is None else f"; requested: {wanted:.2g}"
            return f"too few canaries ({of}); {self.detectable_in_words}{asked}", more
        return (
            f"{untested_in_words(self.claim, self.min_detectable_excess)} ({100 * self.power:.6g}% power at best; "
            f"{self.canaries:,} canaries, {confidence_words(self.alpha)})",
            f"{more}, or accept this with detect={rounded_up(self.min_detectable_excess, 2):g}",
        )


def best_guesses(guesses: CanaryGuesses, test: CanaryTest) -> tuple[int, int]:
    """Return the number of guesses that a test relies on, and the right ones among them."""
    if test.kind != "betting":
        return test.guesses, guesses.correct_among(test.guesses)
    place = most_telling(guesses.correct, guesses.numbers, test.alpha)
    return guesses.numbers[place], guesses.correct[place]
