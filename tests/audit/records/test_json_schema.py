"""Every file that `to_json` writes fulfils the schema, and what is no such file does not."""

from __future__ import annotations

import copy
import dataclasses
import enum
import functools
import json
import math
import operator
from fractions import Fraction
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import dpaudit as dp
from dpaudit import PureDP, Verdict
from dpaudit.audit.distinguishers.low_bits_warning import LowBits
from dpaudit.audit.errors import RecordError
from dpaudit.audit.events.events import Apart, ExceptFor, Intervals, Outcomes, Scored, Sketch
from dpaudit.audit.events.features import (
    Conditional,
    Coordinates,
    OrderStatistics,
    Parities,
    Products,
    Released,
    Statistics,
)
from dpaudit.audit.events.leaves import KeyedValues, Leaves, Summaries
from dpaudit.audit.events.named_parts import Dictionary
from dpaudit.audit.events.outputs import Raised
from dpaudit.audit.events.records import Foreign
from dpaudit.audit.events.scores import (
    Additive,
    Column,
    Decimals,
    DifferentSizes,
    Forest,
    LastDigits,
    LowestBit,
    NegativeZero,
    Number,
    Remainder,
    Residue,
    TrailingZeros,
    Tree,
    Units,
    Weighted,
)
from dpaudit.audit.events.text_columns import TextColumn, TextColumns
from dpaudit.audit.health.findings import Finding, HealthCheck
from dpaudit.audit.inference.boundary_test import Counts
from dpaudit.audit.inference.divergence_test import DivergenceTest
from dpaudit.audit.inference.guess_test import Guesses
from dpaudit.audit.records import json_codec
from dpaudit.audit.records.json_codec import SCHEMA, TYPES, Opaque, from_json, to_json
from dpaudit.audit.records.json_schema import json_schema, schema_text
from dpaudit.audit.records.suite import Entry, Suite, Topic
from dpaudit.audit.results.audit_result import (
    AuditResult,
    FixedSizeResult,
    Look,
    OtherDirection,
    Pair,
    SequentialResult,
)
from dpaudit.audit.results.cell_result import CellCounts
from dpaudit.audit.results.recount import Accepted, Recount
from dpaudit.audit.results.replay_table import ReplayRow, ReplayTable
from dpaudit.audit.results.statement_result import Point, Series, StatementResult
from dpaudit.audit.sampling.object_identity import Provenance

from .canaries_by_hand import REFUTED as CANARIES

INF, NAN = math.inf, math.nan
COMMITTED = Path(__file__).parents[3] / "docs" / "results.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(json_schema())
COUNTS = Counts(hits_x=1, runs_x=10, hits_y=2, runs_y=10)

RESULT = FixedSizeResult(
    mechanism="noisy count", claim=PureDP(1.0), event=Intervals(((-INF, -0.1), (2.0, INF)), others=True),
    likelier_on="y", pair=Pair(x="list of 2", y="list of 1", difference="1 row", adjacency="add", distance=1),
    counts=COUNTS, alpha=0.05, p_value=0.5, bound=0.1, resolution=INF, power=0.95, runs=20, pilot_runs=10, seed=2**80,
    environment={"seconds": 0.5},
)  # fmt: skip
STATEMENT = StatementResult(
    statement="The error halves.", quantity="slope", alpha=0.05, method="bootstrap", runs=1_000, seed=1,
    points=(Point(at="t = 1", estimate=NAN, lower=-INF, upper=0.5, low=-1), Point(estimate=1.0, lower=0.5, upper=INF)),
    notes=("note",), versions=(("numpy", "2.0"),),
)  # fmt: skip
SERIES = Series(
    x_name="t", y_name="Pr", x=(1.0, 2.0), estimate=(0.5, NAN), lower=(0.4, 0.0), upper=(0.6, INF), stated=(0.5, 0.1),
    intervals="Clopper-Pearson",
)  # fmt: skip
BITS = LowBits(Scored(LowestBit(Number()), Intervals(((-INF, -53.0),))), "x", COUNTS, 9.5, "epsilon")
CELLS = CellCounts(names=("a", "b"), hits_x=(3, 1), hits_y=(1, 3), alpha=0.005, n_known=1, scope="cells")
RECOUNT = Recount(
    event=RESULT.event, counts=COUNTS, forms=(("number", 10, 9), ("None", 0, 1)), looked_at=10, seed=2**63,
    stream="baseline main",
)  # fmt: skip
ROW = ReplayRow(
    place="a.py:1 in f",
    source="f()",
    primitive="laplace",
    law="laplace(0, 1)",
    moved="1",
    allowed="",
    loss="1",
    finding="",
)
ENTRY = Entry(
    name="é", result=dataclasses.replace(RESULT, findings=(Finding(HealthCheck.UNSTEADY_HITS, "odd"),), low_bits=BITS),
    expected=Verdict.REFUTED, exact=INF, note="n", experiment="laplace",
    recounts=(RECOUNT, Recount(event=None, counts=None, forms=(), looked_at=10)),
    accepted=Accepted(reason="known", until="2027-06-30", up_to=2),
    replay=ReplayTable(sentence="EXCESS", seed=1, rows=(ROW,), n_calls=2, remarks=("open",)),
)  # fmt: skip
SUITE = Suite(
    title="t", entries=(ENTRY, Entry(name="slope", result=dataclasses.replace(STATEMENT, series=SERIES))),
    topics=(Topic(id="laplace", statement="s", source="Dwork"),), environment={"command": "dpaudit run"},
)  # fmt: skip


