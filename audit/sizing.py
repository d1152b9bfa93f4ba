"""How many runs an audit needs to find a given excess, from the event that a first pilot chooses.

Proof: docs/proofs/choices.md
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .batches import late_batches
from .claims import Claim
from .errors import OptionError
from .inference.planning import power_of_test, runs_needed
from .inference.sequential import found_share
from .options import LEAST_RUNS
from .pilot import pilot_runs, run_pilot, with_pilot
from .sampling import MemoryPart, Plan

_FIRST, _MOST = 2_000, 10**9
_GROWTH = 1.1
_MARGIN = 0.96  # planned for a little less than asked, as the event's frequency is only known in the end
_ERRORS = (-2.0, 2.0)  # standard errors of that frequency for which the runs have to do as well


def runs_for(
    plan: Plan,
    claim: Claim,
    resolution: float,
    power: float,
    alpha: float,
    *,
    sequential: bool,
    bits: bool = False,
) -> int:
    """Runs on each dataset with which an excess of `resolution` is found with probability `power`.

    An event is chosen on a small pilot, and then on the pilot that an audit of the size found would have: what that
    one needs is what counts. The outputs drawn here have a seed of their own and are not used again.

    Raises
    ------
    OptionError
        If 10⁹ runs would not do.
    """
    plan = replace(
        plan,
        seed=int(np.random.SeedSequence(plan.seed, spawn_key=(2,)).generate_state(1, np.uint64)[0]),
        memory=None if plan.memory is None else MemoryPart(plan.memory, "sizing"),
    )
    needed, excess, q, error, share = _FIRST, _MARGIN * resolution, 0.5, 0.0, 0.0
    for _ in range(2):
        pilot = run_pilot(plan, claim, needed, alpha, bits=bits)
        choice, share = pilot.choice, pilot.runs / needed
        if choice.pilot_hits_x == choice.pilot_hits_y == 0:  # outputs that never vary: nothing to plan for
            return _FIRST
        hits = choice.pilot_hits_y if choice.likelier_on == "x" else choice.pilot_hits_x
        q = (hits + 0.5) / (choice.pilot_runs + 1.0)
        error = math.sqrt(q * (1 - q) / choice.pilot_runs)
        main = runs_needed(claim, q, resolution=excess, power=power, alpha=alpha)
        needed = max(with_pilot(main), LEAST_RUNS)
        if pilot.runs > pilot_runs(needed):  # a rare event, which takes a longer pilot
            needed = max(needed, math.ceil(main / (1.0 - share)))
        _check_size(needed, resolution)
    rates = [q, *(rate for rate in (q + z * error for z in _ERRORS) if 0.0 < rate < 1.0)]
    deep = share if share > pilot_runs(needed) / needed else 0.0
    while not all(_power(claim, needed, deep, rate, excess, alpha, sequential) >= power for rate in rates):
        needed = math.ceil(needed * _GROWTH)
        _check_size(needed, resolution)
    return needed


def _power(claim: Claim, runs: int, deep: float, rate: float, excess: float, alpha: float, sequential: bool) -> float:
    if sequential:
        return found_share(claim, excess, late_batches(runs), rate, alpha=alpha)
    main = runs - max(pilot_runs(runs), math.ceil(deep * runs))
    return power_of_test(claim, main, main, rate, excess, alpha=alpha)


def _check_size(runs: int, resolution: float) -> None:
    if runs > _MOST:
        raise OptionError(
            f"resolution={resolution:g} takes more than {_MOST:,} runs; use a coarser one, or say how many with runs=.",
            resolution=resolution,
        )
