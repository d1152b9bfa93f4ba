"""Results survive the way to a file and back, and fulfil the schema; any other file is refused with a RecordError."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import enum
import functools
import json
import math
import operator
import os
import re
from fractions import Fraction
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpaudit as dp
from dpaudit import PureDP, Rows, Verdict, check_equivalence, check_sensitivity, replay
from dpaudit.audit.errors import RecordError
from dpaudit.audit.events import features, leaves, scores, text_columns
from dpaudit.audit.events.events import Intervals, Outcomes, Scored, Sketch
from dpaudit.audit.events.named_parts import Dictionary
from dpaudit.audit.events.outputs import Raised
from dpaudit.audit.events.plain_outputs import Foreign
from dpaudit.audit.events.scores import Column, Coordinate, LowestBit, Number
from dpaudit.audit.health.findings import Finding, HealthCheck
from dpaudit.audit.inference.divergence_test import DivergenceTest
from dpaudit.audit.inference.event_test import Counts
from dpaudit.audit.inference.guess_test import Guesses
from dpaudit.audit.portfolio.floating_point_leaks import FloatingPointLeak
from dpaudit.audit.records import json_codec
from dpaudit.audit.records import suite as suites
from dpaudit.audit.records.json_codec import SCHEMA, TYPES, Opaque, from_json, load, save, to_json, told_apart
from dpaudit.audit.records.json_schema import json_schema, schema_text
from dpaudit.audit.records.merge import merge
from dpaudit.audit.records.suite import Accepted, Entry, Recount, ReplayRow, ReplayTable, SideCheck, Suite, Topic
from dpaudit.audit.results.audit_result import InterimAnalysis, OtherDirection
from dpaudit.audit.results.bin_result import BinCounts
from dpaudit.audit.results.statement_result import Point, Series
from dpaudit.audit.sampling.object_identity import Provenance
from dpaudit.results import ReplayVerdict

from .by_hand import AUDIT, CANARIES, stopped
from .by_hand import STATEMENT as TWO_POINTS

INF, NAN = math.inf, math.nan
COMMITTED = Path(__file__).parents[3] / "docs" / "results.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(json_schema())
COUNTS = Counts(count_x=1, runs_x=10, count_y=2, runs_y=10)

RESULT = dataclasses.replace(
    AUDIT, event=Intervals(((-INF, -0.1), (2.0, INF)), others=True), more_likely_on="y", counts=COUNTS, pvalue=0.5,
    bound=0.1, min_detectable_excess=INF, runs=20, pilot_runs=10, seed=2**80, notes=(), versions=(),
)  # fmt: skip
STATEMENT = dataclasses.replace(
    TWO_POINTS, notes=("note",), versions=(("numpy", "2.0"),),
    points=(Point(at="t = 1", estimate=NAN, lower=-INF, upper=0.5, low=-1), Point(estimate=1.0, lower=0.5, upper=INF)),
)  # fmt: skip
SERIES = Series(
    x_name="t", y_name="Pr", x=(1.0, 2.0), estimate=(0.5, NAN), lower=(0.4, 0.0), upper=(0.6, INF), stated=(0.5, 0.1),
    intervals="Clopper-Pearson",
)  # fmt: skip
BITS = FloatingPointLeak(Scored(LowestBit(Number()), Intervals(((-INF, -53.0),))), "x", COUNTS, 9.5, "epsilon")
CELLS = BinCounts(names=("a", "b"), count_x=(3, 1), count_y=(1, 3), alpha=0.005, n_known=1, scope="cells")
RECOUNT = Recount(
    event=RESULT.event, counts=COUNTS, forms=(("number", 10, 9), ("None", 0, 1)), looked_at=10, seed=2**63,
    stream="baseline main",
)  # fmt: skip
ROW = ReplayRow(
    place="a.py:1 in f", source="f()", primitive="laplace", distribution="laplace(0, 1)", moved="1", allowed="",
    loss="1", finding="",
)  # fmt: skip
ENTRY = Entry(
    name="é",
    result=dataclasses.replace(
        RESULT, findings=(Finding(HealthCheck.NONSTATIONARY, "odd"),), floating_point_leak=BITS
    ),
    expected=Verdict.REFUTED, exact=INF, note="n", experiment="laplace",
    recounts=(RECOUNT, Recount(event=None, counts=None, forms=(), looked_at=10)),
    accepted=Accepted(reason="known", until="2027-06-30", up_to=2),
    replay=ReplayTable(sentence="EXCESS", seed=1, rows=(ROW,), n_calls=2, remarks=("open",)),
)  # fmt: skip
SUITE = Suite(
    title="t", entries=(ENTRY, Entry(name="slope", result=dataclasses.replace(STATEMENT, series=SERIES))),
    topics=(Topic(id="laplace", statement="s", source="Dwork"),), environment={"command": "dpaudit run"},
    checks=(
        SideCheck(
            name="r", kind="replay", subject="f", verdict="EXCESS", claim="1-DP", found="loss at most 2",
            lines=("EXCESS",), seed=1, alpha=0.0, replay=ENTRY.replay, is_expected=True,
        ),
        SideCheck(
            name="e", kind="exact", subject="f", verdict="VERIFIED", claim="1-DP", found="", lines=("VERIFIED",),
            seed=0, exact=suites.ExactTable(
                rows=(suites.ExactRow(output="0", x=0.5, y=0.0, loss=math.inf),), n_outputs=2, curve=((0.0, 0.5, 0.5),),
                at_claim=((1.0, 0.0),),
            ),
        ),
    ),
)  # fmt: skip


def body_of(suite):
    return json.loads(to_json(suite))


def audit(**changes):
    return Suite(
        title="t",
        entries=(Entry(name="é", result=dataclasses.replace(RESULT, **changes), exact=INF),),
        environment={"host": "h"},
    )


def assert_survives(before):
    """A suite is read again as it was, its file fulfils the schema, and the first result of the file is returned."""
    text = to_json(before)
    after = from_json(text)
    assert repr(after) == repr(before) or after == before  # NaN equals nothing, but prints alike
    assert [e.result.environment for e in after.entries] == [e.result.environment for e in before.entries]
    assert (after.environment, to_json(after)) == (before.environment, text)
    assert [str(e.result) for e in after.entries] == [str(e.result) for e in before.entries]
    VALIDATOR.validate(json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON")))
    return after.entries[0].result if after.entries else None


def test_the_committed_schema_is_this_one_and_describes_all_that_is_compared():
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"urn:dpaudit:results:{SCHEMA}"
    said = "the form of results has changed: `dpaudit schema > docs/results.schema.json` writes it anew"
    assert COMMITTED.read_text(encoding="utf-8") == schema_text(), said
    for name, kind in TYPES.items():
        fields = {each.name for each in dataclasses.fields(kind)} - {"environment"}
        extra = {"summary"} if kind is Entry else set()
        assert set(schema["$defs"][name]["properties"]) == {"type"} | fields | extra
        assert schema["$defs"][name]["description"] == kind.__doc__.splitlines()[0]


CLAIMS = [
    PureDP(0.1 + 0.2), dp.ApproxDP(1.0, 1e-300), dp.ApproxDP(1.0, 0.1, bound_on="delta"), dp.GaussianDP(1 / 3),
    dp.RenyiDP(2.0, 0.1), dp.ZeroConcentratedDP(0.5), dp.PrivacyProfile((0.0, 1.0), (0.4, 0.1), 0.01),
    dp.TradeOffCurve((0.1, 0.4), (0.6, 0.2)), PureDP(0.5).group(3),
    dp.ZeroConcentratedDP(0.5).group(2), dp.claims.ProbabilityPreservation(2.0, 0.1),
    dp.claims.NFoldComposition(0.1, 4),
]  # fmt: skip
HALF_LINE = Intervals(((0.5, INF),))
LEAVES = leaves.Leaves((None, (2, None)), ((), (0, 1), ("'a'",)), (((1,), ("a", None, 2.5)),))
WORDS = [(0,), "number", 2], [(), "word", "a"], [(), "end", 0, ("ab",)]
TEXTS = text_columns.TextColumns(tuple(text_columns.TextColumn(*each) for each in WORDS))
COLOUR = enum.Enum("Colour", "RED")
TWO, THREE = features.Coordinates(2), features.Coordinates(3)
SCORES = [
    Number(), Coordinate(1, 2), Column(LEAVES, 1), LowestBit(Column(TWO, 0)), scores.Residue(Number(), -20),
    scores.Remainder(Number(), 3), scores.Decimals(Coordinate(0, 2)), scores.Units(Number(), 3),
    scores.TrailingZeros(scores.LastDigits()), scores.LastDigits(1), scores.NegativeZero(Number()),
    scores.DifferentSizes(3), Column(features.OrderStatistics(3), 4), Column(features.Released(3), 2),
    Column(features.Conditional(TWO, ((0, 5.0, 1),)), 0),
    Column(leaves.KeyedValues(((("…", 0), "a", ("…", 1)), ((), None, (0,)), ((), None, (Foreign("red"),)))), 0),
    Column(TEXTS, 1), Column(features.Products(TWO, ((0, 0.5, 1, -0.5),)), 0), Column(leaves.Summaries(), 2),
    Column(features.Parities(THREE, (((0, 0.5), (1, 0.0), (2, -0.5)),)), 0),
    Column(features.Statistics(THREE, (0, 2)), 5),
    scores.Additive(features.Coordinates(3, differences=True), ((0, -1.0, INF, 0.5),), ((1, 0.25),)),
    scores.Projection(features.Standardised((0.5, 0.0), (2.0, 1.0)), (1, -1000), True),
]  # fmt: skip
STORED = [
    None, NAN, INF, -INF, True, -0.0, 1e-320, 2**53, -(2**200), "a\n\u2028é\U0001f600", "\udcff", (),
    (1, (2.5, ("b", None))), (NAN, (NAN, 1)), Raised("KeyError"), (Raised("A.B"), None),
    Verdict.REFUTED, {"a": (1, NAN)}, PureDP(1.0), Dictionary.of([("b", 1), ("a", NAN)]),
]  # fmt: skip
TEXTS_ONLY = [COLOUR.RED, b"bytes", Fraction(1, 3), frozenset({1})]
EVENTS = [
    *(Scored(score, HALF_LINE) for score in SCORES), *(Outcomes((each, 1), others=True) for each in STORED),
    Intervals(((-INF, math.nextafter(2.0, 0)),)), Intervals((), others=True), Outcomes(()), Outcomes(tuple(STORED)),
]  # fmt: skip
OPPOSITE = OtherDirection(
    event=Outcomes((1,)),
    counts=Counts(count_x=2, runs_x=10, count_y=1, runs_y=10),
    guesses=Guesses(correct=4, incorrect=2, runs=18),
)
RESULTS = [
    {
        "bins": CELLS, "floating_point": "test", "ignored": ("no-power",), "notes": ("n",),
        "provenance": Provenance(where="m:f"),
    },
    {"floating_point_leak": BITS, "floating_point": "ignore", "detect": 0.5},
    {"sketch": Sketch((), (0.1, INF), (1, 2, 3), (0, 0, 2**60))},
    {"opposite": OPPOSITE, "event": HALF_LINE},
    {"divergence": DivergenceTest(order=1.5, way="both ways", bins=9, alpha=0.04, pvalue=1.0, bound=0.0, estimate=0.4)},
    {"detect": None, "seed": 0, "versions": (("numpy", "2.0"),), "is_reproducible": False},
    {"bound": INF, "pvalue": 0.0, "seed": 2**53 + 1, "findings": (Finding(HealthCheck.NONSTATIONARY, "“odd” ε"),)},
    {"pair": dataclasses.replace(RESULT.pair, distance=np.int64(2), contents=("[1]", "é"))},
]  # fmt: skip


INTERIM_ANALYSES = (InterimAnalysis(32, 0.0, 1.0), InterimAnalysis(48, INF, 0.01))
CLOSED = stopped(RESULT, interim_analyses=INTERIM_ANALYSES, stopped="refuted", is_closed=True)
STOPPED = Suite(title="t", entries=(Entry(name="a", result=CLOSED),))


AUDITS = [
    *(audit(claim=claim) for claim in CLAIMS), *(audit(event=event) for event in EVENTS),
    *(audit(**changes) for changes in RESULTS),
]  # fmt: skip


@pytest.mark.parametrize("whole", AUDITS)
def test_every_claim_event_outcome_and_field_of_a_result(whole):
    (before,), kept = whole.entries, assert_survives(whole)
    assert kept.claim == before.result.claim
    assert (str(kept.event), repr(kept.event)) == (str(before.result.event), repr(before.result.event))  # with signs
    assert kept.pair.distance == before.result.pair.distance


@pytest.mark.parametrize("outcome", TEXTS_ONLY)
def test_outcomes_that_json_cannot_hold_are_kept_as_text(outcome):
    event = Outcomes((outcome,))
    after = from_json(to_json(audit(event=event)))
    assert isinstance(after.entries[0].result.event.values[0], Opaque)
    assert str(after.entries[0].result.event) == str(event)
    assert_survives(after)


@pytest.mark.parametrize("whole", [SUITE, Suite(title="", entries=()), STOPPED], ids=["all", "none", "stopped"])
def test_every_part_of_a_suite(whole):
    assert_survives(whole)


def test_no_type_is_left_out_above():
    every = [SUITE, STOPPED, Suite(title="t", entries=(Entry(name="a", result=CANARIES),)), *AUDITS]
    every += [audit(event=Outcomes((each,))) for each in TEXTS_ONLY]
    text = " ".join(map(to_json, every))
    assert [name for name in TYPES if f'"type": "{name}"' not in text] == []


ONE = audit(findings=(Finding(HealthCheck.NONSTATIONARY, "odd"),), floating_point_leak=BITS)
TEXT, BODY = to_json(ONE), body_of(SUITE)
ENTRY_AT = ("suite", "entries", 0)
RESULT_AT = (*ENTRY_AT, "result")


def changed(path, value, whole=BODY):
    """The body with one place changed; without it where the value is the type `KeyError`."""
    body = copy.deepcopy(whole)
    place = functools.reduce(operator.getitem, path[:-1], body)
    place[path[-1]] = value
    if value is KeyError:
        del place[path[-1]]
    return body


def is_read(text):
    try:
        from_json(text)
    except RecordError:
        return False
    return True


OPAQUE = {"type": "Opaque", "text": "x"}


def paths(node, at=()):
    """Every place below a node."""
    for key, child in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from ((*at, key), *paths(child, (*at, key)))


PLACES = [("suite", *path) for path in paths(BODY["suite"]) if path[-1] not in ("summary", "int", "float")]


@pytest.mark.parametrize(("first", "value"), list(enumerate([KeyError, None, 1.5, [[0.5]], OPAQUE])), ids=repr)
def test_what_the_schema_refuses_is_not_read_either(first, value):
    """Wherever a value is put: the schema is no stricter than the reader, but for how numbers are spelt."""
    n_read, refused = 0, []
    for path in PLACES[first::5]:
        body = changed(path, value)
        if is_read(json.dumps(body)):
            VALIDATOR.validate(body)
            n_read += 1
        else:
            refused.append(body)
    assert n_read < 3 / 4 * len(PLACES[first::5])
    refused = refused[::4]  # a schema that refuses nothing would pass
    assert sum(not VALIDATOR.is_valid(body) for body in refused) > len(refused) / 4


def test_every_prefix_is_refused():
    assert [end for end in range(len(TEXT.rstrip())) if is_read(TEXT[:end])] == []
    assert from_json(TEXT.rstrip()) == ONE


GROUP = {"type": "GroupClaim", "base": {"type": "PureDP", "epsilon": 1.0}, "distance": 2}
IMPOSSIBLE = {
    "alpha": [2.0, 0, "high"],
    "pvalue": [-1, 2],
    "more_likely_on": ["z"],
    "runs": ["many", -1],
    "count_x": [11, -1, 0.5],
    "runs_x": [INF, NAN, 0],
    "epsilon": [-1, NAN, INF, 10**400, {"float": "x"}, {"int": "9" * 5000}, {"int": "9" * 400}],
    "claim": [
        {"type": "os.system"}, {"type": ["PureDP"]}, {"type": "Suite"}, {"enum": "Colour", "value": 1},
        {"dict": [[1]]}, {"dict": [[{"dict": []}, 1]]}, {**GROUP, "base": 3}, {**GROUP, "distance": -1},
        {"type": "TradeOffCurve", "false_positive": [], "false_negative": []},
    ],
    "event": [{"type": "Intervals", "intervals": [["a", "b"]]}, {"type": "Outcomes", "values": 3}],
}  # fmt: skip
INSIDE = {"count_x": "counts", "runs_x": "counts", "epsilon": "claim"}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_content_is_refused(name):
    at = (*RESULT_AT, INSIDE[name], name) if name in INSIDE else (*RESULT_AT, name)
    assert [value for value in IMPOSSIBLE[name] if is_read(json.dumps(changed(at, value)))] == []


def test_environments_are_those_of_the_entries():
    for audits in ([], [{}], [{}] * 3, [[["a", 1]], {}]):
        assert not is_read(json.dumps(changed(("environment", "audits"), audits)))
    assert not is_read(json.dumps(changed(("environment", "suite"), [["a", 1]])))


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"type":'])
@pytest.mark.parametrize("depth", [500, 200_000])
def test_deep_nesting_is_refused(opening, depth):
    deep = opening * depth + "1" + ("]" if opening == "[" else "}") * depth
    assert not is_read(deep)
    assert not is_read(TEXT.replace('"noisy count"', deep))


@pytest.mark.parametrize("start", ["[", '{"type": "Opaque", "text": "", "a": '])
def test_the_data_of_an_entry_nest_59_deep_also_where_no_field_has_them(start):
    for depth in (58, 59):
        value = json.loads(start * depth + "1" + ("]" if start == "[" else "}") * depth)
        for key in ("name", "unknown"):
            with pytest.raises(RecordError) as caught:
                from_json(json.dumps(changed((*ENTRY_AT, key), value)))
            assert ("nested more than 62" in str(caught.value)) is (depth == 59)


@pytest.mark.parametrize(
    ("at", "name"), [(RESULT_AT, "findings"), (RESULT_AT, "floating_point_leak"), (("suite",), "checks")]
)
def test_a_misspelt_name_is_refused_as_it_would_leave_out_what_changes_the_verdict(at, name):
    body = copy.deepcopy(BODY)
    place = functools.reduce(operator.getitem, at, body)
    place[name[:-1]] = place.pop(name)
    with pytest.raises(RecordError, match=rf"has no field {name[:-1]} @ "):
        from_json(json.dumps(body))


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-1, 3), st.just(10**400), st.floats(), st.text(max_size=3))
TAGS = st.sampled_from(["type", "enum", "int", "float", "dict", "value", "a"])
JSON = st.recursive(SCALARS, lambda part: st.lists(part, max_size=3) | st.dictionaries(TAGS, part, max_size=3))


@given(st.sampled_from(list(paths(json.loads(TEXT)))), st.one_of(JSON, st.just(KeyError)))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_a_mutated_file_loads_or_is_refused(path, value):
    with contextlib.suppress(RecordError):
        kept = from_json(json.dumps(changed(path, value, json.loads(TEXT))))
        assert isinstance(kept, Suite)
        assert all(isinstance(entry.result.verdict, Verdict) for entry in kept.entries)


@pytest.mark.parametrize("before", [ONE, audit(event=Outcomes(("\udcff",)))], ids=["text", "no Unicode"])
def test_save_and_load(tmp_path, before):
    """A command's output decoded with surrogateescape is an outcome like any other."""
    path = tmp_path / "new" / "results.json"
    save(before, path)
    assert load(path) == load(str(path)) == before


