"""Faulty local protocols, apart, as each family of the catalogue has a file."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

from ...audit.datasets.adjacency import Local
from ...audit.datasets.domains import Values
from ...mechanisms import (
    HadamardResponse,
    LocalHashing,
    MemoisedBits,
    RandomisedResponse,
    SubsetSelection,
    ThresholdedHistogram,
    UnaryEncoding,
    faulty,
)
from .fault import Fault, FaultMaker, NeighbouringPair, fault

_LOCAL: Final[FaultMaker] = partial(fault, "randomised response")
_ORACLE: Final[FaultMaker] = partial(fault, "frequency oracle")


def response_faults() -> list[Fault]:
    """All bugs of this module."""
    right, yes_no = RandomisedResponse(1.0), _values(1, 0)
    five, three = _values(0, 4, range(5)), _values(0, 1, range(3))
    two_times = _values((0, 1), (0, 0), ((0, 0), (0, 1), (1, 0), (1, 1)))
    fresh = faulty.RememberedResponse(1.0, is_remembered=False)
    return [
        _LOCAL("truth-among-the-lies", faulty.TruthAmongTheLies(1.0), _values(0, 1), correct=right),
        _LOCAL("odds-for-two-values", faulty.BinaryOddsForManyValues(1.0, 5), five, correct=RandomisedResponse(1.0, 5),
            cause="The value with the probability for yes and no, e^ε/(1 + e^ε), although there are five: ε + ln 4"),
        _LOCAL("biased-coin", faulty.BiasedCoinResponse(), yes_no, correct=RandomisedResponse(math.log(3)),
            cause="Warner's two coins, the second of which says yes one time in four: ln 5 instead of ln 3"),
        _LOCAL("only-yes-randomised", faulty.OnlyYesRandomised(1.0), yes_no, correct=right),
        _LOCAL("response-remembered", faulty.RememberedResponse(1.0), two_times, correct=fresh, exact=math.inf),
        _LOCAL("each-bit-at-epsilon", faulty.OneHotAtFullEpsilon(1.0), three, correct=UnaryEncoding(1.0, 3)),
    ]  # fmt: skip


def oracle_faults() -> list[Fault]:
    """Bugs of frequency oracles, for single and for repeated reports."""
    unary, four, eight = UnaryEncoding(1.0, 4), _values(0, 1, range(4)), _values(0, 5, range(8))
    optimised = UnaryEncoding(1.0, 4, is_optimised=True)
    listed, redrawn = faulty.SubsetInOrder(1.0), faulty.RedrawnMemo(1.0, 0.6, k=2, reports=6)
    return [
        _ORACLE("coins-of-two-encodings", faulty.MixedUnaryCoins(1.0), four, correct=optimised, runs=20_000),
        _ORACLE("true-bit-set-twice", faulty.TrueBitSetTwice(1.0), four, correct=optimised, runs=20_000),
        _ORACLE("ones-never-cleared", faulty.OnesNeverCleared(1.0), four, correct=unary),
        _ORACLE("threshold-on-half-the-noise", faulty.HalfNoiseThreshold(1.0), four,
            correct=ThresholdedHistogram(1.0, 4), runs=20_000),
        _ORACLE("odds-of-binary-hashing", faulty.BinaryHashingOdds(1.0), eight, correct=LocalHashing(1.0, 8)),
        _ORACLE("hash-chosen-by-the-value", faulty.HashChosenByTheValue(1.0), eight, correct=LocalHashing(1.0, 8)),
        _ORACLE("subset-of-wrong-size", faulty.SubsetOfWrongSize(1.0), _values(0, 9, range(10)),
            correct=SubsetSelection(1.0, 10)),
        _ORACLE("subset-in-order", listed, _values(0, 1, range(5)),
            correct=SubsetSelection(1.0, listed.k, listed.size)),
        _ORACLE("hadamard-or-any-column", faulty.HadamardOrAnyColumn(1.0), _values(0, 1, range(7)),
            correct=HadamardResponse(1.0, 7)),
        _ORACLE("memo-redrawn", redrawn, _values(0, 1), correct=MemoisedBits(1.0, 0.6, 2, redrawn.reports)),
        _ORACLE("first-report-for-all", faulty.FirstReportForAll(1.0, 2.0), four, correct=unary),
    ]  # fmt: skip


def _values(x: Any, y: Any, values: Any = (0, 1)) -> NeighbouringPair:
    return NeighbouringPair(x, y, Local(), Values(tuple(values)))
