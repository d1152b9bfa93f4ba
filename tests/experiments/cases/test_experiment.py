"""Cases of experiments: exact parameters against every event, choosing, running, and the cases of all documents.

`make evidence` audits every case, with seed 0 and alpha 1e-7 each: the cases that must not be refuted, at most 300 of
them, raise a false alarm with probability 3e-5 together. False versions are audited with a few runs, and with more
until all of theirs are done.
"""

import importlib
import itertools
import math
import pkgutil
from collections import defaultdict
from functools import partial

import numpy as np
import pytest
from scipy import stats

from dpaudit import ApproxDP, GaussianDP, Local, PureDP, Verdict, load
from dpaudit import mechanisms as m
from dpaudit.audit.claims.mironov_propositions import ProbabilityPreservation
from dpaudit.audit.errors import ClaimError, OptionError, UnknownNameError
from dpaudit.audit.results.statement_result import Point, StatementResult
from dpaudit.claims import Claim, NFoldComposition
from dpaudit.domains import Within
from dpaudit.experiments import documents
from dpaudit.experiments.cases.experiment import (
    AuditCase,
    best_events,
    exact_parameter,
    fails,
    holds,
    select,
    stated,
    true_statement,
)
from dpaudit.experiments.statements.simulated import blocks, event_counts, outcome_counts, proportion
from dpaudit.experiments.suite.run_suite import all_experiments, run_experiments

CASES = {case.name: case for experiment in all_experiments() for case in experiment.cases}
AUDITS = [case for case in CASES.values() if isinstance(case, AuditCase)]
QUICK = ("laplace", "E2-two-missing-2", "E7-exact")
PAIR = (0.0, 1.0)
GAUSSIAN, LAPLACE = m.GaussianMechanism(1.0, 0.01), m.LaplaceMechanism(0.5)
CLAIMS = [
    NFoldComposition(0.1, 10),
    ProbabilityPreservation(3, 0.2),
    PureDP(1.0),
    ApproxDP(1.0, 0.05),
    ApproxDP(0.3, 0.1, bound_on="delta"),
    *(claim.group(2) for claim in (PureDP(1.0), ApproxDP(1.0, 0.01), ApproxDP(2.0, 0.0), GaussianDP(1.0))),
    *(ApproxDP(epsilon, 0.1, bound_on="delta").group(k) for epsilon, k in ((0.0, 2), (0.3, 2), (0.3, 5))),
    ApproxDP(1.0, 0.01).group(5),
]


class NoDistribution:
    """A mechanism whose distribution nobody knows."""

    claim = PureDP(1.0)

    def sample(self, dataset, size, rng):
        return rng.laplace(size=size)


class TestExactParameter:
    @pytest.mark.parametrize("claim", CLAIMS, ids=str)
    def test_it_is_that_of_the_worst_of_all_events(self, claim):
        rng = np.random.default_rng(1)
        distribution_x, distribution_y = (m.FiniteDistribution.from_log_weights(rng.normal(size=4)) for _ in range(2))
        subsets = np.array(list(itertools.product((False, True), repeat=4)))[1:-1]
        p, q = (subsets @ distribution.probabilities for distribution in (distribution_x, distribution_y))
        worst = max(0.0, claim.parameter_of(p, q).max(), claim.parameter_of(q, p).max())
        assert exact_parameter(claim, distribution_x, distribution_y) == pytest.approx(worst, rel=1e-8)
        assert exact_parameter(claim, distribution_x, distribution_x) <= 1e-12

    def test_best_events_of_laplace_distributions_are_half_lines(self):
        distribution_x, distribution_y = m.LaplaceDistribution(0.0, 2.0), m.LaplaceDistribution(1.0, 2.0)
        for one, two in ((distribution_x, distribution_y), (distribution_y, distribution_x)):
            p, p_rest, q, q_rest = best_events(one, two)
            assert np.all(p >= q)
            assert np.concatenate([p + p_rest, q + q_rest]) == pytest.approx(1)
            assert math.log(p[0] / q[0]) == pytest.approx(0.5)
        with pytest.raises(OptionError, match="no closed form"):
            best_events(distribution_x, m.LaplaceDistribution(0.0, 1.0))

    @pytest.mark.parametrize("bound_on", ["epsilon", "delta"])
    @pytest.mark.parametrize("distance", [2, 5])
    def test_a_claim_attained_at_a_distance_has_its_parameter_per_step(self, distance, bound_on):
        claim, mechanism = ApproxDP(0.5, 0.01, bound_on=bound_on), m.GroupTightMechanism(0.5, 0.01)
        distributions = mechanism.distribution(0), mechanism.distribution(distance)
        assert exact_parameter(claim.group(distance), *distributions) == pytest.approx(claim.parameter, rel=1e-9)


