"""A result of canaries without a draw, for tests of what is written and shown."""

from __future__ import annotations

from dpaudit import ApproxDP
from dpaudit.audit.guesses.canary_guesses import CanaryGuesses, CanaryTest
from dpaudit.audit.results.canary_result import CanaryResult, ScoreSketch

TESTS = (CanaryTest("betting", 1_000, 0.025), CanaryTest("counts", 100, 0.0125), CanaryTest("counts", 1_000, 0.0125))
REFUTED = CanaryResult(
    mechanism="train | <b>tag</b>",
    claim=ApproxDP(1.0, 1e-5),
    claim_source="accountant",
    adjacency="add-remove",
    coins="independent",
    canaries=1_000,
    included=489,
    guesses=CanaryGuesses(canaries=1_000, numbers=(10, 100, 1_000), right=(10, 96, 700)),
    tests=TESTS,
    carried=TESTS[1],
    alpha=0.05,
    p_value=1e-10,
    bound=1.9345,
    resolution=0.25,
    ceiling=5.6,
    seed=7,
    sketch=ScoreSketch(
        edges=(-1.0, 0.0, 1.0, 2.0), inside=(100, 89, 300), outside=(300, 111, 100), said_out=-0.5, said_in=1.5
    ),
    environment={"seconds": 0.5},
)
