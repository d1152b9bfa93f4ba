"""Results survive the way to a file and back; any other file is refused with a RecordError and nothing else."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import json
import math
import operator
import os
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpaudit as dp
from dpaudit import PureDP, Verdict
from dpaudit.audit.errors import RecordError
from dpaudit.audit.events.events import Apart, Intervals, Outcomes, Scored, Sketch
from dpaudit.audit.events.outputs import Raised
from dpaudit.audit.events.scores import Weighted
from dpaudit.audit.health.findings import Finding, HealthCheck
from dpaudit.audit.inference.boundary_test import Counts
from dpaudit.audit.inference.guess_test import Guesses
from dpaudit.audit.records.json_codec import SCHEMA, Opaque, from_json, load, save, to_json, told_apart
from dpaudit.audit.records.suite import Entry, Suite
from dpaudit.audit.results.audit_result import FixedSizeResult, OtherDirection, Pair

INF, NAN = math.inf, math.nan


RESULT = FixedSizeResult(
    mechanism="noisy count", claim=PureDP(1.0), event=Intervals(((-INF, -0.1), (2.0, INF)), others=True),
    likelier_on="y", pair=Pair(x="list of 2", y="list of 1", difference="1 row", adjacency="add", distance=1),
    counts=Counts(hits_x=1, runs_x=10, hits_y=2, runs_y=10), alpha=0.05, p_value=0.5, bound=0.1, resolution=INF,
    power=0.95, requested_resolution=0.5, runs=20, pilot_runs=10, seed=2**80, is_replayable=False,
    findings=(Finding(HealthCheck.UNSTEADY_HITS, "“odd” ε"),), sketch=Sketch(("a",), (), (1,), (2,)),
    versions=(("numpy", "2.0"),), environment={"seconds": 0.5},
)  # fmt: skip


def suite(**changes):
    entry = Entry(
        name="é", result=dataclasses.replace(RESULT, **changes), expected=Verdict.REFUTED, exact=INF, note="n"
    )
    return Suite(title="t", entries=(entry,), environment={"host": "h"})


def assert_survives(before):
    text = to_json(before)
    after = from_json(text)
    assert repr(after) == repr(before) or after == before  # NaN equals nothing, but prints alike
    assert [e.result.environment for e in after.entries] == [e.result.environment for e in before.entries]
    assert (after.environment, to_json(after)) == (before.environment, text)
    assert [str(e.result) for e in after.entries] == [str(e.result) for e in before.entries]
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    return after.entries[0].result


CLAIMS = [
    PureDP(0.1 + 0.2), dp.ApproxDP(1.0, 1e-300), dp.ApproxDP(1.0, 0.1, bound_on="delta"), dp.GaussianDP(1 / 3),
    dp.RenyiDP(2.0, 0.1), dp.ZeroConcentratedDP(0.5), dp.PrivacyProfile((0.0, 1.0), (0.4, 0.1), 0.01),
    dp.TradeOffCurve((0.1, 0.4), (0.6, 0.2)), PureDP(0.5).group(3), dp.ZeroConcentratedDP(0.5).group(2),
    dp.ProbabilityPreservation(2.0, 0.1), dp.NFoldComposition(0.1, 4),
]  # fmt: skip


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_every_claim(claim):
    assert assert_survives(suite(claim=claim)).claim == claim


EVENTS = [
    Intervals(((-INF, math.nextafter(2.0, 0)),)), Intervals((), others=True), Outcomes(()), Outcomes((NAN, (NAN, 1))),
    Outcomes((1, -0.0, 1e-320, True, None, "a\n\u2028é\U0001f600", 2**53, -(2**200), INF, -INF), others=True),
    Outcomes(((), (1,), (1, (2.5, "b")))), Outcomes((Raised("KeyError"), (Raised("A.B"), None))),
    Scored(Weighted((0.5, -1.0, 0.0)), Intervals(((0.1, 0.2),))), Apart(Intervals(((0.1, 0.2),)), Outcomes((0.1,))),
]  # fmt: skip


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_every_event_and_outcome(event):
    kept = assert_survives(suite(event=event)).event
    assert str(kept) == str(event)
    assert repr(kept) == repr(event)  # types and signs included


@pytest.mark.parametrize("outcome", [enum.Enum("Colour", "RED").RED, b"bytes", Fraction(1, 3), frozenset({1})])
def test_outcomes_that_json_cannot_hold_are_kept_as_text(outcome):
    before = suite(event=Outcomes((outcome,)))
    after = from_json(to_json(before))
    kept = after.entries[0].result.event
    assert isinstance(kept.values[0], Opaque)
    assert str(kept) == str(before.entries[0].result.event)
    assert from_json(to_json(after)) == after


OPPOSITE = OtherDirection(
    event=Outcomes((0.0,)),
    counts=Counts(hits_x=2, runs_x=10, hits_y=1, runs_y=10),
    guesses=Guesses(right=4, wrong=2, runs=18),
)
FIELDS_CHANGED = [
    {"opposite": OPPOSITE, "reserve_alpha": 0.0025},
    {"bound": INF, "p_value": 0.0, "resolution": INF, "pair": dataclasses.replace(RESULT.pair, contents=("[1]", "é"))},
    {"requested_resolution": None, "seed": 0, "sketch": None, "findings": (), "versions": ()},
    {"sketch": Sketch((), (0.1, INF), (1, 2, 3), (0, 0, 2**60)), "seed": 2**53 + 1},
]


@pytest.mark.parametrize("changes", FIELDS_CHANGED)
def test_every_field(changes):
    assert_survives(suite(**changes))


def test_a_distance_taken_from_an_array_is_a_number():
    kept = from_json(to_json(suite(pair=dataclasses.replace(RESULT.pair, distance=np.int64(2)))))
    assert kept.entries[0].result.pair.distance == 2


def test_text_that_is_no_unicode_can_be_stored(tmp_path):
    """A command's output decoded with surrogateescape is an outcome like any other."""
    before = suite(event=Outcomes(("\udcff",)))
    save(before, tmp_path / "r.json")
    assert load(tmp_path / "r.json") == before


