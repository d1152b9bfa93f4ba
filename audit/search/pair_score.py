"""Score a pair of datasets: the expected lower bound of its best event, with a standard error, from a pilot."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..claims.claim import Claim
from ..distinguishers.choice import Choice
from ..distinguishers.event_choice import choose_among, expected_excess
from ..events.events import Event
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
# Parts of a pilot that are compared, hits from which their spread says something, and the smallest and the largest
# error it can show: runs that are opposite to each other have √2 times that of independent ones.
_CHUNKS, _LEAST_HITS, _LEAST_ERROR, _LARGEST_ERROR = 32, 30, 0.02, 1.5
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
    """

    value: float
    error: float
    bold: float
    is_empty: bool = False


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
    nothing = (0.0, claim.strength)
    useful = [[one for one in seen if one[0] > 0.0] or [nothing] for seen in found]
    best = [max(seen, key=lambda one: _promise(one[0], one[1], claim.strength)) for seen in useful]
    bold = [max((_shrunk(value, error, _BOLD) for value, error in seen), default=0.0) for seen in found]
    values, errors = zip(*best, strict=True)
    value = sum(values) / 2
    least = _CERTAIN * max(abs(value), claim.strength)
    return PairScore(value, max(math.hypot(*errors) / 2, least), sum(bold) / 2, value <= 0.0)


def _promise(value: float, error: float, strength: float) -> float:
    """Return what an event is likely to show: its value if certain, else the mean under a normal prior around 0."""
    prior = strength**2 / (strength**2 + error**2) if strength else 0.0
    return max(_shrunk(value, error, _STEADY), prior * value)


def _shrunk(value: float, error: float, errors: float) -> float:
    return value * max(1.0 - (errors * error / value) ** 2, 0.0) if value > 0 else 0.0


def _judged(
    chosen_x: Outputs, chosen_y: Outputs, x: Outputs, y: Outputs, claim: Claim, runs: int, alpha: float, bits: bool
) -> list[tuple[float, float]]:
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
        value, less = (
            claim.strength + expected_excess(counted, claim, runs, alpha, caution=caution)
            for caution in (0.0, relative_error(event, x, y))
        )
        if value > -math.inf:
            judged.append((value, value - less if less > -math.inf else max(abs(value), claim.strength)))
    return judged


def relative_error(event: Event, x: Outputs, y: Outputs) -> float:
    """Return the standard error of an event's log ratio over that of independent runs; .02 to 1.5.

    Runs that share their random numbers are mostly hits together on x and y, so their ratio is known better; where they
    are opposite, as for noise whose sign the data turn, it is known worse. The spread of the difference between equal
    parts of the two samples shows by how much. Too few hits show nothing, and give 1.

    Examples
    --------
    >>> from dpaudit.audit.events.events import Intervals
    >>> noise = np.random.default_rng(0).laplace(size=10_000)
    >>> relative_error(Intervals(((1.0, np.inf),)), noise, noise + 0.1) < 0.4
    True
    """
    size = len(x) // _CHUNKS
    used = _CHUNKS * size
    on_x, on_y = (np.count_nonzero(event.contains(side[:used]).reshape(_CHUNKS, size), axis=1) for side in (x, y))
    hits_x, hits_y = int(on_x.sum()), int(on_y.sum())
    if min(hits_x, hits_y) < _LEAST_HITS or max(hits_x, hits_y) > used - _LEAST_HITS:
        return 1.0
    p, q = hits_x / used, hits_y / used
    variance = float(np.var(on_x / p - on_y / q, ddof=1)) / size
    ratio = math.sqrt(variance / ((1.0 - p) / p + (1.0 - q) / q))
    return min(max(ratio, _LEAST_ERROR), _LARGEST_ERROR)
