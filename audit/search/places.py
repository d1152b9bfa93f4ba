"""The numbers of a line of pairs: which to visit, and where something is largest.

Values next to the ends of a range, powers of two and quantiles come first, because they are often mishandled. Then the
golden section fills the range evenly, in turns with round numbers, and bisection refines the neighbourhood of what is
largest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from typing import Final

from .candidates import Candidate, Line

MOST: Final = 1_152
"""Most numbers of a line of a domain that are visited before bisection."""
_POWERS, _QUANTILES, _ROUND = 8, 10, 128
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


@dataclass(slots=True)
class Places:
    """The numbers of a line that have been visited, with the height of the pair at each.

    Attributes
    ----------
    measure : callable
        Returns the height of a pair, or None of a pair that is not possible or cannot be measured.
    """

    line: Line
    measure: Callable[[Candidate], float | None]
    heights: dict[float, float] = field(default_factory=dict)
    pairs: dict[float, Candidate] = field(default_factory=dict)
    _keys: set[Hashable] = field(default_factory=set)

    def visit(self, number: float) -> None:
        """Measure the pair at this number, unless it equals a pair before."""
        candidate = self.line.at(number)
        if candidate.key in self._keys:
            return
        self._keys.add(candidate.key)
        height = self.measure(candidate)
        if height is not None:
            self.heights[number], self.pairs[number] = height, candidate

    def visit_around(self, number: float) -> None:
        """Visit the middle between a number and the next one on each side."""
        numbers = sorted(self.heights)
        place = numbers.index(number)
        for other in numbers[max(place - 1, 0) : place] + numbers[place + 1 : place + 2]:
            self.visit((number + other) / 2.0)

    def peaks(self) -> list[float]:
        """Return the numbers at which the height is larger than at the next ones on each side, the largest first."""
        numbers = sorted(self.heights)
        heights = [-math.inf, *(self.heights[number] for number in numbers), -math.inf]
        peaks = [
            (-height, number)
            for before, height, after, number in zip(heights, heights[1:], heights[2:], numbers, strict=False)
            if before < height >= after
        ]
        return [number for _, number in sorted(peaks)]


def _round_numbers(low: float, high: float) -> Iterator[float]:
    """Yield the multiples of a power of ten in a range, from a dozen to 128 of them: where code has its thresholds."""
    if not 0.0 < high - low < math.inf:
        return
    digits = -math.ceil(math.log10(high - low) - math.log10(_ROUND))
    ends = (Fraction(end) * Fraction(10) ** digits for end in (low, high))
    first, last = next(ends), next(ends)
    yield from (float(number / Fraction(10) ** digits) for number in range(math.ceil(first), math.floor(last) + 1))


def numbers_between(low: float, high: float) -> Iterator[float]:
    """Yield the ends of a range, numbers next to them, powers of two, quantiles, and then numbers everywhere."""
    width = high - low
    yield from (low, high, math.nextafter(low, math.inf), math.nextafter(high, -math.inf))
    yield from (0.0,) if low < 0.0 < high else ()
    yield from (end for share in (1e-6, 1e-3) for end in (low + share * width, high - share * width))
    largest = math.frexp(max(abs(low), abs(high)))[1]
    powers = [sign * math.ldexp(1.0, largest - k) for k in range(1, _POWERS + 1) for sign in (1, -1)]
    yield from (power for power in powers if low < power < high)
    yield from (low + part / _QUANTILES * width for part in range(1, _QUANTILES))
    evenly = (low + (number * _GOLDEN % 1.0) * width for number in count(1))
    yield from (number for pair in zip(evenly, _round_numbers(low, high), strict=False) for number in pair)
    yield from evenly
