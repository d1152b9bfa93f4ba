"""Supplements to the definition of differential privacy: experiments D1 to D8."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ... import mechanisms as m
from ...audit.claims.claim import ApproxDP, PureDP
from ...audit.datasets.adjacency import AddRemove, EdgeNeighbours, Local, NodeNeighbours, Replace, Within
from ...audit.events.outputs import Outputs
from ...audit.extras import require
from ...audit.inference.ratio_intervals import ratio_intervals
from ...audit.results.statement_result import Point, StatementResult
from ...mechanisms.faulty.flaw import squared_rows, total
from ...mechanisms.local.randomised_response import HIDDEN
from ...mechanisms.noise_samplers import draw_indices
from ..cases.experiment import RUNS, Case, Experiment, fails, false_statement, holds, stated, true_statement
from ..statements.simulated import attained_delta, blocks, event_counts, proportion, proportion_result, result_of

_PEOPLE: Final = 20
_MANY: Final = 1_000_000


def experiments() -> list[Experiment]:
    """Return experiments D1 to D8."""
    about = partial(stated, "definition")
    return [
        about("D1",
            "The posterior of a row given the output is within a factor e^±ε of its posterior given the output "
            "without the row.",
            "Vadhan (2017), The complexity of differential privacy, Section 1 (the Bayesian reading)", _posteriors()),
        about("D2",
            "A mechanism is private for one adjacency: noise calibrated for add/remove can be too small for replace, "
            "and vice versa.",
            "Dwork & Roth (2014), Section 2.3 (add/remove); Vadhan (2017), Section 1 (replace)", _neighbours()),
        about("D3",
            "Noise that hides an edge of a graph does not hide a node; at epsilon for each edge, a person with at "
            "most 1/epsilon edges is hidden at a total of 1.",
            "Dwork & Roth (2014), Section 2.3 (granularity of privacy)", _graphs()),
        about("D4",
            "1 + epsilon replaces e^epsilon only for small epsilon; without a delta the bound also holds for the "
            "rarest event.",
            "Vadhan (2017), Section 1; Dwork & Roth (2014), Definition 2.4", _pure()),
        about("D5",
            "Gaussian and binomial noise need a delta, and delta is not the probability that the privacy loss exceeds "
            "epsilon.",
            "Dwork & Roth (2014), Definition 2.4 and Section 3.5.1; Balle & Wang (2018)", (*_noise(), *_loss())),
        about("D6",
            "If each of n people is exposed with probability delta, delta n people are exposed on average; with delta "
            "= 1/(100 n), 99 runs of 100 expose nobody.",
            "Dwork & Roth (2014), after Definition 2.4", _exposed()),
        about("D7",
            "For datasets k steps apart, an (epsilon, delta)-DP mechanism is (k epsilon, delta (e^(k epsilon) - "
            "1)/(e^epsilon - 1))-DP, and therefore also (k epsilon, k e^((k-1) epsilon) delta)-DP.",
            "Dwork & Roth (2014), Theorem 2.2 and Section 2.3 (the product); compare Vadhan (2017), Lemma 2.2",
            (*_pure_groups(), *_groups_with_delta())),
        about("D8",
            "At a small delta, k composed mechanisms lose about sqrt(k) epsilon; a group of k loses k epsilon with or "
            "without a delta.",
            "Dwork & Roth (2014), Theorem 3.20 and Theorem 2.2", (*_folds(), *_distances())),
    ]  # fmt: skip


def _noise() -> list[Case]:
    gaussian, coins = m.GaussianMechanism(1.0, 0.01), m.BinomialMechanism(n_flips=16, epsilon=1.0)
    pair, cases = (0, 1), list[Case]()
    for name, words, mechanism, adjacency in (
        ("gaussian", "Gaussian noise", gaussian, Within("l2")),
        ("binomial", "binomial noise", coins, Within("l1")),
    ):
        exact = m.exact_delta(mechanism.distribution(0), mechanism.distribution(1), 1.0)
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
    mechanism: m.GaussianMechanism, low: float, high: float, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """Check that Pr[privacy loss > ε] lies in [low, high], for the answer 0 against one a sensitivity away."""
    distribution_x, distribution_y = mechanism.distribution(0.0), mechanism.distribution(mechanism.sensitivity)

    def loses_more(outputs: Outputs) -> npt.NDArray[np.bool_]:
        return distribution_x.log_density(outputs) - distribution_y.log_density(outputs) > mechanism.epsilon

    counts = int(event_counts(mechanism, 0.0, loses_more, runs, seed=seed)[0])
    statement = f"The probability that the privacy loss exceeds epsilon is between {low:.3g} and {high:.3g}."
    return proportion_result(statement, "Pr[loss > epsilon]", (low, high), counts, (runs, alpha, seed), high)


def _loss() -> list[Case]:
    mechanism = m.GaussianMechanism(1.0, 1e-5)
    exact = m.gaussian_loss_tail(mechanism.epsilon, mechanism.scale)
    rest: dict[str, Any] = {"exact": exact, "runs": _MANY}
    return [
        true_statement("D5-loss-tail", f"Pr[loss > epsilon] = {exact:.3g}", partial(loss_tail, mechanism, exact, exact),
            note="Gaussian noise, exact loss tail Phi(mu/2 - epsilon/mu), sixteen times delta", **rest),
        false_statement("D5-loss-at-most-delta", "Pr[loss > epsilon] <= delta",
            partial(loss_tail, mechanism, 0.0, mechanism.delta),
            note="Gaussian noise, (epsilon, delta)-DP misread as epsilon-DP with probability 1 - delta", **rest),
    ]  # fmt: skip


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
    total, distribution = int(counts @ np.arange(n_people + 1)), binom(n_people, delta)
    measured = (
        ("mean", total, n_people * runs, n_people, distribution.mean()),
        ("Pr[0]", int(counts[0]), runs, 1, distribution.pmf(0)),
        ("Pr[1]", int(counts[1]), runs, 1, distribution.pmf(1)),
        ("Pr[2 or more]", int(counts[2:].sum()), runs, 1, distribution.sf(1)),
    )
    each = alpha / len(measured)
    points = tuple(
        proportion(seen, trials, each, low=float(stated), high=float(stated), unit=unit, at=name)
        for name, seen, trials, unit, stated in measured
    )
    statement = f"The number of people exposed is Binomial({n_people}, {delta:g})."
    method = "exact limits of probabilities (Clopper-Pearson), a quarter of alpha each"
    return result_of(statement, "people exposed", points, method, (runs, alpha, seed), n_people * delta)


def nobody_exposed(
    mechanism: Any, n_people: int, least: float, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """Check that a run exposes nobody with probability at least `least`."""
    counts = int(exposed_counts(mechanism, n_people, runs, seed=seed)[0])
    statement = f"A run exposes nobody with probability at least {least:g}."
    return proportion_result(statement, "Pr[nobody exposed]", (least, 1.0), counts, (runs, alpha, seed), 1.0 - least)


def _exposed() -> list[Case]:
    delta = 1 / (100 * _PEOPLE)
    mean, none = _PEOPLE * delta, (1 - delta) ** _PEOPLE
    claim, pair = ApproxDP(0.0, 0.01, bound_on="delta"), ([1, 2, 3], [1, 2, 4])
    cases, replacements = list[Case](), list[Case]()
    for name, words, factor, statement, audit, notes in (
        ("exposed", "name and shame", 1, true_statement, holds, (f"mean {mean:g}", f"{none:.5f}")),
        ("twice", "double exposure", 2, false_statement, fails, ("twice the mean", "only 98%")),
    ):
        mechanism, replaced = m.NameAndShame(factor * delta), f"{words}, one of three rows replaced"
        cases += [
            statement(f"D6-{name}-number", f"Binomial({_PEOPLE}, {delta:g})",
                partial(number_exposed, mechanism, _PEOPLE, delta), exact=factor * mean, runs=RUNS,
                note=f"{words}, number of people exposed, {notes[0]}"),
            statement(f"D6-{name}-nobody", "Pr[nobody exposed] >= 99%",
                partial(nobody_exposed, mechanism, _PEOPLE, 0.99), exact=(1 - factor * delta) ** _PEOPLE, runs=RUNS,
                note=f"{words}, probability of nobody exposed, {notes[1]}"),
        ]  # fmt: skip
        mechanism = m.NameAndShame(factor * 0.01)
        replacements.append(audit(f"D6-{name}-replaced", mechanism, pair, Replace(), replaced, claim=claim))
    return [*cases, *replacements]


EPSILON: Final = 0.5
DELTA: Final = 1e-3
_STEPS: Final = tuple(range(1, 9))
EACH: Final = 0.1
"""Epsilon of one mechanism or one step in D8."""
SLACK: Final = 0.01
"""The delta of the composition claims."""
_FOLDS: Final = (1, 2, 4, 8, 16, 32, 64)


def _pure_groups() -> list[Case]:
    laplace, wrong, claim = (
        m.LaplaceMechanism(EPSILON),
        m.LaplaceMechanism(EPSILON, query=squared_rows),
        m.GroupPrivacy(EPSILON),
    )
    one_step = "noise for one step from the empty dataset, distance 1"
    two_steps = "noise for one step from the empty dataset, distance 2: 4 epsilon"
    return [
        *(
            holds(f"D7-laplace-{k}", laplace, (0, k), Within("l1"), f"Laplace noise, tight at distance {k}",
                claim=claim, distance=k)
            for k in _STEPS
        ),
        holds("D7-local-sensitivity-1", wrong, ([], [0]), AddRemove(), one_step, claim=claim, distance=1),
        fails("D7-local-sensitivity-2", wrong, ([], [0, 0]), AddRemove(), two_steps, claim=claim, distance=2),
    ]  # fmt: skip


def _groups_with_delta() -> list[Case]:
    tight, gaussian = m.GroupTightMechanism(EPSILON, DELTA), m.GaussianMechanism(EPSILON, DELTA)
    sums = m.GroupPrivacy(EPSILON, DELTA, "sum", bound_on="delta")
    products = m.GroupPrivacy(EPSILON, DELTA, "product", bound_on="delta")
    last, attains = _STEPS[-1], "mechanism that attains the sum of deltas"
    linear = ApproxDP(last * EPSILON, last * DELTA, bound_on="delta")
    kinds = (
        ("tight", tight, sums, _STEPS, RUNS, attains),
        ("tight-product", tight, products, (2, 8), RUNS, f"{attains}, looser product form"),
        ("gaussian", gaussian, products, (2, 4, 8), _MANY, "Gaussian noise, product form"),
    )
    cases: list[Case] = [
        holds(f"D7-{name}-{k}", mechanism, (0, k), Within("l1"), note, claim=claim, distance=k, runs=runs)
        for name, mechanism, claim, steps, runs, note in kinds
        for k in steps
    ]
    adjacency = Within("l1", float(last))
    for name, mechanism, words in (("tight", tight, attains), ("gaussian", gaussian, "Gaussian noise")):
        note = f"{words}, claim of k delta at distance 8"
        cases.append(fails(f"D7-{name}-k-delta", mechanism, (0, last), adjacency, note, claim=linear, runs=_MANY))
    return cases


def composed_epsilon(k: int) -> float:
    """Return the smaller epsilon of simple and advanced composition, for k mechanisms of `EACH` at delta `SLACK`."""
    return min(k * EACH, m.advanced_composition(EACH, 0.0, k, SLACK)[0])


def _folds() -> list[Case]:
    k, pair, note = _FOLDS[-1], (0, 1), "k randomised responses, smaller bound of simple and advanced composition"
    cases: list[Case] = []
    for n in _FOLDS:
        claim = ApproxDP(composed_epsilon(n), SLACK)
        cases.append(holds(f"D8-composed-{n}", m.RandomisedResponseFold(EACH, n), pair, Local(), note, claim=claim))
    root = ApproxDP(math.sqrt(k) * EACH, SLACK)
    note = "64 randomised responses, sqrt(k) epsilon without the factor sqrt(2 ln(1/delta))"
    return [*cases, fails("D8-composed-root", m.RandomisedResponseFold(EACH, k), pair, Local(), note, claim=root)]


def _distances() -> list[Case]:
    laplace, k, group = m.LaplaceMechanism(EACH), _FOLDS[-1], m.GroupPrivacy(EACH)
    pair, adjacency, note = (0, k), Within("l1", float(k)), "Laplace noise, group of k at k epsilon"
    root, composed = PureDP(math.sqrt(k) * EACH), ApproxDP(composed_epsilon(k), SLACK)
    return [
        *(holds(f"D8-distance-{n}", laplace, (0, n), Within("l1"), note, claim=group, distance=n) for n in _FOLDS),
        fails("D8-distance-root", laplace, pair, adjacency, "Laplace noise, group of 64 at sqrt(k) epsilon",
            claim=root),
        fails("D8-distance-composed", laplace, pair, adjacency, "Laplace noise, group of 64 at the composition bound",
            claim=composed),
    ]  # fmt: skip


_RARE = 0.02
"""Prior probability of the secret; the ratios approach their limits as it goes to 0."""


@dataclass(frozen=True, slots=True)
class World:
    """A prior on datasets, and a mechanism applied to a statistic of the dataset.

    A state is the value of the secret row, the statistic, the statistic with a dummy in place of the row, and the prior
    probability. Events are closed intervals of outputs.
    """

    states: tuple[tuple[int, int, int, float], ...]
    mechanism: Any
    events: tuple[tuple[float, float], ...]

    @property
    def secrets(self) -> list[int]:
        """Values of the secret row in ascending order."""
        return sorted({state[0] for state in self.states})

    def log_ratios(self) -> npt.NDArray[np.float64]:
        """Return the exact log posterior ratios, with the row to without the row, shape (n_events, n_secrets)."""
        return np.array(
            [np.log(self._posterior(event, 1)) - np.log(self._posterior(event, 2)) for event in self.events]
        )

    def _posterior(self, event: tuple[float, float], column: int) -> npt.NDArray[np.float64]:
        joint = np.zeros(len(self.secrets))
        for state in self.states:
            distribution = self.mechanism.distribution(state[column])
            inside = float(distribution.cdf(event[1]) - distribution.cdf(math.nextafter(event[0], -math.inf)))
            joint[self.secrets.index(state[0])] += state[3] * inside
        return np.asarray(joint / joint.sum())

    def sample(self, column: int, size: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Draw secrets with outputs, with the statistic of this column of the states; shape (size, 2)."""
        drawn = draw_indices([state[3] for state in self.states], size, rng)
        output = np.empty(size, dtype=np.int64)
        for index, state in enumerate(self.states):
            here = np.flatnonzero(drawn == index)
            output[here] = self.mechanism.sample(state[column], len(here), rng)
        return np.stack([np.array([state[0] for state in self.states])[drawn], output], axis=1)

    def counts(self, column: int, runs: int, *, seed: int) -> npt.NDArray[np.int64]:
        """Count each secret with each event in `runs` joint draws, shape (n_events, n_secrets)."""
        total = np.zeros((len(self.events), len(self.secrets)), dtype=np.int64)
        for drawn in blocks(self, column, runs, seed=seed, stream=column):
            secret, output = np.asarray(drawn).T
            for row, (low, high) in enumerate(self.events):
                inside = secret[(output >= low) & (output <= high)]
                total[row] += [np.count_nonzero(inside == value) for value in self.secrets]
        return total


