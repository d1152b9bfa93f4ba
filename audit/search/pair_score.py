"""What a pair of datasets promises: the lower bound to be expected of its best event, from a pilot."""

from __future__ import annotations

import math

from ..claims.claim import Claim
from ..distinguishers.event_choice import Choice, choose_among, expected_excess
from ..distinguishers.event_families import Effort, event_families
from ..distinguishers.low_bits import bit_families
from ..distinguishers.pilot_split import PilotSplit
from ..events.outputs import Outputs

# Standard errors taken off when events are chosen: each caution finds another kind, from common events to those with a
# few hits on one side alone. What they are worth shows on runs that they were not chosen on.
_CAUTIONS = (4.0, 2.0, 1.0)
# An excess of so many standard errors counts for nothing, a larger one the more the further it is beyond: five hits
# against one, of which some pair always has some, must not come before twenty thousand against eighteen.
_CAUTIOUS, _BOLD = 3.0, 1.0
_GRIDS = 2  # powers of two that outputs are looked at modulo
_QUICK = 25_000  # runs to learn from, up to which a look at a pair is quick


def merits(x: Outputs, y: Outputs, claim: Claim, runs: int, alpha: float, *, bits: bool = False) -> tuple[float, float]:
    """What the bound of `runs` runs can be expected to be on the best event: seen cautiously, and boldly.

    Events are chosen on one half of the pilot and judged on the other, in turn; what they give is averaged. A bound v
    with a standard error s counts as v (1 − (c s/v)²), the positive part of it: next to nothing is taken off what is
    certain.

    Parameters
    ----------
    x, y : ndarray
        Pilot outputs on either dataset, as many of both.
    claim : Claim
    runs, alpha : int, float
        Size and error probability of the audit to come.
    bits : bool
        Whether that looks at low bits as well.

    Returns
    -------
    cautious, bold : float
        With c of 3 and of 1; in the units of the claim's strength, 0 where nothing was seen.

    References
    ----------
    Efron & Morris (1973), Stein's estimation rule and its competitors (the positive part, and limited translation).
    """
    half = len(x) // 2
    halves = [(x[:half], y[:half]), (x[half : 2 * half], y[half : 2 * half])]
    found = [_judged(*halves[i], *halves[1 - i], claim, runs, alpha, bits) for i in range(2)]
    cautious, bold = (
        sum(max((_shrunk(*one, errors) for one in seen), default=0.0) for seen in found) / 2
        for errors in (_CAUTIOUS, _BOLD)
    )
    return cautious, bold


def _shrunk(value: float, error: float, errors: float) -> float:
    return value * max(1.0 - (errors * error / value) ** 2, 0.0) if value > 0 else 0.0


def _judged(
    chosen_x: Outputs, chosen_y: Outputs, x: Outputs, y: Outputs, claim: Claim, runs: int, alpha: float, bits: bool
) -> list[tuple[float, float]]:
    """The bounds to be expected of a few events chosen on the first outputs, with their standard errors."""
    split = PilotSplit.in_half(chosen_x, chosen_y)
    effort: Effort = "quick" if len(split.learn_x) < _QUICK else "sums"
    families = [*event_families(split, effort=effort), *(bit_families(split, grids=_GRIDS) if bits else ())]
    chosen = [choose_among(families, claim, runs, alpha, caution=caution) for caution in _CAUTIONS]
    events = dict.fromkeys((choice.event, choice.likelier_on) for choice in chosen if choice is not None)
    judged = []
    for event, likelier_on in events:
        counted = Choice(event, likelier_on, event.count(x), event.count(y), len(x))
        value, less = (
            claim.strength + expected_excess(counted, claim, runs, alpha, caution=caution) for caution in (0.0, 1.0)
        )
        if value > 0:
            judged.append((value, value - less if less > -math.inf else value))
    return judged