def body_of(suite):
    return json.loads(to_json(suite))


def audit(**changes):
    return Suite(title="t", entries=(Entry(name="a", result=dataclasses.replace(RESULT, **changes)),))


def assert_valid(suite):
    VALIDATOR.validate(body_of(suite))


def test_it_is_a_schema_and_the_committed_copy_is_this_one():
    jsonschema.Draft202012Validator.check_schema(json_schema())
    assert json_schema()["$id"] == f"urn:dpaudit:results:{SCHEMA}"
    said = "the form of results has changed: `dpaudit schema > docs/results.schema.json` writes it anew"
    assert COMMITTED.read_text(encoding="utf-8") == schema_text(), said


def test_every_type_of_a_file_is_described_with_all_that_is_compared():
    definitions = json_schema()["$defs"]
    for name, kind in TYPES.items():
        fields = {each.name for each in dataclasses.fields(kind)} - {"environment"}
        extra = {"summary"} if kind is Entry else set()
        assert set(definitions[name]["properties"]) == {"type"} | fields | extra
        assert definitions[name]["description"] == kind.__doc__.splitlines()[0]


def test_what_is_written_fulfils_it():
    assert_valid(SUITE)
    assert_valid(Suite(title="", entries=()))


CLAIMS = [
    PureDP(0.3), dp.ApproxDP(1.0, 1e-300), dp.ApproxDP(1.0, 0.1, bound_on="delta"), dp.GaussianDP(1 / 3),
    dp.RenyiDP(2.0, 0.1), dp.ZeroConcentratedDP(0.5), dp.PrivacyProfile((0.0, 1.0), (0.4, 0.1), 0.01),
    dp.TradeOffCurve((0.1, 0.4), (0.6, 0.2)), PureDP(0.5).group(3), dp.ProbabilityPreservation(2.0, 0.1),
    dp.NFoldComposition(0.1, 4),
]  # fmt: skip
HALF_LINE = Intervals(((0.5, INF),))
EXCEPTIONS = ExceptFor(Scored(Weighted((1.0, 2.0)), HALF_LINE), Outcomes(((1, 2), (3, 4))))
LEAVES = Leaves((None, (2, None)), ((), (0, 1), ("'a'",)), (((1,), ("a", None, 2.5)),))
TEXTS = TextColumns((TextColumn((0,), "number", 2), TextColumn((), "word", "a"), TextColumn((), "end", 0, ("ab",))))
COLOUR = enum.Enum("Colour", "RED")
SCORES = [
    Number(), Weighted((0.5, -1.0)), Column(LEAVES, 1), LowestBit(Column(Coordinates(2), 0)), Residue(Number(), -20),
    Remainder(Number(), 3), Decimals(Weighted((0.5, -1.0))), Units(Number(), 3),
    TrailingZeros(LastDigits()), LastDigits(1), NegativeZero(Number()), DifferentSizes(3),
    Column(OrderStatistics(3), 4), Column(Released(3), 2), Column(Conditional(Coordinates(2), ((0, 5.0, 1),)), 0),
    Column(KeyedValues(((("…", 0), "a", ("…", 1)), ((), None, (0,)), ((), None, (Foreign(COLOUR.RED),)))), 0),
    Column(TEXTS, 1), Column(Products(Coordinates(2), ((0, 0.5, 1, -0.5),)), 0),
    Column(Parities(Coordinates(3), (((0, 0.5), (1, 0.0), (2, -0.5)),)), 0), Column(Summaries(), 2),
    Column(Statistics(Coordinates(3), (0, 2)), 5),
    Additive(Coordinates(3, differences=True), ((0, -1.0, INF, 0.5),), ((1, 0.25),)),
    Forest(LEAVES, (Tree((0, -1, -1), (0.5, 0.0, NAN), (1, 0, 0), (2, 0, 0), (0.0, 1.0, -1.0)),)),
]  # fmt: skip
OUTCOMES = [
    None, NAN, INF, -INF, True, -0.0, 2**53, -(2**200), "a\n\u2028é", "\udcff", (), (1, (2.5, ("b", None))),
    Raised("KeyError"), (Raised("A.B"),), COLOUR.RED, Verdict.REFUTED, b"bytes", Fraction(1, 3), frozenset({1}),
    {"a": (1, NAN)}, PureDP(1.0), Dictionary.of([("b", 1), ("a", NAN)]),
]  # fmt: skip
OPPOSITE = OtherDirection(
    event=Apart(Outcomes((1,)), HALF_LINE),
    counts=Counts(hits_x=2, runs_x=10, hits_y=1, runs_y=10),
    guesses=Guesses(right=4, wrong=2, runs=18),
)
RESULTS = [
    {"cells": CELLS, "bits": True, "ignored": ("idle-event",), "notes": ("n",), "provenance": Provenance(where="m:f")},
    {"low_bits": BITS, "bits": False, "requested_resolution": 0.5},
    {"sketch": Sketch((), (0.1, INF), (1, 2, 3), (0, 0, 2**60))},
    {"opposite": OPPOSITE, "reserve_alpha": 0.0025, "event": Apart(HALF_LINE, Outcomes((1,)))},
    {
        "divergence": DivergenceTest(
            order=1.5, way="both ways", bins=9, alpha=0.04, p_value=1.0, bound=0.0, estimate=0.4
        )
    },
    {"pair": dataclasses.replace(RESULT.pair, distance=np.int64(2), contents=("[1]", "é"))},
]


