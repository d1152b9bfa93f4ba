"""The catalogue of bugs in composition, group privacy and subsampling."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

from ...audit.claims.claim import ApproxDP
from ...audit.datasets.adjacency import AddRemove, Local, Replace, Within
from ...audit.datasets.domains import Answers, Rows, Values
from ...mechanisms import (
    GroupTightMechanism,
    LaplaceMechanism,
    NameAndShame,
    RandomisedResponse,
    RandomisedResponseFold,
    SequentialComposition,
    advanced_composition,
    composed,
    exact_delta,
)
from ...mechanisms.faulty import (
    LocalSensitivityLaplace,
    SampledTotal,
    SharedNoiseLaplace,
    TwiceExposed,
    UndercountedComposition,
)
from ...mechanisms.faulty.answers import total
from ...mechanisms.faulty.composition.faulty_subsampling import Sampling
from .fault import Fault, FaultMaker, NeighbouringPair, fault

_COMPOSITION: Final[FaultMaker] = partial(fault, "composition")
_GROUP: Final[FaultMaker] = partial(fault, "group privacy")
_ROWS: Final = AddRemove()


def composition_faults() -> list[Fault]:
    """All bugs of this module."""
    return [*_compositions(), *_groups(), *_samples()]


def _compositions() -> list[Fault]:
    both = SequentialComposition((LaplaceMechanism(0.5, query=len), LaplaceMechanism(0.5, query=total)))
    ones = NeighbouringPair([1.0, 0.0], [1.0], _ROWS, Rows(values=(0.0, 1.0)))
    bit = NeighbouringPair(0, 1, Local(), Values((0, 1)))
    hundred = RandomisedResponseFold(0.1, 100)
    advanced = ApproxDP(*advanced_composition(0.1, 0.0, 10, 0.01), "delta")
    exposed, row = NameAndShame(0.01), NeighbouringPair([7], [8], Replace(), Rows(values=(7, 8), most=1))
    return [
        _COMPOSITION(
            "noise-shared-by-queries",
            SharedNoiseLaplace(0.5, (len, total)),
            ones,
            correct=both,
            cause="Two Laplace mechanisms whose claims are added, with the same noise in both: no finite ε",
        ),
        _COMPOSITION(
            "loop-charged-once",
            UndercountedComposition(LaplaceMechanism(0.5, query=len), 3),
            NeighbouringPair([1] * 3, [1] * 2, _ROWS, Rows(values=(1,))),
            correct=composed(LaplaceMechanism(0.5 / 3, query=len), 3),
            cause="Three answers charged as one",
            practice="A release in a loop, a retry after a time-out or an answer for each group is charged once.",
            runs=50_000,
        ),
        _COMPOSITION(
            "root-without-delta",
            UndercountedComposition(RandomisedResponse(0.5), 16, charged=4.0),
            bit,
            correct=composed(RandomisedResponse(2.0 / 16), 16),
            cause="Sixteen answers charged as √16, without a δ",
            practice="Advanced composition is remembered as its root (Dwork & Roth 2014, Theorem 3.20).",
            runs=50_000,
        ),
        _COMPOSITION(
            "advanced-with-wrong-k",
            hundred,
            bit,
            correct=RandomisedResponseFold(0.1, 10),
            claim=advanced,
            truth=ApproxDP(advanced.epsilon, exact_delta(hundred.law(0), hundred.law(1), advanced.epsilon)),
            cause="Advanced composition of 10 mechanisms where 100 are run",
            practice="Epochs are counted instead of steps, or calls instead of queries.",
            runs=20_000,
        ),
        _COMPOSITION(
            "delta-of-one-query",
            composed(exposed, 3),
            row,
            correct=exposed,
            claim=exposed.claim,
            bound_on="delta",
            truth=ApproxDP(0.0, 0.03),
            exact=1 - 0.99**3,
            cause="The δ of one of three queries as that of all",
            practice="ε is divided among the queries and δ is not.",
            runs=20_000,
        ),
        _COMPOSITION("delta-for-each-half", TwiceExposed(0.01), row, correct=exposed, bound_on="delta", runs=50_000),
    ]


def _groups() -> list[Fault]:
    empty_and_two = NeighbouringPair([0], [0, 0], _ROWS, Rows(values=(0,), most=2))
    return [
        _GROUP(
            "delta-grows-linearly",
            GroupTightMechanism(1.0, 0.01),
            NeighbouringPair(0, 2, Within("l1", 2.0), Answers(integer=True)),
            correct=GroupTightMechanism(1.0, 0.02 / (1 + math.e)),
            claim=ApproxDP(2.0, 0.02, "delta"),
            truth=ApproxDP(2.0, 0.01 * (1 + math.e)),
            cause="kδ for a group of k, where δ grows with e^((k − 1)ε)",
            practice="Group privacy is remembered as k times both (Dwork & Roth 2014, Theorem 2.2 is of pure DP).",
            runs=50_000,
        ),
        _GROUP(
            "local-sensitivity", LocalSensitivityLaplace(0.5), empty_and_two, correct=LocalSensitivityLaplace(0.5 / 3)
        ),
    ]


def _samples() -> list[Fault]:
    def sampled(
        name: str,
        sampling: Sampling,
        x: list[float],
        y: list[float],
        exact: float,
        epsilon: float = 1.0,
        rate: float = 0.5,
        runs: int = 20_000,
        **texts: Any,
    ) -> Fault:
        wrong, right = SampledTotal(epsilon, rate, sampling), SampledTotal(epsilon, rate)
        pair = NeighbouringPair(x, y, _ROWS, Rows(low=-1.0))
        return fault("subsampling", name, wrong, pair, correct=right, exact=exact, runs=runs, **texts)

    zeros = [0.0] * 2
    return [
        sampled(
            "sampling-not-done",
            "none",
            zeros,
            [*zeros, 1.0],
            1.0,
            cause="All rows used, with the ε of a sample of half",
            practice="The sampler is switched off, or replaced by the loader of a test.",
        ),
        sampled(
            "sampling-not-shuffled",
            "first",
            zeros,
            [1.0, *zeros],
            1.0,
            cause="The first half of the rows taken for a random half",
            practice="Batches are cut from data in the order in which they are stored.",
        ),
        sampled(
            "fixed-batches",
            "fixed",
            [-1.0] * 2,
            [-1.0, -1.0, 1.0],
            math.log(2 / 3 + math.exp(2) / 3),
            cause="Batches of fixed size, where an added row displaces another, with the ε of Poisson sampling",
            practice="Batches have one size on every machine (Balle, Barthe & Gaboardi 2018 on the true guarantee).",
        ),
        sampled(
            "drawn-with-replacement",
            "replacement",
            [0.0] * 3,
            [0.0] * 3 + [1.0],
            3 * math.log(0.75 + 0.25 * math.exp(2)),
            epsilon=2.0,
            rate=0.75,
            runs=100_000,
            cause="Rows drawn with replacement, so that a row may be in the sample more than once",
            practice="choice() draws with replacement by default in numpy.",
        ),
    ]
