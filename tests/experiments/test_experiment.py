"""Choosing experiments, running them, and drawing outputs for statements."""

import importlib
import math
import pkgutil
from functools import partial

import numpy as np
import pytest
from scipy import stats

from dpaudit import Local, PureDP, Verdict, load
from dpaudit.audit.errors import OptionError, UnknownNameError
from dpaudit.audit.results.statement_result import Point, StatementResult
from dpaudit.experiments import documents
from dpaudit.experiments.cases.experiment import Experiment, false_version, select, true_statement, true_version
from dpaudit.experiments.cases.simulate import blocks, event_hits, outcome_counts
from dpaudit.experiments.suite.run_suite import all_experiments, run_experiments
from dpaudit.mechanisms import LaplaceMechanism, RandomisedResponse


def share_of_ones(*, runs, alpha, seed):
    ones = outcome_counts(RandomisedResponse(1.0), 1, 2, runs, seed=seed)[1]
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


RESPONSE = Experiment(
    id="T1",
    document="tests",
    statement="Randomised response keeps its claim.",
    source="Warner (1965)",
    cases=(
        true_version("T1-true", RandomisedResponse(1.0), 0, 1, PureDP(1.0), Local(), exact=1.0, runs=20_000),
        false_version("T1-false", RandomisedResponse(2.0), 0, 1, PureDP(1.0), Local(), exact=2.0, runs=20_000),
        true_statement("T1-share", "Pr[1] >= e/(1 + e)", share_of_ones, runs=20_000),
    ),
)
OTHER = Experiment(
    id="T2",
    document="others",
    statement="Another one.",
    source="none",
    cases=(true_version("T2-true", RandomisedResponse(1.0), 0, 1, PureDP(1.0), Local(), runs=20_000),),
)


@pytest.mark.parametrize(
    ("names", "documents", "found"),
    [
        (["all"], [], {"T1": 3, "T2": 1}),
        (["t1"], [], {"T1": 3}),
        ([], ["others"], {"T2": 1}),
        (["T1-false"], ["others"], {"T1": 1, "T2": 1}),
        ([], [], {}),
    ],
)
def test_experiments_are_chosen_by_id_case_or_document(names, documents, found):
    chosen = select([RESPONSE, OTHER], names, documents)
    assert {experiment.id: len(experiment.cases) for experiment in chosen} == found


@pytest.mark.parametrize(
    ("names", "documents", "message"),
    [
        (["T3"], [], "'T3' is not an experiment"),
        (["T1-shar"], [], "did you mean 'T1-share'"),
        ([], ["nowhere"], "'nowhere' is not a document; use one of tests, others"),
    ],
)
def test_unknown_names_are_refused(names, documents, message):
    with pytest.raises(UnknownNameError, match=message):
        select([RESPONSE, OTHER], names, documents)


@pytest.mark.usefixtures("without_resolution")
def test_a_suite_holds_audits_and_statements(tmp_path):
    seen = []

    def watch(case, runs):
        return lambda finished: seen.append((case.name, finished))

    suite = run_experiments([RESPONSE], alpha=1e-6, seed=1, out=tmp_path, watch=watch)
    assert suite.is_met
    assert [entry.experiment for entry in suite.entries] == ["T1"] * 3
    assert [entry.result.verdict for entry in suite.entries] == [case.expected for case in RESPONSE.cases]
    assert load(tmp_path / "results.json") == suite
    for case in RESPONSE.cases:
        assert sum(finished for name, finished in seen if name == case.name) == 40_000
    again = run_experiments([RESPONSE], alpha=1e-6, seed=1, jobs=1)
    assert again == suite


@pytest.mark.usefixtures("without_resolution")
def test_an_unexpected_verdict_fails_the_suite_and_the_benchmark():
    wrong = Experiment(
        id="T3",
        document="tests",
        statement="Half the noise keeps the claim, which is false.",
        source="none",
        cases=(true_version("T3-wrong", LaplaceMechanism(2.0), 0.0, 1.0, PureDP(1.0), Local(), runs=20_000),),
    )
    assert not run_experiments([wrong], alpha=1e-6, seed=1).is_met


def test_blocks_are_whole_seeded_and_of_independent_streams():
    mechanism = LaplaceMechanism(1.0)
    draw = partial(blocks, mechanism, 0.0)
    first = np.concatenate(list(draw(300_000, seed=1, stream=0)))
    assert len(first) == 300_000
    assert np.array_equal(first, np.concatenate(list(draw(300_000, seed=1, stream=0))))
    assert not np.isin(first, np.concatenate(list(draw(1_000, seed=1, stream=1)))).all()
    with pytest.raises(OptionError, match="runs=0 is not a number of runs"):
        next(draw(0, seed=1, stream=0))


def test_hits_and_outcomes_are_counted():
    response = RandomisedResponse(1.0, k=3)
    outputs = np.concatenate(list(blocks(response, 2, 200_000, seed=5, stream=3)))
    counts = outcome_counts(response, 2, 3, 200_000, seed=5, stream=3)
    assert counts.tolist() == [int((outputs == k).sum()) for k in range(3)]
    assert event_hits(response, 2, lambda out: out == 2, 200_000, seed=5, stream=3).tolist() == [counts[2]]
    both = event_hits(response, 2, lambda out: out[:, None] == [0, 2], 200_000, seed=5, stream=3)
    assert both.tolist() == [counts[0], counts[2]]


def test_every_experiment_is_registered_stated_in_full_and_can_fail():
    experiments = all_experiments()
    names = [case.name for experiment in experiments for case in experiment.cases]
    assert len(set(names)) == len(names)
    assert len({experiment.id for experiment in experiments}) == len(experiments)
    for experiment in experiments:
        assert {case.expected for case in experiment.cases} == {Verdict.NOT_REFUTED, Verdict.REFUTED}, experiment.id
        assert experiment.statement.endswith(".")
        assert experiment.source
        for case in experiment.cases:
            assert case.claimed
            assert experiment.id == "reference" or case.name.startswith(f"{experiment.id}-")
    for found in pkgutil.iter_modules(documents.__path__, f"{documents.__name__}."):
        own = getattr(importlib.import_module(found.name), "experiments", list)()
        assert {experiment.id for experiment in own} <= {experiment.id for experiment in experiments}, found.name


def test_synthetic_datasets_are_kept_where_their_text_is_short_and_says_something():
    def case(x, y):
        one = true_version("T3", lambda data, size, rng: rng.laplace(size=size), x, y, PureDP(1.0), Local(), runs=2_000)
        return one.run(runs=2_000, alpha=0.05, seed=0, jobs=1, progress=None).pair.contents

    assert case(0.0, 1.0) == ("0.0", "1.0")
    assert case([1] * 1_000, [2] * 1_000) is None, "too long"
    assert case(object(), object()) is None, "an address differs between processes"