class Custom(PureDP):
    __slots__ = ()


def test_a_claim_that_cannot_be_stored_is_refused_or_stays_usable():
    with contextlib.suppress(RecordError):
        text = to_json(suite(claim=Custom(1.0), findings=()))
        assert isinstance(from_json(text).entries[0].result.verdict, Verdict)


def test_equal_seeds_give_equal_files():
    def mechanism(dataset, size, rng):
        return dataset + rng.laplace(size=size)

    def body(jobs):
        result = dp.check(mechanism, 0.0, 1.0, claim=PureDP(0.5), runs=140_000, seed=3, jobs=jobs)
        found = json.loads(to_json(Suite(title="t", entries=(Entry(name="a", result=result),))))
        assert found.pop("environment")["audits"][0]["seconds"] > 0
        return json.dumps(found)

    assert body(1) == body(2)


TEXT = to_json(suite())
BODY = json.loads(TEXT)


def test_every_prefix_is_refused():
    assert accepted((end, TEXT[:end]) for end in range(len(TEXT.rstrip()))) == []
    assert from_json(TEXT.rstrip()) == suite()


@pytest.mark.parametrize("schema", [SCHEMA + 1, SCHEMA - 1, 10**30, 0, -1, "1", 1.5, None])
def test_other_schemas_are_refused(schema):
    with pytest.raises(RecordError, match="schema"):
        from_json(json.dumps({**BODY, "schema": schema}))


@pytest.mark.parametrize(
    "text", ["", "null", "3", "[]", "{}", '"suite"', '{"schema": 1}', '{"schema": 1, "suite": []}']
)
def test_other_json_is_refused(text):
    with pytest.raises(RecordError):
        from_json(text)


def changed(path, value):
    """The file with one place changed, as text; removes the place where `value` is the type `KeyError`."""
    body = json.loads(TEXT)
    place = functools.reduce(operator.getitem, path[:-1], body)
    place[path[-1]] = value
    if value is KeyError:
        del place[path[-1]]
    return json.dumps(body)


RESULT_AT = ("suite", "entries", 0, "result")
FIELDS = [f for f in dataclasses.fields(FixedSizeResult) if f.name != "environment"]


def accepted(texts):
    """The names under which a text was read although it should not be."""
    found = []
    for name, text in texts:
        with contextlib.suppress(RecordError):
            from_json(text)
            found.append(name)
    return found


def test_missing_keys_are_refused():
    required = [f.name for f in FIELDS if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING]
    assert accepted((name, changed((*RESULT_AT, name), KeyError)) for name in required) == []


@pytest.mark.parametrize("value", [{"type": "Opaque", "text": "x"}, {"enum": "Verdict", "value": "refuted"}, [[0.5]]])
def test_wrong_types_are_refused(value):
    """Read without a word, they would fail later and far away: in the verdict, in a report."""
    assert accepted((f.name, changed((*RESULT_AT, f.name), value)) for f in FIELDS) == []


