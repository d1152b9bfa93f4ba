"""The analytic Gaussian mechanism: the exact calibration, the classical one beyond its theorem, and three bugs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from ...audit.claims.pure_approx_gaussian import ApproxDP
from ...audit.datasets.adjacency import Adjacency, Local, Within
from ...mechanisms import (
    Ball,
    GaussianMechanism,
    Interval,
    LocalGaussianMechanism,
    VectorGaussianMechanism,
    exact_delta,
    exact_epsilon,
)
from ...mechanisms.faulty import (
    ClassicalBeyondOneGaussian,
    MisprintedNewtonGaussian,
    OneForEpsilonGaussian,
    UnclippedLocalGaussian,
    VarianceAsScaleGaussian,
)
from ..cases.experiment import (
    AuditCase,
    Experiment,
    StatementCase,
    false_statement,
    false_version,
    true_statement,
    true_version,
)
from .gaussian_figures import scales_figure
from .gaussian_statements import IsBelow, attained_delta, loss_threshold, noise_scale

DOCUMENT: Final = "analytic-gaussian"
_ORIGIN, _MOVED = (0.0, 0.0, 0.0), (2 / 3, -2 / 3, 1 / 3)  # at distance 1, in no coordinate's direction


def experiments() -> list[Experiment]:
    """Rows G1 to G3."""
    return [
        Experiment(
            id="G1",
            document=DOCUMENT,
            statement="Normal noise calibrated exactly is (epsilon, delta)-DP, and no smaller delta holds: of numbers, "
            "of vectors by their Euclidean sensitivity, and of one person's clipped value.",
            source="Balle & Wang (2018), Theorem 8; Bao, Yang, Xiao & Ding (2021), Lemma 2.4",
            cases=(*_exact_versions(), *_sensitivity_versions(), *_attained()),
        ),
        Experiment(
            id="G2",
            document=DOCUMENT,
            statement="The classical standard deviation S sqrt(2 ln(1.25/delta))/epsilon is enough up to epsilon 1, "
            "with slack, and far above 1 it is not.",
            source="Dwork & Roth (2014), Theorem A.1; Balle & Wang (2018), Section 2",
            cases=_classical(),
        ),
        Experiment(
            id="G3",
            document=DOCUMENT,
            statement="A program that calibrates normal noise adds noise of the calibrated standard deviation.",
            source="Bao, Yang, Xiao & Ding (2021), Lemma 2.4, and a program for it with three bugs",
            cases=(*_miscalibrated_audits(), *_scales()),
            draw=scales_figure,
        ),
    ]


def _exact_versions() -> list[AuditCase]:
    one = Within("l2")
    return [
        _exact("G1-number-epsilon-0", GaussianMechanism(0.0, 0.1), 0.0, 1.0, one, "delta is the total variation"),
        _exact("G1-number-epsilon-1", GaussianMechanism(1.0, 0.01), 0.0, 1.0, one, "the claim is exact"),
        _exact("G1-number-epsilon-4", GaussianMechanism(4.0, 0.05), 0.0, 1.0, one, "beyond the classical theorem"),
        _exact(
            "G1-vector",
            VectorGaussianMechanism(1.0, 0.01),
            _ORIGIN,
            _MOVED,
            one,
            "three coordinates move by 1 together",
        ),
        _exact(
            "G1-local-number",
            LocalGaussianMechanism(1.0, 0.01, Interval(0, 10)),
            -50.0,
            200.0,
            Local(),
            "values far outside are clipped to the ends",
        ),
        _exact(
            "G1-local-vector",
            LocalGaussianMechanism(1.0, 0.01, Ball(2.0, 3)),
            (8.0, -4.0, 1.0),
            (-8.0, 4.0, -1.0),
            Local(),
            "opposite vectors are clipped to the ball's diameter",
        ),
    ]


def _exact(name: str, mechanism: Any, x: Any, y: Any, adjacency: Adjacency, note: str) -> AuditCase:
    law_x, law_y, claim = mechanism.law(x), mechanism.law(y), mechanism.claim
    if claim.epsilon == 0:
        claim, exact = replace(claim, bound_on="delta"), exact_delta(law_x, law_y, 0.0)
    else:
        exact = exact_epsilon(law_x, law_y, claim.delta)
    return true_version(name, mechanism, x, y, claim, adjacency, exact=exact, note=note)


def _sensitivity_versions() -> list[AuditCase]:
    return [
        _too_little(
            "G1-local-unclipped",
            UnclippedLocalGaussian(1.0, 0.01, Interval(0, 10)),
            0.0,
            20.0,
            Local(),
            "twice as far apart as the noise is for",
            runs=200_000,
        ),
        _too_little(
            "G1-local-unclipped-vector",
            UnclippedLocalGaussian(1.0, 0.01, Ball(2.0, 3)),
            (4.0, -2.0, 0.0),
            (-4.0, 2.0, 0.0),
            Local(),
            "outside the ball on opposite sides",
            runs=200_000,
        ),
        _too_little(
            "G1-vector-one-coordinate",
            VectorGaussianMechanism(1.0, 0.01),
            _ORIGIN,
            (1.0, 1.0, 1.0),
            Within("linf"),
            "noise for one coordinate that moves by 1, when all three do",
            runs=200_000,
        ),
    ]


def _too_little(name: str, mechanism: Any, x: Any, y: Any, adjacency: Adjacency, note: str, *, runs: int) -> AuditCase:
    """A false version, with the bound on delta: of too little noise, that is where most of the excess is."""
    claim: ApproxDP = replace(mechanism.claim, bound_on="delta")
    exact = exact_delta(mechanism.law(x), mechanism.law(y), claim.epsilon)
    return false_version(name, mechanism, x, y, claim, adjacency, exact=exact, runs=runs, note=note)


def _on_a_half_line(name: str, twin: Any, note: str, *, runs: int, loss: float | None = None) -> AuditCase:
    """One bit of each output, whether its loss is above epsilon (or `loss`): a pilot would not always find it."""
    claim: ApproxDP = replace(twin.claim, bound_on="delta")
    below = IsBelow(twin, loss_threshold(0.0, 1.0, twin.scale, claim.epsilon if loss is None else loss))
    exact, whole = (exact_delta(m.law(0.0), m.law(1.0), claim.epsilon) for m in (below, twin))
    note = f"{note}; delta of the whole output is {whole:.3g}"
    return false_version(name, below, 0.0, 1.0, claim, Within("l2"), exact=exact, runs=runs, note=note)


def _attained() -> list[StatementCase]:
    def case(
        state: Callable[..., StatementCase], name: str, mechanism: Any, x: Any, y: Any, note: str
    ) -> StatementCase:
        return state(
            name,
            f"delta {mechanism.delta:g} is attained at epsilon {mechanism.epsilon:g}",
            partial(attained_delta, mechanism, x, y),
            exact=exact_delta(mechanism.law(x), mechanism.law(y), mechanism.epsilon),
            runs=1_000_000,
            note=note,
        )

    return [
        case(true_statement, "G1-attained", GaussianMechanism(1.0, 0.01), 0.0, 1.0, "by a half-line"),
        case(
            true_statement, "G1-attained-vector", VectorGaussianMechanism(1.0, 0.01), _ORIGIN, _MOVED, "by a half-space"
        ),
        case(
            true_statement,
            "G1-attained-local",
            LocalGaussianMechanism(1.0, 0.01, Interval(0, 10)),
            -50.0,
            200.0,
            "at the ends of the interval",
        ),
        case(
            false_statement,
            "G1-attained-over-noised",
            VarianceAsScaleGaussian(1.0, 0.01),
            0.0,
            1.0,
            "more noise than needed keeps the claim and falls short of delta",
        ),
    ]


def _classical() -> tuple[AuditCase | StatementCase, ...]:
    one = Within("l2")
    at_one, at_half = (GaussianMechanism(epsilon, 0.01, calibration="classical") for epsilon in (1.0, 0.5))
    return (
        _exact("G2-at-1", at_one, 0.0, 1.0, one, "the last epsilon of the theorem"),
        _exact("G2-at-half", at_half, 0.0, 1.0, one, "well inside the theorem"),
        _on_a_half_line(
            "G2-at-10",
            ClassicalBeyondOneGaussian(10.0, 0.1),
            "far outside the theorem; seen on outputs of privacy loss above 11",
            runs=5_000_000,
            loss=11.0,  # at 10 there are 20 hits on y, each of which counts e^10 times
        ),
        false_statement(
            "G2-attained-at-1",
            "delta 0.01 is attained at epsilon 1",
            partial(attained_delta, at_one, 0.0, 1.0),
            exact=exact_delta(at_one.law(0.0), at_one.law(1.0), 1.0),
            runs=1_000_000,
            note="the classical noise is larger than needed",
        ),
    )


def _miscalibrated_audits() -> list[AuditCase]:
    one = Within("l2")
    return [
        _exact(
            "G3-one-for-epsilon-at-1",
            OneForEpsilonGaussian(1.0, 0.01),
            0.0,
            1.0,
            one,
            "at epsilon 1, for which it was written, the bug is none",
        ),
        _exact(
            "G3-one-for-epsilon-at-0.5",
            OneForEpsilonGaussian(0.5, 0.01),
            0.0,
            1.0,
            one,
            "too much noise keeps the claim: only its standard deviation shows the bug",
        ),
        _exact(
            "G3-variance-over",
            VarianceAsScaleGaussian(1.0, 1e-5),
            0.0,
            1.0,
            one,
            "too much noise keeps the claim: only its standard deviation shows the bug",
        ),
        _on_a_half_line(
            "G3-one-for-epsilon-at-1.1",
            OneForEpsilonGaussian(1.1, 1e-5),
            "chi^2 + 1 for chi^2 + epsilon: too little noise; seen on the best half-line",
            runs=10_000_000,
        ),
        _on_a_half_line(
            "G3-newton",
            MisprintedNewtonGaussian(1.0, 1e-5),
            "a misprinted derivative, the iteration ends where it began: too little noise; seen on the best half-line",
            runs=20_000_000,
        ),
        _too_little(
            "G3-variance-under",
            VarianceAsScaleGaussian(1.0, 1e-5, sensitivity=0.1),
            0.0,
            0.1,
            Within("l2", 0.1),
            "variance for standard deviation, which is .37: too little noise",
            runs=200_000,
        ),
    ]


def _scales() -> list[StatementCase]:
    def case(state: Callable[..., StatementCase], name: str, mechanism: Any, right: float, note: str) -> StatementCase:
        location: Any = _ORIGIN if isinstance(mechanism, VectorGaussianMechanism) else 0.0
        return state(
            name,
            f"standard deviation {right:.4g}",
            partial(noise_scale, mechanism, location, right),
            exact=mechanism.scale,
            runs=100_000,
            note=note,
        )

    right = [GaussianMechanism(0.5, 1e-5), GaussianMechanism(1.1, 1e-5), GaussianMechanism(2.0, 1e-5)]
    vector = VectorGaussianMechanism(1.0, 1e-5)
    at_one = OneForEpsilonGaussian(1.0, 1e-5)
    wrong = [
        ("one-for-epsilon-at-0.5", OneForEpsilonGaussian(0.5, 1e-5), "too much noise below epsilon 1"),
        ("one-for-epsilon-at-1.1", OneForEpsilonGaussian(1.1, 1e-5), "too little noise just above it"),
        ("one-for-epsilon-at-2", OneForEpsilonGaussian(2.0, 1e-5), "the solver failed, unnoticed: twice the noise"),
        ("one-for-epsilon-at-4", OneForEpsilonGaussian(4.0, 1e-5), "the solver failed, unnoticed: twice the noise"),
        ("newton", MisprintedNewtonGaussian(1.0, 1e-5), "too little noise from the misprinted derivative"),
        ("variance-under", VarianceAsScaleGaussian(1.0, 1e-5, sensitivity=0.1), "variance below 1: too little noise"),
        ("variance-over", VarianceAsScaleGaussian(1.0, 1e-5), "variance above 1: too much noise"),
    ]
    return [
        *(case(true_statement, f"G3-scale-at-{m.epsilon:g}", m, m.scale, "calibrated exactly") for m in right),
        case(true_statement, "G3-scale-vector", vector, vector.scale, "of each of three coordinates"),
        case(true_statement, "G3-scale-one-for-epsilon-at-1", at_one, at_one.right_scale, "where the bug is none"),
        *(case(false_statement, f"G3-scale-{name}", twin, twin.right_scale, note) for name, twin, note in wrong),
    ]
