"""Laplace noise by the inverse CDF, distances of datasets, and sequential and parallel composition."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from ...audit.claims.pure_approx_gaussian import PureDP
from ...audit.datasets.adjacency import AddRemove, Local, Replace, Within
from ...mechanisms import (
    AdaptiveComposition,
    ChainLaw,
    GaussianMechanism,
    GeometricMechanism,
    GroupPrivacy,
    GroupTightMechanism,
    HistogramMechanism,
    IntervalOf,
    LaplaceByInverseCDF,
    LaplaceMechanism,
    ParallelComposition,
    RandomisedResponse,
    SequentialComposition,
    exact_epsilon,
)
from ...mechanisms.faulty import (
    AnswerInTheBranchLaplace,
    ClosedEndLaplace,
    MixedUniformsLaplace,
    OverlappingPartCounts,
    PartCountsForReplace,
    SharedNoiseLaplace,
    UndercountedComposition,
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
from .laplace_statements import AtEveryDistance, cdf_distance, exact_distance

DOCUMENT: Final = "laplace-composition"
EPSILON: Final = 0.5
_RUNS: Final = 100_000
_NAMES: Final = ["Ann", "Bob", "Cem", "Dai", "Eva"]
_AGES: Final = [3.0, 18.0, 20.0, 64.0, 65.0, 99.0]
_ONE_OF_EACH: Final = (5.0, 40.0, 80.0)
"""A row for each part of `_BY_AGE`."""
_BY_AGE: Final = IntervalOf((18, 65))
_UNEQUAL: Final = (0.25, 1.0, 0.5)


def experiments() -> list[Experiment]:
    """Rows L1 to L6."""
    return [
        Experiment(
            id="L1",
            document=DOCUMENT,
            statement="mu - b sgn(xi) ln(1 - 2|xi|) has the Laplace law of location mu and scale b, where xi is "
            "uniform on (-1/2, 1/2).",
            source="Devroye (1986), Section II.2 (inversion); two misprints of the formula",
            cases=(*_distribution(), *_samplers()),
        ),
        Experiment(
            id="L2",
            document=DOCUMENT,
            statement="The distance of two datasets is the size of their symmetric difference; neighbours are at "
            "distance 1, and a claim for them says less at distance 2.",
            source="McSherry (2009), Definition 1",
            cases=tuple(_distances()),
        ),
        Experiment(
            id="L3",
            document=DOCUMENT,
            statement="An epsilon-DP mechanism has Pr[A(D) in S] <= exp(epsilon |D ⊕ D'|) Pr[A(D') in S] for every "
            "event S and all datasets.",
            source="McSherry (2009), Definition 1; Dwork & Roth (2014), Theorem 2.2",
            cases=tuple(_groups()),
        ),
        Experiment(
            id="L4",
            document=DOCUMENT,
            statement="Mechanisms that are (epsilon_i, delta_i)-DP are together (sum of epsilon_i, sum of delta_i)-DP, "
            "if their randomness is independent.",
            source="Dwork & Roth (2014), Theorem 3.16; McSherry (2009), Theorem 3",
            cases=(*_sums(), *_wrong_sums()),
        ),
        Experiment(
            id="L5",
            document=DOCUMENT,
            statement="epsilon-DP mechanisms on the disjoint parts of the data are together epsilon-DP, where rows are "
            "added or removed.",
            source="McSherry (2009), Theorem 4",
            cases=tuple(_parallel()),
        ),
        Experiment(
            id="L6",
            document=DOCUMENT,
            statement="Mechanisms with different epsilon_i on the disjoint parts are together (max epsilon_i)-DP, and "
            "a row of part i loses epsilon_i.",
            source="McSherry (2009), Theorem 4 with unequal parts",
            cases=tuple(_unequal_parts()),
        ),
    ]


def _distribution() -> list[StatementCase]:
    right = LaplaceMechanism(EPSILON)
    reach = 40 * right.scale

    def case(state: Any, name: str, mechanism: Any, answer: float, note: str, runs: int = _RUNS) -> StatementCase:
        exact = exact_distance(mechanism.law(answer), right.law(answer), answer - reach, answer + reach)
        measure = partial(cdf_distance, mechanism, right, answer)
        claimed = f"Laplace with location {answer:g} and scale {right.scale:g}"
        return state(f"L1-{name}", claimed, measure, exact=exact, runs=runs, note=note)  # type: ignore[no-any-return]

    second, mixed = AnswerInTheBranchLaplace(EPSILON), MixedUniformsLaplace(EPSILON)
    return [
        case(true_statement, "inverse", LaplaceByInverseCDF(EPSILON), 0.0, "the formula as it should read"),
        case(true_statement, "inverse-at-3", LaplaceByInverseCDF(EPSILON), 3.0, "with another location"),
        case(true_statement, "mechanism", right, 3.0, "the reference mechanism"),
        case(
            true_statement,
            "closed-end",
            ClosedEndLaplace(EPSILON),
            0.0,
            "xi = -1/2 gives minus infinity, once in 2^53 draws: no test that draws will find it",
        ),
        case(false_statement, "second-branch", second, 0.0, "mu for xi in the second branch: half the draws are equal"),
        case(false_statement, "second-branch-at-3", second, 3.0, "beyond 1 it is the logarithm of a negative number"),
        case(false_statement, "mixed", mixed, 0.0, "xi for xi': half the draws are no numbers"),
        case(
            false_statement,
            "tenth-less-noise",
            LaplaceMechanism(1.1 * EPSILON),
            0.0,
            "right but for the scale, a tenth off",
            runs=1_000_000,
        ),
    ]


def _samplers() -> list[AuditCase]:
    return [
        _audit(true_version, "L1-inverse-audit", LaplaceByInverseCDF(EPSILON), 0.0, 1.0, Within("linf"), "keeps it"),
        *(
            _audit(false_version, f"L1-{name}-audit", twin, x, x + 1, Within("linf"), "what it draws gives x away")
            for name, twin, x in (
                ("second-branch", AnswerInTheBranchLaplace(EPSILON), 0.0),
                ("mixed", MixedUniformsLaplace(EPSILON), 0.0),
            )
        ),
    ]


def _audit(
    version: Any, name: str, mechanism: Any, x: Any, y: Any, adjacency: Any, note: str, claim: Any = None, **rest: Any
) -> AuditCase:
    """An audit of a pure claim, the mechanism's own unless another is given, with the exact loss on the pair."""
    given = mechanism.claim if claim is None else claim
    rest = {"exact": exact_epsilon(mechanism.law(x), mechanism.law(y)), "runs": _RUNS, "note": note, **rest}
    return version(name, mechanism, x, y, given, adjacency, **rest)  # type: ignore[no-any-return]


