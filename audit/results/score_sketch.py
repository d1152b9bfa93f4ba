"""A small table of the scores of canaries for the figures of a report."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import OptionError
from ..guesses.canary_guesses import Said

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
        The guesses that carry the verdict were "out" for scores up to the first number, and "in" for scores from the
        second one on; None where that was not guessed.
    """

    edges: tuple[float, ...]
    inside: tuple[int, ...]
    outside: tuple[int, ...]
    said_out: float | None = None
    said_in: float | None = None

    def __post_init__(self) -> None:
        bins = len(self.edges) - 1
        is_rising = all(low < high for low, high in zip(self.edges, self.edges[1:], strict=False))
        if not (1 <= bins <= _MOST_BINS and is_rising and len(self.inside) == len(self.outside) == bins):
            raise OptionError(
                f"{bins} bins with {len(self.inside)} and {len(self.outside)} counts are not a histogram; use "
                f"increasing edges, and at most {_MOST_BINS} counts of each kind, one fewer than the edges.",
                bins=bins,
            )


def score_sketch(
    scores: npt.NDArray[np.float64], included: npt.NDArray[np.bool_], *, guessed: int, said: Said, middle: float | None
) -> ScoreSketch:
    """Return the table of so many scores.

    Parameters
    ----------
    scores, included : ndarray, shape (canaries,)
        Finite scores.
    guessed : int
        The number of guesses that carry the verdict, made from the farthest score on.
    said : {"both", "in", "out"}
    middle : float, optional
        From which the distance is measured; by default the median.
    """
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
        edges=tuple(edges.tolist()),
        inside=tuple(inside.tolist()),
        outside=tuple(outside.tolist()),
        said_out=said_out,
        said_in=said_in,
    )


def _guessed(
    ordered: npt.NDArray[np.float64], guessed: int, said: Said, middle: float | None
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
