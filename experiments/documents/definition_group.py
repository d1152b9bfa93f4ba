"""Experiments D7 and D8: group privacy, and how it differs from composition."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from ...audit.claims.claim import ApproxDP, PureDP
from ...audit.datasets.adjacency import AddRemove, Local, Within
from ...mechanisms import (
    GaussianMechanism,
    GroupPrivacy,
    GroupTightMechanism,
    LaplaceMechanism,
    RandomisedResponseFold,
    advanced_composition,
)
from ...mechanisms.faulty import LocalSensitivityLaplace
from ..cases.audits import RUNS, fails, holds, stated
from ..cases.experiment import AuditCase, Experiment
from ..statements.figures import composition_figure, group_figure

EPSILON: Final = 0.5
DELTA: Final = 1e-3
_STEPS: Final = tuple(range(1, 9))
EACH: Final = 0.1
"""Epsilon of one mechanism or one step in D8."""
SLACK: Final = 0.01
"""The delta of the composition claims."""
_FOLDS: Final = (1, 2, 4, 8, 16, 32, 64)
_MANY: Final = 1_000_000  # the best event at a large epsilon is rare


def experiments() -> list[Experiment]:
    """Return experiments D7 and D8."""
    return [
        stated(
            "definition",
            "D7",
            "For datasets k steps apart, an (epsilon, delta)-DP mechanism is (k epsilon, delta (e^(k epsilon) - "
            "1)/(e^epsilon - 1))-DP, and therefore also (k epsilon, k e^((k-1) epsilon) delta)-DP.",
            "Dwork & Roth (2014), Theorem 2.2 and Section 2.3 (the product); compare Vadhan (2017), Lemma 2.2",
            (*_pure_groups(), *_groups_with_delta()),
            draw=partial(group_figure, epsilon=EPSILON, delta=DELTA),
        ),
        stated(
            "definition",
            "D8",
            "At a small delta, k composed mechanisms lose about sqrt(k) epsilon; a group of k loses k epsilon with or "
            "without a delta.",
            "Dwork & Roth (2014), Theorem 3.20 and Theorem 2.2",
            (*_folds(), *_distances()),
            draw=partial(composition_figure, epsilon=EACH, slack=SLACK),
        ),
    ]


def _pure_groups() -> list[AuditCase]:
    laplace, wrong, claim = LaplaceMechanism(EPSILON), LocalSensitivityLaplace(EPSILON), GroupPrivacy(EPSILON)
    one_step, two_steps = (
        "noise for one step from the empty dataset, distance 1",
        "noise for one step from the empty dataset, distance 2: 4 epsilon",
    )
    return [
        *(
            holds(
                f"D7-laplace-{k}",
                laplace,
                (0, k),
                Within("l1"),
                f"Laplace noise, tight at distance {k}",
                claim=claim,
                distance=k,
            )
            for k in _STEPS
        ),
        holds("D7-local-sensitivity-1", wrong, ([], [0]), AddRemove(), one_step, claim=claim, distance=1),
        fails("D7-local-sensitivity-2", wrong, ([], [0, 0]), AddRemove(), two_steps, claim=claim, distance=2),
    ]


def _groups_with_delta() -> list[AuditCase]:
    tight, gaussian = GroupTightMechanism(EPSILON, DELTA), GaussianMechanism(EPSILON, DELTA)
    sums = GroupPrivacy(EPSILON, DELTA, "sum", bound_on="delta")
    products = GroupPrivacy(EPSILON, DELTA, "product", bound_on="delta")
    last = _STEPS[-1]
    linear = ApproxDP(last * EPSILON, last * DELTA, bound_on="delta")
    kinds = (
        ("tight", tight, sums, _STEPS, RUNS, "mechanism that attains the sum of deltas"),
        (
            "tight-product",
            tight,
            products,
            (2, 8),
            RUNS,
            "mechanism that attains the sum of deltas, looser product form",
        ),
        ("gaussian", gaussian, products, (2, 4, 8), _MANY, "Gaussian noise, product form"),
    )
    cases = [
        holds(f"D7-{name}-{k}", mechanism, (0, k), Within("l1"), note, claim=claim, distance=k, runs=runs)
        for name, mechanism, claim, steps, runs, note in kinds
        for k in steps
    ]
    adjacency = Within("l1", float(last))
    for name, mechanism, words in (
        ("tight", tight, "mechanism that attains the sum of deltas"),
        ("gaussian", gaussian, "Gaussian noise"),
    ):
        note = f"{words}, claim of k delta at distance 8"
        cases.append(fails(f"D7-{name}-k-delta", mechanism, (0, last), adjacency, note, claim=linear, runs=_MANY))
    return cases


def composed_epsilon(k: int) -> float:
    """Return the smaller epsilon of simple and advanced composition, for k mechanisms of `EACH` at delta `SLACK`."""
    return min(k * EACH, advanced_composition(EACH, 0.0, k, SLACK)[0])


def _folds() -> list[AuditCase]:
    k, pair, note = _FOLDS[-1], (0, 1), "k randomised responses, smaller bound of simple and advanced composition"
    cases = []
    for n in _FOLDS:
        claim = ApproxDP(composed_epsilon(n), SLACK)
        cases.append(holds(f"D8-composed-{n}", RandomisedResponseFold(EACH, n), pair, Local(), note, claim=claim))
    root, note = (
        ApproxDP(math.sqrt(k) * EACH, SLACK),
        "64 randomised responses, sqrt(k) epsilon without the factor sqrt(2 ln(1/delta))",
    )
    return [*cases, fails("D8-composed-root", RandomisedResponseFold(EACH, k), pair, Local(), note, claim=root)]


def _distances() -> list[AuditCase]:
    laplace, k, group = LaplaceMechanism(EACH), _FOLDS[-1], GroupPrivacy(EACH)
    pair, adjacency, note = (0, k), Within("l1", float(k)), "Laplace noise, group of k at k epsilon"
    root, composed = PureDP(math.sqrt(k) * EACH), ApproxDP(composed_epsilon(k), SLACK)
    return [
        *(holds(f"D8-distance-{n}", laplace, (0, n), Within("l1"), note, claim=group, distance=n) for n in _FOLDS),
        fails(
            "D8-distance-root", laplace, pair, adjacency, "Laplace noise, group of 64 at sqrt(k) epsilon", claim=root
        ),
        fails(
            "D8-distance-composed",
            laplace,
            pair,
            adjacency,
            "Laplace noise, group of 64 at the composition bound",
            claim=composed,
        ),
    ]
