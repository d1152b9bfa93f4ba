"""Forms of the installed libraries: every public callable has targets or a reason, and new ones are picked up."""

from __future__ import annotations

import sys
import warnings
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from dpaudit import AddRemove, ApproxDP, Replace
from dpaudit.audit.errors import OptionError
from dpaudit.audit.events.outputs import Raised
from dpaudit.domains import Within
from dpaudit.experiments.libraries.target import is_installed
from dpaudit.experiments.library_suites.audited_library import (
    NotCovered,
    PublicCallable,
    SameAs,
    Target,
    public_callables,
)
from dpaudit.experiments.library_suites.library_names import library_named
from dpaudit.experiments.library_suites.pipeline_dp_forms import (
    Pipeline,
    in_order_of_keys,
    keys_as_returned,
    metrics_in_order_of_keys,
    sorted_keys,
    sums_of_variances,
    values_as_returned,
)
from dpaudit.experiments.library_suites.plan import plan_of
from dpaudit.experiments.library_suites.run_target import example_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of escapes in the docstrings of PipelineDP
    needs = {
        name: pytest.mark.skipif(not is_installed(name), reason=f"{name} is not installed")
        for name in ("diffprivlib", "pipeline-dp")
    }
SAMPLE = {
    "opendp": (
        "measurements.make_laplace",
        "measurements.make_user_measurement",
        "measurements.then_laplace",
        "transformations.make_mean",
        "combinators.make_composition",
        "combinators.make_population_amplification",
    ),
    "pydp": (
        "algorithms.laplacian.BoundedSum",
        "algorithms.partition_selection.create_partition_strategy",
        "distributions.LaplaceDistribution",
        "ml.mechanisms.geometric.Geometric",
    ),
    "diffprivlib": ("mechanisms.Laplace", "mechanisms.DPMechanism", "tools.nanmean", "models.KMeans"),
}


def public_of(library):
    return {each.name: each for each in library.public()}


@pytest.mark.parametrize("name", ["opendp", "pydp", pytest.param("diffprivlib", marks=needs["diffprivlib"])])
def test_forms_have_targets_or_reasons(name):
    library = library_named(name)
    public = public_of(library)
    assert set(SAMPLE[name]) <= set(public)
    forms = [library.form_of(public[each]) for each in SAMPLE[name]]
    assert {type(form) for form in forms} >= {tuple, NotCovered}
    for form in forms:
        assert form == SameAs("measurements.make_laplace") or form if isinstance(form, tuple | SameAs) else form.reason
    (target, *_) = forms[0]
    assert len(target.make().sample(example_of(target.domain), 3, np.random.default_rng(0))) == 3


class TestOpenDP:
    LIBRARY = library_named("opendp")
    PUBLIC = public_of(LIBRARY)

    def test_claims_for_samples_of_a_population_are_not_audited_as_if_for_the_data(self):
        form = self.LIBRARY.form_of(self.PUBLIC["combinators.make_population_amplification"])
        assert form == NotCovered("its claim is for a random sample of a population, which the caller draws")

    def test_known_defects_belong_to_their_release(self, monkeypatch):
        threshold = self.PUBLIC["measurements.make_laplace_threshold"]
        by_kind = {target.point.split(", ")[1]: target.known for target in self.LIBRARY.form_of(threshold)}
        assert by_kind["int"].endswith("(docs/findings.md)")
        assert by_kind["float"] == ""
        place = "dpaudit.experiments.library_suites.audited_library.release_of"
        monkeypatch.setattr(place, lambda library: "opendp 99.0.0")
        assert {target.known for target in self.LIBRARY.form_of(threshold)} == {""}

    def test_a_new_constructor_is_picked_up(self):
        laplace = self.PUBLIC["measurements.make_laplace"].function

        def make_new_noise(input_domain, input_metric, scale):
            return laplace(input_domain, input_metric, scale)

        form = self.LIBRARY.form_of(PublicCallable("measurements.make_new_noise", make_new_noise))
        assert "a number, float" in [target.point for target in form]

        def make_other(input_domain, input_metric, secret):
            raise AssertionError

        form = self.LIBRARY.form_of(PublicCallable("measurements.make_other", make_other))
        assert form == NotCovered("its parameters (secret) fit no known form")


