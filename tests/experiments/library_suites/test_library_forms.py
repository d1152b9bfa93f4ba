"""Forms of the installed libraries: every public callable has targets or a reason, and new ones are picked up."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from dpaudit import AddRemove, Replace, Within
from dpaudit.audit.errors import OptionError
from dpaudit.experiments.libraries.target import is_installed
from dpaudit.experiments.library_suites.audited_library import (
    NotCovered,
    PublicCallable,
    SameAs,
    Target,
    public_callables,
)
from dpaudit.experiments.library_suites.library_names import library_named
from dpaudit.experiments.library_suites.opendp_forms import number_space
from dpaudit.experiments.library_suites.plan import plan_of
from dpaudit.experiments.library_suites.run_target import example_of

from ...reports.cli.conftest import run

__all__ = ["run"]

needs_diffprivlib = pytest.mark.skipif(not is_installed("diffprivlib"), reason="diffprivlib is not installed")
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
LIBRARIES = ["opendp", "pydp", pytest.param("diffprivlib", marks=needs_diffprivlib)]


def public_of(library):
    return {each.name: each for each in library.public()}


@pytest.mark.parametrize("name", LIBRARIES)
def test_forms_have_targets_or_reasons(name):
    library = library_named(name)
    public = public_of(library)
    assert set(SAMPLE[name]) <= set(public)
    forms = [library.form_of(public[each]) for each in SAMPLE[name]]
    assert {type(form) for form in forms} >= {tuple, NotCovered}
    for form in forms:
        if isinstance(form, tuple):
            points = [target.point for target in form]
            assert points
            assert len(set(points)) == len(points)
        else:
            assert form == SameAs("measurements.make_laplace") or form.reason
    (target, *_) = forms[0]
    assert len(target.make().sample(example_of(target.domain), 3, np.random.default_rng(0))) == 3


def test_claims_for_samples_of_a_population_are_not_audited_as_if_for_the_data():
    library = library_named("opendp")
    form = library.form_of(public_of(library)["combinators.make_population_amplification"])
    assert form == NotCovered("its claim is for a random sample of a population, which the caller draws")


def test_known_defects_belong_to_their_release(monkeypatch):
    library = library_named("opendp")
    threshold = public_of(library)["measurements.make_laplace_threshold"]
    by_kind = {target.point.split(", ")[1]: target.known for target in library.form_of(threshold)}
    assert by_kind["int"].endswith("(docs/findings.md)")
    assert by_kind["float"] == ""
    monkeypatch.setattr(
        "dpaudit.experiments.library_suites.audited_library.release_of", lambda library: "opendp 99.0.0"
    )
    assert {target.known for target in library.form_of(threshold)} == {""}


def test_a_new_constructor_of_opendp_is_picked_up():
    library = library_named("opendp")
    laplace = public_of(library)["measurements.make_laplace"].function

    def make_new_noise(input_domain, input_metric, scale):
        return laplace(input_domain, input_metric, scale)

    form = library.form_of(PublicCallable("measurements.make_new_noise", make_new_noise))
    assert "a number, float" in [target.point for target in form]

    def make_other(input_domain, input_metric, secret):
        raise AssertionError

    form = library.form_of(PublicCallable("measurements.make_other", make_other))
    assert form == NotCovered("its parameters (secret) fit no known form")


def test_domains_of_older_releases_of_opendp_are_read(monkeypatch):
    """Up to 0.12 the parameter for NaN was `nullable`."""
    seen = []

    def atom_domain(bounds=None, nullable=False, T=None):
        seen.append((bounds, nullable, T))

    old = SimpleNamespace(atom_domain=atom_domain, absolute_distance=lambda T: None)
    monkeypatch.setattr("dpaudit.experiments.library_suites.opendp_forms.prelude", lambda: old)
    number_space(float)
    number_space(int)
    assert seen == [(None, False, float), (None, False, int)]


def test_noise_of_pydp_is_audited_where_its_low_bits_show():
    library = library_named("pydp")
    form = library.form_of(public_of(library)["algorithms.numerical_mechanisms.GaussianMechanism"])
    (first, *_) = form
    assert (first.point, first.domain) == ("epsilon=1, delta=0.1, sensitivity=1, 0 and 1", ((0.0, 1.0),))


def test_a_new_aggregate_of_pydp_is_picked_up_with_what_is_assumed():
    class NewSum:
        def __init__(self, epsilon=1.0, lower_bound=None, upper_bound=None, dtype="int"):
            self.epsilon = epsilon

    form = library_named("pydp").form_of(PublicCallable("algorithms.laplacian.NewSum", NewSum))
    assert len(form) == 3
    assert {target.note for target in form} == {"Neighbours are assumed: one row is added or removed."}

    class NewModel:
        def __init__(self, epsilon, depth):
            self.epsilon = epsilon

    form = library_named("pydp").form_of(PublicCallable("algorithms.laplacian.NewModel", NewModel))
    assert form == NotCovered("its parameters fit no known form (depth)")


@needs_diffprivlib
def test_new_mechanisms_and_tools_of_diffprivlib_are_picked_up():
    from diffprivlib.mechanisms import Laplace

    library = library_named("diffprivlib")
    form = library.form_of(PublicCallable("mechanisms.NewNoise", type("NewNoise", (Laplace,), {})))
    assert all(isinstance(target, Target) and target.note.startswith("Neighbours are assumed") for target in form)

    def new_tool(array, epsilon=1.0, bounds=None, accountant=None, random_state=None):
        raise AssertionError

    form = library.form_of(PublicCallable("tools.new_tool", new_tool))
    assert {target.adjacencies for target in form} == {(Replace(), AddRemove())}
    assert isinstance(library.form_of(PublicCallable("models.NewModel", Laplace)), NotCovered)


@needs_diffprivlib
def test_whole_numbers_are_found_by_trying():
    library = library_named("diffprivlib")
    points = [target.point for target in library.form_of(public_of(library)["mechanisms.Laplace"])]
    assert points[-1] == "epsilon=1, delta=0.1, sensitivity=1"  # in a fixed order, as the seed follows from the name
    (first, *_) = library.form_of(public_of(library)["mechanisms.Geometric"])
    assert first.domain.integer
    assert first.make().adjacency == Within("l1", 1.0)


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


def test_the_list_shows_plan_and_coverage(run):
    status, out, _ = run("suite", "pydp", "--list", "--only", "laplacian|distributions")
    assert status == 0
    assert "alpha 0.0001 for the suite" in out
    assert "algorithms.laplacian.Count: epsilon=1\n" in out
    assert "public callables: 9 planned, 3 not covered" in out
    status, _, errors = run("suite", "numpy")
    assert status == 2
    assert "has no suite; use one of diffprivlib, opendp, pydp, pipeline-dp" in errors
    with pytest.raises(OptionError, match="has no suite"):
        library_named("numpy")


def test_opendp_is_listed_without_a_run(monkeypatch):
    library = library_named("opendp")
    some = tuple(each for each in library.public() if each.name in SAMPLE["opendp"])
    assert len(library.public()) > 100
    plan = plan_of(
        type(library)(
            **{**{name: getattr(library, name) for name in ("name", "release", "form_of")}, "public": lambda: some}
        )
    )
    assert plan.callables == tuple(sorted(SAMPLE["opendp"]))


def test_the_command_writes_every_report_and_the_coverage(run, tmp_path):
    arguments = ("suite", "pydp", "--only", "Count: epsilon=1|^distributions.L", "--no-bits", "--out", "found")
    status, out, errors = run(*arguments)
    assert status == 0
    assert "1 of 1 points audited: 0 refuted by values" in out
    names = {path.name for path in (tmp_path / "found").iterdir()}
    assert names >= {"results.json", "report.html", "report.md", "junit.xml", "coverage.json", "coverage.md"}
    page = (tmp_path / "found" / "report.html").read_text()
    assert '<h2 id="coverage">' in page
    assert '<th scope="row"><bdi>distributions.LaplaceDistribution</bdi></th>' in page
    assert "[1/1] algorithms.laplacian.Count: epsilon=1: NOT REFUTED" in errors
    assert run(*arguments)[0] == 2
    status, out, errors = run(*arguments, "--resume")
    assert status == 0
    assert "[1/1]" not in errors
