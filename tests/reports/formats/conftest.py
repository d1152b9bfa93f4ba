"""Suites made by hand, in which no number is drawn."""

import math
from dataclasses import replace

import pytest

from dpaudit import PureDP, Verdict
from dpaudit.audit.health.findings import Finding, HealthCheck
from dpaudit.audit.inference.event_test import Counts
from dpaudit.audit.portfolio.floating_point_leaks import FloatingPointLeak
from dpaudit.audit.records.suite import Accepted, Entry, ReplayRow, ReplayTable, Suite
from dpaudit.audit.results.claim_pair_and_alpha import Pair
from dpaudit.audit.results.statement_result import Point
from dpaudit.audit.sampling.object_identity import Provenance

from ...audit.records.by_hand import CANARIES
from ..examples import CELLS
from ..examples import audit as audit_by_hand
from ..examples import statement as statement_by_hand

CALL = "check(noisy_count, x, y, claim=1.0, adjacency='add-remove', runs=1000, seed=7)"
SOURCE = {"file": "my lib/counts.py", "line": 12, "sha256": "ab" * 32, "below": "working directory"}
ROW = ReplayRow(
    place="my lib/counts.py:14 in noisy_count", source="return len(rows) + rng.laplace()",
    primitive="Generator.laplace", distribution="Laplace(3, 1)", moved="2", allowed="1", loss="2",
    finding="moves by 2, which costs 2; [more](9) than {claimed}",
)  # fmt: skip


def audit_of(**changes):
    """An audit of one kind or the other, not refuted unless changed."""
    given = {
        "mechanism": "noisy_count", "counts": Counts(count_x=600, runs_x=950, count_y=200, runs_y=951),
        "provenance": Provenance(where="mylib.counts:noisy_count", package="mylib 1.2", fingerprint="00ff00ff00ff00ff"),
        "pair": Pair(
            x="list of 3", y="list of 2", difference="1 row only in x", adjacency="add/remove one row", unit="one row",
            distance=1,
        ),
        "pvalue": 0.5, "min_detectable_excess": 0.25, "runs": 1_000, "pilot_runs": 49, "seed": 7,
        "versions": (("dpaudit", "0.1.0"), ("numpy", "2.0.0")),
    }  # fmt: skip
    return audit_by_hand(**{**given, **changes})


def canaries(**changes):
    usual = {"mechanism": "train", "claim_source": "", "pvalue": 0.4, "bound": 0.1, "sketch": None, "environment": {}}
    return replace(CANARIES, **{**usual, **changes})


def statement(estimate=1.0):
    point = Point(at="t = 2", estimate=estimate, lower=estimate - 0.5, upper=estimate + 0.5, high=2.0)
    points = (point, Point(estimate=math.nan, lower=-math.inf, upper=1.5))
    return statement_by_hand(statement="The error halves.", quantity="slope", points=points, series=None)


SICK = audit_of(findings=(Finding(HealthCheck.NONSTATIONARY, "counts vary"),), bound=9.0)
LOW = FloatingPointLeak(audit_of().event, "x", Counts(count_x=90, runs_x=100, count_y=1, runs_y=100), 2.5, "epsilon")
ACCEPTED = Accepted(reason="known | old", until="2027-06-30")
ENTRIES = {
    "refuted": Entry(
        name="tests/test_it.py::test_noisy",
        result=audit_of(bound=1.5, environment={"source": SOURCE, "seconds": 1.5, "call": CALL}),
        replay=ReplayTable(sentence="EXCESS: 1 finding in 1 call", seed=7, rows=(ROW,), n_calls=1, remarks=()),
    ),
    "held": Entry(name="held", result=audit_of(bins=CELLS)),
    "no p": Entry(name="held", result=audit_of(bound=0.0, min_detectable_excess=math.inf)),
    "sick": Entry(name="sick", result=SICK),
    "low": Entry(name="low", result=audit_of(floating_point_leak=LOW)),
    "doubt": Entry(name="doubt", result=audit_of(pair=Pair(
        x="x", y="y", difference="d", adjacency="declared neighbours by the caller", distance=1, doubt="3 rows differ",
    ))),
    "accepted": Entry(name="accepted", result=audit_of(bound=2.0), accepted=ACCEPTED),
    "variant": Entry(name="variant", result=audit_of(bound=2.0), expected=Verdict.REFUTED, note="A fault."),
    "surprise": Entry(name="surprise", result=audit_of(), expected=Verdict.REFUTED),
    "stopped": Entry(name="stopped", result=audit_of(
        bound=1.2, min_detectable_excess=None, stopped="refuted", interim_analyses=(), seed=2**70,
    )),
    "group": Entry(name="group", result=audit_of(claim=PureDP(1.0).group(3))),
    "training": Entry(name="training", result=canaries()),
    "leaky": Entry(name="leaky", result=canaries(bound=1.9)),
    "slope": Entry(name="slope", result=statement()),
    "steep": Entry(name="steep", result=statement(4.0), exact=math.inf),
}  # fmt: skip
"""An entry of each kind, by what is special about it."""


@pytest.fixture(scope="session")
def audit():
    """Makes an audit, with the given fields in place of the usual ones."""
    return audit_of


@pytest.fixture(scope="session")
def entries():
    return ENTRIES


@pytest.fixture(scope="session")
def suite():
    return Suite(title="All <sorts>", entries=tuple(ENTRIES.values()), environment={"command": "dpaudit run"})