OTHERS = [json.dumps({**BODY, "schema": schema}).encode() for schema in (SCHEMA + 1, SCHEMA - 1, "1", None)]


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00", b"{", b"[]", *OTHERS], ids=range(8))
def test_load_names_the_path_and_what_is_wrong(tmp_path, content):
    path = tmp_path / "r.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RecordError, match=r"r\.json.*schema" if content in OTHERS else r"r\.json") as caught:
        load(path)
    assert caught.value.facts["path"] == str(path)


def test_entries_have_a_line_each_and_are_read_once_before_they_are_written(tmp_path, monkeypatch):
    """So the time is in proportion to their number, and a change of one audit is a change of one line."""
    entries = tuple(dataclasses.replace(ONE.entries[0], name=name) for name in "abcdefgh")
    made, read = [], json_codec.read_data
    monkeypatch.setattr(json_codec, "read_data", lambda *data: made.append(read(*data)) or made[-1])
    save(Suite(title="t", entries=entries), tmp_path / "r.json")
    assert [one for one in made if isinstance(one, Entry)] == list(entries)
    lines = (tmp_path / "r.json").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line.strip().rstrip(","))["name"] for line in lines if '"type": "Entry"' in line] == list(
        "abcdefgh"
    )


def test_nesting_that_would_not_be_read_is_not_written(tmp_path):
    deep = functools.reduce(lambda inner, _: (inner,), range(80), 1)
    for before in (audit(event=Outcomes((deep,))), audit(environment={"a": deep})):
        with pytest.raises(RecordError, match="nested"):
            save(before, tmp_path / "r.json")
    assert os.listdir(tmp_path) == []