class TestAudits:
    def test_the_exact_parameter_is_per_step_of_the_claim(self):
        case = holds("T1", LAPLACE, (0.0, 3.0), Within("l1"), "note", distance=3, runs=5)
        assert (case.claim, case.exact, case.runs, case.expected) == (PureDP(0.5), 0.5, 5, Verdict.NOT_REFUTED)
        group = holds("T2", LAPLACE, (0.0, 3.0), Within("l1"), claim=m.GroupPrivacy(0.5), distance=3)
        assert group.exact == 1.5
        wrong = fails("T3", GAUSSIAN, PAIR, Within("l2"), claim=ApproxDP(0.7, 0.02, bound_on="delta"))
        assert (wrong.exact, wrong.expected) == (
            exact_parameter(wrong.claim, *map(GAUSSIAN.distribution, PAIR)),
            Verdict.REFUTED,
        )

    @pytest.mark.parametrize(
        ("mechanism", "claim", "said"),
        [(GAUSSIAN, GaussianDP(1.0), "1-GDP"), (NoDistribution(), PureDP(1.0), "it has no distribution")],
    )
    def test_a_parameter_that_is_not_known_must_be_given(self, mechanism, claim, said):
        place = ("T4", mechanism, PAIR, Within("l2"), "note")
        with pytest.raises(OptionError, match=rf"{said}.*pass it as exact="):
            holds(*place, claim=claim)
        assert holds(*place, claim=claim, exact=None).exact is None

    @pytest.mark.parametrize(
        "claim", [ApproxDP(0.0, 0.1), ApproxDP(0.0, 0.1).group(2), m.GroupPrivacy(0.0, 0.1)], ids=str
    )
    def test_a_bound_on_epsilon_that_is_claimed_to_be_0_is_refused(self, claim):
        with pytest.raises(ClaimError, match=r"^T5: .* is a claim only on delta; use .*bound_on='delta'\)\.$"):
            fails("T5", GAUSSIAN, PAIR, Within("l2"), claim=claim)
        assert holds("T6", LAPLACE, (0.0, 0.0), Within("l1"), claim=ApproxDP(0.0, 0.0)).exact == 0.0

    def test_synthetic_datasets_are_kept_where_their_text_is_short(self):
        def contents(x, y):
            case = holds("T7", NoDistribution(), (x, y), Local(), exact=None)
            return case.run(runs=200, alpha=0.05, seed=0, jobs=1).pair.contents

        assert contents(0.0, 1.0) == ("0.0", "1.0")
        assert contents([1] * 1_000, [2] * 1_000) is None


def share_of_ones(*, runs, alpha, seed):
    ones = outcome_counts(m.RandomisedResponse(1.0), 1, 2, runs, seed=seed)[1]
    low, high = stats.binom.interval(1 - alpha, runs, ones / runs)
    return StatementResult(
        statement="the truth is told with probability e/(1 + e)",
        quantity="share of ones",
        points=(Point(estimate=ones / runs, lower=low / runs, upper=high / runs, low=math.e / (1 + math.e), high=1.0),),
        alpha=alpha,
        method="for this test",
        runs=runs,
        seed=seed,
    )


ONE, HALF = m.RandomisedResponse(1.0), m.RandomisedResponse(2.0)
FALSE = {"claim": PureDP(1.0), "runs": 4_000}
RESPONSE = stated(
    "tests",
    "T1",
    "Randomised response keeps its claim.",
    "Warner (1965)",
    (
        holds("T1-true", ONE, (0, 1), Local(), runs=4_000),
        fails("T1-false", HALF, (0, 1), Local(), **FALSE),
        true_statement("T1-share", "Pr[1] >= e/(1 + e)", share_of_ones, runs=4_000),
    ),
)
WRONG = stated("others", "T2", "Half the noise.", "none", [holds("T2-wrong", HALF, (0, 1), Local(), **FALSE)])


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["all"], {"T1": 3, "T2": 1}),
        (["t1"], {"T1": 3}),
        (["T1-false", "T2"], {"T1": 1, "T2": 1}),
        ([], {}),
    ],
)
def test_experiments_are_chosen_by_id_or_case(names, found):
    assert {one.id: len(one.cases) for one in select([RESPONSE, WRONG], names)} == found


def test_unknown_names_are_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'T1-share'"):
        select([RESPONSE, WRONG], ["T1-shar"])


def test_a_suite_holds_audits_and_statements_and_their_verdicts_decide(tmp_path):
    finished = []
    suite = run_experiments([RESPONSE], alpha=1e-6, seed=1, jobs=1, out=tmp_path, progress=finished.append)
    assert suite.is_met
    assert [entry.experiment for entry in suite.entries] == ["T1"] * 3
    assert [entry.result.verdict for entry in suite.entries] == [case.expected for case in RESPONSE.cases]
    assert load(tmp_path / "results.json") == suite
    assert sum(finished) == 8_000 * len(RESPONSE.cases)


