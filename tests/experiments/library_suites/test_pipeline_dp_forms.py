"""Forms of PipelineDP: metrics and methods of the engine have targets, and what the local backend shows is read."""

from __future__ import annotations

import dataclasses
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from dpaudit import ApproxDP, PureDP
from dpaudit.audit.events.outputs import Raised
from dpaudit.experiments.libraries.target import is_installed
from dpaudit.experiments.library_suites.audited_library import NotCovered, PublicCallable
from dpaudit.experiments.library_suites.library_names import library_named
from dpaudit.experiments.library_suites.pipeline_dp_forms import (
    Pipeline,
    in_order_of_keys,
    keys_as_returned,
    metrics_in_order_of_keys,
    pipeline_dp_form,
    sorted_keys,
    sums_of_variances,
    values_as_returned,
)
from dpaudit.experiments.library_suites.plan import plan_of
from dpaudit.experiments.library_suites.run_target import example_of, run_target

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of escapes in its docstrings
    needs_pipeline_dp = pytest.mark.skipif(not is_installed("pipeline-dp"), reason="pipeline-dp is not installed")
FOUND = [("b", (2.0, np.array([3.0, 4.0]))), ("a", (1.0, None))]


def test_readings_of_a_list_of_partitions():
    assert in_order_of_keys(FOUND) == ("a", 1.0, "b", 2.0, 3.0, 4.0)
    assert metrics_in_order_of_keys(FOUND) == (1.0, 2.0, 3.0, 4.0)
    assert keys_as_returned(FOUND) == ("b", "a")
    assert sorted_keys(["b", "a"]) == ("a", "b")
    assert values_as_returned([(0, 2), (1, 1.5)]) == (2.0, 1.5)
    moments = SimpleNamespace(count=4.0, mean=1.5, variance=2.0)  # sum 2 and sum of squares 9 around 1
    assert sums_of_variances(1.0, [("a", moments)]) == (4.0, 2.0, 9.0)


def test_the_claim_is_the_budget_of_the_accountant():
    pure = Pipeline(release=lambda engine, rows: rows, read=tuple)
    assert (pure.claim, pure.claim_source) == (PureDP(1.0), "total_epsilon and total_delta of NaiveBudgetAccountant")
    approximate = Pipeline(release=lambda engine, rows: rows, read=tuple, epsilon=2.0, delta=0.1)
    assert approximate.claim == ApproxDP(2.0, 0.1)


def test_other_names_have_reasons():
    def reason(name, function=object):
        return pipeline_dp_form(PublicCallable(name, function)).reason

    assert "parameters" in reason("NewParams")
    assert "elsewhere" in reason("FlinkBackend")
    assert "does not have it" in reason("Missing", None)
    assert reason("NewThing") == "no form says what it releases"
    assert pipeline_dp_form(PublicCallable("Metrics.MODE", object())) == NotCovered("no form says what values it takes")


@needs_pipeline_dp
def test_every_metric_and_method_has_targets_that_run_or_fail_for_a_known_reason():
    plan = plan_of(library_named("pipeline-dp"))
    metrics = {f"Metrics.{name}" for name in ("COUNT", "PRIVACY_ID_COUNT", "SUM", "MEAN", "VARIANCE", "PERCENTILE")}
    engine = {f"DPEngine.{name}" for name in ("aggregate", "select_partitions", "add_dp_noise")}
    assert metrics | engine <= {target.callable for target in plan.targets}
    for target in plan.targets:
        example, rng = example_of(target.domain), np.random.default_rng(0)
        if target.callable == "Metrics.VECTOR_SUM" and "public" in target.point:
            with pytest.raises(TypeError):  # of the empty partitions that the library adds
                target.make().sample(example, 1, rng)
        else:
            (output,) = target.make().sample(example, 1, rng)
            assert not isinstance(output, Raised), target.name


@needs_pipeline_dp
@pytest.mark.parametrize(
    ("point", "is_refuted"),
    [
        pytest.param("DPEngine.aggregate: order of public partitions in the list", True, marks=pytest.mark.evidence),
        pytest.param("DPEngine.aggregate: no rows", True, marks=pytest.mark.evidence),
        ("Metrics.SUM: a row of NaN", True),
        ("Metrics.COUNT: Laplace, public partitions", False),
    ],
)
def test_known_defects_are_found_and_others_are_not(point, is_refuted):
    (target,) = (each for each in plan_of(library_named("pipeline-dp")).targets if each.name == point)
    small = dataclasses.replace(target, runs=600, search_runs=400)
    outcome = run_target(small, alpha=1e-6, seed=0, seconds=1e3, with_bits=False)
    assert outcome.is_refuted_by_values == is_refuted
    assert not outcome.failure
