"""What a pair of datasets promises: the lower bound to be expected of its best event, from a pilot."""

from __future__ import annotations

import math

from .bits import bit_families
from .claims import Claim
from .distinguishers import Choice, choose_among, expected_excess
from .families import Effort, event_families
from .outputs import Outputs

# Standard errors taken off when events are chosen: each caution finds another kind, from common events to those with a
# few hits on one side alone. What they are worth shows on runs that they were not chosen on: none flatters itself.
_CAUTIONS = (4.0, 2.0, 1.0)
_ERRORS = 2.0  # taken off, so that three hits against one are no finding
_GRIDS = 2  # powers of two that outputs are looked at modulo
_QUICK = 25_000  # runs to learn from, up to which a look at a pair is quick


def merits(x: Outputs, y: Outputs, claim: Claim, runs: int, alpha: float, *, bits: bool = False) -> tuple[float, float]:
    """By how much the bound of `runs` runs may exceed the claim on the best event: seen cautiously, and boldly.

    Events are chosen on one half of the pilot and judged on the other, in turn; what they give is averaged.

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
        Two standard errors less than expected, and as expected; in the units of the claim's strength.
    """
    half = len(x) // 2
    halves = [(x[:half], y[:half]), (x[half : 2 * half], y[half : 2 * half])]
    found = [_judged(*halves[i], *halves[1 - i], claim, runs, alpha, bits) for i in range(2)]
    bold = (found[0][0] + found[1][0]) / 2
    return bold - _ERRORS * math.hypot(found[0][1], found[1][1]) / 2, bold


def _judged(
    chosen_x: Outputs, chosen_y: Outputs, x: Outputs, y: Outputs, claim: Claim, runs: int, alpha: float, bits: bool
) -> tuple[float, float]:
    """The excess to be expected of the best of a few events chosen on the first outputs, with its standard error."""
    part = len(chosen_x) // 2
    effort: Effort = "quick" if part < _QUICK else "sums"
    parts = (chosen_x[:part], chosen_y[:part], chosen_x[part:], chosen_y[part:])
    families = [*event_families(*parts, effort=effort), *(bit_families(parts, grids=_GRIDS) if bits else ())]
    chosen = [choose_among(families, claim, runs, alpha, caution=caution) for caution in _CAUTIONS]
    events = dict.fromkeys((choice.event, choice.likelier_on) for choice in chosen if choice is not None)
    judged = []
    for event, likelier_on in events:
        counted = Choice(event, likelier_on, event.count(x), event.count(y), len(x))
        value, less = (expected_excess(counted, claim, runs, alpha, caution=caution) for caution in (0.0, 1.0))
        if value > -math.inf:
            judged.append((value, value - less if less > -math.inf else abs(value)))
    return max(judged, default=(-claim.strength, 0.0))
