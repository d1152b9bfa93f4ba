"""Suites of a small library: right, faulty, leaking by bits, of unknown template, failing, hanging, and in processes.

Forms of the installed libraries: every public callable has targets or a reason, and new ones are picked up.
"""

import dataclasses
import json
import os
import signal
import sys
import time
import warnings
from concurrent.futures import Future
from functools import partial
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError

from dpaudit import AddRemove, Answers, ApproxDP, PureDP, Replace, Rows, check, find_worst_pair
from dpaudit.audit.errors import OptionError
from dpaudit.audit.events.outputs import Raised
from dpaudit.audit.records.json_codec import from_json, to_json
from dpaudit.audit.results.verdict import Verdict
from dpaudit.domains import Within
from dpaudit.experiments.libraries.subjects import is_installed
from dpaudit.experiments.library_suites import library_names
from dpaudit.experiments.library_suites import run_plan as of_plans
from dpaudit.experiments.library_suites.audited_library import (
    Library,
    NotCovered,
    PublicCallable,
    SameAs,
    Target,
    plan_of,
    public_callables,
)
from dpaudit.experiments.library_suites.coverage import Status, coverage_of_plan, coverage_of_run, outcome_text
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
from dpaudit.experiments.library_suites.run_plan import example_of, run_plan, run_target
from dpaudit.reports import junit, markdown

from ...reports.cli.conftest import run

__all__ = ["run"]


class Noise:
    """Noise on a whole number, with the claim 1."""

    claim, adjacency = PureDP(1.0), Within("l1", 1.0)

    def __init__(self, epsilon=1.0, continuous=False):
        self.p, self.continuous = -np.expm1(-epsilon), continuous

    def sample(self, dataset, size, rng):
        if self.continuous:
            return dataset + rng.laplace(scale=1.0, size=size)
        return dataset + rng.geometric(self.p, size) - rng.geometric(self.p, size)


class Difference:
    """Ones minus zeros, with noise for added rows: a replaced row moves it by 2."""

    claim = PureDP(1.0)

    def __init__(self, epsilon=1.0):
        self.noise = Noise(epsilon)

    def sample(self, rows, size, rng):
        return self.noise.sample(rows.count(1) - rows.count(0), size, rng)


class Hanging(Noise):
    def sample(self, dataset, size, rng):
        time.sleep(1_000)


class Dying(Noise):
    def sample(self, dataset, size, rng):
        os._exit(7)


def broken():
    raise ZeroDivisionError("of the library")


def leaving():
    sys.exit("no data")


WHOLE, ROWS = Answers(low=0, high=2, integer=True), Rows(values=(0, 1), least=1, most=3)
NAMES = ("bits", "changed", "failing", "faulty", "right", "same", "unknown", "wrong_rows")


def form_of(public):
    def target(point, make, domain=WHOLE, **options):
        return Target(callable=public.name, point=point, make=make, domain=domain, runs=1_000, **options)

    both = (Replace(), AddRemove())
    match public.short:
        case "right":
            return target("epsilon=1", Noise), target("epsilon=1 again", Noise)
        case "faulty":
            return target("epsilon=1", lambda: Noise(4.0), known="too little noise"), target("epsilon=2", Noise)
        case "bits":
            return (target("epsilon=1", lambda: Noise(continuous=True), Answers(low=0.0, high=1.0)),)
        case "failing":
            return target("any", broken), target("exit", leaving)
        case "changed":
            return (target("rows", Difference, ROWS, adjacencies=both),)
        case "wrong_rows":
            return (target("rows", lambda: Difference(4.0), ROWS, adjacencies=both),)
        case "same":
            return SameAs("tools.right")
        case "hanging" | "dying":
            return (target("any", {"hanging": Hanging, "dying": Dying}[public.short]),)
    return NotCovered("it fits no known template")


def public():
    return tuple(PublicCallable(f"tools.{name}", None) for name in NAMES)


LIBRARY = Library(name="small", release=lambda: "small 1.0", public=public, form_of=form_of)


@pytest.fixture(scope="module")
def found():
    return run_plan(LIBRARY, plan_of(LIBRARY), minutes=5, in_process=True)


def test_every_callable_is_planned_with_shares_that_are_fixed_beforehand():
    plan = plan_of(LIBRARY, alpha=1e-3)
    assert plan.callables == tuple(f"tools.{name}" for name in NAMES)
    assert [line.callable for line in coverage_of_plan(plan).lines] == list(plan.callables)
    assert len({target.callable for target in plan.targets[:6]}) == 6
    again = ["tools.failing: exit", "tools.faulty: epsilon=2", "tools.right: epsilon=1 again"]
    assert [target.name for target in plan.targets[6:]] == again
    assert plan.audits == 18
    assert plan.share * plan.audits == pytest.approx(1e-3, rel=1e-12)
    assert plan_of(LIBRARY, alpha=1e-3, with_bits=False).share == pytest.approx(2 * plan.share)