def _distances() -> list[AuditCase]:
    count, histogram = LaplaceMechanism(EPSILON, query=len), HistogramMechanism(EPSILON, 3)
    three, one = _NAMES[:3], _NAMES[:1]
    group, same = GroupPrivacy(EPSILON), AtEveryDistance(PureDP(EPSILON))
    zeros, other = [0, 0, 1], [0, 2, 1]  # a row out and a row in: two steps
    rows = AddRemove()
    return [
        _audit(true_version, "L2-one-removed", count, three, three[:2], rows, "siblings: one row more"),
        _audit(true_version, "L2-two-removed", count, three, one, rows, "distance 2, twice epsilon", group, distance=2),
        _audit(true_version, "L2-exchanged", histogram, zeros, other, rows, "one row for another", group, distance=2),
        _audit(false_version, "L2-two-removed-epsilon", count, three, one, rows, "as if siblings", same, distance=2),
        _audit(
            false_version, "L2-exchanged-epsilon", histogram, zeros, other, rows, "as if siblings", same, distance=2
        ),
    ]


def _groups() -> list[AuditCase]:
    count, claim = GeometricMechanism(EPSILON, query=len), GroupPrivacy(EPSILON)
    cases = []
    for k in (1, 2, 3, 4):
        rest: dict[str, Any] = {"distance": k}
        name, note = f"L3-group-{k}", "tight at every distance"
        cases.append(_audit(true_version, name, count, _NAMES, _NAMES[k:], AddRemove(), note, claim, **rest))
    for k in (2, 4):
        rest = {"distance": k}
        same, note = AtEveryDistance(PureDP(EPSILON)), f"e^epsilon at distance {k}"
        name = f"L3-epsilon-at-{k}"
        cases.append(_audit(false_version, name, count, _NAMES, _NAMES[k:], AddRemove(), note, same, **rest))
    return cases


def then_laplace(answer: int) -> LaplaceMechanism:
    """The second question of an adaptive composition: noisier after a no."""
    return LaplaceMechanism(EPSILON if answer == 1 else EPSILON / 2)


def then_gaussian(answer: int) -> LaplaceMechanism | GaussianMechanism:
    """Normal noise after a yes, Laplace noise after a no."""
    return GaussianMechanism(EPSILON, 0.05) if answer == 1 else LaplaceMechanism(EPSILON)


