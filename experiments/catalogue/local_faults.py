"""The catalogue of bugs in the local model: randomised response."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

from ...audit.datasets.adjacency import Local
from ...audit.datasets.domains import Values
from ...mechanisms import RandomisedResponse
from ...mechanisms.faulty import (
    BiasedCoinResponse,
    BinaryOddsForManyValues,
    OneHotAtFullEpsilon,
    OnlyYesRandomised,
    RememberedResponse,
    TruthAmongTheLies,
)
from ...mechanisms.faulty.local.faulty_responses import OneHotBits
from .fault import Fault, FaultMaker, NeighbouringPair, fault

_LOCAL: Final[FaultMaker] = partial(fault, "randomised response")


def response_faults() -> list[Fault]:
    """All bugs of this module."""
    right, yes_no = RandomisedResponse(1.0), _values(1, 0)
    five, three = _values(0, 4, range(5)), _values(0, 1, range(3))
    two_times = _values((0, 1), (0, 0), ((0, 0), (0, 1), (1, 0), (1, 1)))
    fresh = RememberedResponse(1.0, is_remembered=False)
    return [
        _LOCAL("truth-among-the-lies", TruthAmongTheLies(1.0), _values(0, 1), correct=right),
        _LOCAL(
            "odds-for-two-values",
            BinaryOddsForManyValues(1.0, 5),
            five,
            correct=RandomisedResponse(1.0, 5),
            cause="The value with the probability for yes and no, e^ε/(1 + e^ε), although there are five: ε + ln 4",
        ),
        _LOCAL(
            "biased-coin",
            BiasedCoinResponse(),
            yes_no,
            correct=RandomisedResponse(math.log(3)),
            cause="Warner's two coins, the second of which says yes one time in four: ln 5 instead of ln 3",
        ),
        _LOCAL("only-yes-randomised", OnlyYesRandomised(1.0), yes_no, correct=right),
        _LOCAL("response-remembered", RememberedResponse(1.0), two_times, correct=fresh, exact=math.inf),
        _LOCAL("each-bit-at-epsilon", OneHotAtFullEpsilon(1.0), three, correct=OneHotBits(0.5, 3)),
    ]


def _values(x: Any, y: Any, values: Any = (0, 1)) -> NeighbouringPair:
    return NeighbouringPair(x, y, Local(), Values(tuple(values)))
