"""The laws of a sparse vector that releases numbers: NaN for each answer below, and what is said of those above."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from .divergences import Floats, Law, check_rule, no_closed_form
from .mass_below import MassBelow
from .transcripts import ABOVE, BELOW, MOST_TRANSCRIPTS, STOPPED, TranscriptLaw, count_transcripts

_GRID = 65  # points to a piece, between which the largest loss is then refined
_REACH = 45.0  # scales beyond the last answer: what changes there changes by less than e⁻⁴⁵


@dataclass(frozen=True, slots=True)
class FreshValuesLaw(Law):
    """Each answer above comes with new noise of its own, which says nothing of the others.

    Given which answers are above, the values are independent Laplace variables of this `scale` around the answers.
    """

    transcripts: TranscriptLaw
    cutoff: int
    answers: tuple[float, ...]
    scale: float

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        """Of each row of `outputs`, shape (size, n_queries)."""
        rows = np.asarray(outputs, dtype=np.float64)
        is_released = ~np.isnan(rows)
        transcripts = np.where(is_released, ABOVE, BELOW)
        transcripts[~is_released & (np.cumsum(is_released, axis=1) >= self.cutoff)] = STOPPED
        distances = np.where(is_released, np.abs(rows - self.answers), 0.0).sum(axis=1) / self.scale
        n_values = is_released.sum(axis=1)
        return np.asarray(self.transcripts.log_density(transcripts) - distances - n_values * math.log(2 * self.scale))

    def is_comparable(self, other: Self) -> bool:
        return self.scale == other.scale and self.transcripts.is_comparable(other.transcripts)

    def epsilon_from(self, other: Self, delta: float) -> float:
        """At delta 0 only: the loss of the transcript and the shifts of what is released add up."""
        check_rule("delta", delta, delta == 0, "delta=0, where the largest loss is known")
        if not self.is_comparable(other):
            raise no_closed_form(self, other)
        shifts = np.abs(np.subtract(self.answers, other.answers)) / self.scale
        losses = np.subtract(self.transcripts.log_probabilities, other.transcripts.log_probabilities)
        return float(np.max(losses + (np.array(self.transcripts.transcripts) == ABOVE) @ shifts))


@dataclass(frozen=True, slots=True)
class ComparedValuesLaw(Law):
    """Each answer above is released with the very noise that put it above the threshold, which it bounds thereby.

    Given the threshold's noise Z, answers are independent; a released value only asks Z to be at most its excess over
    the threshold. So the density is that of the values, times the probability that Z is at most the smallest of them
    and above the noisy answers that were found below, which `MassBelow` has in closed form.

    Parameters
    ----------
    answers : tuple of float
    threshold, threshold_scale, query_scale : float
    cutoff : int
        Values after which nothing is looked at any more.
    refresh : bool
        Whether Z is drawn anew after each value.
    """

    answers: tuple[float, ...]
    threshold: float
    threshold_scale: float
    query_scale: float
    cutoff: int
    refresh: bool = False

    def __post_init__(self) -> None:
        count = count_transcripts(len(self.answers), self.cutoff)
        check_rule("transcripts", count, count <= MOST_TRANSCRIPTS, f"at most {MOST_TRANSCRIPTS}: fewer answers")
        self._mass(np.arange(len(self.answers)))  # refuses answers too many, or too far from the threshold

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        """Of each row of `outputs`, shape (size, n_queries)."""
        rows = np.asarray(outputs, dtype=np.float64)
        is_released = ~np.isnan(rows)
        _, group = np.unique(is_released @ (1 << np.arange(rows.shape[1])), return_inverse=True)
        order = np.argsort(group, kind="stable")
        log_densities = np.full(len(rows), -np.inf)
        for members in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
            above = np.flatnonzero(is_released[members[0]])
            if len(above) > self.cutoff:
                continue
            values = rows[np.ix_(members, above)]
            distances = np.abs(values - np.asarray(self.answers)[above]).sum(axis=1) / self.query_scale
            total = -distances - len(above) * math.log(2 * self.query_scale)
            for below, asked in self._draws(above):
                room = values[:, asked].min(axis=1, initial=np.inf) - self.threshold
                total += self._mass(below).log_up_to(room)
            log_densities[members] = total
        return log_densities

    def is_comparable(self, other: Self) -> bool:
        mine, others = (
            (len(law.answers), law.threshold, law.threshold_scale, law.query_scale, law.cutoff, law.refresh)
            for law in (self, other)
        )
        return mine == others

    def epsilon_from(self, other: Self, delta: float) -> float:
        """At delta 0 only: the largest loss of all transcripts and values, to about 1e-9.

        All values but the smallest that share a draw of Z count by their own noise alone, whose loss is monotone: so
        they are at the smallest or at infinity, and the smallest is looked for on its own.
        """
        check_rule("delta", delta, delta == 0, "delta=0, where the largest loss is known")
        if not self.is_comparable(other):
            raise no_closed_form(self, other)
        n = len(self.answers)
        transcripts = (np.array(a) for count in range(min(self.cutoff, n) + 1) for a in combinations(range(n), count))
        largest = -math.inf
        for above in transcripts:
            loss = sum(self._largest_loss(other, below, above[asked]) for below, asked in self._draws(above))
            largest = max(largest, loss)
        return largest

    def _draws(self, above: npt.NDArray[np.int64]) -> Iterator[tuple[npt.NDArray[np.int64], slice]]:
        """For each draw of Z: the answers that it was found above, and which of the values it is below."""
        last = len(self.answers) if len(above) < self.cutoff else int(above[-1])
        if not self.refresh:
            yield np.setdiff1d(np.arange(last), above), slice(None)
            return
        ends = [-1, *above.tolist()]
        for place, (start, end) in enumerate(pairwise(ends)):
            yield np.arange(start + 1, end), slice(place, place + 1)
        if len(above) < self.cutoff:
            yield np.arange(ends[-1] + 1, len(self.answers)), slice(0, 0)

    def _mass(self, below: npt.NDArray[np.int64]) -> MassBelow:
        excesses = np.asarray(self.answers)[below] - self.threshold
        return MassBelow.of(excesses, self.threshold_scale, self.query_scale)

    def _largest_loss(self, other: Self, below: npt.NDArray[np.int64], above: npt.NDArray[np.int64]) -> float:
        """Over all values for the answers `above` which share one draw of Z."""
        mine, others = self._mass(below), other._mass(below)
        at_infinity = float(mine.log_up_to(np.array(np.inf)) - others.log_up_to(np.array(np.inf)))
        if len(above) == 0:
            return at_infinity
        x, y = np.asarray(self.answers)[above] - self.threshold, np.asarray(other.answers)[above] - self.threshold

        def loss(room: Floats) -> Floats:
            own = (np.abs(np.subtract.outer(room, y)) - np.abs(np.subtract.outer(room, x))) / self.query_scale
            best = np.maximum(own, (x - y) / self.query_scale)
            values = best.sum(axis=-1) + (own - best).max(axis=-1)
            return np.asarray(values + mine.log_up_to(room) - others.log_up_to(room))

        everywhere = at_infinity + float(np.sum(x - y)) / self.query_scale
        stops = np.unique(np.concatenate([x, y, mine.edges, others.edges]))
        stops = np.append(stops, stops[-1] + _REACH * self.query_scale)
        return max(everywhere, _largest(loss, stops))


def _largest(function: Callable[[Floats], Floats], stops: Floats) -> float:
    """The largest value of a function that is smooth between these stops, and constant before the first."""
    points = np.unique(np.concatenate([np.linspace(a, b, _GRID) for a, b in pairwise(stops)]))
    values = function(points)
    best = int(np.argmax(values))
    found = float(values[best])
    if 0 < best < len(points) - 1 and points[best] not in stops:
        inside = minimize_scalar(
            lambda point: -float(function(np.array(point))),
            bounds=(points[best - 1], points[best + 1]),
            method="bounded",
        )
        found = max(found, -float(inside.fun))
    return found
