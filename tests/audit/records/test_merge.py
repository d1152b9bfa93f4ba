"""Files of results become one suite, in which no name stands for entries of two files and nothing counts twice."""

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import Verdict
from dpaudit.audit.errors import OptionError, RecordError
from dpaudit.audit.records.json_codec import from_json, to_json
from dpaudit.audit.records.merge import merge
from dpaudit.audit.records.suite import Entry, Suite, Topic
from dpaudit.audit.results.statement_result import Point, StatementResult

LAPLACE = Topic(id="laplace", statement="s", source="Dwork")


def entry(name, *, seed=1, **changes):
    result = StatementResult(
        statement="s", quantity="q", points=(Point(estimate=math.nan, lower=0.5, upper=1.5),), alpha=0.05, method="m",
        runs=100, seed=seed, environment={"seconds": float(seed)},
    )  # fmt: skip
    return Entry(name=name, result=dataclasses.replace(result, **changes), expected=Verdict.NOT_REFUTED)


def suite(*entries, topics=(), title="t", **environment):
    return Suite(title=title, entries=entries, topics=topics, environment=environment)


def names(merged):
    return [each.name for each in merged.entries]


def test_entries_are_all_there_in_order_and_unchanged_but_for_their_names():
    first, second = suite(entry("a"), entry("b"), title="one"), suite(entry("c"), entry("b", seed=2), title="two")
    merged = merge([first, second], ["one.json", "two.json"])
    assert names(merged) == ["a", "one.json: b", "c", "two.json: b"]
    for after, before in zip(merged.entries, first.entries + second.entries, strict=True):
        assert dataclasses.replace(after, name=before.name) == before
        assert after.result.environment == before.result.environment
    assert merged.title == "2 files of results: one.json, two.json"
    assert merged.is_met


def test_a_topic_with_another_text_is_refused():
    other = dataclasses.replace(LAPLACE, statement="another")
    with pytest.raises(RecordError, match=r"'laplace' has different statements in a\.json and b\.json") as caught:
        merge([suite(topics=(LAPLACE,)), suite(topics=(other,))], ["a.json", "b.json"])
    assert caught.value.facts == {"topic": "laplace", "files": ("a.json", "b.json")}


def test_the_same_result_twice_is_refused():
    """Read from a file each time, so that an undefined estimate is not the same object."""
    once = suite(entry("a"), entry("b"))
    with pytest.raises(RecordError, match="'a' in c is the same result as in a") as caught:
        merge([once, suite(entry("b", seed=3)), from_json(to_json(once))], ["a", "b", "c"])
    assert caught.value.facts == {"name": "a", "files": ("a", "c")}


def test_a_name_that_looks_like_a_prefixed_one():
    first, second = suite(entry("a"), entry("two: a", seed=2)), suite(entry("a", seed=3))
    assert names(merge([first, second], ["one", "two"])) == ["1, one: a", "1, one: two: a", "2, two: a"]


@pytest.mark.parametrize(("n_suites", "given_names"), [(0, []), (2, ["a"]), (1, ["a", "b"]), (2, ["a", "a"])], ids=repr)
def test_names_have_to_tell_files_apart(n_suites, given_names):
    with pytest.raises(OptionError, match="do not identify"):
        merge([suite(entry("a", seed=seed)) for seed in range(n_suites)], given_names)


NAMES = st.text(alphabet=":, 12", max_size=6)


@given(st.lists(st.tuples(NAMES, st.lists(NAMES, max_size=3)), min_size=2, max_size=3, unique_by=lambda each: each[0]))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_no_name_stands_for_entries_of_two_files(files):
    suites = [suite(*(entry(name, seed=100 * k + i) for i, name in enumerate(own))) for k, (_, own) in enumerate(files)]
    merged = merge(suites, [name for name, _ in files])
    owners = {}
    for each in merged.entries:
        owners.setdefault(each.name, set()).add(each.result.seed // 100)
    assert all(len(owner) == 1 for owner in owners.values())
    assert len(merged.entries) == sum(len(own) for _, own in files)