def posterior_ratio(world: World, limit: float, *, runs: int, alpha: float, seed: int) -> StatementResult:
    """Check that the log posterior ratios of every event and secret lie within ±`limit`.

    Given the number of runs in an event, the number of these with the secret is binomial, with and without the row.
    The intervals for ratios of two probabilities therefore apply, with alpha shared equally by the events.
    """
    with_row, without = (world.counts(column, runs, seed=seed) for column in (1, 2))
    points = []
    for (low, high), x, y in zip(world.events, with_row, without, strict=True):
        seen = int(x.sum()), int(y.sum())
        if min(seen) > 0:
            found = ratio_intervals(x, seen[0], y, seen[1], alpha=alpha / len(world.events))
            rows = list(zip(found.observed, found.lower, found.upper, strict=True))
        else:  # no run in the event, so no estimate
            rows = [(math.nan, -math.inf, math.inf)] * len(world.secrets)
        for secret, (estimate, lower, upper) in zip(world.secrets, rows, strict=True):
            at, ends = f"row = {secret}, {_words(low, high)}", {"lower": float(lower), "upper": float(upper)}
            points.append(Point(at=at, estimate=float(estimate), **ends, low=-limit, high=limit))
    statement = f"An output changes the posterior of a row by a factor within e^±{limit:g}."
    method = "exact limits of ratios of two proportions, shared alpha"
    return result_of(statement, "ln posterior ratio", points, method, (runs, alpha, seed), limit)


