"""Correct guesses of which canaries are in, by number of guesses: all that a verdict is computed from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..errors import OptionError
from ..options import check_fields
from ..printing import shorten

Said = Literal["both", "in", "out"]
Kind = Literal["betting", "counts", "steinke", "f-dp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryGuesses:
    """How many guesses were correct among the first so many.

    Attributes
    ----------
    canaries : int
        Canaries, or pairs of canaries, each with a coin of its own.
    numbers, right : tuple of int, same length
        Increasing numbers of guesses, each with the right ones among the first so many.
    said : {"both", "in", "out"}
        The answers that were guessed; "both" needs fair coins.
    probability : float
        With which the coins included a canary.
    """

    canaries: int
    numbers: tuple[int, ...]
    right: tuple[int, ...]
    said: Said = "both"
    probability: float = 0.5

    def __post_init__(self) -> None:
        check_fields(self)
        steps = zip((0, *self.numbers), self.numbers, (0, *self.right), self.right, strict=False)
        if (
            len(self.numbers) != len(self.right)
            or not self.numbers
            or self.numbers[-1] > self.canaries
            or not all(after > before and 0 <= v - u <= after - before for before, after, u, v in steps)
            or not 0.0 < self.probability < 1.0
            or not isinstance(self.said, str)
            or (self.said == "both" and self.probability != 0.5)
        ):
            raise OptionError(
                f"right={shorten(self.right)} among the first numbers={shorten(self.numbers)} of canaries="
                f"{shorten(self.canaries)} are impossible with said={shorten(self.said)} and probability="
                f"{shorten(self.probability)}; use increasing numbers, at most one correct guess for each.",
                canaries=self.canaries,
            )

    def right_among(self, guesses: int) -> int:
        """Return the correct guesses among the first so many."""
        return self.right[self.numbers.index(guesses)]

    @property
    def prior(self) -> float:
        """Probability of a correct guess without a look at the scores."""
        return 1.0 - self.probability if self.said == "out" else self.probability


@dataclass(frozen=True, slots=True)
class CanaryTest:
    """A test of guesses and its share of alpha."""

    kind: Kind
    guesses: int  # their number, fixed before; for bets the largest number
    alpha: float

    def __str__(self) -> str:
        return f"{self.kind} ({'up to ' * (self.kind == 'betting')}{self.guesses:,} guesses)"
