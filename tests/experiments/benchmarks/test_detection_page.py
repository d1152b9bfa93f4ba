"""The benchmark of what is found: its exact probabilities against closed forms, and the quick form from end to end."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from dpaudit import epsilon_lower
from dpaudit.audit.events.events import Intervals
from dpaudit.experiments.benchmarks.core.bench_json import Row
from dpaudit.experiments.benchmarks.detection import detection_page, dp_sniper_pairs, rare_leaks
from dpaudit.experiments.benchmarks.detection.detection_page import DETECTION
from dpaudit.experiments.benchmarks.detection.dp_sniper_pairs import Probabilities, best_event, event_probabilities
from dpaudit.mechanisms import LaplaceMechanism
from dpaudit.mechanisms.faulty import SparseVectorWithoutQueryNoise
from dpaudit.reports.cli.main import main

LAPLACE = LaplaceMechanism(0.5)
FEWER = [
    (dp_sniper_pairs, "_QUICK_EXECUTIONS", 10_000),
    (detection_page, "_SUITE_QUICK_RUNS", 10_000),
    (rare_leaks, "_OUTCOME_QUICK_RUNS", 10_000),
    (detection_page, "_LOW_BIT_QUICK_RUNS", 50_000),
    (detection_page, "_QUICK_SEARCH", 1_000),
    (detection_page, "_SEARCHED_QUICK_RUNS", 4_000),
    (rare_leaks, "_LEAK_QUICK_AUDITS", 1),
    (detection_page, "_LOCAL_QUICK_RUNS", 10_000),
    (rare_leaks, "_OUTCOME_ERRORS", (0, 20)),
]


def test_event_probabilities_are_those_of_the_law():
    found = event_probabilities(LAPLACE, 0.0, 1.0, Intervals(((3.0, math.inf),)), runs=200_000, seed=0)
    law_x, law_y = stats.laplace(0, 2), stats.laplace(1, 2)
    assert found.p == pytest.approx(law_y.sf(3.0), rel=0.02)
    assert found.q == pytest.approx(law_x.sf(3.0), rel=0.02)
    assert math.log(found.p / found.q) == pytest.approx(0.5, rel=2e-3), "the ratio is constant there: hardly any noise"


def test_an_event_that_is_never_hit_has_a_probability_all_the_same():
    """Far out every output counts for both datasets, whichever it was drawn on."""
    mechanism = LaplaceMechanism(8.0)
    found = event_probabilities(mechanism, 0.0, 1.0, Intervals(((1.0, math.inf),)), runs=20_000, seed=0)
    assert found.q == pytest.approx(0.5 * math.exp(-8.0), rel=0.05)


def test_the_best_event_of_a_known_law():
    runs = 1_000_000
    found = best_event(LAPLACE, 0.0, 1.0, audit_runs=runs, alpha=0.1, runs=200_000, seed=0)
    law_x, law_y = stats.laplace(0, 2), stats.laplace(1, 2)
    bounds = [Probabilities(law_x.cdf(t), law_y.cdf(t)).expected_bound(runs, 0.1) for t in (-1.0, -0.3, 0.0, 0.3)]
    assert found.expected_bound(runs, 0.1) == pytest.approx(max(bounds), rel=2e-3)
    assert bounds[2] == epsilon_lower(500_000, runs, round(runs * law_y.cdf(0.0)), runs, alpha=0.1)


def test_an_infinite_loss_has_no_hits_on_the_other_side():
    mechanism = SparseVectorWithoutQueryNoise(1.0)
    found = best_event(mechanism, (0.0, 1.0), (1.0, 0.0), audit_runs=1_000_000, alpha=0.1, runs=50_000, seed=0)
    assert found.q == 0.0
    assert found.p > 0.1


def test_the_page_says_how_many_published_bounds_are_reached():
    def row(key, expected, published, oracle):
        cells = {"expected": expected, "published": published, "oracle": oracle, "seconds": 90.0}
        return Row(key=key, cells=cells, targets=(), machine="", seconds=1.0, date="")

    short = {each.key: each for each in (row("a", 0.10004, 0.1, 0.2), row("b", 0.0994, 0.1, 0.0999996))}
    long = {"b": row("b", 0.0999, 0.1, 0.0998)}
    said = dp_sniper_pairs.SNIPER.summary({"dp-sniper": short})
    assert "the expected bound in 1 of 2 rows, the oracle bound in 2" in said
    assert "3 minutes" in said
    both = dp_sniper_pairs.SNIPER_LONG.summary({"dp-sniper": short, "dp-sniper-long": long})
    assert "for 1 of 2 mechanisms, the oracle bound for 2" in both
    long["b"] = row("b", 0.09996, 0.1, 0.0998)  # published bounds have four digits
    assert "for 2 of 2 mechanisms" in dp_sniper_pairs.SNIPER_LONG.summary({"dp-sniper": short, "dp-sniper-long": long})


def test_equal_laws_have_no_best_event():
    found = best_event(LAPLACE, 0.0, 0.0, audit_runs=1_000, alpha=0.1, runs=1_000, seed=0)
    assert (found.p, found.q) == (0.5, 0.5)


@pytest.mark.usefixtures("learned_seldom", "looked_seldom", "without_resolution")
def test_quick_form_of_every_table(tmp_path, capsys, monkeypatch):
    """With fewer runs than on the command line."""
    for module, name, runs in FEWER:
        monkeypatch.setattr(module, name, runs)
    monkeypatch.setattr("sys.argv", ["dpaudit", "bench", "detection", "--quick", "--jobs", "1", "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    page = (tmp_path / "detection-quick.md").read_text(encoding="utf-8")
    assert "MISSED" not in page
    for bench in DETECTION.benches:
        assert f"## {bench.title}" in page
