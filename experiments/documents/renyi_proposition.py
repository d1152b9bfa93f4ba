"""Rényi differential privacy of compositions, and Proposition 4 of Mironov (2017) on the probability of an event."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from ...audit.claims.mironov_propositions import NFoldComposition, ProbabilityPreservation
from ...audit.datasets.adjacency import Local, Within
from ...mechanisms import LaplaceMechanism, Law, RandomisedResponseFold, UpAndDown, composed, exact_renyi
from ..cases.experiment import (
    AuditCase,
    Experiment,
    StatementCase,
    false_statement,
    false_version,
    true_statement,
    true_version,
)
from .renyi_figures import boundary_figure
from .renyi_statements import LaplaceFold, divergence, events_of_all_sizes, exact_strength

DOCUMENT: Final = "renyi"
EPSILON: Final = 0.1
"""Of each composed mechanism in row R3."""
FOLDS: Final = (1, 10, 100)
_RUNS: Final = 200_000
_LOCAL: Final = Local()
_INSIDE: Final = {10: (-3, 4), 100: (-15, 16)}
"""Values that a search by n questions may reach, so that the answers change the questions."""


def experiments() -> list[Experiment]:
    """Rows R1 to R3."""
    return [
        Experiment(
            id="R1",
            document=DOCUMENT,
            statement="n adaptively composed epsilon-DP mechanisms have a Rényi divergence of order alpha of at most "
            "2 alpha n epsilon^2, and even of alpha n epsilon^2 / 2.",
            source="Mironov (2017), Proposition 1 and Lemma 1; Bun & Steinke (2016), Proposition 3.3",
            cases=(*_divergences(), *_one_more()),
        ),
        Experiment(
            id="R2",
            document=DOCUMENT,
            statement="A Rényi divergence D of order alpha allows an event of probability q on one dataset at most "
            "the probability (e^D q)^((alpha - 1)/alpha) on the other.",
            source="Mironov (2017), Proposition 10",
            cases=tuple(_preservation()),
        ),
        Experiment(
            id="R3",
            document=DOCUMENT,
            statement="n adaptively composed epsilon-DP mechanisms allow an event of probability q on one dataset at "
            "most the probability q exp(2 epsilon sqrt(n ln(1/q))) on the other.",
            source="Mironov (2017), Proposition 4",
            cases=(*_folds(), *_more_folds(), *_events()),
            draw=partial(boundary_figure, epsilon=EPSILON, folds=FOLDS),
        ),
    ]


def _divergences() -> list[StatementCase]:
    def case(name: str, mechanism: Any, x: Any, y: Any, exact: float, order: float, factor: float) -> StatementCase:
        stated = factor * order * mechanism.n * mechanism.epsilon_each**2
        note = f"{'the tight' if factor == 0.5 else 'the stated'} constant, {factor:g}"
        return true_statement(
            name,
            f"Rényi divergence of order {order:g} at most {stated:.4g}",
            partial(divergence, mechanism, x, y, order, stated),
            exact=exact,
            runs=_RUNS if mechanism.n < 100 else _RUNS // 2,
            note=note,
        )

    cases = []
    for n, order, factor in ((1, 2, 2), (10, 2, 2), (100, 2, 2), (10, 8, 2), (1, 2, 0.5), (10, 2, 0.5), (10, 8, 0.5)):
        fold = RandomisedResponseFold(0.3 if n < 100 else 0.1, n)
        name = f"R1-response-{n}-order-{order}" + ("-tight" if factor == 0.5 else "")
        cases.append(case(name, fold, 0, 1, exact_renyi(fold.law(0), fold.law(1), order), order, factor))
    search = UpAndDown(0.3, 10)
    for name, x, y in (("up-and-down", -10, 11), ("up-and-down-inside", 0, 3)):
        exact = exact_renyi(search.law(x), search.law(y), 2)
        cases.append(case(f"R1-{name}-10-order-2", search, x, y, exact, 2, 0.5))
    for n in FOLDS:
        laplace = LaplaceFold(0.3 if n < 100 else 0.1, n)
        cases.append(case(f"R1-laplace-{n}-order-2", laplace, 0, 1, laplace_divergence(laplace, 2), 2, 2))
    return cases


def laplace_divergence(fold: LaplaceFold, order: float) -> float:
    """Exact, of the values 0 and 1: that of `n` independent Laplace mechanisms, whose evidence the fold sums up."""
    product = composed(LaplaceMechanism(fold.epsilon_each), fold.n)
    return exact_renyi(product.law(0.0), product.law(1.0), order)


def _one_more() -> list[StatementCase]:
    cases = []
    for name, mechanism, exact, n, runs in (
        ("response-1", fold := RandomisedResponseFold(0.5, 2), exact_renyi(fold.law(0), fold.law(1), 2), 1, _RUNS),
        ("response-4", fold := RandomisedResponseFold(0.5, 5), exact_renyi(fold.law(0), fold.law(1), 2), 4, 10**6),
        ("laplace-1", laplace := LaplaceFold(0.5, 2), laplace_divergence(laplace, 2), 1, _RUNS),
    ):
        stated = 2 * n * mechanism.epsilon_each**2 / 2
        cases.append(
            false_statement(
                f"R1-one-more-{name}",
                f"Rényi divergence of order 2 at most {stated:.4g}",
                partial(divergence, mechanism, 0, 1, 2.0, stated),
                exact=exact,
                runs=runs,
                note=f"{n + 1} mechanisms, with the tight constant for {n}",
            )
        )
    return cases


def _preservation() -> list[AuditCase]:
    one, ten, search = RandomisedResponseFold(0.3, 1), RandomisedResponseFold(0.3, 10), UpAndDown(0.3, 10)
    laplace = LaplaceMechanism(0.3)
    cases = []
    for name, mechanism, x, y, order, note in (
        ("response-1-order-8", one, 0, 1, 8, "of a high order, almost tight"),
        ("response-10-order-2", ten, 0, 1, 2, "of a low order, loose"),
        ("response-10-order-8", ten, 0, 1, 8, "of a high order, closer"),
        ("up-and-down-10-order-8", search, 0, 3, 8, "adaptive, at the larger of the divergences of both directions"),
        ("laplace-1-order-8", laplace, 0.0, 1.0, 8, "one Laplace mechanism"),
    ):
        law_x, law_y = mechanism.law(x), mechanism.law(y)
        tau = max(exact_renyi(law_x, law_y, order), exact_renyi(law_y, law_x, order))
        claim = ProbabilityPreservation(order, tau)
        exact = exact_strength(claim, law_x, law_y)
        adjacency = Within("linf") if mechanism is laplace else _LOCAL
        rest: dict[str, Any] = {"exact": exact, "runs": _RUNS, "note": note}
        cases.append(true_version(f"R2-{name}", mechanism, x, y, claim, adjacency, **rest))
    fold = LaplaceFold(0.3, 10)
    claim = ProbabilityPreservation(8, laplace_divergence(fold, 8))
    rest = {"runs": _RUNS, "note": "ten Laplace mechanisms"}
    cases.append(true_version("R2-laplace-10-order-8", fold, 0.0, 1.0, claim, _LOCAL, **rest))

    for name, n, k, each, order in (("four-times", 10, 40, 0.1, 8), ("four-times-single", 1, 4, 0.3, 8)):
        few, many = RandomisedResponseFold(each, n), RandomisedResponseFold(each, k)
        claim = ProbabilityPreservation(order, exact_renyi(few.law(0), few.law(1), order))
        cases.append(
            false_version(
                f"R2-{name}",
                many,
                0,
                1,
                claim,
                _LOCAL,
                exact=exact_strength(claim, many.law(0), many.law(1)),
                runs=_RUNS,
                note=f"{k} responses, with the divergence of {n}",
            )
        )
    return cases


def _folds() -> list[AuditCase]:
    cases = []

    def case(name: str, mechanism: Any, x: Any, y: Any, laws: tuple[Law, Law] | None, note: str) -> None:
        n, each = mechanism.n, mechanism.epsilon_each
        claim = NFoldComposition(each, n)
        exact = None if laws is None else exact_strength(claim, *laws)
        note = f"{note}, n = {n}"
        cases.append(true_version(f"R3-{name}-{n}", mechanism, x, y, claim, _LOCAL, exact=exact, runs=_RUNS, note=note))

    for n in FOLDS:
        fold, laplace = RandomisedResponseFold(EPSILON, n), LaplaceMechanism(EPSILON)
        case("response", fold, 0, 1, (fold.law(0), fold.law(1)), "randomised response")
        known = (laplace.law(0.0), laplace.law(1.0)) if n == 1 else None
        case("laplace", LaplaceFold(EPSILON, n), 0.0, 1.0, known, "Laplace noise")
    for n, (x, y) in _INSIDE.items():
        each = EPSILON if n < 100 else EPSILON / 2  # at 0.1 no event of such a pair is near the boundary
        search, laplace_search = UpAndDown(each, n), LaplaceFold(each, n, is_adaptive=True)
        laws = search.law(x), search.law(y)
        case("response-adaptive", search, x, y, laws, "randomised response, the answers change the questions")
        case("laplace-adaptive", laplace_search, x, y, None, "Laplace noise, the answers change the questions")
        search = UpAndDown(EPSILON, n)
        laws = search.law(-n), search.law(n + 1)
        case("response-beyond", search, -n, n + 1, laws, "adaptive, but with values beyond all questions")
    vector = composed(LaplaceMechanism(EPSILON), 10)
    claim, note = NFoldComposition(EPSILON, 10), "the ten answers themselves, not their sum"
    cases.append(
        true_version("R3-laplace-answers-10", vector, 0.0, 1.0, claim, Within("linf"), runs=_RUNS // 2, note=note)
    )
    return cases


def _more_folds() -> list[AuditCase]:
    claim = NFoldComposition(EPSILON, 10)
    cases = []
    for version, name, mechanism, x, y, note in (
        (true_version, "twice", RandomisedResponseFold(EPSILON, 20), 0, 1, "twice as many cannot show"),
        (false_version, "four-times", RandomisedResponseFold(EPSILON, 40), 0, 1, "four times as many do"),
        (false_version, "four-times-adaptive", UpAndDown(EPSILON, 40), -40, 41, "and adaptive ones too"),
        (false_version, "nine-times", RandomisedResponseFold(EPSILON, 90), 0, 1, "nine times as many, by more"),
    ):
        exact = exact_strength(claim, mechanism.law(x), mechanism.law(y))
        runs = 10**6 if name.startswith("four") else _RUNS
        cases.append(version(f"R3-{name}", mechanism, x, y, claim, _LOCAL, exact=exact, runs=runs, note=note))
    return cases


def _events() -> list[StatementCase]:
    def measure(mechanism: Any, x: Any, y: Any, n: int) -> Any:
        return partial(events_of_all_sizes, mechanism, x, y, NFoldComposition(EPSILON, n))

    cases = []
    for n in FOLDS:
        stated = f"p <= q exp({2 * EPSILON:g} sqrt({n} ln 1/q)) for every event"
        rest: dict[str, Any] = {"runs": _RUNS if n < 100 else _RUNS // 2, "note": f"up to ten events, n = {n}"}
        fold = RandomisedResponseFold(EPSILON, n)
        laplace = LaplaceFold(EPSILON, n) if n > 1 else LaplaceMechanism(EPSILON)  # whose rare events the sum clips
        cases.append(true_statement(f"R3-events-response-{n}", stated, measure(fold, 0, 1, n), **rest))
        cases.append(true_statement(f"R3-events-laplace-{n}", stated, measure(laplace, 0, 1, n), **rest))
        if n in _INSIDE:
            adaptive = measure(LaplaceFold(EPSILON, n, is_adaptive=True), *_INSIDE[n], n)
            cases.append(true_statement(f"R3-events-adaptive-{n}", stated, adaptive, **rest))
    cases.append(
        false_statement(
            "R3-events-four-times",
            f"p <= q exp({2 * EPSILON:g} sqrt(10 ln 1/q)) for every event",
            measure(RandomisedResponseFold(EPSILON, 40), 0, 1, 10),
            runs=10**6,
            note="40 mechanisms claimed as 10",
        )
    )
    return cases
