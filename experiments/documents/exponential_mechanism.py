"""The exponential mechanism: its loss, its slope, its sensitivity, and a price for pumpkins; experiments E1 to E10."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import numpy as np

from ... import mechanisms as m
from ...audit.claims.claim import PureDP
from ...audit.datasets.adjacency import AddRemove, Local, Replace, Within
from ...audit.distribution_checks.check_slope import METHOD, slope_points
from ...audit.errors import DatasetError
from ...audit.inference.ratio_intervals import ratio_intervals
from ...audit.results.statement_result import Point, StatementResult
from ...mechanisms import faulty
from ...mechanisms.faulty.selection import LargestNoisyCount
from ..cases.experiment import RUNS, Case, Experiment, fails, false_statement, holds, stated, true_statement
from ..statements.simulated import EXACT_LIMITS, event_counts, outcome_counts, proportion, proportion_result, result_of

# Statements: the two halves of the loss, the slope, tails and single probabilities.


def loss_halves(
    mechanism: Any, x: Sequence[float], y: Sequence[float], half: float, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """Check that the normaliser and the numerators each contribute at most `half` to the privacy loss.

    The loss ln p_x/p_y of a candidate with the same utility on both datasets, without which a `DatasetError` is raised,
    is the contribution of the normaliser; the difference between the loss of another candidate and it is that of the
    numerator. Candidates with the same change are counted as one: a mean of ratios within a bound is within the bound.
    """
    moves, group = np.unique(np.subtract(y, x), return_inverse=True)
    still = moves == 0
    if not still.any():
        raise DatasetError("every utility changes, so no loss isolates the normaliser; keep one candidate in place.")
    counts = [outcome_counts(mechanism, data, len(x), runs, seed=seed, stream=i) for i, data in enumerate((x, y))]
    seen = [np.bincount(group, weights=each).astype(np.int64) for each in counts]
    found = ratio_intervals(seen[0], runs, seen[1], runs, alpha=alpha)
    estimate, lower, upper = (float(ends[still][0]) for ends in (found.observed, found.lower, found.upper))
    points = [Point(at="the normaliser", estimate=estimate, lower=lower, upper=upper, low=-half, high=half)]
    points += [
        Point(at=f"numerators of utilities that change by {move:+g}", estimate=float(observed) - estimate,
            lower=float(low) - upper, upper=float(high) - lower, low=-half, high=half)
        for move, observed, low, high in zip(moves, found.observed, found.lower, found.upper, strict=True)
        if move
    ]  # fmt: skip
    statement = f"The numerator and the normaliser each contribute at most {half:g} to the privacy loss."
    method = "simultaneous intervals for the log ratios of groups of candidates, and differences of their ends"
    return result_of(statement, "part of the loss", points, method, (runs, alpha, seed), half)


def fitted_slope(
    mechanism: Any, utilities: Sequence[float], slope: float, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """Check the slope of the log-probabilities in the utility, see `slope_points`."""
    u = np.asarray(utilities, dtype=np.float64)
    counts = outcome_counts(mechanism, utilities, len(u), runs, seed=seed)
    statement = "The log-probability of a candidate is linear in its utility with the stated slope."
    return result_of(statement, "slope", slope_points(u, counts, slope, alpha), METHOD, (runs, alpha, seed), slope)


def utility_tail(
    mechanism: Any,
    utilities: Sequence[float],
    epsilon: float,
    ts: Sequence[float],
    n_best: int,
    *,
    runs: int,
    alpha: float,
    seed: int,
) -> StatementResult:
    """Check that Pr[u(output) ≤ OPT − (2Δ/ε)(ln(|R|/n_best) + t)] is at most e^{−t} for each t, at Δ = 1.

    This is Theorem 3.11 if `n_best` is the number of best candidates, and its corollary if `n_best` is 1.

    References
    ----------
    Dwork & Roth (2014), The algorithmic foundations of differential privacy, Theorem 3.11 and Corollary 3.12.
    """
    u = np.asarray(utilities, dtype=np.float64)
    counts = outcome_counts(mechanism, utilities, len(u), runs, seed=seed)
    points = []
    for t in ts:
        edge = u.max() - 2.0 / epsilon * (math.log(len(u) / n_best) + t)
        seen, each = int(counts[u <= edge].sum()), alpha / len(ts)
        points.append(proportion(seen, runs, each, high=1.0, unit=math.exp(t), at=f"t = {t:g}"))
    statement = "A utility (2/epsilon)(ln(|R|/|R_OPT|) + t) below the best has probability at most e^-t."
    method = "exact limits of each probability (Clopper-Pearson), alpha shared equally"
    return result_of(statement, "probability over e^-t", points, method, (runs, alpha, seed), 0.5)


def candidate_probability(
    mechanism: Any, dataset: Any, candidate: Any, low: float, high: float, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """Check that the probability of one candidate lies in [low, high]."""
    counts = int(event_counts(mechanism, dataset, lambda outputs: np.asarray(outputs) == candidate, runs, seed=seed)[0])
    statement = f"The probability of candidate {candidate} is the stated one."
    return proportion_result(statement, "probability", (low, high), counts, (runs, alpha, seed), 0.02)


def more_often(
    mechanism: Any, dataset: Any, often: Any, seldom: Any, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """Check that the output `often` has a share of at least ½ of the runs that give `often` or `seldom`."""
    pair = np.array([often, seldom])
    found = event_counts(mechanism, dataset, lambda outputs: np.equal.outer(outputs, pair), runs, seed=seed)
    statement = f"{often} is drawn at least as often as {seldom}."
    given: dict[str, Any] = {"trials": int(found.sum()), "method": f"{EXACT_LIMITS}, given the runs with either output"}
    return proportion_result(statement, "share", (0.5, 1.0), int(found[0]), (runs, alpha, seed), 0.2, **given)


# The experiments.

EPSILON: Final = 1.0
_RUNS: Final = 100_000
_TS: Final = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
_AHEAD: Final = 8  # counts between the two candidates: at epsilon 1 the worse one wins once in 55 runs
_AHEAD_NOISY: Final = 3


def experiments() -> list[Experiment]:
    """Return experiments E1 to E10."""
    about = partial(stated, "exponential")
    return [
        about("E1",
            "The exponential mechanism is epsilon-DP; the numerator and the normaliser each lose at most epsilon/2.",
            "Dwork & Roth (2014), Definition 3.4 and Theorem 3.10", (*_right(), *_halves())),
        about("E2",
            "The factor 2 in exp(epsilon u/(2 sensitivity)) is needed unless utilities are monotone; without it, the "
            "excess appears where one utility rises while the others fall.",
            "McSherry & Talwar (2007), Theorem 6; Dwork & Roth (2014), Theorem 3.10", _missing()),
        about("E3", "Log-probabilities are linear in the utility, with slope epsilon/(2 sensitivity).",
            "Dwork & Roth (2014), Definition 3.4", _slopes()),
        about("E4",
            "The sensitivity of a utility is its largest change between neighbours over all candidates; half of this "
            "is too small.",
            "Dwork & Roth (2014), Section 3.4", _sensitivities()),
        about("E5", "A posted price for pumpkins is epsilon-DP if the range of prices does not depend on the bids.",
            "Dwork & Roth (2014), Example 3.5", (*_auctions(), *_best_prices())),
        about("E6",
            "A candidate whose utility is at least (2 sensitivity/epsilon)(ln(|R|/|R_OPT|) + t) below the best is "
            "chosen with probability at most e^-t.",
            "Dwork & Roth (2014), Theorem 3.11 and Corollary 3.12", _tails()),
        about("E7",
            "The smaller of two counts c apart is chosen with probability 1/(1 + e^(c epsilon/2)), which is at most "
            "2e^(-c epsilon/2); with exponential noise of rate epsilon the probability is e^(-c epsilon)/2.",
            "Dwork & Roth (2014), Example 3.6, and a remark on one-sided noise", _best_of_two()),
        about("E8",
            "The index of the largest count with Laplace noise is epsilon-DP: with scale 1/epsilon for monotone "
            "counts, with scale 2/epsilon in general.",
            "Dwork & Roth (2014), Claim 3.9 (most common name, most common disease)",
            (*_noisy_max("E8", "laplace"), _value_released())),
        about("E9",
            "The index of the largest count with exponential noise is epsilon-DP: with rate epsilon for monotone "
            "counts, with rate epsilon/2 in general.",
            "Dwork & Roth (2014), Section 3.4 (report one-sided noisy arg-max)",
            (*_noisy_max("E9", "exponential"), _permute_and_flip())),
        about("E10",
            "Noisy max with Gumbel noise has the distribution of the exponential mechanism; with exponential noise "
            "it has the distribution of permute-and-flip.",
            "Dwork & Roth (2014), Theorem 3.13 (which says otherwise); Ding et al. (2021)", _same_distributions()),
    ]  # fmt: skip


def levels(n_best: int, n_counted: int) -> tuple[float, ...]:
    """Return the utilities of the best candidates and, for each t, of 20 candidates at the edge of the tail bound.

    The bound counts `n_counted` best candidates. The 20 are slightly below the edge, so that rounding has no effect.
    """
    n = n_best + 20 * len(_TS)
    return (0.0,) * n_best + tuple(_edge(n / n_counted, t) for t in _TS for _ in range(20))


def _edge(ratio: float, t: float) -> float:
    return -2 / EPSILON * (math.log(ratio) + t + 1e-9)


def _tails() -> list[Case]:
    def case(state: Any, name: str, mechanism: Any, utilities: tuple[float, ...], n_best: int, note: str) -> Case:
        measure = partial(utility_tail, mechanism, utilities, EPSILON, _TS, n_best)
        return state(f"E6-tail{name}", "tail at most e^-t", measure, runs=_RUNS, note=note)  # type: ignore[no-any-return]

    right, half = m.ExponentialMechanism(EPSILON), m.ExponentialMechanism(EPSILON / 2)
    at_edges, several = levels(1, 1), levels(5, 5)
    one_edge = (0.0, *(_edge(100, 4.0),) * 99)
    even = tuple(-0.5 * place for place in range(60))
    others = "one best candidate, all others at utilities where the bound starts to apply"
    five_half = "half of the stated epsilon, five best candidates"
    return [
        case(true_statement, "", right, at_edges, 1, others),
        case(true_statement, "-even", right, even, 1, "60 evenly spaced candidates"),
        case(true_statement, "-nearly-reached", right, one_edge, 1, "99 candidates at the edge for t = 4"),
        case(true_statement, "-five-best", right, several, 5, "five best candidates, all counted"),
        case(
            true_statement, "-corollary", right, levels(5, 1), 1, "five best candidates, one counted by the corollary"
        ),
        case(false_statement, "-half-epsilon", half, at_edges, 1, "one best candidate, half of the stated epsilon"),
        case(false_statement, "-five-best-half-epsilon", half, several, 5, five_half),
    ]


def _best_of_two() -> list[Case]:
    def case(
        state: Any, name: str, claimed: str, mechanism: Any, ahead: int, allowed: tuple[float, float], note: str
    ) -> Case:
        counts = (0.0, float(ahead))
        measure = partial(candidate_probability, mechanism, counts, 0, *allowed)
        exact = float(mechanism.distribution(counts).probabilities[0])
        return state(f"E7-{name}", claimed, measure, exact=exact, runs=_RUNS, note=note)  # type: ignore[no-any-return]

    right, half = m.ExponentialMechanism(EPSILON), m.ExponentialMechanism(EPSILON / 2)
    noisy = m.ReportNoisyMax(EPSILON, monotone=True, noise="exponential")
    at_most = (0.0, 2 * math.exp(-EPSILON * _AHEAD / 2))
    exactly = (1 / (1 + math.exp(EPSILON * _AHEAD / 2)),) * 2
    tail = math.exp(-EPSILON * _AHEAD_NOISY)
    bound = "at most 2e^(-c epsilon/2)"
    equal = "1/(1 + e^(c epsilon/2))"
    half_epsilon = "exponential mechanism, half of the stated epsilon"
    halved, whole = (tail / 2, tail / 2), (tail, tail)
    race = "one-sided noise: e^(-c epsilon) to catch up, then an even chance"
    misread = "exponential tail misread as the probability of the worse candidate"
    return [
        case(true_statement, "bound", bound, right, _AHEAD, at_most,
            f"exponential mechanism, upper bound at c = {_AHEAD}"),
        case(true_statement, "exact", equal, right, _AHEAD, exactly,
            f"exponential mechanism, exact probability at c = {_AHEAD}"),
        case(false_statement, "bound-half-epsilon", bound, half, _AHEAD, at_most, half_epsilon),
        case(false_statement, "exact-half-epsilon", equal, half, _AHEAD, exactly, half_epsilon),
        case(true_statement, "noisy-half", "e^(-c epsilon)/2", noisy, _AHEAD_NOISY, halved, race),
        case(false_statement, "noisy-equal", "e^(-c epsilon)", noisy, _AHEAD_NOISY, whole, misread),
    ]  # fmt: skip


_NAMES: Final = m.CategoryCounts(("Ann", "Bob", "Eve"))
_DISEASES: Final = ("anaemia", "asthma", "diabetes", "gout", "measles")


def patients(rows: list[tuple[str, ...]], disease: str) -> int:
    """Count the rows, each a tuple of diseases, that contain the disease."""
    return sum(disease in row for row in rows)


@dataclass(frozen=True, slots=True)
class NamedMechanism:
    """Run the mechanism that the dataset names, on fixed utilities; by a 0-DP claim all have the same distribution."""

    utilities: tuple[float, ...]
    mechanisms: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        return " or ".join(name for name, _ in self.mechanisms)

    @property
    def claim(self) -> PureDP:
        return PureDP(0.0)

    def distribution(self, dataset: str) -> m.Distribution:
        """Return the exact distribution of the mechanism with this name."""
        distribution: m.Distribution = dict(self.mechanisms)[dataset].distribution(self.utilities)
        return distribution

    def sample(self, dataset: str, size: int, rng: np.random.Generator) -> Any:
        return dict(self.mechanisms)[dataset].sample(self.utilities, size, rng)


def _noisy_max(row: str, noise: Literal["laplace", "exponential"]) -> list[Case]:
    """Audit the two scales of one noise on monotone and other pairs."""
    general, of_names = (
        m.ReportNoisyMax(1.0, noise=noise),
        m.ReportNoisyMax(1.0, monotone=True, noise=noise, counts=_NAMES),
    )
    of_diseases = m.ReportNoisyMax(1.0, monotone=True, noise=noise, counts=m.EachCandidate(patients, _DISEASES))
    twice, missing = (
        m.ReportNoisyMax(1.0, noise=noise, counts=_NAMES),
        m.ReportNoisyMax(1.0, monotone=True, noise=noise),
    )
    label = f"{noise.capitalize()} noise"
    closer, all_answers = ((0.0, -3.0), (-1.0, -2.0)), Within("linf")
    names, ill = ["Ann"] * 4 + ["Bob"], [_DISEASES[1:2]]
    more, replaced, patient = (names, [*names, "Ann"]), (names, ["Ann"] * 5), (ill, [*ill, _DISEASES[1:]])
    return [
        holds(f"{row}-general", general, closer, all_answers, f"{label}, general scale, one answer down and one up"),
        holds(f"{row}-names", of_names, more, AddRemove(), f"{label}, most common name, one more Ann"),
        holds(f"{row}-diseases", of_diseases, patient, AddRemove(),
            f"{label}, most common disease, a patient with four of five"),
        holds(f"{row}-replace", twice, replaced, Replace(), f"{label}, general scale, Bob replaced by Ann"),
        fails(f"{row}-missing-2", missing, closer, all_answers, f"{label}, monotone scale, one answer down"),
        fails(f"{row}-monotone-replace", of_names, replaced, Replace(),
            f"{label}, monotone scale, Bob replaced by Ann"),
    ]  # fmt: skip


def _value_released() -> Case:
    """Audit the release of the noisy count; its exact loss is reached at values below every count."""
    query = m.EachCandidate(patients, _DISEASES)
    variant = LargestNoisyCount(1 / 0.5, PureDP(0.5), query)
    pair = [_DISEASES], [_DISEASES, _DISEASES]
    log_x, log_y = (variant.distribution(rows).log_density(-1.0) for rows in pair)
    note = "release of the largest noisy count, a patient with all five diseases"
    return fails("E8-value-released", variant, pair, AddRemove(), note, exact=float(log_x - log_y), runs=400_000)


def _permute_and_flip() -> Case:
    closer, note = ((0.0, -3.0), (-1.0, -2.0)), "permute-and-flip, the distribution of noisy max with exponential noise"
    return holds("E9-permute-and-flip", m.PermuteAndFlip(1.0), closer, Within("linf"), note)


def _same_distributions() -> list[Case]:
    right = ("the exponential mechanism", m.ExponentialMechanism(1.0))
    one_sided = ("exponential noise", m.ReportNoisyMax(1.0, noise="exponential"))
    gumbel, coins = ("Gumbel noise", m.ReportNoisyMax(1.0, noise="gumbel")), ("permute-and-flip", m.PermuteAndFlip(1.0))
    two, five = (0.0, 4.0), (0.0, 1.0, 2.0, 3.0, 4.0)

    def case(
        audit: Any, name: str, utilities: tuple[float, ...], first: tuple[str, Any], second: tuple[str, Any], note: str
    ) -> Case:
        either, pair = NamedMechanism(utilities, (first, second)), (first[0], second[0])
        return audit(f"E10-{name}", either, pair, Local(), note)  # type: ignore[no-any-return]

    return [
        case(holds, "gumbel", two, gumbel, right, "Gumbel noise and the exponential mechanism, two candidates"),
        case(holds, "gumbel-five", five, gumbel, right, "Gumbel noise and the exponential mechanism, five candidates"),
        case(holds, "permute-and-flip", five, one_sided, coins,
            "exponential noise and permute-and-flip, five candidates"),
        case(fails, "exponential", two, one_sided, right,
            "exponential noise and the exponential mechanism, two candidates"),
        case(fails, "exponential-five", five, one_sided, right,
            "exponential noise and the exponential mechanism, five candidates"),
    ]  # fmt: skip


UTILITIES: Final = tuple(float(place) for place in range(8))  # of experiment E3

_FLAT, _ONE_UP = (0.0,) * 50, (1.0, *(-1.0,) * 49)  # one candidate up and 49 down use up both halves of ε
_CENTS: Final = tuple(cents / 100 for cents in range(1, 501))


def centrality(rows: list[float], candidate: float) -> float:
    """Return minus the absolute difference of the numbers of rows above and below the candidate; best at a median."""
    return -abs(float(sum(np.sign(row - candidate) for row in rows)))


def revenue(bids: list[float], price: float) -> float:
    """Return the revenue of a posted price."""
    return price * sum(bid >= price for bid in bids)


def _right() -> list[Case]:
    right, one, three = (
        m.ExponentialMechanism(EPSILON),
        Within("linf"),
        m.ExponentialMechanism(EPSILON, sensitivity=3.0),
    )
    many = (0.0,) * 400, (1.0, *(-1.0,) * 399)
    threefold = _FLAT, tuple(3 * utility for utility in _ONE_UP)
    spread = tuple(float(place % 7) for place in range(20)), tuple(place % 7 + (-1.0) ** place for place in range(20))
    return [
        holds("E1-one-up", right, (_FLAT, _ONE_UP), one, "one candidate of 50 up, 49 down: loss of nearly epsilon"),
        holds("E1-epsilon-3", m.ExponentialMechanism(3.0), many, one, "one of 400 candidates up, 399 down, epsilon 3"),
        holds("E1-sensitivity-3", three, threefold, Within("linf", 3.0), "utilities of sensitivity 3, changes of 3"),
        holds("E1-spread", right, spread, one, "20 candidates with seven utilities, alternately up and down"),
    ]


def _halves() -> list[Case]:
    pair, half = ((*_FLAT, 0.0), (*_ONE_UP, 0.0)), EPSILON / 2
    claimed = "numerator and normaliser at most epsilon/2 each"
    right, wrong = (m.ExponentialMechanism(EPSILON, monotone=is_wrong) for is_wrong in (False, True))
    note = "one candidate of 51 up, 49 down, and one fixed, which isolates the normaliser"
    measure = partial(loss_halves, right, *pair, half)
    twice = partial(loss_halves, wrong, *pair, half)
    both = "missing factor 2, both parts nearly epsilon"
    return [
        true_statement("E1-halves", claimed, measure, runs=RUNS, note=note),
        false_statement("E1-halves-missing-2", claimed, twice, runs=RUNS, note=both),
    ]


def _missing() -> list[Case]:
    right, wrong = (m.ExponentialMechanism(EPSILON, monotone=is_wrong) for is_wrong in (False, True))
    one = Within("linf")
    monotone = m.ExponentialMechanism(EPSILON, monotone=True, utilities=m.CategoryCounts(("Ann", "Bob")))
    names, half = ["Ann"] * 4 + ["Bob"], PureDP(EPSILON / 2)
    one_up, apart = (_FLAT, _ONE_UP), (0.0, -3.0)
    closer, farther = (apart, (-1.0, -2.0)), (apart, (1.0, -4.0))
    one_moves, tie, all_rise = (_FLAT, (1.0, *_FLAT[1:])), ((0.0, 0.0), (1.0, 0.0)), (_FLAT, (0.0, *(1.0,) * 49))
    more, replaced = (names, [*names, "Ann"]), (names, ["Ann"] * 5)
    return [
        holds("E2-one-up", right, one_up, one, "one candidate of 50 up, 49 down: nearly all of epsilon"),
        fails("E2-one-up-missing-2", wrong, one_up, one, "missing factor 2, one up and 49 down: nearly 2 epsilon"),
        holds("E2-two", right, closer, one, "factor 2 present, two candidates moving closer"),
        fails("E2-two-missing-2", wrong, closer, one, "missing factor 2, two candidates moving closer"),
        holds("E2-two-opposite", right, farther, one, "factor 2 present, two candidates moving apart"),
        fails("E2-two-opposite-missing-2", wrong, farther, one, "missing factor 2, two candidates moving apart"),
        holds("E2-one-moves-missing-2", wrong, one_moves, one, "missing factor 2 hidden: one candidate of 50 moves"),
        holds("E2-tie-missing-2", wrong, tie, one, "missing factor 2 hidden: one of two tied candidates moves"),
        holds("E2-all-but-one-missing-2", wrong, all_rise, one, "missing factor 2 hidden: monotone change of 49"),
        holds("E2-monotone", monotone, more, AddRemove(), "monotone counts without the factor 2, under add/remove"),
        fails(
            "E2-monotone-replace", monotone, replaced, Replace(), "monotone counts without the factor 2, under replace"
        ),
        fails("E2-half-loss", right, one_up, one, "claim of epsilon/2, normaliser ignored", claim=half),
    ]


def _slopes() -> tuple[Case, ...]:
    def case(state: Any, name: str, mechanism: Any, sensitivity: float, note: str) -> Case:
        slope = EPSILON / (2 * sensitivity)
        measure = partial(fitted_slope, mechanism, UTILITIES, slope)
        exact = float(np.diff(mechanism.distribution(UTILITIES).log_probabilities).mean())
        return state(name, f"slope {slope:g}", measure, exact=exact, runs=RUNS, note=note)  # type: ignore[no-any-return]

    return (
        case(true_statement, "E3-slope", m.ExponentialMechanism(EPSILON), 1.0,
            "exponential mechanism, utilities 0 to 7"),
        case(true_statement, "E3-slope-sensitivity-2", m.ExponentialMechanism(EPSILON, 2.0), 2.0,
            "exponential mechanism, sensitivity 2, half the slope"),
        case(false_statement, "E3-slope-missing-2", m.ExponentialMechanism(EPSILON, monotone=True), 1.0,
            "missing factor 2, twice the slope"),
    )  # fmt: skip


def _sensitivities() -> list[Case]:
    """Audit utilities whose sensitivity is computed by enumerating the neighbours on a small domain.

    The larger domain of the audits has the same sensitivity: an added row moves the number of rows on one side of a
    place by 1, and a replaced row moves the numbers on both sides.
    """
    domain, places = (0, 1, 2), tuple(range(11))
    added, replaced = (
        m.utility_sensitivity(centrality, domain, domain, 4, adjacency) for adjacency in (AddRemove(), Replace())
    )
    utilities = m.EachCandidate(centrality, places)
    rows = [0] * 5 + [1] * 3 + [10] * 5
    longer, swapped = (rows, [*rows, 10]), (rows, [*rows[1:], 10])
    prices = tuple(range(1, 11))
    bid: tuple[Any, Any] = [], list(prices[-1:])
    of_all, of_one = (
        m.utility_sensitivity(revenue, some, (0, *prices), 2, AddRemove()) for some in (prices, prices[:1])
    )
    by_added, by_replaced = (m.ExponentialMechanism(EPSILON, size, utilities=utilities) for size in (added, replaced))
    half = m.ExponentialMechanism(EPSILON, replaced / 2, utilities=utilities)
    revenues = m.EachCandidate(revenue, prices)
    by_all, by_one = (m.ExponentialMechanism(EPSILON, size, utilities=revenues) for size in (of_all, of_one))
    left = "median under replace, half the sensitivity: one side loses a row, the other gains a row"
    highest = f"revenue of ten prices, sensitivity {of_all:g} of the highest"
    lowest = f"revenue of ten prices, sensitivity {of_one:g} of the lowest"
    return [
        holds("E4-add-remove", by_added, longer, AddRemove(), f"median under add/remove, sensitivity {added:g}"),
        holds("E4-replace", by_replaced, swapped, Replace(), f"median under replace, sensitivity {replaced:g}"),
        fails("E4-half-sensitivity", half, swapped, Replace(), left),
        holds("E4-all-candidates", by_all, bid, AddRemove(), highest),
        fails("E4-one-candidate", by_one, bid, AddRemove(), lowest),
    ]


def _auctions() -> list[Case]:
    fixed, from_bids = m.PostedPriceAuction(EPSILON, _CENTS), faulty.PricesFromTheBids(EPSILON)
    monotone, change = m.PostedPriceAuction(EPSILON, _CENTS, monotone=True), AddRemove()
    all_four = list(m.PUMPKIN_BIDS)
    without_k, without_a, high = (all_four, all_four[:-1]), (all_four, all_four[1:]), (all_four, [*all_four, 5.0])
    shared, own = "prices among the bids, removed bid shared by others", "prices among the bids, 3.01 only with K"
    return [
        holds("E5-fixed-prices", fixed, without_k, change, "500 prices, removal of K, who bids 3.01"),
        holds("E5-fixed-prices-high-bid", fixed, high, change, "500 prices, additional bid of 5.00"),
        holds("E5-fixed-prices-monotone", monotone, high, change, "500 prices, monotone revenue, half the noise"),
        holds("E5-prices-from-bids-common", from_bids, without_a, change, shared),
        fails("E5-prices-from-bids", from_bids, without_k, change, own),
    ]


def _best_prices() -> list[Case]:
    auction = m.PostedPriceAuction(40.0, _CENTS)
    distribution = auction.distribution(m.PUMPKIN_BIDS)
    share = {price: float(distribution.probabilities[auction.prices.index(price)]) for price in (1.0, 3.01)}

    def case(state: Any, best: float, other: float, note: str) -> Case:
        return state(  # type: ignore[no-any-return]
            f"E5-best-is-{best:.2f}",
            f"{best:.2f} at least as often as {other:.2f}",
            partial(more_often, auction, m.PUMPKIN_BIDS, best, other),
            exact=share[best] / (share[best] + share[other]),
            runs=RUNS,
            note=note,
        )

    return [
        case(true_statement, 1.0, 3.01, "price 1.00 with K as a buyer: largest revenue, 4.00"),
        case(false_statement, 3.01, 1.0, "printed optimum, revenue 3.01"),
    ]