def _words(low: float, high: float) -> str:
    if low == high:
        return f"output = {low:g}"
    return f"output ≤ {high:g}" if low == -math.inf else f"output ≥ {low:g}"


def independent_rows(epsilon: float) -> World:
    """Return three independent bits, the first rarely 1, whose sum gets geometric noise; the dummy is 0."""
    states = tuple(
        (bit, bit + others, others, (_RARE if bit else 1 - _RARE) * math.comb(2, others) / 4)
        for bit in (0, 1)
        for others in (0, 1, 2)
    )
    return World(states, m.GeometricMechanism(epsilon), ((-math.inf, 0.0), (3.0, math.inf)))


def equal_rows(epsilon: float) -> World:
    """Return two equal rows (b, b), b rarely 1, and a mechanism that outputs one bit.

    The probability of the bit grows by e^ε from (0, 0) to a mixed pair and again to (1, 1). With a dummy in place of
    the first row the pair is mixed, and the bit is independent of b.
    """
    states = ((0, 0, 1, 1 - _RARE), (1, 2, 1, _RARE))
    corner = 1 / (1 + math.exp(epsilon))
    return World(states, m.GroupTightMechanism(epsilon, start=corner * math.exp(-epsilon)), ((0.0, 0.0), (1.0, 1.0)))