def test_verdicts(found):
    refuted = {one.name for one in found.outcomes if one.is_refuted_by_values}
    assert refuted == {"tools.faulty: epsilon=1", "tools.wrong_rows: rows"}
    assert [one.name for one in found.outcomes if one.is_refuted_by_bits_only] == ["tools.bits: epsilon=1"]
    assert [one.failure for one in found.outcomes if one.failure] == [
        "it raised ZeroDivisionError: of the library",
        "it raised SystemExit: no data",
    ]
    entries = {entry.name: entry for one in found.outcomes for entry in one.entries}
    assert {entry.result.alpha for entry in entries.values()} == {found.plan.share}
    assert (found.not_reached, found.status) == ((), 1)
    changed = entries["tools.changed: rows"].result  # refuted only under each of its relations
    assert (changed.verdict, str(changed.pair.adjacency)) == (Verdict.NOT_REFUTED, str(AddRemove()))
    known = entries["tools.faulty: epsilon=1"].note
    assert known.startswith("Known for this release: too little noise. Confirmed on fresh runs")
    assert "Known" not in entries["tools.wrong_rows: rows"].note
    assert outcome_text(found).count("(new)") == 2
    assert outcome_text(found).count("(known: too little noise)") == 1
    suite = found.suite()
    assert from_json(to_json(suite)) == suite
    assert junit(suite).count("<failure") == 3
    assert "Known for this release" in markdown(suite)


def test_the_coverage_says_what_was_not_audited(found):
    coverage = coverage_of_run(found)
    assert {line.callable.partition(".")[2]: line.status for line in coverage.lines} == {
        "bits": Status.REFUTED_BY_BITS,
        "changed": Status.AUDITED,
        "failing": Status.FAILED,
        "faulty": Status.REFUTED,
        "right": Status.AUDITED,
        "same": Status.SAME,
        "unknown": Status.NOT_COVERED,
        "wrong_rows": Status.REFUTED,
    }
    late = run_plan(LIBRARY, plan_of(LIBRARY, only="right"), minutes=1e-9, in_process=True)
    (line,) = [line for line in coverage_of_run(late).lines if line.callable == "tools.right"]
    assert (line.status, line.reasons) == (Status.NOT_REACHED, ("2 of 2 configurations not reached in the time",))
    assert (len(late.not_reached), late.status) == (2, 3)


