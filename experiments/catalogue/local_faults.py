"""The catalogue of bugs in the local model: randomised response."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from ...audit.claims.pure_approx_gaussian import PureDP
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
from .fault import Fault, FaultMaker, fault

_LOCAL: Final[FaultMaker] = partial(fault, "randomised response")
_ANY: Final = Local()


def response_faults() -> list[Fault]:
    """All of them."""
    right, bits = RandomisedResponse(1.0), Values((0, 1))
    biased, hot = BiasedCoinResponse(), OneHotAtFullEpsilon(1.0)
    return [
        _LOCAL(
            "truth-among-the-lies",
            TruthAmongTheLies(1.0),
            (0, 1),
            _ANY,
            correct=right,
            domain=bits,
            cause="a lie is drawn from all values, the true one too, at the odds for the others only",
            practice="two descriptions are mixed: answer truly with probability p, else flip a coin",
            runs=10_000,
        ),
        _LOCAL(
            "odds-for-two-values",
            BinaryOddsForManyValues(1.0, 5),
            (0, 4),
            _ANY,
            correct=RandomisedResponse(1.0, 5),
            domain=Values(tuple(range(5))),
            cause="the truth keeps the odds of yes and no although there are five values",
            practice="the code for two values is extended to a menu (Kairouz, Bonawitz & Ramage 2016 for k values)",
            runs=10_000,
        ),
        _LOCAL(
            "biased-coin",
            biased,
            (1, 0),
            _ANY,
            correct=RandomisedResponse(math.log(3)),
            domain=bits,
            cause="of Warner's two coins the second says yes one time in four",
            practice="fewer forced answers give a better estimate (Warner 1965 has fair coins)",
            runs=10_000,
        ),
        _LOCAL(
            "only-yes-randomised",
            OnlyYesRandomised(1.0),
            (1, 0),
            _ANY,
            correct=right,
            domain=bits,
            cause="a no is sent as it is",
            practice="only the sensitive answer seems to need protection",
            runs=10_000,
        ),
        _LOCAL(
            "response-remembered",
            RememberedResponse(1.0),
            ((0, 1), (0, 0)),
            _ANY,
            correct=RememberedResponse(1.0, is_remembered=False),
            domain=Values(((0, 0), (0, 1), (1, 0), (1, 1))),
            exact=math.inf,
            cause="the response to each value is drawn once and repeated, so a change of the value shows",
            practice="answers are memoised against averaging (Ding, Kulkarni & Yekhanin 2017)",
            runs=10_000,
        ),
        _LOCAL(
            "each-bit-at-epsilon",
            hot,
            (0, 1),
            _ANY,
            correct=OneHotBits(0.5, 3, PureDP(1.0)),
            domain=Values((0, 1, 2)),
            cause="each of the bits of a value is randomised at epsilon, and two of them change",
            practice="each bit is epsilon-DP (Wang, Blocki, Li & Jha 2017, unary encoding)",
            runs=10_000,
        ),
    ]
