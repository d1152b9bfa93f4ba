"""Rows D7 and D8: what a claim for neighbours says of groups, and how that differs from composition."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

from ...audit.claims.pure_approx_gaussian import ApproxDP, PureDP
from ...audit.datasets.adjacency import AddRemove, Local, Within
from ...mechanisms import (
    GaussianMechanism,
    GroupPrivacy,
    GroupTightMechanism,
    LaplaceMechanism,
    RandomisedResponseFold,
    advanced_composition,
    exact_delta,
    exact_epsilon,
)
from ...mechanisms.faulty import LocalSensitivityLaplace
from ..cases.experiment import AuditCase, Experiment, false_version, true_version
from .definition_figures import composition_figure, group_figure

EPSILON: Final = 0.5
DELTA: Final = 1e-3
_STEPS: Final = tuple(range(1, 9))
EACH: Final = 0.1
"""In row D8, epsilon of one mechanism or one step."""
SLACK: Final = 0.01
"""The delta at which compositions are measured."""
_FOLDS: Final = (1, 2, 4, 8, 16, 32, 64)
_RUNS: Final = 200_000
_MORE_RUNS: Final = 1_000_000  # the best event at a large epsilon is rare


def experiments() -> list[Experiment]:
    """The two rows."""
    return [
        Experiment(
            id="D7",
            document="definition",
            statement="A mechanism that is (epsilon, delta)-DP is (k epsilon, delta (e^(k epsilon) - 1)/(e^epsilon - "
            "1))-DP for datasets k steps apart, and so (k epsilon, k e^((k-1) epsilon) delta)-DP too.",
            source="Dwork & Roth (2014), Theorem 2.2 and Section 2.3 (the product); compare Vadhan (2017), Lemma 2.2",
            cases=(*_pure_groups(), *_groups_with_delta()),
            draw=partial(group_figure, epsilon=EPSILON, delta=DELTA),
        ),
        Experiment(
            id="D8",
            document="definition",
            statement="k mechanisms together lose about sqrt(k) epsilon at a small delta; a group of k loses k "
            "epsilon, with a delta or without.",
            source="Dwork & Roth (2014), Theorem 3.20 and Theorem 2.2",
            cases=(*_folds(), *_distances()),
            draw=partial(composition_figure, epsilon=EACH, slack=SLACK),
        ),
    ]


def _pure_groups() -> list[AuditCase]:
    laplace, wrong, claim = LaplaceMechanism(EPSILON), LocalSensitivityLaplace(EPSILON), GroupPrivacy(EPSILON)
    cases = [
        true_version(
            f"D7-laplace-{k}",
            laplace,
            0,
            k,
            claim,
            Within("l1"),
            distance=k,
            exact=exact_epsilon(laplace.law(0), laplace.law(k)),
            runs=_RUNS,
            note="tight at every distance",
        )
        for k in _STEPS
    ]
    for k, version, note in (
        (1, true_version, "one step from the empty dataset the answer moves by 1, as was assumed"),
        (2, false_version, "two steps from there it moves by 4"),
    ):
        rows = [0] * k
        exact = exact_epsilon(wrong.law([]), wrong.law(rows))
        rest: dict[str, Any] = {"distance": k, "exact": exact, "runs": _RUNS, "note": note}
        cases.append(version(f"D7-local-sensitivity-{k}", wrong, [], rows, claim, AddRemove(), **rest))
    return cases


def _groups_with_delta() -> list[AuditCase]:
    tight, normal = GroupTightMechanism(EPSILON, DELTA), GaussianMechanism(EPSILON, DELTA)
    cases = []
    sums = GroupPrivacy(EPSILON, DELTA, "sum", bound_on="delta")
    products = GroupPrivacy(EPSILON, DELTA, "product", bound_on="delta")
    for name, mechanism, claim, steps, runs, note in (
        ("tight", tight, sums, _STEPS, _RUNS, "a mechanism that attains the sum"),
        ("tight-product", tight, products, (2, 8), _RUNS, "the sum is at most k times its largest term"),
        ("gaussian", normal, products, (2, 4, 8), _MORE_RUNS, "normal noise stays below both forms"),
    ):
        for k in steps:
            exact = exact_delta(mechanism.law(0), mechanism.law(k), k * EPSILON)
            rest: dict[str, Any] = {"distance": k, "exact": exact, "runs": runs, "note": note}
            cases.append(true_version(f"D7-{name}-{k}", mechanism, 0, k, claim, Within("l1"), **rest))
    k = _STEPS[-1]
    for name, mechanism in (("tight", tight), ("gaussian", normal)):
        cases.append(
            false_version(
                f"D7-{name}-k-delta",
                mechanism,
                0,
                k,
                ApproxDP(k * EPSILON, k * DELTA, bound_on="delta"),
                Within("l1", float(k)),
                exact=exact_delta(mechanism.law(0), mechanism.law(k), k * EPSILON),
                runs=_MORE_RUNS,
                note="k delta alone is not enough: neighbours are all within 8",
            )
        )
    return cases


def composed_epsilon(k: int) -> float:
    """The smaller of what simple and advanced composition give k mechanisms of epsilon `EACH`, at delta `SLACK`."""
    return min(k * EACH, advanced_composition(EACH, 0.0, k, SLACK)[0])


def _folds() -> list[AuditCase]:
    folds = {k: RandomisedResponseFold(EACH, k) for k in _FOLDS}
    exact = {k: exact_epsilon(fold.law(0), fold.law(1), SLACK) for k, fold in folds.items()}
    cases = [
        true_version(
            f"D8-composed-{k}",
            fold,
            0,
            1,
            ApproxDP(composed_epsilon(k), SLACK),
            Local(),
            exact=exact[k],
            runs=_RUNS,
            note="simple or advanced composition, whichever gives less",
        )
        for k, fold in folds.items()
    ]
    k = _FOLDS[-1]
    root = false_version(
        "D8-composed-root",
        folds[k],
        0,
        1,
        ApproxDP(math.sqrt(k) * EACH, SLACK),
        Local(),
        exact=exact[k],
        runs=_RUNS,
        note="sqrt(k) epsilon without the factor sqrt(2 ln(1/delta)) is too little",
    )
    return [*cases, root]


def _distances() -> list[AuditCase]:
    laplace, k = LaplaceMechanism(EACH), _FOLDS[-1]
    law = laplace.law(0)
    cases = [
        true_version(
            f"D8-distance-{steps}",
            laplace,
            0,
            steps,
            GroupPrivacy(EACH),
            Within("l1"),
            distance=steps,
            exact=exact_epsilon(law, laplace.law(steps)),
            runs=_RUNS,
            note="k epsilon, and attained",
        )
        for steps in _FOLDS
    ]
    for name, claim, delta, note in (
        ("root", PureDP(math.sqrt(k) * EACH), 0.0, "sqrt(k) epsilon for a group of 64"),
        ("composed", ApproxDP(composed_epsilon(k), SLACK), SLACK, "nor does a delta help a group as it helps 64 runs"),
    ):
        exact = exact_epsilon(law, laplace.law(k), delta)
        rest: dict[str, Any] = {"exact": exact, "runs": _RUNS, "note": note}
        cases.append(false_version(f"D8-distance-{name}", laplace, 0, k, claim, Within("l1", float(k)), **rest))
    return cases
