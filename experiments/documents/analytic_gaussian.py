"""The analytic Gaussian mechanism: exact calibration, classical calibration outside its theorem, and three bugs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from ...audit.datasets.adjacency import Adjacency, Local, Within
from ...mechanisms import (
    Ball,
    GaussianMechanism,
    Interval,
    LocalGaussianMechanism,
    VectorGaussianMechanism,
    exact_delta,
    faulty,
)
from ..cases.experiment import RUNS, Case, Experiment, fails, false_statement, holds, stated, true_statement
from ..statements.simulated import IsBelow, attained_delta, loss_threshold, noise_scale

_MANY: Final = 1_000_000
_UNIT: Final = (0.0, 1.0)
_ORIGIN, _MOVED = (0.0, 0.0, 0.0), (2 / 3, -2 / 3, 1 / 3)  # at distance 1, oblique to the coordinates


def experiments() -> list[Experiment]:
    """Return experiments G1 to G3."""
    about = partial(stated, "analytic-gaussian")
    return [
        about("G1",
            "Exactly calibrated Gaussian noise is (epsilon, delta)-DP, and no smaller delta holds: for numbers, for "
            "vectors with a Euclidean sensitivity, and for the clipped value of one person.",
            "Balle & Wang (2018), Theorem 8; Bao, Yang, Xiao & Ding (2021), Lemma 2.4",
            (*_exact_versions(), *_sensitivity_versions(), *_attained())),
        about("G2",
            "The classical standard deviation S sqrt(2 ln(1.25/delta))/epsilon is sufficient, with slack, up to "
            "epsilon 1; far above 1 it is too small.",
            "Dwork & Roth (2014), Theorem A.1; Balle & Wang (2018), Section 2", _classical()),
        about("G3", "A program for the analytic Gaussian mechanism adds noise with the calibrated standard deviation.",
            "Bao, Yang, Xiao & Ding (2021), Lemma 2.4, and a program for it with three bugs",
            (*_miscalibrated_audits(), *_scales())),
    ]  # fmt: skip


def _exact(name: str, mechanism: Any, pair: tuple[Any, Any], adjacency: Adjacency, note: str) -> Case:
    bound_on = "delta" if mechanism.claim.epsilon == 0 else "epsilon"
    return holds(name, mechanism, pair, adjacency, note, claim=replace(mechanism.claim, bound_on=bound_on), runs=_MANY)


def _exact_versions() -> list[Case]:
    one, local, clipped = Within("l2"), Local(), LocalGaussianMechanism(1.0, 0.01, Interval(0, 10))
    in_ball, opposite = LocalGaussianMechanism(1.0, 0.01, Ball(2.0, 3)), ((8.0, -4.0, 1.0), (-8.0, 4.0, -1.0))
    vector = VectorGaussianMechanism(1.0, 0.01)
    return [
        _exact("G1-number-epsilon-0", GaussianMechanism(0.0, 0.1), _UNIT, one,
            "Gaussian noise at epsilon 0, total variation distance as delta"),
        _exact("G1-number-epsilon-1", GaussianMechanism(1.0, 0.01), _UNIT, one,
            "Gaussian noise at epsilon 1, exact claim"),
        _exact("G1-number-epsilon-4", GaussianMechanism(4.0, 0.05), _UNIT, one,
            "Gaussian noise at epsilon 4, outside the classical theorem"),
        _exact("G1-vector", vector, (_ORIGIN, _MOVED), one, "Gaussian noise on a vector, Euclidean distance 1"),
        _exact("G1-local-number", clipped, (-50.0, 200.0), local,
            "local Gaussian noise, values clipped to the interval ends"),
        _exact("G1-local-vector", in_ball, opposite, local,
            "local Gaussian noise, opposite vectors clipped to the ball"),
    ]  # fmt: skip


def _too_little(
    name: str, mechanism: Any, pair: tuple[Any, Any], adjacency: Adjacency, note: str, runs: int = RUNS
) -> Case:
    """Return a false version with the bound on delta, where noise that is too small shows most of its excess."""
    claim = replace(mechanism.claim, bound_on="delta")
    return fails(name, mechanism, pair, adjacency, note, claim=claim, runs=runs)


def _sensitivity_versions() -> list[Case]:
    number = GaussianMechanism(1.0, 0.01, Interval(0, 10).diameter)
    vector = VectorGaussianMechanism(1.0, 0.01, Ball(2.0, 3).diameter)
    opposite, diagonal = ((4.0, -2.0, 0.0), (-4.0, 2.0, 0.0)), (_ORIGIN, (1.0, 1.0, 1.0))
    by_one = VectorGaussianMechanism(1.0, 0.01)
    one_of_three = "Gaussian noise for one changed coordinate, three changed"
    return [
        _too_little("G1-local-unclipped", number, (0.0, 20.0), Local(),
            "local Gaussian noise without clipping, twice the assumed distance"),
        _too_little("G1-local-unclipped-vector", vector, opposite, Local(),
            "local Gaussian noise without clipping, vectors outside the ball"),
        _too_little("G1-vector-one-coordinate", by_one, diagonal, Within("linf"), one_of_three),
    ]  # fmt: skip


def _on_a_half_line(name: str, variant: Any, note: str, *, runs: int, loss: float | None = None) -> Case:
    """Audit one bit of each output: whether its loss exceeds epsilon (or `loss`), an event that a pilot may miss."""
    below = IsBelow(variant, loss_threshold(*_UNIT, variant.scale, variant.claim.epsilon if loss is None else loss))
    whole = exact_delta(variant.distribution(0.0), variant.distribution(1.0), variant.claim.epsilon)
    note = f"{note}; delta of the whole output {whole:.3g}"
    claim = replace(variant.claim, bound_on="delta")
    return fails(name, below, _UNIT, Within("l2"), note, claim=claim, runs=runs)


def _statement_of(state: Callable[..., Case], name: str, mechanism: Any, pair: tuple[Any, Any], note: str) -> Case:
    return state(
        name,
        f"delta {mechanism.delta:g} is attained at epsilon {mechanism.epsilon:g}",
        partial(attained_delta, mechanism, *pair),
        exact=exact_delta(mechanism.distribution(pair[0]), mechanism.distribution(pair[1]), mechanism.epsilon),
        runs=_MANY,
        note=note,
    )


def _attained() -> list[Case]:
    true = true_statement
    over = faulty.VarianceAsScaleGaussian(1.0, 0.01)
    excess = "variance for the standard deviation, too much noise, smaller delta"
    vector, local = VectorGaussianMechanism(1.0, 0.01), LocalGaussianMechanism(1.0, 0.01, Interval(0, 10))
    return [
        _statement_of(true, "G1-attained", GaussianMechanism(1.0, 0.01), _UNIT,
            "Gaussian noise on a number, half-line as the best event"),
        _statement_of(true, "G1-attained-vector", vector, (_ORIGIN, _MOVED),
            "Gaussian noise on a vector, half-space as the best event"),
        _statement_of(true, "G1-attained-local", local, (-50.0, 200.0),
            "local Gaussian noise, values at the interval ends"),
        _statement_of(false_statement, "G1-attained-over-noised", over, _UNIT, excess),
    ]  # fmt: skip


def _classical() -> tuple[Case, ...]:
    one = Within("l2")
    at_one, at_half = (GaussianMechanism(epsilon, 0.01, calibration="classical") for epsilon in (1.0, 0.5))
    beyond = faulty.ClassicalBeyondOneGaussian(10.0, 0.1)
    note = "classical Gaussian noise at epsilon 10, outputs with a loss above 11"
    # At a loss of 10 only 20 counts on y are expected, each weighted with e^10.
    return (
        _exact("G2-at-1", at_one, _UNIT, one, "classical Gaussian noise at epsilon 1, the largest of the theorem"),
        _exact("G2-at-half", at_half, _UNIT, one, "classical Gaussian noise at epsilon 0.5"),
        _on_a_half_line("G2-at-10", beyond, note, runs=5_000_000, loss=11.0),
        _statement_of(
            false_statement, "G2-attained-at-1", at_one, _UNIT, "classical Gaussian noise, larger than needed"
        ),
    )


def _miscalibrated_audits() -> list[Case]:
    one, newton = Within("l2"), faulty.MisprintedNewtonGaussian(1.0, 1e-5)
    at_one, at_half = faulty.OneForEpsilonGaussian(1.0, 0.01), faulty.OneForEpsilonGaussian(0.5, 0.01)
    over, under = faulty.VarianceAsScaleGaussian(1.0, 1e-5), faulty.VarianceAsScaleGaussian(1.0, 1e-5, sensitivity=0.1)
    hidden = "too much noise, visible only in the standard deviation"
    above = faulty.OneForEpsilonGaussian(1.1, 1e-5)
    chi = "chi^2 + 1 for chi^2 + epsilon, too little noise, best half-line"
    misprint = "misprinted derivative, iteration stuck at its start, too little noise, best half-line"
    variance = "variance for the standard deviation 0.37, too little noise"
    return [
        _exact("G3-one-for-epsilon-at-1", at_one, _UNIT, one, "hard-coded 1 for epsilon, at epsilon 1, no effect"),
        _exact("G3-one-for-epsilon-at-0.5", at_half, _UNIT, one, hidden),
        _exact("G3-variance-over", over, _UNIT, one, hidden),
        _on_a_half_line("G3-one-for-epsilon-at-1.1", above, chi, runs=10_000_000),
        _on_a_half_line("G3-newton", newton, misprint, runs=20_000_000),
        _too_little("G3-variance-under", under, (0.0, 0.1), Within("l2", 0.1), variance),
    ]


def _scales() -> list[Case]:
    def case(state: Callable[..., Case], name: str, mechanism: Any, right: float, note: str) -> Case:
        location: Any = _ORIGIN if isinstance(mechanism, VectorGaussianMechanism) else 0.0
        measure = partial(noise_scale, mechanism, location, right)
        claimed = f"standard deviation {right:.4g}"
        return state(f"G3-scale-{name}", claimed, measure, exact=mechanism.scale, runs=100_000, note=note)

    right = [GaussianMechanism(0.5, 1e-5), GaussianMechanism(1.1, 1e-5), GaussianMechanism(2.0, 1e-5)]
    vector, at_one = VectorGaussianMechanism(1.0, 1e-5), faulty.OneForEpsilonGaussian(1.0, 1e-5)
    small = faulty.VarianceAsScaleGaussian(1.0, 1e-5, sensitivity=0.1)
    failure = "solver failure, twice the noise"
    hard_coded = ((0.5, "too much noise"), (1.1, "too little noise"), (2.0, failure), (4.0, failure))
    words, variance = "hard-coded 1 for epsilon, at epsilon", "variance for the standard deviation"
    wrong = [
        *((f"one-for-epsilon-at-{e:g}", faulty.OneForEpsilonGaussian(e, 1e-5), f"{words} {e:g}, {effect}")
            for e, effect in hard_coded),
        ("newton", faulty.MisprintedNewtonGaussian(1.0, 1e-5), "misprinted derivative, too little noise"),
        ("variance-under", small, f"{variance}, below 1, too little noise"),
        ("variance-over", faulty.VarianceAsScaleGaussian(1.0, 1e-5), f"{variance}, above 1, too much noise"),
    ]  # fmt: skip
    return [
        *(
            case(true_statement, f"at-{m.epsilon:g}", m, m.scale, f"exact calibration at epsilon {m.epsilon:g}")
            for m in right
        ),
        case(true_statement, "vector", vector, vector.scale, "exact calibration of three coordinates"),
        case(true_statement, "one-for-epsilon-at-1", at_one, at_one.right_scale,
            "hard-coded 1 for epsilon, at epsilon 1, no effect"),
        *(case(false_statement, name, variant, variant.right_scale, note) for name, variant, note in wrong),
    ]  # fmt: skip
