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
from .audit_result import ClaimResult

# A small table of the scores for the figures of a report.

_MOST_BINS = 64  # as many bars fit into the figure; no verdict depends on them
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


@dataclass(frozen=True, kw_only=True, repr=False)
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
        super().__post_init__()
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
    def guesses_in_words(self) -> str:
        """For example "117 of 120 guesses were correct, of 1,000 canaries"."""
        return self._words.observation


def best_guesses(guesses: CanaryGuesses, test: CanaryTest) -> tuple[int, int]:
    """Return the number of guesses that a test relies on, and the right ones among them."""
    if test.kind != "betting":
        return test.guesses, guesses.correct_among(test.guesses)
    place = most_telling(guesses.correct, guesses.numbers, test.alpha)
    return guesses.numbers[place], guesses.correct[place]
