"""Score a pair of datasets: the expected lower bound of its best event, with a standard error, from a pilot."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..claims.claim import Claim
from ..distinguishers.choice import Choice
from ..distinguishers.coupling import relative_error
from ..distinguishers.event_choice import choose_among, expected_excess
from ..events.outputs import Outputs
from ..families.event_families import Effort, event_families
from ..families.low_bits import bit_families
from ..families.pilot_split import PilotSplit

# Standard errors subtracted when events are chosen. Each value finds another kind of event, from common events to rare
# events with a few hits on one dataset. Runs that did not serve for the choice judge them.
_CAUTIONS = (4.0, 2.0, 1.0)
# Among the events of one pair an excess of at most this many standard errors counts as 0, a larger excess is shrunk
# less the larger it is.
_STEADY, _BOLD = 2.0, 1.0
_CERTAIN = 1e-3  # smallest standard error, as a share of the score or of the claim's strength
_GRIDS = 2  # powers of two for outputs modulo a grid
_QUICK = 25_000  # training runs up to which the quick event families are used


@dataclass(frozen=True, slots=True)
class PairScore:
    """What a pilot says of a pair.

    Attributes
    ----------
    value, error : float
        Estimate of the bound that an audit gives on the best event, in the units of the claim's strength, and its
        standard error.
    bold : float
        The largest such estimate, less the part that one standard error explains: rare events count too.
    is_empty : bool
        Whether no event of a positive bound was found; the value is then 0.
    choice : Choice, optional
        The most promising event, with its hits in the half of the pilot that it was not chosen on.
    chance : float
        Standard error of the bound of an audit with this event.
    """

    value: float
    error: float
    bold: float
    is_empty: bool = False
    choice: Choice | None = None
    chance: float = 0.0


def score_pair(x: Outputs, y: Outputs, claim: Claim, runs: int, alpha: float, *, bits: bool = False) -> PairScore:
    """Estimate the bound that `runs` runs give on the best event of a pair.

    Events are chosen on one half of the pilot and judged on the other, both ways; the results are averaged. A bound v
    with standard error s counts as the positive part of v (1 − (c s/v)²), so that certain bounds shrink least. The best
    event has the largest with c = 2; with c = 1 rare events count too.

    Parameters
    ----------
    x, y : ndarray
        Pilot outputs on each dataset, equally many. They may share their random numbers run by run (`relative_error`).
    claim : Claim
    runs, alpha : int, float
        Size and error probability of the audit of the chosen pair.
    bits : bool
        Whether that audit tests low bits.

    References
    ----------
    Efron & Morris (1973), Stein's estimation rule and its competitors (the positive part, and limited translation).
    """
    half = len(x) // 2
    halves = [(x[:half], y[:half]), (x[half : 2 * half], y[half : 2 * half])]
    found = [_judged(*halves[i], *halves[1 - i], claim, runs, alpha, bits) for i in range(2)]
    useful = [[one for one in seen if one.value > 0.0] or [_Judged(0.0, claim.strength)] for seen in found]
    best = [max(seen, key=lambda one: _promise(one, claim.strength)) for seen in useful]
    bold = [max((_shrunk(one, _BOLD) for one in seen), default=0.0) for seen in found]
    value = sum(one.value for one in best) / 2
    least = _CERTAIN * max(abs(value), claim.strength)
    error = max(math.hypot(*(one.error for one in best)) / 2, least)
    leader = max(best, key=lambda one: _promise(one, claim.strength))
    return PairScore(value, error, sum(bold) / 2, value <= 0.0, leader.choice, leader.alone * math.sqrt(half / runs))


@dataclass(frozen=True, slots=True)
class _Judged:
    """The expected bound of an event on runs that did not choose it, with its standard error.

    `alone` is the standard error that it would have if the runs on x and y were independent.
    """

    value: float
    error: float
    alone: float = 0.0
    choice: Choice | None = None  # with its hits in these runs


def _promise(event: _Judged, strength: float) -> float:
    """Return what an event is likely to show: its value if certain, else the mean under a normal prior around 0."""
    strength, error = min(strength, 1e150), min(event.error, 1e150)  # whose squares are doubles
    prior = strength**2 / (strength**2 + error**2) if strength else 0.0
    return max(_shrunk(event, _STEADY), prior * event.value)


def _shrunk(event: _Judged, errors: float) -> float:
    return event.value * max(1.0 - (errors * event.error / event.value) ** 2, 0.0) if event.value > 0 else 0.0


def _judged(
    chosen_x: Outputs, chosen_y: Outputs, x: Outputs, y: Outputs, claim: Claim, runs: int, alpha: float, bits: bool
) -> list[_Judged]:
    """Return the expected bounds, with standard errors, of a few events that are chosen on the first two samples."""
    split = PilotSplit.in_half(chosen_x, chosen_y)
    effort: Effort = "quick" if len(split.learn_x) < _QUICK else "sums"
    families = [*event_families(split, effort=effort), *(bit_families(split, grids=_GRIDS) if bits else ())]
    chosen = choose_among(families, claim, runs, alpha, cautions=_CAUTIONS)
    if chosen[0] is None:
        return []
    scale = relative_error(chosen[0].event, chosen_x, chosen_y)
    if scale < 1.0:
        chosen += choose_among(families, claim, runs, alpha, cautions=[scale * caution for caution in _CAUTIONS])
    judged = []
    for event, likelier_on in dict.fromkeys((choice.event, choice.likelier_on) for choice in chosen if choice):
        counted = Choice(event, likelier_on, event.count(x), event.count(y), len(x))
        value, *less = (
            claim.strength + expected_excess(counted, claim, runs, alpha, caution=caution)
            for caution in (0.0, relative_error(event, x, y), 1.0)
        )
        if value > -math.inf:
            unknown = max(abs(value), claim.strength)
            error, alone = (value - one if one > -math.inf else unknown for one in less)
            judged.append(_Judged(value, error, alone, counted))
    return judged
