"""Split the runs of an audit into pilot and main runs."""

from __future__ import annotations

# If the event has few hits on one dataset, it is as rare as the pilot can detect. A third of the runs then look for a
# rarer event, or for a difference if the pilot saw none.
FEW_HITS, DEEP_SHARE, DEEP_MOST = 50, 3, 2_000_000
# If the standard error of the log likelihood ratio is more than an eighth of it, an eighth of the runs looks again.
LARGEST_ERROR, LONG_SHARE = 0.125, 8
# If it is more than a twentieth of it, a fortieth of the runs looks again, if that is much longer than the pilot.
ROUGH_ERROR, ROUGH_SHARE = 0.05, 40
_SHARE = 20  # one run in twenty chooses the event, which costs 2.6% of the gap
_LEAST, _MOST = 2_000, 250_000


def with_pilot(main: int, q: float = 0.5) -> int:
    """Return the fewest runs of an audit with `main` main runs, if the event has probability `q` or more.

    Examples
    --------
    >>> with_pilot(950_000), with_pilot(100), with_pilot(100_000_000), with_pilot(20_000, q=0.01)
    (1000000, 200, 100250000, 30000)
    """
    usual = (2 * main, main + _LEAST, -(-main * _SHARE // (_SHARE - 1)), main + _MOST)
    deep = (-(-main * DEEP_SHARE // (DEEP_SHARE - 1)), main + DEEP_MOST)
    return min(runs for runs in (*usual, *deep) if main_runs(runs, q) >= main)


def pilot_runs(runs: int) -> int:
    """Return the number of an audit's runs that choose the event, unless the event is rare."""
    return min(max(runs // _SHARE, _LEAST), _MOST, runs // 2)


def main_runs(runs: int, q: float) -> int:
    """Return the number of an audit's main runs if the best event has probability `q` where it is rarer."""
    size = pilot_runs(runs)
    if q * (size // 2) < FEW_HITS:
        size = max(size, min(runs // DEEP_SHARE, DEEP_MOST))
    return runs - size
