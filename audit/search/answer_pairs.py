"""Pairs of query answers: a base, and a move that is as far as neighbours may be apart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from ..datasets.domains import Answers, Floats
from ..errors import AdjacencyError
from .candidates import Candidate, PairSource, varied

_N_PLACES: Final = 6


@dataclass(frozen=True, slots=True)
class AnswerPairs(PairSource):
    """Vectors at a distance of `reach` in a norm; one in which all answers may move (`linf`), or few.

    The patterns are signs, which say what rises and what falls from x to y, and a place for the base: alike for all
    answers, or apart for those that rise and those that fall.

    References
    ----------
    Ding, Wang, Wang, Zhang & Kifer (2018), Detecting violations of differential privacy, Section 5.2: one above, one
    below, half, all, and the cross.
    """

    domain: Answers
    norm: Literal["l1", "l2", "linf"]
    reach: float

    def __post_init__(self) -> None:
        if not self._step(np.eye(1, self._n)[0]).any():
            raise AdjacencyError(
                f"neighbours at a distance of {self.reach:g} in {self.norm} are not two whole numbers; use a radius "
                "of at least 1, or integer=False.",
                radius=self.reach,
            )

    @property
    def _n(self) -> int:
        return 1 if self.domain.n_answers is None else self.domain.n_answers

    def patterns(self) -> Iterator[Candidate]:
        signs = list(self._signs().items())
        # Each sign with each place, so that the first few have all signs and all places among them.
        for turn in range(_N_PLACES):
            for number, (name, sign) in enumerate(signs):
                places = list(self._places(sign).items())
                place, levels = places[(number + turn) % _N_PLACES % len(places)]
                yield self._candidate(f"{name}, {place}", levels, sign)

    def _places(self, sign: Floats) -> dict[str, Floats]:
        """Where the base can be, for answers that move with these signs."""
        middle, low, high = self._levels()
        places = {
            "at the middle": np.full(self._n, middle),
            "at the bottom": np.full(self._n, low),
            "at the top": np.full(self._n, high),
        }
        if self._n > 1:
            # Both ends alike around the middle: where x is high, y is low.
            places["cross"] = np.full(self._n, middle) - self._step(sign) / 2
        if len(np.unique(sign)) > 1:
            places["those that rise far below"] = np.where(sign > 0, low, high)
            places["those that rise far above"] = np.where(sign > 0, high, low)
        return places

    def _signs(self) -> dict[str, Floats]:
        if self._n == 1:
            return {"up": np.ones(1), "down": -np.ones(1)}
        one, every = np.eye(1, self._n)[0], np.ones(self._n)
        half = np.where(np.arange(self._n) < self._n // 2, -1.0, 1.0)
        return {
            "one above": one,
            "one below": -one,
            "half up, half down": -half,
            "half down, half up": half,
            "all up": every,
            "all down": -every,
            "one up and the rest down": 2 * one - every,
            "one down and the rest up": every - 2 * one,
            "the last one above": one[::-1],
            "the last one below": -one[::-1],
            "half up": (1 - half) / 2,
        }

    def _levels(self) -> tuple[float, float, float]:
        low, high = float(self.domain.low), float(self.domain.high)
        middle = math.floor((low + high) / 2) if self.domain.integer else (low + high) / 2
        return middle, low, high

    def random(self, rng: np.random.Generator) -> Iterator[Candidate]:
        while True:
            yield self._random(rng)

    def _random(self, rng: np.random.Generator) -> Candidate:
        low, high = self.domain.low, self.domain.high
        levels = np.where(
            rng.random(self._n) < 0.5, rng.choice(self._levels(), self._n), rng.uniform(low, high, self._n)
        )
        if rng.random() < 0.5:
            levels[:] = levels[0]
        sign = rng.choice([-1.0, 1.0], self._n) * (rng.random(self._n) < rng.choice([0.3, 1.0]))
        if not sign.any():
            sign[rng.integers(self._n)] = 1.0
        weights = rng.exponential(size=self._n) if rng.random() < 0.25 else np.ones(self._n)
        return self._candidate("random", levels, sign * weights)

    def moves(self, candidate: Candidate, rng: np.random.Generator) -> Iterator[Candidate]:
        base, step = candidate.parts
        while True:
            how, new_base, new_direction = self._move(base, step, rng)
            yield self._candidate(varied(candidate, how), new_base, new_direction)

    def _move(self, base: Floats, step: Floats, rng: np.random.Generator) -> tuple[str, Floats, Floats]:
        """How the pair is changed, with the new base and the direction of the new step."""
        base, step, j = base.copy(), step.copy(), int(rng.integers(self._n))
        size = float(np.abs(step).max())
        rising, falling = step > 0, step < 0
        middle = base + step / 2
        choice = rng.choice(["level", "far", "scale", "shift", "place", "flip", "drop", "cross", "turn"])
        match choice:
            case "flip" if step[j] and self._n > 1:
                step[j] *= -1
                return f"answer {j} moves the other way", base, step
            case "drop" if self._n > 1 and (not step[j] or np.count_nonzero(step) > 1):
                step[j] = 0.0 if step[j] else rng.choice([-size, size])
                return f"answer {j} {'moves too' if step[j] else 'stays'}", base, step
            case "place" if self._n > 1:
                base[j] = rng.choice(self._levels())
                return f"answer {j} at another place", base, step
            case "level" if rising.any() and falling.any():
                group = rising if rng.random() < 0.5 else falling
                base[group] += rng.choice([-1.0, -0.5, 0.5, 1.0]) * size
                return f"those that {'rise' if group is rising else 'fall'} at another level", base, step
            case "far" if rising.any() and falling.any():
                low, high = rng.uniform(self.domain.low, self.domain.high, 2)
                return "another gap between those that rise and fall", np.where(rising, low, high), step
            case "scale" if np.ptp(base) > 0:
                factor = rng.choice([0.25, 0.5, 0.75, 1.5])
                return f"differences of the base times {factor:g}", base.mean() + factor * (base - base.mean()), step
            case "cross":
                return "cross", np.full(self._n, middle.mean()) - step / 2, step
            case "turn" if self._n > 1:
                return "in the reverse order", base[::-1], step[::-1]
        by = rng.choice([-1.0, -0.5, 0.5, 1.0]) * (size if rng.random() < 0.5 else self.domain.width / 4)
        return f"all {'lower' if by < 0 else 'higher'}", base + by, step

    def _candidate(self, label: str, levels: Floats, direction: Floats) -> Candidate:
        return self._build(label, levels, self._step(direction))

    def _build(self, label: str, levels: Floats, step: Floats) -> Candidate:
        """The pair from as near to these levels as both ends stay in the range."""
        low, high = self.domain.low, self.domain.high
        base = np.clip(levels, low + np.maximum(-step, 0.0), high - np.maximum(step, 0.0))
        if self.domain.integer:
            base = np.rint(base)
        ends = base, np.clip(base + step, low, high)
        x, y = (self.domain.build(end) for end in ends)
        return Candidate(label, x, y, (base, step), frozenset(end.tobytes() for end in ends))

    def _step(self, direction: Floats) -> Floats:
        """The step in this direction that is as long as neighbours may be apart, and no longer than the range."""
        order = {"l1": 1.0, "l2": 2.0, "linf": math.inf}[self.norm]
        step: Floats = direction * (self.reach / float(np.linalg.norm(direction, ord=order)))
        if self.domain.integer:
            whole: Floats = np.trunc(step + 1e-9 * np.sign(step))
            if not whole.any():  # as many answers by one as the norm allows
                most = 0.0 if self.norm == "linf" else self.reach**order
                moved = np.flatnonzero(direction)[: math.floor(min(most + 1e-9, self._n))]
                whole[moved] = np.sign(direction[moved])
            step = whole
        return np.clip(step, -self.domain.width, self.domain.width)