def _posteriors() -> list[Case]:
    """Audit posterior ratios at ε = 1."""
    worlds = {"independent": independent_rows(1.0), "equal": equal_rows(1.0)}

    def case(state: Any, name: str, world: str, limit: float, note: str) -> Case:
        claimed = f"|ln posterior ratio| <= {'' if limit == 1 else f'{limit:g} '}epsilon"
        measure, exact = partial(posterior_ratio, worlds[world], limit), np.abs(worlds[world].log_ratios()).max()
        return state(f"D1-{name}", claimed, measure, exact=float(exact), runs=400_000, note=note)  # type: ignore[no-any-return]

    twice, once = "two equal rows, corrected bound of 2 epsilon", "two equal rows, printed bound of epsilon"
    alone = "independent rows, secret row replaced by a dummy"
    return [
        case(true_statement, "independent", "independent", 1.0, alone),
        case(true_statement, "correlated-twice", "equal", 2.0, twice),
        case(false_statement, "correlated", "equal", 1.0, once),
    ]


def _neighbours() -> list[Case]:
    rows, removed, replaced = [0, 1, 1, 2], [0, 1, 1], [0, 1, 1, 0]
    change, replace = AddRemove(), Replace()
    bits, no_bit, other_bit = [1, 1, 1], [1, 1], [1, 1, 0]
    count = m.GeometricMechanism(1.0, query=total)
    one_bin, two_bins = m.HistogramMechanism(1.0, k=3), m.HistogramMechanism(1.0, k=3, sensitivity=2)
    values, no_value, other_value = [3.5, 4.0, 4.0], [3.5, 4.0], [3.5, 4.0, 3.0]
    ranged = m.LaplaceMechanism(1.0, query=total)
    return [
        holds("D2-count-add-remove", count, (bits, no_bit), change, "count under add/remove, sensitivity 1"),
        holds("D2-count-replace", count, (bits, other_bit), replace, "count under replace, sensitivity 1"),
        holds("D2-histogram-add-remove", one_bin, (rows, removed), change,
            "histogram under add/remove, one changed bin"),
        holds("D2-histogram-replace", two_bins, (rows, replaced), replace, "histogram under replace, two changed bins"),
        fails("D2-histogram-half-noise", one_bin, (rows, replaced), replace,
            "histogram under replace, noise for one changed bin: 2 epsilon"),
        holds("D2-sum-replace", ranged, (values, other_value), replace,
            "sum of values in [3, 4] under replace, sensitivity 1"),
        fails("D2-sum-add-remove", ranged, (values, no_value), change,
            "sum of values in [3, 4] under add/remove, noise for replace: 4 epsilon"),
    ]  # fmt: skip


