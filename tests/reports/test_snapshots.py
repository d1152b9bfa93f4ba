"""Every format as it was last looked at: a suite made by hand, in which no number is drawn, and files to compare with.

A change on purpose is written by ``DPAUDIT_SNAPSHOTS=write pytest tests/reports/test_snapshots.py`` and read in the
difference.
"""

import datetime
import io
import math
import os
import re
from dataclasses import fields, replace
from itertools import starmap
from pathlib import Path

import pytest
from rich.console import Console

from dpaudit import ApproxDP, PureDP, Verdict
from dpaudit.audit.events.events import Intervals, Outcomes, Sketch
from dpaudit.audit.health.findings import Finding, HealthCheck
from dpaudit.audit.inference.event_test import Counts
from dpaudit.audit.portfolio.floating_point_leaks import FloatingPointLeak
from dpaudit.audit.records.baseline_comparison import Comparison
from dpaudit.audit.records.json_codec import to_json
from dpaudit.audit.records.suite import Accepted, Entry, Recount, Suite, Topic
from dpaudit.audit.results.audit_result import AuditResult, FixedSizeResult, InterimAnalysis, SequentialResult
from dpaudit.audit.results.bin_result import BinCounts
from dpaudit.audit.results.claim_pair_and_alpha import Pair
from dpaudit.audit.results.statement_result import Point, Series, StatementResult
from dpaudit.audit.sampling.object_identity import Provenance
from dpaudit.reports import html, junit, markdown, table
from dpaudit.reports.pages.terminal_tables import comparison_table

from ..audit.records.by_hand import CANARIES

FOLDER = Path(__file__).with_name("snapshots")
TODAY = datetime.date(2027, 1, 31)

HALF_LINE = Intervals(((-math.inf, -0.25),))
REFUTED = FixedSizeResult(
    mechanism="noisy_count",
    provenance=Provenance(where="mylib.counts:noisy_count", package="mylib 1.2", fingerprint="00ff00ff00ff00ff"),
    claim=PureDP(1.0),
    claim_source="docs of mylib 1.2",
    pair=Pair(
        x="list of 3", y="list of 2", difference="1 row only in x, 0 only in y", adjacency="add/remove one row",
        unit="one row", distance=1, contents=("[1, 1, 1]", "[1, 1]"),
    ),
    event=HALF_LINE,
    more_likely_on="x",
    counts=Counts(count_x=61_234, runs_x=950_000, count_y=17_357, runs_y=950_000),
    alpha=0.05,
    pvalue=1e-10,
    bound=1.2471,
    min_detectable_excess=0.0123,
    power=0.95,
    runs=1_000_000,
    pilot_runs=50_000,
    seed=7,
    sketch=Sketch((), (-1.0, 0.0, 1.0), (50, 30, 20, 0), (0, 20, 30, 50)),
    bins=BinCounts(
        names=("output ≤ -1", "output > -1", "not a number"), count_x=(600_000, 350_000, 0),
        count_y=(200_000, 750_000, 0), alpha=0.005, n_known=2, scope="upper ends for these bins only",
    ),
    floating_point_leak=FloatingPointLeak(
        HALF_LINE, "x", Counts(count_x=90, runs_x=100, count_y=1, runs_y=100), 2.5, "epsilon"
    ),
    versions=(("dpaudit", "0.1.0"), ("numpy", "2.0.0")),
    environment={"seconds": 1.25},
)  # fmt: skip
STOPPED = SequentialResult(
    **{one.name: getattr(REFUTED, one.name) for one in fields(AuditResult)} | {
        "interim_analyses": tuple(starmap(InterimAnalysis, [(32, 0.0, 1.0), (64, 0.4, 0.6), (128, 1.1, 0.01)])),
        "stopped": "refuted",
        "counts": Counts(count_x=90, runs_x=128, count_y=20, runs_y=128), "runs": 128, "pilot_runs": 32, "bound": 1.1,
        "pvalue": 0.01, "mechanism": "scan | <b>tag</b>", "is_reproducible": False, "notes": ("a note",),
        "floating_point_leak": None, "min_detectable_excess": None,
    },
)  # fmt: skip
KEPT = replace(
    REFUTED, claim=ApproxDP(1.0, 1e-5), provenance=None, claim_source="", bins=None,
    floating_point_leak=None, bound=0.97,
    pvalue=0.31, event=Outcomes(("=cmd()", None)), more_likely_on="y", detect=0.02, floating_point="test",
    sketch=Sketch(("'=cmd()'", "None"), (), (70, 30), (30, 70)),
    pair=Pair(x="a", y="b", difference="not seen", adjacency="declared neighbours by the caller", distance=2),
)  # fmt: skip
SICK = replace(KEPT, findings=(Finding(HealthCheck.DUPLICATE_OUTPUTS, "2 of 9 blocks are equal."),), sketch=None)
STATEMENT = StatementResult(
    statement="Log-probabilities grow at the rate 0.5.",
    quantity="slope",
    points=(
        Point(at="the fit", estimate=0.98, lower=0.96, upper=1.02, low=0.5, high=0.5),
        Point(at="pairs", estimate=0.5, lower=0.4, upper=0.6, low=0.5, high=0.5),
    ),
    alpha=0.01,
    method="by hand",
    runs=20_000,
    seed=3,
    series=Series(
        x_name="utility", y_name="log", x=(-2.0, -1.0), estimate=(-1.9, -1.0), lower=(-2.1, -1.1), upper=(-1.8, -0.9),
        stated=(-1.0, -0.5), intervals="exact",
    ),
    environment={"repeat": "pytest 'test_it.py::test_slope'"},
)  # fmt: skip
AGAIN = Recount(
    event=HALF_LINE, counts=Counts(count_x=10, runs_x=100, count_y=4, runs_y=100), forms=(("number", 9, 9),),
    looked_at=9, seed=3, stream="baseline main",
)  # fmt: skip
ENTRIES = (
    Entry(name="count", result=REFUTED, expected=Verdict.REFUTED, exact=1.25, note="Why.", experiment="E1"),
    Entry(name="stopped", result=STOPPED, accepted=Accepted(reason="known", until="2027-01-01", up_to=2.0)),
    Entry(name="=1+1|kept", result=KEPT, expected=Verdict.REFUTED, recounts=(AGAIN,)),
    Entry(name="sick", result=SICK),
    Entry(name="slope", result=STATEMENT, expected=Verdict.REFUTED),
    Entry(name="training", result=CANARIES, note="Why so."),
)
SUITE = Suite(
    title="By hand",
    entries=ENTRIES,
    topics=(Topic(id="E1", statement="A statement.", source="Somebody (2020), Theorem 1"),),
    environment={"command": "dpaudit run E1", "seconds": 2.5},
)
COMPARISONS = (
    Comparison(name="count", before=ENTRIES[0], after=ENTRIES[0], notes=("as it was",), pvalue=0.7),
    Comparison(name="gone", before=ENTRIES[1], after=None, changes=("the audit is missing",)),
)