COMMON = {each.name: getattr(RESULT, each.name) for each in dataclasses.fields(AuditResult)}
STOPPED = Suite(
    title="t",
    entries=(
        Entry(
            name="a",
            result=SequentialResult(
                **COMMON, looks=(Look(32, 0.0, 1.0), Look(48, INF, 0.01)), stopped="refuted", is_closed=True
            ),
        ),
    ),
)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_every_claim(claim):
    assert_valid(audit(claim=claim))


def test_a_score_with_exceptions():
    assert_valid(audit(event=EXCEPTIONS))


@pytest.mark.parametrize("score", SCORES, ids=lambda score: type(score).__name__)
def test_every_score(score):
    assert_valid(audit(event=Scored(score, HALF_LINE)))


@pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
def test_every_outcome(outcome):
    assert_valid(audit(event=Outcomes((outcome, 1), others=True)))


@pytest.mark.parametrize("changes", RESULTS, ids=lambda changes: next(iter(changes)))
def test_every_field_of_a_result(changes):
    assert_valid(audit(**changes))


def test_a_sequential_result():
    assert_valid(STOPPED)


def test_no_type_is_left_out_above():
    text = " ".join(
        [to_json(SUITE)]
        + [to_json(audit(claim=claim)) for claim in CLAIMS]
        + [to_json(audit(event=Scored(score, HALF_LINE))) for score in SCORES]
        + [to_json(audit(event=Outcomes((outcome,)))) for outcome in OUTCOMES]
        + [to_json(audit(event=EXCEPTIONS))]
        + [to_json(audit(**changes)) for changes in RESULTS]
        + [to_json(STOPPED), to_json(Suite(title="t", entries=(Entry(name="a", result=CANARIES),)))]
    )
    assert [name for name in TYPES if f'"type": "{name}"' not in text] == []


@pytest.mark.parametrize("options", [{}, {"sequential": True}, {"cells": 8}, {"bits": True}], ids=str)
def test_results_of_audits(options):
    def noisy(value, size, rng):
        return value + rng.laplace(size=size)

    result = dp.check(noisy, 0.0, 1.0, claim=PureDP(0.5), runs=2_000, seed=3, keep_datasets=True, **options)
    assert_valid(Suite(title="t", entries=(Entry(name="a", result=result),)))


BODY = body_of(SUITE)
ENTRY_AT = ("suite", "entries", 0)
RESULT_AT = (*ENTRY_AT, "result")


def changed(path, value):
    """The body with one place changed; without it where the value is the type `KeyError`."""
    body = copy.deepcopy(BODY)
    place = functools.reduce(operator.getitem, path[:-1], body)
    place[path[-1]] = value
    if value is KeyError:
        del place[path[-1]]
    return body


