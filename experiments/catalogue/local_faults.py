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
from ...mechanisms.local.frequency_oracles import BitReports, unary_coins
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
        _LOCAL("each-bit-at-epsilon", UnaryEncoding(2.0, 3), three, correct=UnaryEncoding(1.0, 3), claim=right.claim,
            cause="A value as k bits, one of them 1, each randomised at ε: 2ε, as two bits change",
            practice='"Each bit is ε-DP" is read as a statement about the whole report; ε/2 for each bit is right.'),
    ]  # fmt: skip


def oracle_faults() -> list[Fault]:
    """Bugs of frequency oracles, for single and for repeated reports."""
    unary, four, eight = UnaryEncoding(1.0, 4), _values(0, 1, range(4)), _values(0, 5, range(8))
    optimised, hashing = UnaryEncoding(1.0, 4, is_optimised=True), LocalHashing(1.0, 8)
    listed, redrawn = faulty.SubsetInOrder(1.0), faulty.RedrawnMemo(1.0, 0.6, k=2, reports=6)
    return [
        _ORACLE("coins-of-two-encodings", BitReports(unary_coins(1.0, False)[0], unary_coins(1.0, True)[1], 4), four,
            correct=optimised, claim=unary.claim, runs=20_000,
            cause="Unary encoding with the 1 kept as in the symmetric form and the 0 as in the optimised one: 3ε/2",
            practice="A switch between SUE and OUE sets only one of the two probabilities. The 1 of SUE adds ε/2 to "
            "the log odds ratio, and the 0 of OUE adds ε."),
        _ORACLE("true-bit-set-twice", faulty.TrueBitSetTwice(1.0), four, correct=optimised, runs=20_000),
        _ORACLE("ones-never-cleared", faulty.OnesNeverCleared(1.0), four, correct=unary),
        _ORACLE("threshold-on-half-the-noise", ThresholdedHistogram(2.0, 4), four,
            correct=ThresholdedHistogram(1.0, 4), claim=unary.claim, runs=20_000,
            cause="Thresholded histogram encoding with Laplace noise of scale 1/ε for 2/ε: nearly twice the loss",
            practice="The sensitivity of a one-hot vector is taken to be 1, as of an added row; it is 2."),
        _ORACLE("odds-of-binary-hashing", LocalHashing(1.0 + math.log(hashing.n_reports - 1), 8, hashing.n_reports),
            eight, correct=hashing, claim=unary.claim,
            cause="Optimised local hashing whose report keeps the hash with the odds of binary hashing: ε + ln(g − 1)",
            practice="Binary local hashing is extended to g hashes and the probability e^ε/(1 + e^ε) stays."),
        _ORACLE("hash-chosen-by-the-value", faulty.HashChosenByTheValue(1.0), eight, correct=hashing),
        # With ω values in the best set and ω′ in this one, the loss is ε + ln(ω(k − ω′)/(ω′(k − ω))), here for 3 and 2.
        _ORACLE("subset-of-wrong-size", SubsetSelection(1.0 + math.log(3 * 8 / (2 * 7)), 10, 2),
            _values(0, 9, range(10)), correct=SubsetSelection(1.0, 10), claim=unary.claim,
            cause="Subset selection that keeps the value as for the best size but draws a smaller set: ε + .539",
            practice="The size k/(e^ε + 1) is rounded up in one place and down in another."),
        _ORACLE("subset-in-order", listed, _values(0, 1, range(5)),
            correct=SubsetSelection(1.0, listed.k, listed.size)),
        # With p = e^ε/(1 + e^ε): (p + (1 − p)/2)/((1 − p)/2) = 1 + 2p/(1 − p).
        _ORACLE("hadamard-or-any-column", HadamardResponse(math.log1p(2 * math.e), 7), _values(0, 1, range(7)),
            correct=HadamardResponse(1.0, 7), claim=unary.claim,
            cause="Hadamard response that draws any column, not one with −1, in place of one with +1: ln(1 + 2e^ε)",
            practice="A column with +1 with probability e^ε/(1 + e^ε), otherwise at random, is read as any column."),
        _ORACLE("memo-redrawn", redrawn, _values(0, 1), correct=MemoisedBits(1.0, 0.6, 2, redrawn.reports)),
        _ORACLE("first-report-for-all", MemoisedBits(2.0, 1.0, 4, 4), four, correct=unary, claim=unary.claim,
            cause="Several reports of memoised bits with the loss of one claimed for all: up to ε∞ instead of ε₁",
            practice="The epsilon of one report is published, and the server collects a report a day."),
    ]  # fmt: skip


def _values(x: Any, y: Any, values: Any = (0, 1)) -> NeighbouringPair:
    return NeighbouringPair(x, y, Local(), Values(tuple(values)))
