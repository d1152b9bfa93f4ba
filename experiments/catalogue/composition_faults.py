"""The catalogue of bugs in composition, group privacy and subsampling."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

from ...audit.claims.pure_approx_gaussian import ApproxDP
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
from .fault import Fault, FaultMaker, fault

_COMPOSITION: Final[FaultMaker] = partial(fault, "composition")
_GROUP: Final[FaultMaker] = partial(fault, "group privacy")
_SAMPLING: Final[FaultMaker] = partial(fault, "subsampling")
_ROWS: Final = AddRemove()


def composition_faults() -> list[Fault]:
    """All of them."""
    return [*_compositions(), *_samples()]


def _compositions() -> list[Fault]:
    thrice = UndercountedComposition(LaplaceMechanism(0.5, query=len), 3)
    root = UndercountedComposition(RandomisedResponse(0.5), 16, charged=4.0)
    hundred, ten = RandomisedResponseFold(0.1, 100), RandomisedResponseFold(0.1, 10)
    advanced = ApproxDP(*advanced_composition(0.1, 0.0, 10, 0.01))
    exposed, pair = NameAndShame(0.01), ([7], [8])
    ones = ([1.0, 0.0], [1.0])
    lost = exact_delta(hundred.law(0), hundred.law(1), advanced.epsilon)
    return [
        _COMPOSITION(
            "noise-shared-by-queries",
            SharedNoiseLaplace(0.5, (len, total)),
            ones,
            _ROWS,
            correct=SequentialComposition((LaplaceMechanism(0.5, query=len), LaplaceMechanism(0.5, query=total))),
            domain=Rows(values=(0.0, 1.0)),
            cause="each query of a run builds its generator from one seed, so that the noise cancels in differences",
            practice="a seed is fixed for tests, and stays",
            runs=10_000,
        ),
        _COMPOSITION(
            "loop-charged-once",
            thrice,
            ([1] * 3, [1] * 2),
            _ROWS,
            correct=composed(LaplaceMechanism(0.5 / 3, query=len), 3),
            domain=Rows(values=(1,)),
            cause="three answers are charged as one",
            practice="a release in a loop, a retry after a time-out, an answer for each group",
            runs=50_000,
        ),
        _COMPOSITION(
            "root-without-delta",
            root,
            (0, 1),
            Local(),
            correct=composed(RandomisedResponse(2.0 / 16), 16),
            domain=Values((0, 1)),
            cause="sixteen answers are charged as sqrt(16), with no delta",
            practice="advanced composition is remembered as its root (Dwork & Roth 2014, Theorem 3.20)",
            runs=50_000,
        ),
        _COMPOSITION(
            "advanced-with-wrong-k",
            hundred,
            (0, 1),
            Local(),
            correct=ten,
            claim=advanced,
            truth=ApproxDP(advanced.epsilon, lost),
            domain=Values((0, 1)),
            cause="advanced composition of 10 where 100 are run",
            practice="epochs are counted instead of steps, or calls instead of queries",
            runs=20_000,
        ),
        _COMPOSITION(
            "delta-of-one-query",
            composed(exposed, 3),
            pair,
            Replace(),
            correct=exposed,
            claim=exposed.claim,
            truth=ApproxDP(0.0, 0.03),
            exact=1 - 0.99**3,
            domain=Rows(values=(7, 8), most=1),
            cause="the delta of one of three queries for that of all",
            practice="epsilon is divided among the queries and delta is not",
            runs=20_000,
        ),
        _COMPOSITION(
            "delta-for-each-half",
            TwiceExposed(0.01),
            pair,
            Replace(),
            correct=exposed,
            domain=Rows(values=(7, 8), most=1),
            cause="delta is spent on each of two halves of a report",
            practice="delta is taken for a constant of the program",
            runs=50_000,
        ),
        _GROUP(
            "delta-grows-linearly",
            GroupTightMechanism(1.0, 0.01),
            (0, 2),
            Within("l1", 2.0),
            correct=GroupTightMechanism(1.0, 0.02 / (1 + math.e)),
            claim=ApproxDP(2.0, 0.02),
            truth=ApproxDP(2.0, 0.01 * (1 + math.e)),
            domain=Answers(integer=True),
            cause="k delta for a group of k, where delta grows with e^((k - 1) epsilon)",
            practice="group privacy is remembered as k times both (Dwork & Roth 2014, Theorem 2.2 is of pure DP)",
            runs=50_000,
        ),
        _GROUP(
            "local-sensitivity",
            LocalSensitivityLaplace(0.5),
            ([0], [0, 0]),
            _ROWS,
            correct=LocalSensitivityLaplace(0.5 / 3),
            domain=Rows(values=(0,), most=2),
            cause="the sensitivity at the empty dataset is used for all",
            practice="it is measured on the dataset at hand and its neighbours",
            runs=10_000,
        ),
    ]


def _samples() -> list[Fault]:
    def sampled(
        name: str,
        sampling: Sampling,
        pair: tuple[Any, Any],
        exact: float,
        cause: str,
        practice: str,
        epsilon: float = 1.0,
        rate: float = 0.5,
        runs: int = 20_000,
    ) -> Fault:
        return _SAMPLING(
            name,
            SampledTotal(epsilon, rate, sampling),
            pair,
            _ROWS,
            correct=SampledTotal(epsilon, rate),
            domain=Rows(low=-1.0),
            exact=exact,
            cause=cause,
            practice=practice,
            runs=runs,
        )

    nothing = [0.0] * 2
    below = [-1.0] * 2
    return [
        sampled(
            "sampling-not-done",
            "none",
            (nothing, [*nothing, 1.0]),
            1.0,
            "all rows are used, and the epsilon is that of a sample of half",
            "the sampler is switched off, or replaced by the loader of a test",
        ),
        sampled(
            "sampling-not-shuffled",
            "first",
            (nothing, [1.0, *nothing]),
            1.0,
            "the first half of the rows is taken for a random half",
            "batches are cut from data in the order in which they are stored",
        ),
        sampled(
            "fixed-batches",
            "fixed",
            (below, [*below, 1.0]),
            math.log(2 / 3 + math.exp(2) / 3),
            "a batch of fixed size, where a row that comes in puts another out, with the epsilon of Poisson sampling",
            "batches have one size on every machine (Balle, Barthe & Gaboardi 2018 for what holds)",
        ),
        sampled(
            "drawn-with-replacement",
            "replacement",
            ([0.0] * 3, [0.0] * 3 + [1.0]),
            3 * math.log(0.75 + 0.25 * math.exp(2)),
            "rows are drawn with replacement, and one may be in the sample more than once",
            "choice() replaces by default in numpy",
            epsilon=2.0,
            rate=0.75,
            runs=100_000,
        ),
    ]