GROUP = {"type": "GroupClaim", "base": {"type": "PureDP", "epsilon": 1.0}, "distance": 2}
IMPOSSIBLE = {
    "alpha": [2.0, 0, "high"],
    "p_value": [-1, 2],
    "likelier_on": ["z"],
    "runs": ["many", -1],
    "hits_x": [11, -1, 0.5],
    "runs_x": [INF, NAN, 0],
    "epsilon": [-1, NAN, INF, 10**400, {"float": "x"}, {"int": "9" * 5000}, {"int": "9" * 400}],
    "claim": [
        {"type": "os.system"}, {"type": ["PureDP"]}, {"type": "Suite"}, {"enum": "Colour", "value": 1},
        {"dict": [[1]]}, {"dict": [[{"dict": []}, 1]]}, {**GROUP, "base": 3}, {**GROUP, "distance": -1},
        {"type": "TradeOffCurve", "false_positive": [], "false_negative": []},
    ],
    "event": [{"type": "Intervals", "intervals": [["a", "b"]]}, {"type": "Outcomes", "values": 3}],
}  # fmt: skip
INSIDE = {"hits_x": "counts", "runs_x": "counts", "epsilon": "claim"}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_content_is_refused(name):
    at = (*RESULT_AT, INSIDE[name], name) if name in INSIDE else (*RESULT_AT, name)
    assert accepted((str(value)[:40], changed(at, value)) for value in IMPOSSIBLE[name]) == []


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"type":'])
@pytest.mark.parametrize("depth", [500, 5_000, 200_000])
def test_deep_nesting_is_refused(opening, depth):
    deep = opening * depth + "1" + ("]" if opening == "[" else "}") * depth
    assert accepted(enumerate((deep, TEXT.replace('"noisy count"', deep)))) == []


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-1, 3), st.just(10**400), st.floats(), st.text(max_size=3))
TAGS = st.sampled_from(["type", "enum", "int", "float", "dict", "value", "a"])
JSON = st.recursive(SCALARS, lambda part: st.lists(part, max_size=3) | st.dictionaries(TAGS, part, max_size=3))


def paths(node, at=()):
    """Every place in a file below its root."""
    for key, child in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from ((*at, key), *paths(child, (*at, key)))


PATHS = list(paths(BODY))


@given(st.sampled_from(PATHS), st.one_of(JSON, st.just(KeyError)))
@settings(derandomize=True, deadline=None, max_examples=200)
def test_a_mutated_file_loads_or_is_refused(path, value):
    text = changed(path, value)
    with contextlib.suppress(RecordError):
        kept = from_json(text)
        assert isinstance(kept, Suite)
        assert all(isinstance(entry.result.verdict, Verdict) for entry in kept.entries)


@given(st.integers(0, len(TEXT) - 1), st.characters())
@settings(derandomize=True, deadline=None, max_examples=200)
def test_a_mutated_character_loads_or_is_refused(at, character):
    with contextlib.suppress(RecordError):
        assert isinstance(from_json(TEXT[:at] + character + TEXT[at + 1 :]), Suite)


def test_save_and_load(tmp_path):
    path = tmp_path / "new" / "results.json"
    save(suite(), path)
    assert load(path) == load(str(path)) == suite()


def test_a_title_names_few_of_many_results(tmp_path):
    path, one = tmp_path / "r.json", suite().entries[0].result
    for names, title in (("abcd", "Audits of a, b, c, d"), ("abcde", "Audits of a, b, c and 2 more")):
        save(dict.fromkeys(names, one), path)
        assert load(path).title == title


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00", b"{", b"[]"])
def test_load_names_the_path(tmp_path, content):
    path = tmp_path / "r.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RecordError, match=r"r\.json") as caught:
        load(path)
    assert caught.value.facts["path"] == str(path)


@pytest.mark.parametrize("call", ["replace", "open"])
def test_a_failing_write_leaves_the_old_file(tmp_path, monkeypatch, call):
    """The disk is full when the new file is opened, or cannot be put in place of the old one."""
    path = tmp_path / "r.json"
    save(suite(), path)

    def fails(*args, **kwargs):
        raise OSError("disk full")

    for owner in (os, Path):
        monkeypatch.setattr(owner, call, fails)
    with pytest.raises(OSError, match="disk full"):
        save(suite(bound=5.0), path)
    monkeypatch.undo()
    assert (load(path), os.listdir(tmp_path)) == (suite(), ["r.json"])


@pytest.mark.parametrize("name", ["r", "r.txt", b"r\xff", "file:r?#%20"])
def test_a_file_of_any_name_is_read_again(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    save(suite(), name)
    assert os.listdir(tmp_path) == [os.fsdecode(name)]
    assert load(name) == suite()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda one: {3: one},
        lambda one: {math.nan: one},
        lambda one: Suite(title="t", entries=(Entry(name=None, result=one),)),
        lambda one: Suite(title=3, entries=(Entry(name="a", result=one),)),
    ],
)
def test_what_would_not_be_read_again_is_not_written(tmp_path, wrong):
    with pytest.raises(RecordError):
        save(wrong(suite().entries[0].result), tmp_path / "r.json")
    assert os.listdir(tmp_path) == []


def test_time_is_in_proportion_to_the_entries():
    """At most a millisecond for each of 50,000 names, where comparing all pairs of names takes minutes."""
    one = suite().entries[0]
    started = time.process_time()
    names = told_apart(Suite(title="t", entries=(one,) * 50_000))
    assert time.process_time() - started < 50.0
    assert (names[0], names[1], names[-1]) == (one.name, f"{one.name} #2", f"{one.name} #50000")


def test_repeated_names_avoid_names_that_are_taken():
    one = suite().entries[0]
    entries = tuple(dataclasses.replace(one, name=name) for name in ("a", "a #2", "a", "a #3", "a"))
    assert told_apart(Suite(title="t", entries=entries)) == ["a", "a #2", "a #3", "a #3 #2", "a #4"]