def test_new_aggregates_of_pydp_are_picked_up_with_what_is_assumed():
    class NewSum:
        def __init__(self, epsilon=1.0, lower_bound=None, upper_bound=None, dtype="int"):
            self.epsilon = epsilon

    library = library_named("pydp")
    form = library.form_of(PublicCallable("algorithms.laplacian.NewSum", NewSum))
    assert len(form) == 3
    assert {target.note for target in form} == {"Neighbours are assumed: one row is added or removed."}
    (first, *_) = library.form_of(public_of(library)["algorithms.numerical_mechanisms.GaussianMechanism"])
    assert first.domain == ((0.0, 1.0),), "where low bits of noise show best"


@needs["diffprivlib"]
def test_new_mechanisms_and_tools_of_diffprivlib_are_picked_up():
    from diffprivlib.mechanisms import Laplace

    library = library_named("diffprivlib")
    public = public_of(library)
    form = library.form_of(PublicCallable("mechanisms.NewNoise", type("NewNoise", (Laplace,), {})))
    assert all(isinstance(target, Target) and target.note.startswith("Neighbours are assumed") for target in form)
    points = [target.point for target in library.form_of(public["mechanisms.Laplace"])]
    assert points[-1] == "epsilon=1, delta=0.1, sensitivity=1"  # in a fixed order, as the seed follows from the name
    (first, *_) = library.form_of(public["mechanisms.Geometric"])
    assert (first.domain.integer, first.make().adjacency) == (True, Within("l1", 1.0))

    def new_tool(array, epsilon=1.0, bounds=None, accountant=None, random_state=None):
        raise AssertionError

    form = library.form_of(PublicCallable("tools.new_tool", new_tool))
    assert {target.adjacencies for target in form} == {(Replace(), AddRemove())}
    assert isinstance(library.form_of(PublicCallable("models.NewModel", Laplace)), NotCovered)


def test_public_callables_are_those_of_the_package(monkeypatch):
    def module(name, **held):
        made = ModuleType(name)
        vars(made).update(held)
        monkeypatch.setitem(sys.modules, name, made)

    def public(home):
        def function():
            return home

        function.__module__ = home
        return function

    own, other = public("fakelib.tools"), public("numpy")
    module("fakelib")
    module("fakelib.tools", mean=own, borrowed=other, _hidden=own, number=3)
    module("fakelib.more", __all__=["listed"], listed=other, mean=own, unlisted=own)
    found = public_callables("fakelib", ("tools", "more", "gone"))
    assert [each.name for each in found] == ["more.listed", "tools.mean"]
    with pytest.raises(OptionError, match="has no suite"):
        library_named("fakelib")


class TestPipelineDP:
    def test_readings_of_a_list_of_partitions(self):
        found = [("b", (2.0, np.array([3.0, 4.0]))), ("a", (1.0, None))]
        assert in_order_of_keys(found) == ("a", 1.0, "b", 2.0, 3.0, 4.0)
        assert metrics_in_order_of_keys(found) == (1.0, 2.0, 3.0, 4.0)
        assert keys_as_returned(found) == ("b", "a")
        assert sorted_keys(["b", "a"]) == ("a", "b")
        assert values_as_returned([(0, 2), (1, 1.5)]) == (2.0, 1.5)
        moments = SimpleNamespace(count=4.0, mean=1.5, variance=2.0)  # sum 2 and sum of squares 9 around 1
        assert sums_of_variances(1.0, [("a", moments)]) == (4.0, 2.0, 9.0)
        made = Pipeline(release=lambda engine, rows: rows, read=tuple, epsilon=2.0, delta=0.1)
        assert (made.claim, made.claim_source) == (
            ApproxDP(2.0, 0.1),
            "total_epsilon and total_delta of NaiveBudgetAccountant",
        )

    @needs["pipeline-dp"]
    def test_every_metric_and_method_has_targets_that_run_or_fail_for_a_known_reason(self):
        plan = plan_of(library_named("pipeline-dp"))
        metrics = {f"Metrics.{name}" for name in ("COUNT", "PRIVACY_ID_COUNT", "SUM", "MEAN", "VARIANCE", "PERCENTILE")}
        engine = {f"DPEngine.{name}" for name in ("aggregate", "select_partitions", "add_dp_noise")}
        assert metrics | engine <= {target.callable for target in plan.targets}
        assert all(each.reason for each in plan.excluded)
        for target in plan.targets:
            example, rng = example_of(target.domain), np.random.default_rng(0)
            if target.callable == "Metrics.VECTOR_SUM" and "public" in target.point:
                with pytest.raises(TypeError):  # of the empty partitions that the library adds
                    target.make().sample(example, 1, rng)
            else:
                (output,) = target.make().sample(example, 1, rng)
                assert not isinstance(output, Raised), target.name
