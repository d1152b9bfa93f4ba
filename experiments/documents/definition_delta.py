"""Rows D5 and D6: what a delta is, and how many people it may cost."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from ...audit.claims.pure_approx_gaussian import ApproxDP, PureDP
from ...audit.datasets.adjacency import Replace, Within
from ...audit.events.outputs import Outputs
from ...audit.inference.binomial_tails import clopper_pearson
from ...audit.results.statement_result import Point, StatementResult
from ...mechanisms import (
    BinomialMechanism,
    GaussianMechanism,
    NameAndShame,
    exact_delta,
    exact_epsilon,
    gaussian_loss_tail,
)
from ...mechanisms.faulty import TwiceExposed
from ...mechanisms.local.name_and_shame import HIDDEN
from ..cases.experiment import Case, Experiment, false_statement, false_version, true_statement, true_version
from ..cases.simulate import blocks, event_hits
from .gaussian_statements import attained_delta

_PEOPLE: Final = 20


def experiments() -> list[Experiment]:
    """The two rows."""
    return [
        Experiment(
            id="D5",
            document="definition",
            statement="Normal and binomial noise need a delta, and the delta is no probability that the loss passes "
            "epsilon.",
            source="Dwork & Roth (2014), Definition 2.4 and Section 3.5.1; Balle & Wang (2018)",
            cases=(*_noise(), *_loss()),
        ),
        Experiment(
            id="D6",
            document="definition",
            statement="If each of n people is exposed with probability delta, delta n are on average, and with delta = "
            "1/(100 n) nobody is in 99 runs of 100.",
            source="Dwork & Roth (2014), after Definition 2.4",
            cases=tuple(_exposed()),
        ),
    ]


def _noise() -> list[Case]:
    normal, coins = GaussianMechanism(1.0, 0.01), BinomialMechanism(n_flips=16, epsilon=1.0)
    cases: list[Case] = []
    for name, mechanism, adjacency in (
        ("gaussian", normal, Within("l2")),
        ("binomial", coins, Within("l1")),
    ):
        laws = mechanism.law(0), mechanism.law(1)
        claim = replace(mechanism.claim, bound_on="delta")
        attained = exact_delta(*laws, 1.0)
        kind: dict[str, Any] = {"runs": 200_000, "exact": attained}
        cases += [
            true_version(f"D5-{name}", mechanism, 0, 1, claim, adjacency, note="tight", **kind),
            false_version(
                f"D5-{name}-half-delta",
                mechanism,
                0,
                1,
                replace(claim, delta=attained / 2),
                adjacency,
                note="half of its delta is not enough",
                exact=attained,
            ),
            false_version(
                f"D5-{name}-pure",
                mechanism,
                0,
                1,
                PureDP(1.0),
                adjacency,
                exact=exact_epsilon(*laws),
                note="no finite epsilon without a delta",
            ),
            true_statement(
                f"D5-{name}-attained",
                "delta is attained",
                partial(attained_delta, mechanism, 0, 1),
                note="so it is the smallest at this epsilon",
                exact=attained,
                runs=1_000_000,
            ),
        ]
    return cases


def loss_tail(
    mechanism: GaussianMechanism, low: float, high: float, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """Pr[privacy loss > ε] of the answer 0 against one a sensitivity away, with exact limits, against [low, high]."""
    law_x, law_y = mechanism.law(0.0), mechanism.law(mechanism.sensitivity)

    def loses_more(outputs: Outputs) -> npt.NDArray[np.bool_]:
        return law_x.log_density(outputs) - law_y.log_density(outputs) > mechanism.epsilon

    hits = int(event_hits(mechanism, 0.0, loses_more, runs, seed=seed)[0])
    (lower, _), (upper, _) = clopper_pearson(hits, runs, alpha=alpha)
    return StatementResult(
        statement=f"the loss passes epsilon with a probability from {low:.3g} to {high:.3g}",
        quantity="Pr[loss > epsilon]",
        points=(Point(estimate=hits / runs, lower=lower, upper=upper, low=low, high=high),),
        alpha=alpha,
        method="exact limits of a probability (Clopper-Pearson)",
        runs=runs,
        seed=seed,
        largest_width=high,
    )


def _loss() -> list[Case]:
    mechanism = GaussianMechanism(1.0, 1e-5)
    exact = gaussian_loss_tail(mechanism.epsilon, mechanism.scale)
    rest: dict[str, Any] = {"exact": exact, "runs": 1_000_000}
    return [
        true_statement(
            "D5-loss-tail",
            f"Pr[loss > epsilon] = {exact:.3g}",
            partial(loss_tail, mechanism, exact, exact),
            note="Phi(mu/2 - epsilon/mu), sixteen times delta",
            **rest,
        ),
        false_statement(
            "D5-loss-at-most-delta",
            "Pr[loss > epsilon] <= delta",
            partial(loss_tail, mechanism, 0.0, mechanism.delta),
            note="(epsilon, delta)-DP is not epsilon-DP but for a probability of delta",
            **rest,
        ),
    ]


def exposed_counts(mechanism: Any, n_people: int, runs: int, *, seed: int) -> npt.NDArray[np.int64]:
    """In how many of the runs 0, 1, …, n_people people are exposed, shape (n_people + 1,)."""
    counts = np.zeros(n_people + 1, dtype=np.int64)
    for outputs in blocks(mechanism, range(n_people), runs, seed=seed, stream=0):
        counts += np.bincount((outputs != HIDDEN).sum(axis=1), minlength=n_people + 1)
    return counts


def number_exposed(
    mechanism: Any, n_people: int, delta: float, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """How many people are exposed in a run, against Binomial(n, delta): the mean, and how often 0, 1, 2 or more.

    People and runs are independent, so the number in all runs is binomial too, of n·runs trials.
    """
    counts = exposed_counts(mechanism, n_people, runs, seed=seed)
    total, law = int(counts @ np.arange(n_people + 1)), binom(n_people, delta)
    measured = (
        ("mean", total, n_people * runs, n_people, law.mean()),
        ("Pr[0]", int(counts[0]), runs, 1, law.pmf(0)),
        ("Pr[1]", int(counts[1]), runs, 1, law.pmf(1)),
        ("Pr[2 or more]", int(counts[2:].sum()), runs, 1, law.sf(1)),
    )
    points = []
    for name, hits, trials, unit, stated in measured:
        (low, _), (high, _) = clopper_pearson(hits, trials, alpha=alpha / len(measured))
        points.append(
            Point(
                at=name,
                estimate=unit * hits / trials,
                lower=unit * low,
                upper=unit * high,
                low=float(stated),
                high=float(stated),
            )
        )
    return StatementResult(
        statement=f"the number of people exposed is Binomial({n_people}, {delta:g})",
        quantity="people exposed",
        points=tuple(points),
        alpha=alpha,
        method="exact limits of probabilities (Clopper-Pearson), a quarter of alpha each",
        runs=runs,
        seed=seed,
        largest_width=n_people * delta,
    )


def nobody_exposed(
    mechanism: Any, n_people: int, least: float, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """The probability that a run exposes nobody, which is to be at least `least`."""
    counts = exposed_counts(mechanism, n_people, runs, seed=seed)
    (low, _), (high, _) = clopper_pearson(int(counts[0]), runs, alpha=alpha)
    return StatementResult(
        statement=f"nobody is exposed in at least {least:g} of all runs",
        quantity="Pr[nobody exposed]",
        points=(Point(estimate=int(counts[0]) / runs, lower=low, upper=high, low=least, high=1.0),),
        alpha=alpha,
        method="exact limits of a probability (Clopper-Pearson)",
        runs=runs,
        seed=seed,
        largest_width=1.0 - least,
    )


def _exposed() -> list[Case]:
    delta = 1 / (100 * _PEOPLE)
    right, wrong = NameAndShame(delta), TwiceExposed(delta)
    mean, none = _PEOPLE * delta, (1 - delta) ** _PEOPLE
    x, y = [1, 2, 3], [1, 2, 4]
    cases: list[Case] = []
    for name, mechanism, factor in (("exposed", right, 1), ("twice", wrong, 2)):
        statement = true_statement if mechanism is right else false_statement
        cases += [
            statement(
                f"D6-{name}-number",
                f"Binomial({_PEOPLE}, {delta:g})",
                partial(number_exposed, mechanism, _PEOPLE, delta),
                exact=factor * mean,
                runs=200_000,
                note=f"delta n = {mean:g} people on average" if factor == 1 else "twice as many on average",
            ),
            statement(
                f"D6-{name}-nobody",
                "Pr[nobody exposed] >= 99%",
                partial(nobody_exposed, mechanism, _PEOPLE, 0.99),
                exact=(1 - factor * delta) ** _PEOPLE,
                runs=200_000,
                note=f"(1 - delta)^n = {none:.5f}" if factor == 1 else "nobody in 98 runs of 100 only",
            ),
        ]
    claim = ApproxDP(0.0, 0.01, bound_on="delta")
    for name, mechanism in (("exposed", NameAndShame(0.01)), ("twice", TwiceExposed(0.01))):
        version = true_version if isinstance(mechanism, NameAndShame) else false_version
        cases.append(
            version(
                f"D6-{name}-replaced",
                mechanism,
                x,
                y,
                claim,
                Replace(),
                exact=exact_delta(mechanism.law(x), mechanism.law(y), 0.0),
                runs=200_000,
                note="one row of three replaced; epsilon 0",
            )
        )
    return cases
