"""Results without a draw, for tests of what is written, compared and shown."""

from __future__ import annotations

import dataclasses
import math

from dpaudit import ApproxDP, PureDP
from dpaudit.audit.events.events import Intervals
from dpaudit.audit.guesses.canary_guesses import CanaryGuesses, CanaryTest
from dpaudit.audit.inference.event_test import Counts
from dpaudit.audit.results.audit_result import AuditResult, FixedSizeResult, InterimAnalysis, SequentialResult
from dpaudit.audit.results.canary_result import CanaryResult, ScoreSketch
from dpaudit.audit.results.claim_pair_and_alpha import Pair
from dpaudit.audit.results.statement_result import Point, StatementResult

AUDIT = FixedSizeResult(
    mechanism="noisy count", claim=PureDP(1.0), event=Intervals(((-math.inf, -0.25),)), more_likely_on="x",
    pair=Pair(x="3 rows", y="2 rows", difference="row 2 removed", adjacency="add/remove", distance=1),
    counts=Counts(count_x=600, runs_x=950, count_y=200, runs_y=951), alpha=0.05, pvalue=0.01, bound=1.25,
    min_detectable_excess=0.5, power=0.95, runs=1_000, pilot_runs=49, seed=7, notes=("one", "two"),
    versions=(("dpaudit", "0.1.0"), ("numpy", "2.0.0")), environment={"seconds": 1.5},
)  # fmt: skip
STATEMENT = StatementResult(
    statement="The error halves.", quantity="slope", alpha=0.01, method="bootstrap", runs=500, seed=8,
    points=(
        Point(at="t = 1", estimate=1.0, lower=0.5, upper=1.5, high=2.0),
        Point(at="t = 2", estimate=3.0, lower=2.5, upper=3.5, high=2.0),
    ),
)  # fmt: skip


def stopped(audit: AuditResult, **options: object) -> SequentialResult:
    """The result as one of a sequential audit, which stopped."""
    common = {each.name: getattr(audit, each.name) for each in dataclasses.fields(AuditResult)}
    return SequentialResult(**common | {"interim_analyses": (InterimAnalysis(10, 0.0, 1.0),)} | options)


TESTS = (CanaryTest("betting", 1_000, 0.025), CanaryTest("counts", 100, 0.0125), CanaryTest("counts", 1_000, 0.0125))
CANARIES = CanaryResult(
    mechanism="train | <b>tag</b>",
    claim=ApproxDP(1.0, 1e-5),
    claim_source="accountant",
    adjacency="add-remove",
    inclusion="independent",
    canaries=1_000,
    included=489,
    guesses=CanaryGuesses(canaries=1_000, numbers=(10, 100, 1_000), correct=(10, 96, 700)),
    tests=TESTS,
    deciding_test=TESTS[1],
    alpha=0.05,
    pvalue=1e-10,
    bound=1.9345,
    min_detectable_excess=0.25,
    max_attainable_bound=5.6,
    seed=7,
    sketch=ScoreSketch(
        edges=(-1.0, 0.0, 1.0, 2.0), inside=(100, 89, 300), outside=(300, 111, 100), said_out=-0.5, said_in=1.5
    ),
    environment={"seconds": 0.5},
)