def test_repeated_names_avoid_names_that_are_taken():
    one = ONE.entries[0]
    entries = tuple(dataclasses.replace(one, name=name) for name in ("a", "a #2", "a", "a #3", "a"))
    assert told_apart(Suite(title="t", entries=entries)) == ["a", "a #2", "a #3", "a #3 #2", "a #4"]


def clipped_sum(rows, rng):
    return min(sum(rows), 10) + rng.laplace(scale=5.0)


def test_replays_comparisons_and_sensitivities_are_kept_beside_audits(tmp_path):
    results = {
        "audit": RESULT,
        "replay": replay(clipped_sum, [1, 10], [1], claim=1.0),
        "versions": check_equivalence(clipped_sum, clipped_sum, [1], margin=0.3, runs=400, jobs=1),
        "query": check_sensitivity(sum, Rows([0.0, 2.0]), bound=1.0, norm="l1", adjacency="add-remove", evaluations=60),
    }
    save(results, tmp_path / "named.json")
    suite = load(tmp_path / "named.json")
    assert [entry.name for entry in suite.entries] == ["audit"]
    assert [(check.name, check.kind, check.verdict, check.claim) for check in suite.checks] == [
        ("replay", "replay", "EXCESS", "1-DP"),
        ("versions", "equivalence", results["versions"].verdict.name, "margin 0.3"),
        ("query", "sensitivity", "REFUTED", "l1 sensitivity 1"),
    ]
    first, second, third = suite.checks
    assert first.replay == results["replay"].tabulated()
    assert (first.found, second.alpha, third.alpha, third.found) == ("loss at most 1.8", 0.05, 0.0, "change 2")
    assert second.lines[0] == results["versions"].sentence
    save(list(results.values()), tmp_path / "listed.json")
    listed = load(tmp_path / "listed.json")
    assert [check.name for check in listed.checks] == [
        "clipped_sum", "the old version clipped_sum and the new version clipped_sum", "sum",
    ]  # fmt: skip
    save(results["replay"], tmp_path / "one.json")
    one = load(tmp_path / "one.json")
    assert (one.title, one.entries, len(one.checks)) == ("Replay of clipped_sum", (), 1)
    assert [check.name for check in merge([suite, one], ["a.json", "b.json"]).checks] == [
        "a.json: replay", "a.json: versions", "a.json: query", "b.json: clipped_sum",
    ]  # fmt: skip
    with pytest.raises(RecordError, match="results of type int cannot be saved"):
        save([results["replay"], 3], tmp_path / "no.json")