def _graphs() -> list[Case]:
    require("graphs", "experiments on graphs need", "networkx")
    import networkx as nx

    edges, nodes = EdgeNeighbours(), NodeNeighbours()
    cycle = nx.cycle_graph(6), nx.path_graph(6)
    person = nx.star_graph(4), nx.empty_graph(range(1, 5))  # node 0 knows the four others
    crowd = nx.star_graph(8), nx.empty_graph(range(1, 9))
    isolated = person[0], nx.empty_graph(5)
    knot = nx.complete_graph(4), nx.complete_graph(4)
    knot[1].remove_edge(0, 1)
    quarter, one = m.EdgeCountMechanism(0.25), PureDP(1.0)
    by_node, unscaled = m.EdgeCountMechanism(0.5, nodes, max_degree=4), m.EdgeCountMechanism(0.5)
    degrees, one_end = m.DegreeHistogramMechanism(1.0, 4, nodes), m.DegreeHistogramMechanism(2.0, 3)
    degrees_by_edge, group = m.DegreeHistogramMechanism(1.0, 3), m.GroupPrivacy(0.25)
    return [
        holds("D3-edges", m.EdgeCountMechanism(0.5), cycle, edges, "edge count with one edge fewer"),
        holds("D3-nodes", by_node, person, nodes, "edge count with noise for a node of at most 4 edges"),
        fails("D3-edge-noise-for-nodes", unscaled, person, nodes,
            "edge count with noise for one edge, person with 4 edges: 4 epsilon"),
        holds("D3-degrees-edges", degrees_by_edge, knot, edges,
            "degree histogram with one edge fewer, two moved nodes"),
        holds("D3-degrees-nodes", degrees, person, nodes, "degree histogram without a node and its four edges"),
        fails("D3-degrees-one-end", one_end, knot, edges,
            "degree histogram with sensitivity for one end of an edge: 2 epsilon", claim=one),
        holds("D3-person-of-4", quarter, person, nodes, "edge count, person with 4 edges at epsilon 1/4 each: total 1",
            claim=one),
        fails("D3-person-of-8", quarter, crowd, nodes, "edge count, person with 8 edges at epsilon 1/4 each: total 2",
            claim=one),
        holds("D3-four-edges", quarter, isolated, edges, "edge count, group claim for four steps of one edge",
            claim=group, distance=4),
    ]  # fmt: skip


