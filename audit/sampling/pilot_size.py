"""How many of the runs are a pilot."""

from __future__ import annotations

_SHARE = 20  # one run in twenty chooses the event, which costs 2.6% of the gap
_LEAST, _MOST = 2_000, 250_000


def with_pilot(main: int, q: float = 0.5) -> int:
    """The fewest runs of an audit that leaves `main` of them to count, where the event has probability `q` or more.

    Examples
    --------
    >>> with_pilot(950_000), with_pilot(100), with_pilot(100_000_000), with_pilot(20_000, q=0.01)
    (1000000, 200, 100250000, 30000)
    """
    usual = (2 * main, main + _LEAST, -(-main * _SHARE // (_SHARE - 1)), main + _MOST)
    deep = (-(-main * DEEP_SHARE // (DEEP_SHARE - 1)), main + DEEP_MOST)
    return min(runs for runs in (*usual, *deep) if main_runs(runs, q) >= main)


def pilot_runs(runs: int) -> int:
    """How many of an audit's runs choose the event, unless it is rare."""
    return min(max(runs // _SHARE, _LEAST), _MOST, runs // 2)


def main_runs(runs: int, q: float) -> int:
    """How many of an audit's runs are counted where the best event has probability `q` on the rarer side."""
    size = pilot_runs(runs)
    if q * (size // 2) < FEW_HITS:
        size = max(size, min(runs // DEEP_SHARE, DEEP_MOST))
    return runs - size


# An event with few hits on one side is as rare as the pilot can see; a third of the runs then look for a rarer one, or
# for a difference where none was seen.
FEW_HITS, DEEP_SHARE, DEEP_MOST = 50, 3, 2_000_000
