"""Pairs of query answers: a base, and a step as long as neighbours may be apart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

import numpy as np

from ..datasets.domains import Answers, Floats
from ..errors import AdjacencyError
from .candidates import Candidate, Line, PairSource, varied

_N_PLACES: Final = 6


@dataclass(frozen=True, slots=True)
class AnswerPairs(PairSource):
    """Vectors at distance `reach` in a norm.

    A pattern consists of signs, which say which answers rise and which fall from x to y, and of a position of the base:
    the same for all answers, or different for rising and falling answers.

    References
    ----------
    Ding, Wang, Wang, Zhang & Kifer (2018), Detecting violations of differential privacy, Section 5.2: the patterns in
    which one answer, half of the answers or all answers move, and the symmetric pattern.
    """

    domain: Answers
    norm: Literal["l1", "l2", "linf"]
    reach: float

    def __post_init__(self) -> None:
        if not self._step(np.eye(1, self._n)[0]).any():
            raise AdjacencyError(
                f"neighbours at distance {self.reach:g} in {self.norm} cannot be two different integers; use a radius "
                "of at least 1, or integer=False.",
                radius=self.reach,
            )

    @property
    def _n(self) -> int:
        return 1 if self.domain.n_answers is None else self.domain.n_answers

    def patterns(self) -> Iterator[Candidate]:
        for number in getattr(self.domain, "numbers", ()):  # special ones, which a search adds
            odd = np.full(self._n, number)
            usual = {f"answers of {end:g}": np.full(self._n, float(end)) for end in (self.domain.low, self.domain.high)}
            if math.isfinite(number):  # negative zero, which has neighbours within any distance
                usual["a step from it"] = np.clip(
                    odd + self._step(np.eye(1, self._n)[0]), self.domain.low, self.domain.high
                )
            for words, end in usual.items():
                x, y = (self.domain.build(each) for each in (odd, end))
                yield Candidate(f"{number}, and {words}", x, y, None, (odd.tobytes(), end.tobytes()), "special numbers")
        # Every sign with every position, ordered so that the first few patterns cover all signs and all positions.
        for turn in range(_N_PLACES):
            for number, (name, sign) in enumerate(self._signs().items()):
                places = list(self._places(sign).items())
                place, levels = places[(number + turn) % _N_PLACES % len(places)]
                yield self._candidate(f"{name}, {place}", levels, sign)

    def _places(self, sign: Floats) -> dict[str, Floats]:
        """Return the positions of the base for answers that move with these signs."""
        middle, low, high = self._levels()
        places = {
            "base at the middle": np.full(self._n, middle),
            "base at the bottom": np.full(self._n, low),
            "base at the top": np.full(self._n, high),
        }
        if self._n == 1 and not self.domain.integer:  # its last bits show where noise has fewer
            places["base a third of a step above the bottom"] = low + np.abs(self._step(sign)) / 3.0
        if self._n > 1:
            places["x and y symmetric about the middle"] = np.full(self._n, middle) - self._step(sign) / 2
        if len(np.unique(sign)) > 1:
            places["rising answers at the bottom, the others at the top"] = np.where(sign > 0, low, high)
            places["rising answers at the top, the others at the bottom"] = np.where(sign > 0, high, low)
        return places

    def _signs(self) -> dict[str, Floats]:
        if self._n == 1:
            return {"the answer rises": np.ones(1), "the answer falls": -np.ones(1)}
        one, every = np.eye(1, self._n)[0], np.ones(self._n)
        half = np.where(np.arange(self._n) < self._n // 2, -1.0, 1.0)
        return {
            "the first answer rises": one,
            "the first answer falls": -one,
            "the first half rises, the second falls": -half,
            "the first half falls, the second rises": half,
            "all answers rise": every,
            "all answers fall": -every,
            "the first answer rises, the others fall": 2 * one - every,
            "the first answer falls, the others rise": every - 2 * one,
            "the last answer rises": one[::-1],
            "the last answer falls": -one[::-1],
            "the first half rises": (1 - half) / 2,
            **self._staircases(),
        }

    def _staircases(self) -> dict[str, Floats]:
        """Signs that up to a quarter of the answers, the first or the last ones, do not share with all others."""
        found = {}
        for few in range(1, self._n // 4 + 1):
            step = np.where(np.arange(self._n) < self._n - few, 1.0, -1.0)
            last = f"the last {few}" if few > 1 else "the last answer"
            found[f"all answers rise but {last}"] = step
            found[f"all answers fall but {last}"] = -step
            if few > 1:  # one answer against the others is among the signs already
                found[f"all answers rise but the first {few}"] = step[::-1]
                found[f"all answers fall but the first {few}"] = -step[::-1]
        return found

    def lines(self) -> Iterator[Line]:
        signs = self._signs()
        for name in ("the answer rises",) if self._n == 1 else ("the first answer rises", "all answers rise"):
            yield Line(self.domain.low, self.domain.high, partial(self._at_level, name, signs[name]))

    def lines_near(self, candidate: Candidate) -> Iterator[Line]:
        if candidate.parts is None:  # a special number, which has no neighbours to vary
            return
        base, step = candidate.parts
        for place in range(self._n):
            yield Line(self.domain.low, self.domain.high, partial(self._with_level, candidate, base, step, place))

    def _with_level(self, candidate: Candidate, base: Floats, step: Floats, place: int, level: float) -> Candidate:
        levels = base.copy()
        levels[place] = level
        return self._candidate(varied(candidate, f"answer {place} at another level"), levels, step)

    def _at_level(self, name: str, sign: Floats, level: float) -> Candidate:
        return self._candidate(f"{name}, base at {level:g}", np.full(self._n, level), sign)

    def _levels(self) -> tuple[float, float, float]:
        low, high = float(self.domain.low), float(self.domain.high)
        middle = math.floor((low + high) / 2) if self.domain.integer else (low + high) / 2
        return middle, low, high

    def random(self, rng: np.random.Generator) -> Iterator[Candidate]:
        low, high = self.domain.low, self.domain.high
        while True:
            levels = np.where(
                rng.random(self._n) < 0.5, rng.choice(self._levels(), self._n), rng.uniform(low, high, self._n)
            )
            if rng.random() < 0.5:
                levels[:] = levels[0]
            sign = rng.choice([-1.0, 1.0], self._n) * (rng.random(self._n) < rng.choice([0.3, 1.0]))
            if not sign.any():
                sign[rng.integers(self._n)] = 1.0
            weights = rng.exponential(size=self._n) if rng.random() < 0.25 else np.ones(self._n)
            yield self._candidate("random pair", levels, sign * weights)

    def moves(self, candidate: Candidate, rng: np.random.Generator) -> Iterator[Candidate]:
        if candidate.parts is None:
            return
        base, step = candidate.parts
        while True:
            how, new_base, new_direction = self._move(base, step, rng)
            yield self._candidate(varied(candidate, how), new_base, new_direction)

    def simpler(self, candidate: Candidate) -> Iterator[Candidate]:
        if candidate.parts is None:
            return
        base, step = candidate.parts
        low, rests = self.domain.low, step == 0.0
        changes = {
            "at the lowest level": np.full(self._n, low),
            "all at one level": np.full(self._n, np.median(base)),
            "answers that rest at the lowest level": np.where(rests, low, base),
            "at whole numbers": np.rint(base),
            "at tenths": np.round(base, 1),
        }
        for how, levels in changes.items():
            if np.any(levels != base):
                yield self._candidate(f"{candidate.label} (simpler: {how})", levels, step)

    def _move(self, base: Floats, step: Floats, rng: np.random.Generator) -> tuple[str, Floats, Floats]:
        """Return a description of the change, the new base, and the direction of the new step."""
        base, step, j = base.copy(), step.copy(), int(rng.integers(self._n))
        size = float(np.abs(step).max())
        rising, falling = step > 0, step < 0
        middle = base + step / 2
        choice = rng.choice(["level", "far", "scale", "shift", "place", "flip", "drop", "cross", "turn"])
        match choice:
            case "flip" if step[j] and self._n > 1:
                step[j] *= -1
                return f"answer {j} moves in the opposite direction", base, step
            case "drop" if self._n > 1 and (not step[j] or np.count_nonzero(step) > 1):
                step[j] = 0.0 if step[j] else rng.choice([-size, size])
                return f"answer {j} {'moves' if step[j] else 'does not move'}", base, step
            case "place" if self._n > 1:
                base[j] = rng.choice(self._levels())
                return f"answer {j} at another level", base, step
            case "level" if rising.any() and falling.any():
                group = rising if rng.random() < 0.5 else falling
                base[group] += rng.choice([-1.0, -0.5, 0.5, 1.0]) * size
                return f"{'rising' if group is rising else 'falling'} answers at another level", base, step
            case "far" if rising.any() and falling.any():
                low, high = rng.uniform(self.domain.low, self.domain.high, 2)
                return "another gap between rising and falling answers", np.where(rising, low, high), step
            case "scale" if np.ptp(base) > 0:
                factor = rng.choice([0.25, 0.5, 0.75, 1.5])
                return f"differences of the base times {factor:g}", base.mean() + factor * (base - base.mean()), step
            case "cross":
                return "x and y symmetric", np.full(self._n, middle.mean()) - step / 2, step
            case "turn" if self._n > 1:
                return "answers in reverse order", base[::-1], step[::-1]
        by = rng.choice([-1.0, -0.5, 0.5, 1.0]) * (size if rng.random() < 0.5 else self.domain.width / 4)
        return f"all answers {'lower' if by < 0 else 'higher'}", base + by, step

    def _candidate(self, label: str, levels: Floats, direction: Floats) -> Candidate:
        """Return the pair with a base as close to these levels as the range allows."""
        step, low, high = self._step(direction), self.domain.low, self.domain.high
        base = np.clip(levels, low + np.maximum(-step, 0.0), high - np.maximum(step, 0.0))
        if self.domain.integer:
            base = np.rint(base)
        ends = base, np.clip(base + step, low, high)
        x, y = (self.domain.build(end) for end in ends)
        moved = frozenset([int(np.count_nonzero(step > 0)), int(np.count_nonzero(step < 0))])
        size = float(np.abs(ends).sum())
        return Candidate(label, x, y, (base, step), (ends[0].tobytes(), ends[1].tobytes()), moved, size)

    def _step(self, direction: Floats) -> Floats:
        """Return the step in this direction, as long as neighbours may be apart and at most as long as the range."""
        order = {"l1": 1.0, "l2": 2.0, "linf": math.inf}[self.norm]
        step: Floats = direction * (self.reach / float(np.linalg.norm(direction, ord=order)))
        if self.domain.integer:
            whole: Floats = np.trunc(step + 1e-9 * np.sign(step))
            if not whole.any():  # move as many answers by 1 as the norm allows
                most = 0.0 if self.norm == "linf" else self.reach**order
                moved = np.flatnonzero(direction)[: math.floor(min(most + 1e-9, self._n))]
                whole[moved] = np.sign(direction[moved])
            step = whole
        return np.clip(step, -self.domain.width, self.domain.width)