@pytest.mark.parametrize(
    ("at", "value", "said"),
    [
        (["kind"], "[x](http://evil)", "use exact or replay or equivalence or sensitivity or batches or step or "),
        (["verdict"], "FOO", "use EXCESS or BOUNDED or UNDETERMINED."), (["verdict"], [], "() is not of type str"),
        (["verdict"], "REFUTED", "use EXCESS or BOUNDED or UNDETERMINED."), (["lines"], [], "use at least one sent"),
        (["lines"], [1], "1 is not of type str"), (["lines"], "a", "'a' is not an array"),
        (["alpha"], 7, "use 0 <= alpha < 1."), (["seed"], -3, "number >= 0."),
        (["replay", "n_calls"], -5, "use a seed >= 0 and no more rows than calls."),
    ],
)  # fmt: skip
def test_an_impossible_check_of_a_file_is_refused_by_name_and_place(at, value, said):
    with pytest.raises(RecordError, match=rf"{re.escape(said)}.* @ \$\.suite\.checks\[0\]") as caught:
        from_json(json.dumps(changed(("suite", "checks", 0, *at), value)))
    assert at[-1] in str(caught.value)


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("entries",), [3] * 1_000, "3 is not of type Entry @ $.suite.entries[0]"),
        (("entries",), [BODY["suite"]["entries"][0] | {"name": 3}] * 1_000, "of type str @ $.suite.entries[0].name"),
        (("entries", 0, "result", "versions"), [["numpy"]], "of 2 parts @ $.suite.entries[0].result.versions[0]"),
        (("entries", 0, "result", "seed"), True, "True is not of type int @ $.suite.entries[0].result.seed"),
        (
            ("entries", 0, "result", "bound"),
            {"int": str(2**1000)},
            "is not of type float @ $.suite.entries[0].result.bound",
        ),
    ],
)
def test_the_first_wrong_part_is_named_with_its_place(place, value, said):
    """Only the first of an array: an error for each of them would take two kilobytes."""
    with pytest.raises(RecordError, match=rf"^the results contain .{{,130}}{re.escape(said)}; run the audit again\.$"):
        from_json(json.dumps(changed(("suite", *place), value)))


def test_the_word_of_a_verdict_follows_from_its_kind_and_is_not_in_a_file():
    body = body_of(SUITE)
    assert from_json(json.dumps(body)).checks[0].word == "excess"
    body["suite"]["checks"][0] |= {"word": "bounded"}
    assert not is_read(json.dumps(body))
    assert {one.name: one.value for one in ReplayVerdict} == {
        name: dataclasses.replace(SUITE.checks[0], verdict=name).word for name in ("EXCESS", "BOUNDED", "UNDETERMINED")
    }