OPAQUE = {"type": "Opaque", "text": "x"}
WRONG = {
    "schema too high": (("schema",), SCHEMA + 1),
    "schema too low": (("schema",), SCHEMA - 1),
    "schema as text": (("schema",), str(SCHEMA)),
    "no suite": (("suite",), KeyError),
    "no summary": (("summary",), KeyError),
    "no summary of an entry": ((*ENTRY_AT, "summary"), KeyError),
    "a verdict in the summary": (("summary", "verdicts", "é"), "verified"),
    "timings of the suite": (("environment", "suite"), []),
    "timings of an audit": (("environment", "audits", 0), 3),
    "missing alpha": ((*RESULT_AT, "alpha"), KeyError),
    "missing tag": ((*RESULT_AT, "type"), KeyError),
    "runs as text": ((*RESULT_AT, "runs"), "20"),
    "runs as a fraction": ((*RESULT_AT, "runs"), 20.5),
    "runs as yes": ((*RESULT_AT, "runs"), True),
    "replayable as text": ((*RESULT_AT, "is_replayable"), "yes"),
    "other bits": ((*RESULT_AT, "bits"), "maybe"),
    "alpha as nothing": ((*RESULT_AT, "alpha"), None),
    "likelier on z": ((*RESULT_AT, "likelier_on"), "z"),
    "unknown event": ((*RESULT_AT, "event"), {"type": "Interval", "intervals": []}),
    "a claim as event": ((*RESULT_AT, "event"), {"type": "PureDP", "epsilon": 1.0}),
    "an event as claim": ((*RESULT_AT, "claim"), {"type": "Intervals", "intervals": []}),
    "an end missing": ((*RESULT_AT, "event", "intervals", 0), [1.0]),
    "an end too many": ((*RESULT_AT, "event", "intervals", 0), [1.0, 2.0, 3.0]),
    "unknown check": ((*RESULT_AT, "findings", 0, "check", "value"), "tiredness"),
    "unknown verdict": ((*ENTRY_AT, "expected", "value"), "verified"),
    "verdict as text": ((*ENTRY_AT, "expected"), "refuted"),
    "odd float": ((*ENTRY_AT, "exact"), {"float": "1.5"}),
    "odd int": ((*RESULT_AT, "seed"), {"int": "1e9"}),
    "a statement's point": (("suite", "entries", 1, "result", "points", 0), OPAQUE),
    "an entry that is none": (("suite", "entries", 0), BODY["suite"]["topics"][0]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_twins(name):
    VALIDATOR.validate(BODY)
    assert not VALIDATOR.is_valid(changed(*WRONG[name]))


@pytest.mark.parametrize(("field", "value"), [("stopped", "rain"), ("stopped", None), ("looks", None)])
def test_wrong_twins_of_a_sequential_result(field, value):
    body = body_of(STOPPED)
    VALIDATOR.validate(body)
    body["suite"]["entries"][0]["result"][field] = value
    assert not VALIDATOR.is_valid(body)


@pytest.mark.parametrize("outcome", [{"type": "Blob", "text": "x"}, {"dict": [[1]]}, {"dict": [[1, 2, 3]]}, {}])
def test_an_outcome_of_an_unknown_form_is_refused(outcome):
    body = body_of(audit(event=Outcomes((Opaque("x"),))))
    assert VALIDATOR.is_valid(body)
    body["suite"]["entries"][0]["result"]["event"]["values"] = [outcome]
    assert not VALIDATOR.is_valid(body)


def paths(node, at=()):
    """Every place below a node."""
    for key, child in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from ((*at, key), *paths(child, (*at, key)))


PLACES = [("suite", *path) for path in paths(BODY["suite"]) if path[-1] not in ("summary", "int", "float")]


@pytest.mark.parametrize("value", [KeyError, None, 1.5, [[0.5]], OPAQUE], ids=repr)
def test_what_the_schema_refuses_is_not_read_either(value, monkeypatch):
    """Wherever a value is put: the schema is no stricter than the reader, but for how numbers are spelt."""
    monkeypatch.setattr(json_codec, "hints_of", functools.cache(json_codec.hints_of))
    n_read, refused = 0, []
    for path in PLACES[::2]:
        body = changed(path, value)
        if is_read(body):
            VALIDATOR.validate(body)
            n_read += 1
        else:
            refused.append(body)
    assert n_read < 3 / 4 * len(PLACES[::2])
    refused = refused[::4]  # a schema that refuses nothing would pass
    assert sum(not VALIDATOR.is_valid(body) for body in refused) > len(refused) / 4


def is_read(body):
    try:
        from_json(json.dumps(body))
    except RecordError:
        return False
    return True
