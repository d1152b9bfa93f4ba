"""Score a pair of datasets: the expected lower bound of its best event, from a pilot."""

from __future__ import annotations

import math

from ..claims.claim import Claim
from ..distinguishers.choice import Choice
from ..distinguishers.event_choice import choose_among, expected_excess
from ..events.outputs import Outputs
from ..families.event_families import Effort, event_families
from ..families.low_bits import bit_families
from ..families.pilot_split import PilotSplit

# Standard errors subtracted when events are chosen. Each value finds another kind of event, from common events to rare
# events with a few hits on one dataset. Runs that did not serve for the choice judge them.
_CAUTIONS = (4.0, 2.0, 1.0)
# An excess of at most this many standard errors counts as 0, a larger excess is shrunk less the larger it is. Five hits
# against one, which some pair always has by chance, must not rank before twenty thousand hits against eighteen.
_CAUTIOUS, _BOLD = 3.0, 1.0
_GRIDS = 2  # powers of two for outputs modulo a grid
_QUICK = 25_000  # training runs up to which the quick event families are used


def merits(x: Outputs, y: Outputs, claim: Claim, runs: int, alpha: float, *, bits: bool = False) -> tuple[float, float]:
    """Return a cautious and a bold estimate of the bound that `runs` runs give on the best event.

    Events are chosen on one half of the pilot and judged on the other, both ways; the results are averaged. A bound v
    with standard error s counts as the positive part of v (1 − (c s/v)²), so that certain bounds shrink least.

    Parameters
    ----------
    x, y : ndarray
        Pilot outputs on each dataset, equally many.
    claim : Claim
    runs, alpha : int, float
        Size and error probability of the audit of the chosen pair.
    bits : bool
        Whether that audit tests low bits.

    Returns
    -------
    cautious, bold : float
        Estimates with c = 3 and c = 1, in the units of the claim's strength; 0 without evidence.

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
    """Return the expected bounds, with standard errors, of a few events that are chosen on the first two samples."""
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
