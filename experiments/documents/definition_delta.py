"""Experiments D5 and D6: the meaning of delta, and the number of people that it may expose."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import ApproxDP, PureDP
from ...audit.datasets.adjacency import Replace, Within
from ...audit.events.outputs import Outputs
from ...audit.results.statement_result import StatementResult
from ...mechanisms import BinomialMechanism, GaussianMechanism, NameAndShame, exact_delta, gaussian_loss_tail
from ...mechanisms.faulty import TwiceExposed
from ...mechanisms.local.name_and_shame import HIDDEN
from ..cases.audits import RUNS, fails, holds, stated
from ..cases.experiment import Case, Experiment, false_statement, true_statement
from ..cases.proportions import proportion, proportion_result
from ..cases.simulate import blocks, event_hits
from ..statements.gaussian_statements import attained_delta

_PEOPLE: Final = 20
_MANY: Final = 1_000_000


def experiments() -> list[Experiment]:
    """Return experiments D5 and D6."""
    return [
        stated(
            "definition",
            "D5",
            "Gaussian and binomial noise need a delta, and delta is not the probability that the privacy loss exceeds "
            "epsilon.",
            "Dwork & Roth (2014), Definition 2.4 and Section 3.5.1; Balle & Wang (2018)",
            (*_noise(), *_loss()),
        ),
        stated(
            "definition",
            "D6",
            "If each of n people is exposed with probability delta, delta n people are exposed on average; with delta "
            "= 1/(100 n), 99 runs of 100 expose nobody.",
            "Dwork & Roth (2014), after Definition 2.4",
            _exposed(),
        ),
    ]


def _noise() -> list[Case]:
    gaussian, coins = GaussianMechanism(1.0, 0.01), BinomialMechanism(n_flips=16, epsilon=1.0)
    pair, cases = (0, 1), list[Case]()
    for name, words, mechanism, adjacency in (
        ("gaussian", "Gaussian noise", gaussian, Within("l2")),
        ("binomial", "binomial noise", coins, Within("l1")),
    ):
        exact = exact_delta(mechanism.law(0), mechanism.law(1), 1.0)
        claim = replace(mechanism.claim, bound_on="delta")
        half, pure = replace(claim, delta=exact / 2), PureDP(1.0)
        measure, smallest = partial(attained_delta, mechanism, *pair), f"{words}, smallest delta at epsilon 1"
        halved, given = f"{words}, claim at half the true delta", (mechanism, pair, adjacency)
        cases += [
            holds(f"D5-{name}", *given, f"{words}, tight delta", claim=claim),
            fails(f"D5-{name}-half-delta", *given, halved, claim=half, runs=_MANY),
            fails(f"D5-{name}-pure", *given, f"{words}, pure claim", claim=pure, runs=_MANY),
            true_statement(f"D5-{name}-attained", "delta is attained", measure, note=smallest, exact=exact, runs=_MANY),
        ]
    return cases


def loss_tail(
    mechanism: GaussianMechanism, low: float, high: float, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """Check that Pr[privacy loss > ε] lies in [low, high], for the answer 0 against one a sensitivity away."""
    law_x, law_y = mechanism.law(0.0), mechanism.law(mechanism.sensitivity)

    def loses_more(outputs: Outputs) -> npt.NDArray[np.bool_]:
        return law_x.log_density(outputs) - law_y.log_density(outputs) > mechanism.epsilon

    hits = int(event_hits(mechanism, 0.0, loses_more, runs, seed=seed)[0])
    statement = f"The probability that the privacy loss exceeds epsilon is between {low:.3g} and {high:.3g}."
    settings: dict[str, Any] = {"runs": runs, "alpha": alpha, "seed": seed, "largest_width": high}
    return proportion_result(statement, "Pr[loss > epsilon]", (low, high), hits, **settings)


def _loss() -> list[Case]:
    mechanism = GaussianMechanism(1.0, 1e-5)
    exact = gaussian_loss_tail(mechanism.epsilon, mechanism.scale)
    rest: dict[str, Any] = {"exact": exact, "runs": _MANY}
    return [
        true_statement(
            "D5-loss-tail",
            f"Pr[loss > epsilon] = {exact:.3g}",
            partial(loss_tail, mechanism, exact, exact),
            note="Gaussian noise, exact loss tail Phi(mu/2 - epsilon/mu), sixteen times delta",
            **rest,
        ),
        false_statement(
            "D5-loss-at-most-delta",
            "Pr[loss > epsilon] <= delta",
            partial(loss_tail, mechanism, 0.0, mechanism.delta),
            note="Gaussian noise, (epsilon, delta)-DP misread as epsilon-DP with probability 1 - delta",
            **rest,
        ),
    ]


def exposed_counts(mechanism: Any, n_people: int, runs: int, *, seed: int) -> npt.NDArray[np.int64]:
    """Count the runs that expose 0, 1, …, n_people people; shape (n_people + 1,)."""
    counts = np.zeros(n_people + 1, dtype=np.int64)
    for outputs in blocks(mechanism, range(n_people), runs, seed=seed, stream=0):
        counts += np.bincount((outputs != HIDDEN).sum(axis=1), minlength=n_people + 1)
    return counts


def number_exposed(
    mechanism: Any, n_people: int, delta: float, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """Check the mean number of people exposed in a run and Pr[0], Pr[1], Pr[2 or more] against Binomial(n, delta).

    People and runs are independent, so the total over all runs is binomial too, with n·runs trials.
    """
    from scipy.stats import binom  # takes long to import

    counts = exposed_counts(mechanism, n_people, runs, seed=seed)
    total, law = int(counts @ np.arange(n_people + 1)), binom(n_people, delta)
    measured = (
        ("mean", total, n_people * runs, n_people, law.mean()),
        ("Pr[0]", int(counts[0]), runs, 1, law.pmf(0)),
        ("Pr[1]", int(counts[1]), runs, 1, law.pmf(1)),
        ("Pr[2 or more]", int(counts[2:].sum()), runs, 1, law.sf(1)),
    )
    each = alpha / len(measured)
    points = tuple(
        proportion(hits, trials, each, low=float(stated), high=float(stated), unit=unit, at=name)
        for name, hits, trials, unit, stated in measured
    )
    return StatementResult(
        statement=f"The number of people exposed is Binomial({n_people}, {delta:g}).",
        quantity="people exposed",
        points=points,
        alpha=alpha,
        method="exact limits of probabilities (Clopper-Pearson), a quarter of alpha each",
        runs=runs,
        seed=seed,
        largest_width=n_people * delta,
    )


def nobody_exposed(
    mechanism: Any, n_people: int, least: float, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """Check that a run exposes nobody with probability at least `least`."""
    hits = int(exposed_counts(mechanism, n_people, runs, seed=seed)[0])
    statement = f"A run exposes nobody with probability at least {least:g}."
    settings: dict[str, Any] = {"runs": runs, "alpha": alpha, "seed": seed, "largest_width": 1.0 - least}
    return proportion_result(statement, "Pr[nobody exposed]", (least, 1.0), hits, **settings)


def _exposed() -> list[Case]:
    delta = 1 / (100 * _PEOPLE)
    mean, none = _PEOPLE * delta, (1 - delta) ** _PEOPLE
    claim, pair = ApproxDP(0.0, 0.01, bound_on="delta"), ([1, 2, 3], [1, 2, 4])
    cases, replacements = list[Case](), list[Case]()
    for name, words, kind, factor, statement, audit, notes in (
        ("exposed", "name and shame", NameAndShame, 1, true_statement, holds, (f"mean {mean:g}", f"{none:.5f}")),
        ("twice", "double exposure", TwiceExposed, 2, false_statement, fails, ("twice the mean", "only 98%")),
    ):
        mechanism, replaced = kind(delta), f"{words}, one of three rows replaced"
        cases += [
            statement(
                f"D6-{name}-number",
                f"Binomial({_PEOPLE}, {delta:g})",
                partial(number_exposed, mechanism, _PEOPLE, delta),
                exact=factor * mean,
                runs=RUNS,
                note=f"{words}, number of people exposed, {notes[0]}",
            ),
            statement(
                f"D6-{name}-nobody",
                "Pr[nobody exposed] >= 99%",
                partial(nobody_exposed, mechanism, _PEOPLE, 0.99),
                exact=(1 - factor * delta) ** _PEOPLE,
                runs=RUNS,
                note=f"{words}, probability of nobody exposed, {notes[1]}",
            ),
        ]
        replacements.append(audit(f"D6-{name}-replaced", kind(0.01), pair, Replace(), replaced, claim=claim))
    return [*cases, *replacements]
