"""How long a pilot is: the split of an audit's runs into pilot and main runs, apart, as plans of power need it too."""

from __future__ import annotations

# One run in twenty chooses the event, which costs 2.6% of the gap between bound and truth. A quarter does where the
# output has several columns, whose scores have to be learned, and where a twentieth promises no bound.
_SHARE, _GROWN_SHARE = 20, 4
_LEAST, _MOST = 2_000, 250_000
_FEW_HITS = 50  # of an event on one dataset in the pilot, with which it hardly promises a bound


def with_pilot(main: int, q: float = 0.5) -> int:
    """Return the fewest runs of an audit with `main` main runs, if the event has probability `q` or more."""
    sizes = [2 * main, main + _LEAST, main + _MOST]
    sizes += [-(-main * share // (share - 1)) for share in (_SHARE, _GROWN_SHARE)]
    return min(runs for runs in sizes if main_runs(runs, q) >= main)


def pilot_runs(runs: int) -> int:
    """Return the number of an audit's runs that choose the event of one number, if it is not rare."""
    return min(max(runs // _SHARE, _LEAST), _MOST, runs // 2)


def grown_pilot_runs(runs: int) -> int:
    """Return the number of an audit's runs that choose the event of several columns, or a rare one."""
    return max(pilot_runs(runs), min(runs // _GROWN_SHARE, _MOST))


def main_runs(runs: int, q: float) -> int:
    """Return the number of an audit's main runs if the best event has probability `q` where it is rarer."""
    size = pilot_runs(runs)
    return runs - (grown_pilot_runs(runs) if q * size < _FEW_HITS else size)