def test_a_suite_that_ended_resumes_with_the_same_results_in_its_folder(tmp_path):
    plan, options = plan_of(LIBRARY, only="right|any"), {"only": "right|any", "in_process": True}

    def stop(outcome, done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(OptionError, match="nothing to resume"):
        run_plan(LIBRARY, plan, out=tmp_path, is_resumed=True, **options)
    with pytest.raises(KeyboardInterrupt):
        run_plan(LIBRARY, plan, out=tmp_path, watch=stop, **options)
    with pytest.raises(OptionError, match="continue that suite with --resume"):
        run_plan(LIBRARY, plan, out=tmp_path, **options)
    later = dataclasses.replace(plan, release="small 2.0")
    with pytest.raises(OptionError, match=r"the release of the suite in .* differ: 'small 1.0' then, 'small 2.0' now"):
        run_plan(LIBRARY, later, out=tmp_path, is_resumed=True, **options)
    again = []
    noted = {"watch": lambda outcome, done, total: again.append(outcome.name)}
    resumed = run_plan(LIBRARY, plan, out=tmp_path, is_resumed=True, **noted, **options)
    assert again == ["tools.failing: any", "tools.right: epsilon=1 again"]
    assert resumed.suite() == run_plan(LIBRARY, plan, **options).suite()


class TestOneTarget:
    TARGET = plan_of(LIBRARY, only="faulty: epsilon=1").targets[0]

    def test_a_refutation_that_fresh_runs_do_not_confirm_is_withdrawn(self, monkeypatch):
        """They have the pair swapped and another seed."""
        found, fresh = [], []

        def searched(*arguments, **options):
            found.append(find_worst_pair(*arguments, **options))
            return found[-1]

        def confirmed(mechanism, x, y, **options):
            fresh.append((x, y, options["alpha"], options["seed"]))
            return check(Noise(), x, y, **options)

        monkeypatch.setattr(of_plans, "find_worst_pair", searched)
        monkeypatch.setattr(of_plans, "check", confirmed)
        outcome = run_target(self.TARGET, alpha=1e-6, seed=0, seconds=5, with_bits=True)
        (entry,), (worst,), ((*pair, alpha, seed),) = outcome.entries, found, fresh
        assert (len(outcome.unconfirmed), entry.result.verdict) == (1, Verdict.NOT_REFUTED)
        assert entry.note.startswith("A first audit refuted the claim (REFUTED")
        assert (pair, alpha) == ([worst.y, worst.x], 1e-6)
        assert seed != worst.audit.seed

    def test_a_slow_mechanism_gets_fewer_runs_or_a_reason(self, monkeypatch):
        assert of_plans._seconds_of_a_run(lambda dataset, rng: time.sleep(0.002), 0, 1.0) >= 0.002
        found = run_target(self.TARGET, alpha=1e-4, seed=0, seconds=1e-9, with_bits=False)
        assert "so that 400 runs on each dataset do not fit into 1e-09 s" in found.failure
        monkeypatch.setattr(of_plans, "_seconds_of_a_run", lambda mechanism, dataset, limit: 1e-3)
        for runs, seconds, given in ((50_000, 20.0, 5_000), (50_000, 1e3, 50_000), (900, 2.0, 500)):
            target = dataclasses.replace(self.TARGET, runs=runs)
            assert of_plans._affordable(target, Noise(), seconds) == (given, given)


def test_impossible_suites_are_refused():
    double = dataclasses.replace(LIBRARY, form_of=lambda held: form_of(PublicCallable("tools.right", None))[:1])
    with pytest.raises(OptionError, match=r"targets have the same name: tools\.right: epsilon=1"):
        plan_of(double)
    for only, said in (("(", "is not a regular expression"), ("nothing such", "matches no callable of small")):
        with pytest.raises(OptionError, match=said):
            plan_of(LIBRARY, only=only)
    here = {"deadline": 5.0, "in_process": True}
    for options in ({"minutes": float("nan")}, {"workers": 0}, {"deadline": 0.0}, here):
        with pytest.raises(OptionError, match=next(iter(options))):
            run_plan(LIBRARY, plan_of(LIBRARY), **options)


def of_three():
    return tuple(PublicCallable(f"tools.{name}", None) for name in ("dying", "hanging", "right"))


LATE = "it did not answer within its deadline of 2 s, and its process was ended"
DIED = "its process died, by a crash in compiled code or for want of memory"


class TestProcesses:
    @pytest.mark.evidence
    def test_a_target_that_hangs_and_one_that_dies_are_lines_of_the_coverage(self):
        library, seen = dataclasses.replace(LIBRARY, public=of_three), []
        found = run_plan(
            library,
            plan_of(library, with_bits=False, only="any|again"),
            only="any|again",
            workers=2,
            deadline=2.0,
            watch=lambda outcome, done, total: seen.append((done, total)),
        )
        lines = {line.callable.partition(".")[2]: (line.status, line.reasons) for line in coverage_of_run(found).lines}
        assert lines == {
            "dying": (Status.FAILED, (f"any: {DIED}",)),
            "hanging": (Status.FAILED, (f"any: {LATE}",)),
            "right": (Status.AUDITED, ()),
        }
        assert seen == [(1, 3), (2, 3), (3, 3)]

    def test_a_process_finds_what_is_found_here(self):
        plan = plan_of(LIBRARY, with_bits=False, only="again")
        here, there = (run_plan(LIBRARY, plan, only="again", in_process=is_here).suite() for is_here in (True, False))
        assert [each.result.counts for each in here.entries] == [each.result.counts for each in there.entries] != []

    def test_what_a_lane_tells_of_its_process(self, monkeypatch):
        """A process that died between two targets is replaced; one that dies or hangs is ended with a reason."""

        class Pool:
            def __init__(self, *futures):
                self.futures, self.is_ended = list(futures), False

            def submit(self, *_):
                if isinstance(future := self.futures.pop(0), Exception):
                    raise future
                return future

            def shutdown(self, **_):
                self.is_ended = True

        def done(answer):
            future = Future()
            future.set_exception(answer) if isinstance(answer, Exception) else future.set_result(answer)
            return future

        died = TerminatedWorkerError("it died")
        first, second = Pool(died), Pool(done(None), done("done"), done(died))
        pools = iter([second, Pool(done(None), Future())])
        monkeypatch.setattr(of_plans, "ProcessPoolExecutor", lambda **_: next(pools))
        lane = of_plans._Lane(print, print, "parcel", None)
        lane.pool = first
        for answer in ("done", DIED, LATE):
            lane.give("target")
            limit = 2.0 if answer != LATE else 0.0
            assert lane.take(limit) == ("target", answer.replace("2 s", f"{limit:g} s"))
        assert first.is_ended
        assert second.is_ended
        assert lane.pool is None


class TestCommand:
    """`dpaudit suite` on the small library, in this process."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch):
        monkeypatch.setitem(library_names.LIBRARIES, "pydp", LIBRARY)
        monkeypatch.setattr(library_names, "is_installed", lambda name: True)
        monkeypatch.setattr(of_plans, "run_plan", partial(run_plan, in_process=True))

    def test_it_writes_every_report_and_the_coverage(self, run, tmp_path):
        status, out, _ = run("suite", "pydp", "--list", "--only", "right|unknown")
        assert status == 0
        assert "alpha 0.0001 for the suite" in out
        assert "  tools.right: epsilon=1\n" in out
        assert "2 public callables: 1 planned, 1 not covered" in out
        arguments = (
            "suite",
            "pydp",
            "--only",
            "right: epsilon=1$|unknown|failing: any",
            "--no-floating-point",
            "--out",
            "found",
        )
        status, out, errors = run(*arguments)
        assert status == 0
        assert "1 of 2 configurations audited: 0 refuted by values" in out
        assert "tools.unknown: not covered (it fits no known template)" in out
        assert "[2/2] tools.right: epsilon=1: NOT REFUTED" in errors
        names = {path.name for path in (tmp_path / "found").iterdir()}
        assert names >= {"results.json", "report.html", "report.md", "junit.xml", "coverage.json", "coverage.md"}
        page = (tmp_path / "found" / "report.html").read_text()
        assert '<h2 id="coverage">' in page
        assert '<th scope="row"><bdi>tools.unknown</bdi></th>' in page
        failed = "| `tools.failing` | could not be audited | 0 of 1 | any: it raised ZeroDivisionError"
        assert failed in (tmp_path / "found" / "coverage.md").read_text()
        assert json.loads((tmp_path / "found" / "coverage.json").read_text())["public callables"] == 3
        status, _, errors = run(*arguments)
        assert status == 2
        assert "continue that suite with --resume" in errors
        status, _, errors = run("suite", "pydp", "--resume", "--out", "empty")
        assert status == 2
        assert "nothing to resume in empty" in errors
        status, _, errors = run("suite", "numpy")
        assert status == 2
        assert "has no suite; use one of diffprivlib, opendp, pydp, pipeline-dp" in errors

    def test_a_termination_ends_its_processes_as_ctrl_c_does(self, run, monkeypatch):
        before = signal.getsignal(signal.SIGTERM)

        def terminated(library, plan, **options):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)

        monkeypatch.setattr(of_plans, "run_plan", terminated)
        status, _, errors = run("suite", "pydp", "--only", "right")
        assert status == 130
        assert "the same command with --resume continues" in errors
        assert signal.getsignal(signal.SIGTERM) == before


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
        place = "dpaudit.experiments.library_suites.library_names.release_of"
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
        assert form == NotCovered("its parameters (secret) fit no known template")


def test_new_aggregates_of_pydp_are_picked_up_with_what_is_assumed():
    class NewSum:
        def __init__(self, epsilon=1.0, lower_bound=None, upper_bound=None, dtype="int"):
            self.epsilon = epsilon

    library = library_named("pydp")
    form = library.form_of(PublicCallable("algorithms.laplacian.NewSum", NewSum))
    assert len(form) == 3
    assert {target.note for target in form} == {"Neighbours are assumed: one row is added or removed."}
    plan = plan_of(library)
    assert {"algorithms.quantile_tree.QuantileTree", "ml.naive_bayes.GaussianNB"} <= {t.callable for t in plan.targets}
    reasons = {each.callable.rpartition(".")[2]: each.reason for each in plan.excluded}
    assert reasons["DPMachine"] == "it is a part of mechanisms, not a mechanism"
    assert reasons["ConfidenceInterval"] == "it is a statistic of noise, not a mechanism"
    (first, *_) = library.form_of(public_of(library)["algorithms.numerical_mechanisms.GaussianMechanism"])
    assert first.domain == ((0.0, 1.0),), "where low bits of noise show best"
    laplace = public_of(library)["algorithms.numerical_mechanisms.LaplaceMechanism"]
    names = [target.name for target in library.form_of(laplace)]
    assert len(names) == len(set(names)), "configurations that differ only in a delta that the mechanism does not have"


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