class TestDrawing:
    def test_blocks_are_whole_seeded_and_of_independent_streams(self):
        draw = partial(blocks, m.LaplaceMechanism(1.0), 0.0)
        first = np.concatenate(list(draw(150_000, seed=1, stream=0)))  # more than a block
        assert len(first) == 150_000
        assert np.array_equal(first, np.concatenate(list(draw(150_000, seed=1, stream=0))))
        assert not np.isin(first, np.concatenate(list(draw(1_000, seed=1, stream=1)))).all()
        with pytest.raises(OptionError, match="runs=0 is not a number of runs"):
            next(draw(0, seed=1, stream=0))

    def test_counts_and_outcomes_are_counted(self):
        response, options = m.RandomisedResponse(1.0, k=3), {"seed": 5, "stream": 3}
        outputs = np.concatenate(list(blocks(response, 2, 150_000, **options)))
        counts = outcome_counts(response, 2, 3, 150_000, **options)
        assert counts.tolist() == [int((outputs == k).sum()) for k in range(3)]
        assert event_counts(response, 2, lambda out: out == 2, 150_000, **options).tolist() == [counts[2]]
        both = event_counts(response, 2, lambda out: out[:, None] == [0, 2], 150_000, **options)
        assert both.tolist() == [counts[0], counts[2]]

    def test_a_proportion_has_the_limits_of_the_exact_test_in_its_unit(self):
        point = proportion(30, 1000, 0.01, low=0.1, high=0.2, unit=5.0, at="t")
        limits = stats.binomtest(30, 1000).proportion_ci(0.99)
        assert (point.lower, point.upper) == pytest.approx((5 * limits.low, 5 * limits.high), rel=1e-6)
        assert (point.estimate, point.low, point.high, point.at) == (0.15, 0.1, 0.2, "t")
        assert (proportion(0, 0, 0.01).lower, proportion(0, 0, 0.01).upper) == (0.0, 1.0)


class TestDocuments:
    """The cases of the reference suite and of all documents."""

    def test_every_experiment_is_registered_stated_in_full_and_can_fail(self):
        experiments, found = all_experiments(), defaultdict(list)
        assert sum(len(experiment.cases) for experiment in experiments) == len(CASES)
        for experiment in experiments:
            found[experiment.document].append(experiment.id)
            assert {case.expected for case in experiment.cases} == {Verdict.NOT_REFUTED, Verdict.REFUTED}, experiment.id
            assert experiment.statement.endswith(".")
            assert experiment.source
            for case in experiment.cases:
                assert case.claimed
                assert case.note
                assert experiment.id == "reference" or case.name.startswith(f"{experiment.id}-")
        numbers = {"exponential": ("E", 10), "analytic-gaussian": ("G", 3), "renyi": ("R", 3), "definition": ("D", 8)}
        numbers |= {"laplace-composition": ("L", 6), "named": ("M", 9)}
        expected = {name: [f"{letter}{k + 1}" for k in range(n)] for name, (letter, n) in numbers.items()}
        assert found == {"reference": ["reference"], **expected}
        for module in pkgutil.iter_modules(documents.__path__, f"{documents.__name__}."):
            own = getattr(importlib.import_module(module.name), "experiments", list)()
            assert {experiment.id for experiment in own} <= {experiment.id for experiment in experiments}, module.name

    def test_pairs_are_as_far_apart_as_their_cases_say(self):
        for case in AUDITS:
            case.adjacency.check(case.x, case.y, case.distance)  # raises an error for a larger distance

    def test_claims_are_kept_exactly_in_true_versions_alone(self):
        """By the exact privacy parameter on the pair, where a distribution gives one, which is so of most."""
        known = [case for case in AUDITS if case.exact is not None]
        assert len(known) >= 0.9 * len(AUDITS)
        for case in known:
            claim = case.claim if isinstance(case.claim, Claim) else case.claim(case.distance)
            exceeds = case.exact > claim.parameter * (1 + 1e-9) + 1e-12
            assert exceeds == (case.expected is Verdict.REFUTED), case.name

    @pytest.mark.parametrize(
        "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.evidence) for name in CASES]
    )
    def test_the_verdict_is_the_expected_one(self, name):
        assert CASES[name].expected in _verdicts(CASES[name])

    def test_false_alarms_stay_within_what_is_declared(self):
        assert sum(case.expected is Verdict.NOT_REFUTED for case in CASES.values()) <= 300


def _verdicts(case):
    """Verdict of the audit with few runs, then with more.

    A true version whose few runs cannot detect an excess as large as its claim counts as not refuted.
    """
    is_true = case.expected is Verdict.NOT_REFUTED
    if not isinstance(case, AuditCase):
        sizes = [case.runs]
    elif is_true:
        sizes = [min(case.runs, 2_000)]  # a false alarm does not wait for millions
    else:
        sizes = [*(runs for runs in (4_000, 20_000, 100_000, 500_000) if runs < case.runs), case.runs]
    for runs in sizes:
        result = case.run(runs=runs, alpha=1e-7, seed=0, jobs=1)
        is_small = is_true and result.verdict is Verdict.INCONCLUSIVE and not result.findings
        yield Verdict.NOT_REFUTED if is_small else result.verdict