def printed(drawn):
    console = Console(width=100, file=io.StringIO(), color_system=None)
    console.print(drawn)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


def without_drawings(page):
    """The page with each drawing's words in its place: what matplotlib writes changes with its version."""
    page = re.sub(r"^\.s[0-9a-f]{7}\{.*\}\n", "", page, flags=re.MULTILINE)  # the styles of drawings
    return re.sub(r'<svg [^>]*aria-label="([^"]*)".*?</svg>', r"[\1]", page, flags=re.DOTALL)


FORMATS = {
    "report.html": lambda: without_drawings(html(SUITE, comparisons=COMPARISONS, today=TODAY)),
    "report.md": lambda: markdown(SUITE, comparisons=COMPARISONS, today=TODAY),
    "results.json": lambda: to_json(SUITE),
    "junit.xml": lambda: junit(SUITE, today=TODAY),
    "table.txt": lambda: printed(table(SUITE)),
    "comparison.txt": lambda: printed(comparison_table(COMPARISONS)),
}


@pytest.mark.parametrize("name", FORMATS)
def test_format_is_as_it_was(name):
    path, text = FOLDER / name, FORMATS[name]()
    if os.environ.get("DPAUDIT_SNAPSHOTS") == "write":
        path.write_text(text, encoding="utf-8", newline="")
    with path.open(encoding="utf-8", newline="") as kept:
        assert text == kept.read()


def test_every_snapshot_belongs_to_a_format():
    assert {path.name for path in FOLDER.iterdir()} == set(FORMATS)


def test_the_page_has_the_drawings_of_each_result():
    drawings = re.findall(r'<svg [^>]*aria-label="([^"]*)"', html(SUITE, today=TODAY))
    assert len(drawings) == 2 + 3 + 2 + 1 + 2 + 1, "forests; outputs, curves, ratios; outputs, looks; outputs; …"
