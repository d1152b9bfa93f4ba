"""The rounds of a search: how many pairs it begins with, and how long their pilots are."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .trial import LEAST_SCORED

MANY = 32
"""Pairs with which a search begins, if it has a hundred executions for each and the domain has as many."""
_EACH = 100
# With more executions it begins with as many pairs as have pilots of a thousand runs, or of 200 over the square of a
# claim's small strength: so many tell pairs apart.
_ENOUGH, _UNITS, _MOST_FOR_STRENGTH = 1_000, 200, 20_000
_SCREENED = 25  # runs of the first pilots, as far as half of the executions allow
_MOST_FIRST, _MOST_PILOT = 200_000, 500_000  # of few pairs; a pilot of an audit has at most 250,000
_GROWTH = 1.25  # least growth of pilots that variations, which start with none, may leave


def initial_pairs(available: int, budget: int, strength: float = 1.0) -> int:
    """Return the number of pairs, out of those available, with which a search of `budget` executions begins.

    Examples
    --------
    >>> [initial_pairs(60, budget) for budget in (400, 3_000, 60_000, 1_000_000)], initial_pairs(60, 1_000_000, 0.1)
    ([4, 30, 32, 60], 32)
    """
    enough = min(max(_ENOUGH, _UNITS / min(max(strength, 1e-9), 1e9) ** 2), _MOST_FOR_STRENGTH)
    enough = min(enough, max(math.isqrt(budget), budget / _rounds_of(MANY)))
    count = min(available, max(min(MANY, budget // _EACH), 2))
    while count < available and budget >= enough * _rounds_of(count + 1):
        count += 1
    return count


def _rounds_of(count: int) -> float:
    """Return the executions of a search, in units of the first pilots, if no two pairs have a dataset in common."""
    return 2.0 * count * max(math.log2(count), 1.0)


def first_pilot(budget: int, pairs: int, datasets: int) -> int:
    """Return the runs of the first pilots on each dataset."""
    if pairs == 1:
        return min(max(budget // 2, 1), _MOST_FIRST)
    wanted = budget / (datasets * rounds_left(pairs, LEAST_SCORED) + (pairs == 2))
    return min(max(int(wanted), min(_SCREENED, budget // (2 * datasets)), 1), _MOST_FIRST)


def is_scored(pairs: int, pilot: int) -> bool:
    """Whether pilots are long enough to score pairs; the last two are scored in any case."""
    return pilot >= LEAST_SCORED or pairs <= 2


def survivors(pairs: int, pilot: int) -> int:
    """Return how many pairs survive a round: a half, or a quarter of those that are not scored."""
    return -(-pairs // 2) if is_scored(pairs, pilot) else max(-(-pairs // 4), 2)


def rounds_left(pairs: int, pilot: int) -> int:
    """Return the number of rounds until a single pair is left, if pilots double."""
    rounds = 0
    while pairs > 1:
        pairs, pilot, rounds = survivors(pairs, pilot), 2 * pilot, rounds + 1
    return rounds


def next_pilot(left: float, pairs: int, pilot: int, drawn: Sequence[int]) -> int:
    """Return the runs of the next pilots on each dataset; less than `_GROWTH` times the last if too little is left.

    Every round spends an equal share of the executions that are left. The last one leaves enough for half as many
    independent runs on the pair that is chosen.

    Parameters
    ----------
    left : float
        Executions left.
    pairs, pilot : int
        Pairs of this round without variations, and runs of the last pilots.
    drawn : sequence of int
        The runs that each dataset of this round has had.
    """
    rounds = rounds_left(pairs, pilot)
    wanted = (left / rounds + sum(drawn)) / (len(drawn) + (rounds == 1))
    return min(int(wanted), _MOST_PILOT)


def grows(pilot: int, last: int) -> bool:
    """Whether pilots grow enough for another comparison, so that variations may join."""
    return pilot >= min(_GROWTH * last, _MOST_PILOT)


def variations(pairs: int) -> int:
    """Return how many variations of the best pairs join a round: none before few pairs are left, the best to vary."""
    return 0 if pairs > 16 else 4 if pairs > 2 else 2
