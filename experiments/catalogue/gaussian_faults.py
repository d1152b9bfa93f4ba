"""The catalogue of bugs in normal and binomial noise: its calibration, its accounting, and vectors of answers."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

from ...audit.claims.pure_approx_gaussian import ApproxDP, GaussianDP, PureDP
from ...audit.claims.renyi import RenyiDP
from ...audit.datasets.adjacency import AddRemove, Local, Within
from ...audit.datasets.domains import Answers, Rows, Values
from ...mechanisms import (
    BinomialMechanism,
    DiscreteGaussianMechanism,
    GaussianMechanism,
    Interval,
    LaplaceMechanism,
    LocalGaussianMechanism,
    VectorGaussianMechanism,
    gaussian_delta,
)
from ...mechanisms.faulty import (
    ClassicalBeyondOneGaussian,
    MisprintedNewtonGaussian,
    OneForEpsilonGaussian,
    UnclippedLocalGaussian,
    VarianceAsScaleGaussian,
)
from ...mechanisms.faulty.answers import GradientSum
from ...mechanisms.faulty.noise.faulty_gaussian import GaussianOfScale
from .fault import Fault, FaultMaker, fault

_NORMAL: Final[FaultMaker] = partial(fault, "normal noise")
_DISCRETE: Final[FaultMaker] = partial(fault, "discrete noise")
_ACCOUNT: Final[FaultMaker] = partial(fault, "accounting")
_LEARNING: Final[FaultMaker] = partial(fault, "learning")
_ANSWER: Final = Within("l2")
_PAIR: Final = (0.0, 1.0)


def normal_faults() -> list[Fault]:
    """All of them."""
    return [*_calibrations(), *_discrete(), *_accounts(), *_gradients()]


def _calibrations() -> list[Fault]:
    return [
        _NORMAL(
            "variance-as-deviation",
            VarianceAsScaleGaussian(1.0, 1e-5, sensitivity=0.1),
            (0.0, 0.1),
            Within("l2", 0.1),
            correct=GaussianMechanism(1.0, 1e-5, 0.1),
            domain=Answers(high=0.1),
            cause="the generator is given the variance where it expects the standard deviation, which is below 1",
            practice="a formula for the variance meets a library that wants the other; above 1 it adds noise",
            runs=50_000,
        ),
        _NORMAL(
            "classical-formula-beyond-one",
            ClassicalBeyondOneGaussian(7.0, 0.4),
            _PAIR,
            _ANSWER,
            correct=GaussianMechanism(7.0, 0.4),
            domain=Answers(),
            cause="the classical formula at epsilon 7",
            practice="it is copied without its condition, epsilon <= 1 (Balle & Wang 2018)",
            runs=1_000_000,
        ),
        _NORMAL(
            "one-for-epsilon",
            OneForEpsilonGaussian(1.1, 0.01),
            _PAIR,
            _ANSWER,
            correct=GaussianMechanism(1.1, 0.01),
            domain=Answers(),
            cause="the equation of the calibration has 1 where epsilon belongs",
            practice="it is programmed for epsilon 1, and the parameter is changed later",
            runs=500_000,
        ),
        _NORMAL(
            "misprinted-newton",
            MisprintedNewtonGaussian(2.0, 1e-5),
            _PAIR,
            _ANSWER,
            correct=GaussianMechanism(2.0, 1e-5),
            domain=Answers(),
            cause="Newton's iteration with a misprinted derivative stops near its start",
            practice="an exponent loses its sign in print, and a loose tolerance hides that nothing converges",
            runs=10_000_000,
        ),
        _NORMAL(
            "normal-noise-without-delta",
            GaussianMechanism(1.0, 0.05),
            _PAIR,
            _ANSWER,
            correct=LaplaceMechanism(1.0),
            claim=PureDP(1.0),
            truth=None,
            domain=Answers(),
            cause="normal noise said to be epsilon-DP",
            practice="the delta is small, so it is left out; far out the normal density has no bounded ratio",
            runs=200_000,
        ),
        _NORMAL(
            "domain-not-clipped",
            UnclippedLocalGaussian(1.0, 0.01, Interval(0, 1)),
            (0.0, 3.0),
            Local(),
            correct=LocalGaussianMechanism(1.0, 0.01, Interval(0, 1)),
            domain=Values((0.0, 0.5, 1.0, 3.0)),
            cause="a value is sent with noise for a domain that it is not clipped to",
            practice="the domain is what a sensor should deliver",
            runs=10_000,
        ),
    ]


def _discrete() -> list[Fault]:
    narrow = DiscreteGaussianMechanism(0.7**2, 0.5)
    wide = DiscreteGaussianMechanism(0.7, 0.5)
    one, two = BinomialMechanism(64, 1.0, 1), BinomialMechanism(64, 1.0, 2)
    whole = Answers(integer=True)
    return [
        _DISCRETE(
            "discrete-normal-variance",
            narrow,
            (0, 1),
            Within("l1"),
            correct=wide,
            claim=wide.claim,
            truth=narrow.claim,
            domain=whole,
            cause="discrete normal noise with the variance for sigma, which is .7",
            practice="papers and programs differ in which of the two is the parameter of exp(-k^2/(2 sigma^2))",
            runs=10_000,
        ),
        _DISCRETE(
            "coins-for-half-the-sensitivity",
            one,
            (0, 2),
            Within("l1", 2.0),
            correct=BinomialMechanism(512, 1.0, 2),
            claim=one.claim,
            truth=two.claim,
            domain=Answers(high=4.0, integer=True),
            cause="the coins hide answers 1 apart, and the answers are 2 apart",
            practice="a replaced row moves two counts (Dwork, Kenthapadi, McSherry, Mironov & Naor 2006 for the noise)",
            runs=500_000,
        ),
    ]


def _accounts() -> list[Fault]:
    zero, ones = (0.0,) * 4, (1.0,) * 4
    normal, four = GaussianMechanism(1.0, 0.05), VectorGaussianMechanism(1.0, 0.05)
    mu = 1 / normal.scale
    own_rho = mu**2 / 2
    confused = GaussianOfScale(math.sqrt(0.5), ApproxDP(1.0, 1e-5))
    converted = 0.5 + math.sqrt(0.5 * math.log(1 / 0.01))
    return [
        _ACCOUNT(
            "rho-for-epsilon",
            confused,
            _PAIR,
            _ANSWER,
            correct=GaussianMechanism(1.0, 1e-5),
            truth=ApproxDP(1.0, gaussian_delta(1.0, math.sqrt(0.5))),
            domain=Answers(),
            cause="normal noise for rho = 1 of concentrated DP, said to be (1, 1e-5)-DP",
            practice="both are called the privacy budget (Bun & Steinke 2016 give the conversion)",
            runs=10_000,
        ),
        _ACCOUNT(
            "conversion-without-two",
            GaussianOfScale(1.0, ApproxDP(converted, 0.01)),
            _PAIR,
            _ANSWER,
            correct=GaussianMechanism(converted, 0.01),
            truth=ApproxDP(converted, gaussian_delta(converted, 1.0)),
            domain=Answers(),
            cause="rho + sqrt(rho ln(1/delta)) for the epsilon of rho-concentrated DP, without the 2 before the root",
            practice="a factor is lost on the way from Bun & Steinke (2016), Proposition 1.3",
            runs=500_000,
        ),
        _ACCOUNT(
            "renyi-without-the-order",
            normal,
            _PAIR,
            _ANSWER,
            correct=GaussianMechanism(1.0, 0.05, math.sqrt(8)),
            claim=RenyiDP(8.0, own_rho),
            truth=RenyiDP(8.0, 8 * own_rho),
            exact=8 * own_rho,
            domain=Answers(),
            cause="1/(2 sigma^2) for the divergence of order 8, which is 8/(2 sigma^2)",
            practice="the divergence is looked up at order 1, or the order is taken for a constant (Mironov 2017)",
            runs=50_000,
        ),
        _ACCOUNT(
            "mu-not-added",
            four,
            (zero, ones),
            Within("linf"),
            correct=VectorGaussianMechanism(1.0, 0.05, 2.0),
            claim=GaussianDP(mu),
            truth=GaussianDP(2 * mu),
            exact=2 * mu,
            domain=Answers(4),
            cause="four answers with the noise for one, charged with the mu of one instead of sqrt(4) of it",
            practice="the sensitivity is taken of one coordinate (Dong, Roth & Su 2022)",
            runs=10_000,
        ),
    ]


def _gradients() -> list[Fault]:
    """Sums of clipped gradients, as a step of stochastic gradient descent releases them (Abadi et al. 2016)."""
    epsilon, delta, rows = 1.0, 0.01, AddRemove()
    each, noise = GradientSum(1.0), partial(VectorGaussianMechanism, epsilon, delta)
    right = noise(1.0, each)

    def held(ratio: float) -> ApproxDP:
        """What holds where the answer moves by so many times what the noise is for."""
        return ApproxDP(epsilon, gaussian_delta(epsilon, right.scale, ratio))

    batch = [(0.6, 0.0, 0.0, 0.8)] * 3
    with_one = (batch, [*batch, (0.0, 5.0, 0.0, 0.0)])
    on_rows: dict[str, Any] = {"domain": Rows(low=(-5.0,) * 4, high=(5.0,) * 4), "runs": 10_000}
    return [
        _LEARNING(
            "clipped-by-the-batch",
            noise(0.25, GradientSum(1.0, "mean")),
            (batch, [*batch, (-60.0, 0.0, 0.0, -80.0)]),
            rows,
            correct=right,
            truth=held(8.0),
            cause="the mean gradient is clipped, with the noise for one clipped gradient in a batch of four",
            practice="frameworks hand out the averaged gradient, and clip_grad_norm is called on that",
            **on_rows,
        ),
        _LEARNING(
            "clipped-by-the-layer",
            noise(1.0, GradientSum(1.0, "coordinate")),
            (batch, [*batch, (5.0, 5.0, 5.0, 5.0)]),
            rows,
            correct=right,
            truth=held(2.0),
            cause="each of four coordinates is clipped to 1, with the noise for a vector of norm 1",
            practice="layers are clipped one by one, each to the norm of all",
            **on_rows,
        ),
        _LEARNING(
            "divided-twice-by-the-batch",
            noise(0.25, each),
            with_one,
            rows,
            correct=right,
            truth=held(4.0),
            cause="a sum of gradients gets noise for their mean",
            practice="noise and sum are divided by the batch size in two places, one of which divides the noise alone",
            **on_rows,
        ),
        _LEARNING(
            "noise-without-the-clip",
            noise(1.0, GradientSum(3.0)),
            with_one,
            rows,
            correct=noise(3.0, GradientSum(3.0)),
            truth=held(3.0),
            cause="the noise multiplier is not multiplied by the clipping norm, 3",
            practice="the norm is 1 in the paper's experiments, and is tuned later",
            **on_rows,
        ),
        _LEARNING(
            "noise-by-root-of-dimension",
            noise(0.5, each),
            with_one,
            rows,
            correct=right,
            truth=held(2.0),
            cause="the standard deviation is divided by the root of the dimension, 4",
            practice="the norm of the whole noise is made what one coordinate's deviation should be",
            **on_rows,
        ),
    ]
