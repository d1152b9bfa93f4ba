"""The benchmark of the inference: its oracles against enumeration, its record, and the quick form from end to end."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import sys

import numpy as np
import pytest
from scipy import stats

from dpaudit import ApproxDP, NFoldComposition, PureDP, check
from dpaudit.audit.errors import OptionError, RecordError, UnknownNameError
from dpaudit.audit.events.events import Apart, Intervals, Outcomes
from dpaudit.audit.inference.boundary_test import Counts, p_value
from dpaudit.experiments.benchmarks.core.bench_json import (
    Column,
    Record,
    Row,
    Target,
    load_record,
    markdown,
    save_record,
)
from dpaudit.experiments.benchmarks.core.page import Effort, run_benches, seeds_of, select_benches
from dpaudit.experiments.benchmarks.inference import dependent_runs, inference_page, known_events
from dpaudit.experiments.benchmarks.inference.inference_page import (
    INFERENCE,
    exact_size,
    outcome_laws,
    smallest_refuted,
)
from dpaudit.experiments.benchmarks.inference.known_events import (
    asymptotic_bounds,
    best_events,
    expected_bound,
    oracle_bound,
    probability,
    subjects,
)
from dpaudit.experiments.cases.experiment import strength_by_laws
from dpaudit.mechanisms import FiniteLaw, GaussianLaw, GeometricLaw, LaplaceLaw, exact_delta, exact_epsilon
from dpaudit.reports.cli.main import main

SUBJECTS = {subject.name: subject for subject in subjects()}


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
class TestSubjects:
    def test_the_claim_is_the_truth(self, subject):
        law_x, law_y = subject.laws()
        if isinstance(subject.claim, ApproxDP):
            assert exact_delta(law_x, law_y, subject.claim.epsilon) == pytest.approx(subject.claim.delta, rel=1e-8)
        else:
            assert exact_epsilon(law_x, law_y) == pytest.approx(subject.claim.epsilon, rel=1e-9)

    def test_the_best_events_attain_the_claim_and_none_exceeds_it(self, subject):
        law_x, law_y = subject.laws()
        rates = best_events(law_x, law_y)
        np.testing.assert_allclose(rates.p + rates.p_rest, 1.0, rtol=1e-12)
        np.testing.assert_allclose(rates.q + rates.q_rest, 1.0, rtol=1e-12)
        strengths = subject.claim.strength_of(rates.p, rates.q, rates.p_rest, rates.q_rest)
        some = (rates.q > 1e-12) & (rates.p_rest > 1e-12)
        assert strengths[some].max() == pytest.approx(subject.claim.strength, rel=1e-5)

    @pytest.mark.usefixtures("without_resolution")
    def test_no_event_that_an_audit_chooses_does_better_than_the_oracle(self, subject):
        law_x, law_y = subject.laws()
        result = check(subject.mechanism, subject.x, subject.y, claim=subject.claim, runs=20_000, seed=1, jobs=1)
        likelier, other = (law_x, law_y) if result.likelier_on == "x" else (law_y, law_x)
        p, q = probability(result.event, likelier), probability(result.event, other)
        n, counts = 10_000, result.directed_counts
        chosen = expected_bound(subject.claim, p, q, n, n, alpha=0.05)
        oracle = oracle_bound(subject, n, alpha=0.05)
        assert 0.5 * subject.claim.strength < chosen <= oracle * (1 + 2e-3) < subject.claim.strength
        # The exact probabilities are those of the counts: 1e-8 each, 14 of them over the subjects.
        for hits, runs, rate in ((counts.hits_x, counts.runs_x, p), (counts.hits_y, counts.runs_y, q)):
            low, high = stats.binom.ppf(0.5e-8, runs, rate), stats.binom.isf(0.5e-8, runs, rate)
            assert low <= hits <= high


@pytest.mark.parametrize("name", ["laplace", "gaussian-0.05", "geometric", "exponential"])
def test_the_oracle_is_the_best_of_many_events_by_the_exact_test(name):
    subject, n = SUBJECTS[name], 2_000
    rates = best_events(*subject.laws())
    found = asymptotic_bounds(subject.claim, rates, n, 0.05)
    tried = np.argsort(found)[:: -max(1, len(found) // 40)][:40]
    best = max(expected_bound(subject.claim, rates.p[i], rates.q[i], n, n, alpha=0.05) for i in tried)
    assert oracle_bound(subject, n, alpha=0.05) >= best - 0.01 * (subject.claim.strength - best)


@pytest.mark.parametrize(
    ("event", "law", "expected"),
    [
        (Intervals(((-math.inf, 0.3),)), LaplaceLaw(1.0, 0.5), stats.laplace.cdf(0.3, 1, 0.5)),
        (Intervals(((38.0, math.inf),)), GaussianLaw(0.0, 1.0), stats.norm.sf(38.0)),
        (Intervals(((-1.0, 0.5), (2.0, 3.0))), GaussianLaw(0.0, 1.0), np.diff(stats.norm.cdf([-1, 0.5, 2, 3]))[[0, 2]]),
        (Intervals(((2.0, 3.0),), True), GeometricLaw(0, 0.5), stats.dlaplace(math.log(2)).pmf([2, 3])),
        (Intervals(()), GeometricLaw(0, 0.5), 0.0),
        (Outcomes((0, 2)), FiniteLaw(tuple(np.log([0.2, 0.5, 0.3]))), 0.5),
        (Outcomes((0, "a"), others=True), FiniteLaw(tuple(np.log([0.2, 0.5, 0.3]))), 0.8),
        (Apart(Outcomes((0, "a"), others=True), Outcomes((0, 1))), FiniteLaw(tuple(np.log([0.2, 0.5, 0.3]))), 0.3),
        (Apart(Outcomes((0, 1)), Intervals(((1.0, 9.0),))), FiniteLaw(tuple(np.log([0.2, 0.5, 0.3]))), 0.2),
        (Apart(Intervals(((1.0, 9.0),)), Outcomes((0, 1))), FiniteLaw(tuple(np.log([0.2, 0.5, 0.3]))), 0.3),
        (Apart(Intervals(((1.0, 9.0),)), Outcomes((2,), True)), FiniteLaw(tuple(np.log([0.2, 0.5, 0.3]))), 0.3),
        (
            Apart(Intervals(((-1.0, 0.5), (2.0, 3.0))), Intervals(((0.0, 2.5),))),
            GaussianLaw(0.0, 1.0),
            np.diff(stats.norm.cdf([-1, 0.0, 2.5, 3]))[[0, 2]],
        ),
    ],
)
def test_probability_of_an_event(event, law, expected):
    assert probability(event, law) == pytest.approx(float(np.sum(expected)), rel=1e-9)


@pytest.mark.parametrize("claim", [PureDP(1.0), NFoldComposition(0.1, 4)], ids=str)
@pytest.mark.parametrize(("n", "m"), [(5, 5), (12, 7)])
def test_bisection_finds_what_enumeration_finds(claim, n, m):
    critical = smallest_refuted(n, m, claim, 0.05)
    for x, y in itertools.product(range(n + 1), range(m + 1)):
        p = p_value(Counts(hits_x=x, runs_x=n, hits_y=y, runs_y=m), claim, alpha=0.05)
        assert (p <= 0.05) == (x >= critical[y])
    q = 0.3
    p = float(claim.max_power(q)[0])
    by_hand = sum(
        stats.binom.pmf(x, n, p) * stats.binom.pmf(y, m, q)
        for x, y in itertools.product(range(n + 1), range(m + 1))
        if x >= critical[y]
    )
    size, _ = exact_size(critical, n, claim)
    assert by_hand <= size <= 0.05
    assert size > 0.9 * by_hand


def test_a_region_too_large_by_a_hit_is_seen():
    critical = smallest_refuted(20, 20, PureDP(1.0), 0.05)
    assert exact_size(critical, 20, PureDP(1.0))[0] <= 0.05
    assert exact_size(critical - 1, 20, PureDP(1.0))[0] > 0.05


@pytest.mark.parametrize("outcomes", [5, 50])
def test_laws_of_the_coverage(outcomes):
    for kind in ("distinct", "tied"):
        p, q = outcome_laws(kind, outcomes)
        assert p.sum() == pytest.approx(1.0, rel=1e-12)
        assert q.sum() == pytest.approx(1.0, rel=1e-12)
        ratios = np.abs(np.log(p / q))
        assert (ratios > ratios.max() - 1e-9).sum() == (1 if kind == "distinct" else outcomes)


def test_seeds_of_different_rows_are_different():
    rows = [(1, k) for k in range(14)] + [(3, k) for k in range(70)] + [(4, k) for k in range(7)]
    starts = [seeds_of(table, row, 0, 10_000) for table, row in rows]
    assert all(a.stop <= b.start or b.stop <= a.start for a, b in itertools.combinations(starts, 2))
    assert seeds_of(1, 0, 7, 3)[0] == seeds_of(1, 0, 0, 8)[-1]


ROW = Row(
    key="a, 10",
    cells={"name": "a", "runs": 10_000, "gap": 0.123456, "most": math.inf, "none": None},
    targets=(
        Target(what="gap", value=0.12, sense="<=", limit=0.1),
        Target(what="found", value=1.0, sense=">=", limit=0.9),
    ),
    machine="Machine: one.",
    seconds=1.5,
)
COLUMNS = (
    Column("what", "name"),
    Column("runs", "runs", ","),
    Column("gap", "gap", ".3f"),
    Column("most", "most", ",.0f"),
)


def test_a_record_survives_the_way_to_a_file_and_rows_replace_each_other(tmp_path):
    path = tmp_path / "r.json"
    assert load_record(path) == Record()
    other = dataclasses.replace(ROW, key="b", targets=())
    record = Record().with_row("t", ROW).with_row("t", other)
    save_record(record, path)
    assert load_record(path) == record
    json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    replaced = load_record(path).with_row("t", dataclasses.replace(ROW, cells={}))
    assert replaced.row("t", "a, 10").cells == {}
    assert replaced.row("t", "b") == other
    assert list(replaced.tables["t"]) == ["a, 10", "b"]


def test_a_table_shows_figures_targets_and_machines():
    text = markdown("Title", "How.", COLUMNS, [ROW, dataclasses.replace(ROW, targets=(), machine="Machine: two.")])
    assert text.startswith("## Title\n\nHow. Machine: one. Machine: two.\n\n| what | runs | gap | most | targets |\n")
    assert "| a | 10,000 | 0.123 | infinite | gap <= 0.1: MISSED, 0.12; found >= 0.9: met |" in text
    assert "| a | 10,000 | 0.123 | infinite | – |" in text
    assert not ROW.is_met
    assert not Target(what="gap", value=math.nan, sense="<=", limit=0.1).is_met


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 2, "tables": {}}', '{"schema": 1, "tables": {"t": {"a": {}}}}'])
def test_a_file_that_is_no_record_is_refused(tmp_path, text):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(RecordError, match="is not a record of a benchmark"):
        load_record(tmp_path / "r.json")


def test_tables_and_rows_are_selected_by_name():
    assert select_benches(INFERENCE, [], []) == list(INFERENCE.benches)
    assert [bench.name for bench in select_benches(INFERENCE, [], ["laplace"])] == [
        "false-alarms",
        "tightness",
        "refutation",
    ]
    with pytest.raises(UnknownNameError, match="'size' is not a table; use false-alarms, sizes"):
        select_benches(INFERENCE, ["size"], [])
    with pytest.raises(UnknownNameError, match="'laplace' is not a row; use one of sizes: equal, pure"):
        select_benches(INFERENCE, ["sizes"], ["laplace"])
    with pytest.raises(OptionError, match="nothing to continue"):
        run_benches(INFERENCE, [], Effort(), resume=True)


def quick(out, audits, **options):
    benches = select_benches(INFERENCE, ["false-alarms"], ["randomised-response"])
    effort = Effort(is_quick=True, audits=audits, sequential_audits=1, only=frozenset({"randomised-response"}))
    met = run_benches(INFERENCE, benches, effort, out=out, show=lambda _: None, **options)
    rows = load_record(out / "inference-quick.json").tables["false-alarms"]
    return met, rows["randomised-response, fixed size"]


@pytest.mark.usefixtures("without_resolution", "learned_seldom", "looked_seldom")
def test_a_row_that_is_continued_is_the_row_of_one_go(tmp_path):
    whole = quick(tmp_path / "whole", 4)[1]
    assert quick(tmp_path / "parts", 2)[1].cells["audits"] == 2
    continued = quick(tmp_path / "parts", 4, resume=True)[1]
    assert continued.cells == whole.cells
    assert quick(tmp_path / "parts", 4, resume=True)[1] == continued  # nothing is left to do
    assert quick(tmp_path / "parts", 2)[1].cells["audits"] == 2  # replaced


@pytest.mark.usefixtures("without_resolution", "learned_seldom", "looked_seldom")
def test_a_test_that_refutes_what_holds_misses_the_target(tmp_path, monkeypatch):
    wrong = dataclasses.replace(SUBJECTS["randomised-response"], claim=PureDP(0.3))
    monkeypatch.setattr(inference_page, "_subjects", lambda: {wrong.name: wrong})
    met, row = quick(tmp_path, 10)
    assert not met
    assert row.cells["refuted"] > 7
    assert "MISSED" in (tmp_path / "inference-quick.md").read_text()


def test_too_narrow_intervals_miss_the_target(monkeypatch):
    honest = inference_page.maximum_interval
    monkeypatch.setattr(inference_page, "maximum_interval", lambda *counts, alpha: honest(*counts, alpha=0.9))
    effort = Effort(is_quick=True, only=frozenset({"distinct-5"}))
    assert not run_benches(INFERENCE, select_benches(INFERENCE, ["coverage"], []), effort, show=lambda _: None)


def test_a_check_that_suspects_a_correct_mechanism_misses_the_target(monkeypatch):
    monkeypatch.setattr(dependent_runs, "_LEVEL", 0.9)
    monkeypatch.setattr(dependent_runs, "_CHECKS", 0.01)
    effort = Effort(is_quick=True, only=frozenset({"numbers-1000"}))
    assert not run_benches(INFERENCE, select_benches(INFERENCE, ["checks"], []), effort, show=lambda _: None)


def test_a_mechanism_called_correct_that_uses_noise_again_misses_the_target(monkeypatch):
    case = dataclasses.replace(dependent_runs._BY_NAME["noise-again"], is_correct=True)
    monkeypatch.setattr(dependent_runs, "_BY_NAME", {"noise-again": case})
    effort = Effort(is_quick=True, only=frozenset({"noise-again"}))
    assert not run_benches(INFERENCE, select_benches(INFERENCE, ["dependence"], []), effort, show=lambda _: None)


def test_an_oracle_that_knows_no_law_says_so():
    with pytest.raises(TypeError, match="no grid"):
        known_events.best_events(object(), object())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no exact probability"):
        probability(object(), LaplaceLaw(0.0, 1.0))  # type: ignore[arg-type]


def call(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["dpaudit", "bench", "inference", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code, *capsys.readouterr()


@pytest.mark.usefixtures("learned_seldom", "looked_seldom")
def test_quick_form_from_end_to_end(tmp_path, monkeypatch, capsys):
    """With fewer audits, of fewer runs, than on the command line; of less than three no target could be missed.

    The one audit of a module's stream, which none can miss either, runs in this process.
    """
    for name in inference_page._POWER_QUICK:
        monkeypatch.setitem(
            inference_page._SUBJECTS, name, dataclasses.replace(inference_page._SUBJECTS[name], runs=2_000)
        )
    monkeypatch.setattr(dependent_runs, "_QUICK_RUNS", 2_000)
    monkeypatch.setattr(dependent_runs, "_STREAM_WORKERS", 1)
    few = ("--audits", "3", "--sequential-audits", "3")
    status, out, err = call(monkeypatch, capsys, "--quick", "--jobs", "1", *few, "--out", str(tmp_path))
    assert status == 0, out
    text = (tmp_path / "inference-quick.md").read_text()
    for bench in INFERENCE.benches:
        assert f"## {bench.title}\n" in out
        assert f"## {bench.title}\n" in text
    record = load_record(tmp_path / "inference-quick.json")
    assert set(record.tables) == {bench.name for bench in INFERENCE.benches}
    assert all(row.is_met for rows in record.tables.values() for row in rows.values())
    assert "false-alarms: randomised-response, sequential (" in err
    assert "MISSED" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--table", "none"), "UnknownNameError: 'none' is not a table"),
        (("--only", "none"), "UnknownNameError: 'none' is not a row"),
        (("--audits", "0"), "OptionError: --audits 0 measures nothing"),
        (("--sequential-audits", "-3"), "OptionError: --sequential-audits -3"),
        (("--jobs", "0"), "OptionError: --jobs 0"),
        (("--resume",), "OptionError: --resume has nothing to continue"),
    ],
)
def test_options_that_measure_nothing_are_refused(monkeypatch, capsys, arguments, message):
    status, _, err = call(monkeypatch, capsys, *arguments)
    assert status == 2
    assert err.startswith(message)


@pytest.mark.parametrize("kind", inference_page.KINDS)
@pytest.mark.parametrize("truth", [1.5, 1.01])
def test_the_refuted_mechanisms_have_the_loss_that_is_stated(kind, truth):
    subject = inference_page.Kind(kind)
    assert strength_by_laws(subject.mechanism(truth), subject.pair, subject.claim) == pytest.approx(truth, rel=1e-6)
