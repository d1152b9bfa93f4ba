"""How many runs an audit needs to find a given excess, from the event that a first pilot chooses."""

from __future__ import annotations

from .claims import Claim
from .errors import OptionError
from .inference.planning import runs_needed
from .inference.sequential import found_share
from .options import LEAST_RUNS
from .pilot import run_pilot, with_pilot
from .sampling import Plan
from .sequential import late_batches

_FIRST, _MOST = 40_000, 10**12
_GROWTH = 1.15
_MARGIN = 0.96  # planned for a little less than asked, as the event's frequency is only known by then


def runs_for(plan: Plan, claim: Claim, resolution: float, power: float, alpha: float, *, sequential: bool) -> int:
    """Runs on each dataset with which an excess of `resolution` is found with probability `power`.

    An event is chosen on a small pilot, and then on the pilot that an audit of the size found would have: what it
    needs is what counts. The outputs drawn here are drawn again by the audit, so they are never counted in its test.

    Raises
    ------
    OptionError
        If 10¹² runs would not do.
    """
    needed = _FIRST
    for _ in range(2):
        q = _rate(plan, claim, needed, alpha)
        main = runs_needed(claim, q, resolution=_MARGIN * resolution, power=power, alpha=alpha)
        needed = max(with_pilot(main), LEAST_RUNS)
    if not sequential:
        return needed
    while found_share(claim, _MARGIN * resolution, late_batches(needed), q, alpha=alpha) < power:
        needed = int(needed * _GROWTH)
        if needed > _MOST:
            raise OptionError(
                f"resolution={resolution:g} takes more than {_MOST:,} runs; ask for a coarser one.",
                resolution=resolution,
            )
    return needed


def _rate(plan: Plan, claim: Claim, runs: int, alpha: float) -> float:
    """Probability on the less likely side of the event that a pilot for so many runs chooses."""
    choice = run_pilot(plan, claim, runs, alpha).choice
    hits = choice.pilot_hits_y if choice.likelier_on == "x" else choice.pilot_hits_x
    return (hits + 0.5) / (choice.pilot_runs + 1.0)
