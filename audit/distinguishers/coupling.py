"""How well the ratio of an event's hits is known if x and y share their random numbers."""

from __future__ import annotations

import math

import numpy as np

from ..events.events import Event
from ..events.outputs import Outputs

# Parts of a pilot that are compared, hits from which their spread says something, and the smallest and the largest
# error it can show: runs that are opposite to each other have √2 times that of independent ones.
_CHUNKS, _LEAST_HITS, _LEAST_ERROR, _LARGEST_ERROR = 32, 30, 0.02, 1.5


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