def _sums() -> list[AuditCase]:
    different = SequentialComposition(
        (LaplaceMechanism(EPSILON, query=len), GeometricMechanism(EPSILON / 2, query=len))
    )
    cases = [
        _audit(
            true_version, "L4-two-counts", different, _NAMES[:3], _NAMES[:2], AddRemove(), "independent noise: the sum"
        )
    ]
    bits = GroupTightMechanism(EPSILON, 0.05, start=0.05), GroupTightMechanism(EPSILON / 2, 0.02, start=0.1)
    both = SequentialComposition(bits)
    # A product law knows its divergence at delta 0 only; of a finite law and another one a chain law knows it always.
    law_x, law_y = (ChainLaw(bits[0].law(n), (bits[1].law(n),) * 2) for n in (1, 2))
    cases.append(
        true_version(
            "L4-two-deltas",
            both,
            1,
            2,
            both.claim,
            Within("l1"),
            exact=exact_epsilon(law_x, law_y, sum(bit.delta for bit in bits)),
            runs=_RUNS,
            note="both epsilons and both deltas add up",
        )
    )
    for name, then, then_claim, note in (
        ("adaptive", then_laplace, LaplaceMechanism(EPSILON).claim, "the second question depends on the first answer"),
        ("adaptive-delta", then_gaussian, GaussianMechanism(EPSILON, 0.05).claim, "and one of its answers has a delta"),
    ):
        composition = AdaptiveComposition(RandomisedResponse(1.0), then, then_claim)
        delta = getattr(composition.claim, "delta", 0.0)
        exact = exact_epsilon(composition.law(0), composition.law(1), delta)
        rest: dict[str, Any] = {"exact": exact, "runs": _RUNS, "note": note}
        cases.append(true_version(f"L4-{name}", composition, 0, 1, composition.claim, Local(), **rest))
    shared = SharedNoiseLaplace(EPSILON, (len, sum))
    note = "the same noise twice, unseen where both answers move alike"
    cases.append(_audit(true_version, "L4-reuse-unseen", shared, [1, 1, 1], [1, 1], AddRemove(), note))
    return cases


def _wrong_sums() -> list[AuditCase]:
    shared = SharedNoiseLaplace(EPSILON, (len, sum))
    once = UndercountedComposition(GeometricMechanism(EPSILON), 4)
    root = UndercountedComposition(RandomisedResponse(EPSILON), 4, charged=2)
    return [
        _audit(
            false_version,
            "L4-reuse",
            shared,
            [1, 1, 1],
            [1, 1, 1, 0],
            AddRemove(),
            "the same noise twice cancels in the difference",
        ),
        _audit(false_version, "L4-charged-once", once, 0, 1, Within("l1"), "four runs, one paid for"),
        _audit(false_version, "L4-charged-root", root, 0, 1, Local(), "four runs, sqrt(4) paid for"),
    ]


def _parallel() -> list[AuditCase]:
    disjoint = ParallelComposition([LaplaceMechanism(EPSILON, query=len)] * 3, _BY_AGE)
    overlapping = OverlappingPartCounts(EPSILON, (0, 18, 65, 120))
    moved = PartCountsForReplace(EPSILON, (18, 65))
    young, middle, old = ([*_AGES, row] for row in _ONE_OF_EACH)
    rows, twice = AddRemove(), PureDP(2 * EPSILON)
    return [
        _audit(true_version, "L5-disjoint", disjoint, _AGES, middle, rows, "a row is in one part"),
        _audit(true_version, "L5-overlapping-unseen", overlapping, _AGES, middle, rows, "a row that is in one of them"),
        _audit(true_version, "L5-replace-twice", moved, young, old, Replace(), "2 epsilon where a row moves", twice),
        _audit(false_version, "L5-overlapping", overlapping, _AGES, [*_AGES, 65.0], rows, "65 is in two parts"),
        _audit(false_version, "L5-replace", moved, young, old, Replace(), "a row leaves one part and enters another"),
    ]


def _unequal_parts() -> list[AuditCase]:
    parts = ParallelComposition([LaplaceMechanism(epsilon, query=len) for epsilon in _UNEQUAL], _BY_AGE)
    largest, smallest = parts.claim, PureDP(min(_UNEQUAL))
    cases = []
    for i, (epsilon, row) in enumerate(zip(_UNEQUAL, _ONE_OF_EACH, strict=True)):
        pair, note = (_AGES, [*_AGES, row]), f"a row of part {i} loses epsilon_{i}"
        cases.append(_audit(true_version, f"L6-part-{i}", parts, *pair, AddRemove(), note, PureDP(epsilon)))
    cases.append(
        _audit(true_version, "L6-largest", parts, _AGES, [*_AGES, _ONE_OF_EACH[2]], AddRemove(), "the largest", largest)
    )
    for i in (1, 2):
        pair, note = (_AGES, [*_AGES, _ONE_OF_EACH[i]]), f"the smallest epsilon claimed, a row of part {i}"
        cases.append(_audit(false_version, f"L6-smallest-{i}", parts, *pair, AddRemove(), note, smallest))
    return cases