def _pure() -> list[Case]:
    """`1 + epsilon` as PureDP(ln(1 + epsilon)): p ≤ (1 + ε) q for every event and its complement."""
    answers, leaky = Within("l1"), m.RareLeakLaplace(1.0, 1e-3)
    large, small = m.RandomisedResponse(1.0), m.RandomisedResponse(math.log1p(0.01))
    bits, pair, many = (0, 1), (0.0, 1.0), 1_000_000
    two, percent = PureDP(math.log(2.0)), PureDP(math.log1p(0.01))
    fifth = ApproxDP(1.0, leaky.delta / 5, bound_on="delta")
    slack = (
        f"randomised response, p <= 1.01 q, hence p <= e^0.01 q with {0.01 - math.log1p(0.01):.1g} of slack in epsilon"
    )
    return [
        holds("D4-e-to-epsilon", large, bits, Local(), "randomised response, p <= e q"),
        fails("D4-one-plus-large", large, bits, Local(), "randomised response with p = e q, claim p <= 2 q", claim=two),
        holds("D4-one-plus-small", small, bits, Local(), slack, claim=percent, runs=2 * many),
        fails("D4-rare-leak-pure", leaky, pair, answers,
            "Laplace noise with a leak in one run of 1000, claim without a delta", claim=PureDP(1.0), runs=many),
        holds("D4-rare-leak-delta", leaky, pair, answers, "Laplace noise with a leak covered by delta", runs=many),
        fails("D4-rare-leak-small-delta", leaky, pair, answers, "Laplace noise with a leak, a fifth of the true delta",
            claim=fifth, runs=many),
    ]  # fmt: skip
