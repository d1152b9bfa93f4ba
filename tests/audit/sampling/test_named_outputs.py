"""Audits of outputs with named parts: the event speaks of the names, and records of several forms are told apart."""

from __future__ import annotations

import collections
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from dpaudit import PureDP, check, check_equivalence, check_outputs, count_cells, find_worst_pair, load, save
from dpaudit.audit.events.records import Form
from dpaudit.audit.sampling.draw import plan_blocks
from dpaudit.audit.sampling.sampler import as_sampler

pytestmark = pytest.mark.usefixtures("learned_seldom", "without_trees")

Pair = collections.namedtuple("Pair", "mean_age n")


@dataclass(frozen=True)
class Stats:
    mean_age: float
    n: float


@dataclass(frozen=True)
class Failure:
    mean_age: float
    n: float


def noise(answer, rng, size=None):
    return answer + rng.laplace(size=size), rng.laplace(size=size)


def columns(answer, rng, size=None):
    return dict(zip(("mean_age", "n"), noise(answer, rng, size), strict=True))


def as_dataclass(answer, rng):
    return Stats(*noise(answer, rng))


def as_pair(answer, rng):
    return Pair(*noise(answer, rng))


def as_labels(answer, rng):
    return pd.Series(columns(answer, rng))


def as_row(answer, rng):
    return pd.DataFrame([columns(answer, rng)])


def as_dictionary(answer, rng):
    return columns(answer, rng)


def frames(answer, size, rng):
    return pd.DataFrame(columns(answer, rng, size))


def dictionaries_of_columns(answer, size, rng):
    return columns(answer, rng, size)


def lists_of_dictionaries(answer, size, rng):
    return [columns(answer, rng) for _ in range(size)]


def structured(answer, size, rng):
    drawn = np.empty(size, dtype=[("mean_age", "f8"), ("n", "f8")])
    drawn["mean_age"], drawn["n"] = noise(answer, rng, size)
    return drawn


def named_column(answer, size, rng):
    return pd.Series(noise(answer, rng, size)[0], name="mean_age")


def single_field(answer, rng):
    return {"mean_age": noise(answer, rng)[0]}


ALL = [
    as_dataclass, as_pair, as_labels, as_row, as_dictionary, frames, dictionaries_of_columns, lists_of_dictionaries,
    structured, named_column, single_field,
]  # fmt: skip


def audited(mechanism, **options):
    options = {"claim": PureDP(1.0), "runs": 600, "alpha": 1e-6, "bits": False, "jobs": 1} | options
    return check(mechanism, 0.0, 4.0, **options)


@pytest.mark.parametrize("mechanism", ALL, ids=lambda mechanism: mechanism.__name__)
def test_events_and_files_have_the_names(mechanism, tmp_path):
    result = audited(mechanism)
    assert result.is_refuted
    assert "mean_age" in result.event_in_words
    assert not {"coordinate", "output"} & set(result.event_in_words.replace("(", " ").split())
    save(result, tmp_path / "result.json")
    read = load(tmp_path / "result.json").entries[0].result
    assert (read.event, read.event_in_words) == (result.event, result.event_in_words)


@pytest.mark.parametrize("sequential", [False, True])
def test_workers_and_batches_have_the_same_columns(sequential):
    one, two = (audited(as_dataclass, sequential=sequential, jobs=jobs) for jobs in (1, 2))
    assert one == two
    assert "mean_age" in one.event_in_words


def test_warnings_and_cells_have_the_names():
    result = check(frames, 0.0, 1.0, claim=PureDP(1.0), runs=4_000, cells=4, jobs=1, alpha=1e-6)
    assert "of mean_age" in str(result.low_bits)
    cells = count_cells(named_column, 0.0, 1.0, cells=4, runs=400, jobs=1)
    assert cells.names[0].startswith("mean_age in ")


def test_a_record_of_another_form_is_another_outcome():
    def mostly(answer, rng):
        return (Failure if answer and rng.random() < 0.3 else Stats)(*noise(0.0, rng))

    result = check(mostly, 0, 1, claim=PureDP(1.0), runs=800, jobs=1, alpha=1e-6, bits=False)
    assert result.is_refuted
    assert "a record with other parts" in result.event_in_words or "class" in result.event_in_words


def test_the_form_is_that_of_all_first_runs():
    def sometimes(answer, rng):
        return columns(answer, rng) | ({"more": 1.0} if rng.random() < 0.5 else {})

    plan = plan_blocks(as_sampler(sometimes), 0.0, 1.0, 0, 1)
    assert plan.sampler.form == Form()
    plan = plan_blocks(as_sampler(as_dictionary), 0.0, 1.0, 0, 1)
    assert plan.sampler.column_names == ("mean_age", "n")


def test_numbers_cost_no_more_runs():
    calls = []

    def counted(answer, rng):
        calls.append(1)
        return answer + rng.laplace()

    plan_blocks(as_sampler(counted), 0.0, 1.0, 0, 1)
    assert len(calls) == 1


def keyed(v, answer, rng, rare, usual):
    return rare(v) if answer and rng.random() < 0.01 else usual(v)


def test_the_order_of_keys_is_no_outcome():
    def in_any_order(answer, rng):
        return keyed(float(rng.laplace()), answer, rng, lambda v: {"b": 1.0, "a": v}, lambda v: {"a": v, "b": 1.0})

    def in_lists(answer, size, rng):
        return [in_any_order(answer, rng) for _ in range(size)]

    for mechanism in (in_any_order, in_lists):
        assert not check(mechanism, 0, 1, claim=PureDP(0.1), runs=6_000, jobs=1, bits=False).is_refuted


def of_a_set(answer, rng):
    return {key: answer + rng.laplace() for key in {"apple", "pear"}}


def test_the_order_of_a_set_is_no_outcome_of_workers():
    one, two = (check(of_a_set, 0.0, 0.0, claim=PureDP(0.1), runs=400, jobs=jobs, bits=False) for jobs in (1, 2))
    assert not two.is_refuted
    assert one.counts.runs_x == two.counts.runs_x


RARE = {
    "bare": (lambda v: v, lambda v: {"a": v}),
    "tuple": (lambda v: (v, 1.0), lambda v: {"a": v, "b": 1}),
    "dots": (lambda v: {"a.b": v, "a.c": 1}, lambda v: {"a": {"b": v, "c": 1}}),
    "keys": (lambda v: {"1": v, "2": v}, lambda v: {1: v, 2: v}),
    "place": (lambda v: {"a[0]": v, "a[1]": v}, lambda v: {"a": np.array([v, v])}),
}


@pytest.mark.parametrize("kind", RARE)
def test_a_rare_output_of_another_form_is_found(kind):
    def mechanism(answer, rng):
        return keyed(float(rng.laplace()), answer, rng, *RARE[kind])

    assert check(mechanism, 0, 1, claim=PureDP(0.1), runs=6_000, jobs=1, bits=False).is_refuted


def columns_of_rows(rows, size, rng):
    return pd.DataFrame({f"c{row}": rng.laplace(size=size) for row in sorted(set(rows))})


def test_a_search_finds_columns_that_depend_on_the_data():
    pairs = [([1, 1], [1, 1, 1]), ([1, 1], [1, 1, 2])]
    found = find_worst_pair(columns_of_rows, pairs, claim=PureDP(1.0), runs=400, search_runs=800, jobs=1)
    assert found.audit.is_refuted
    assert not [note for note in found.audit.notes if "skipped" in note]


def test_blocks_are_compared_by_the_names_of_columns():
    def named(answer, size, rng):
        return {"count" if answer else "mean": rng.laplace(size=size)}

    def reordered(answer, size, rng):
        drawn = {"a": rng.laplace(size=size), "b": 5 + rng.laplace(size=size)}
        return pd.DataFrame({key: drawn[key] for key in ("ba" if answer else "ab")})

    def labelled(answer, size, rng):
        return pd.DataFrame({"a": rng.laplace(size=size)}, index=[answer] * size)

    options = {"claim": PureDP(1.0), "runs": 600, "jobs": 1, "bits": False}
    assert check(named, 0, 1, **options).is_refuted
    assert check(labelled, 1, 2, **options).is_refuted
    assert not check(reordered, 0, 1, **options).is_refuted


def test_columns_that_are_rarely_added_are_another_outcome():
    def changing(answer, size, rng):
        more = {"more": np.zeros(size)} if answer and rng.random() < 0.5 else {}
        return {"a": rng.laplace(size=size)} | more

    result = check(changing, 0, 1, claim=PureDP(1.0), runs=1_000, jobs=1, bits=False)
    assert result.verdict.value in ("refuted", "inconclusive")


def test_versions_are_compared_by_the_names_of_columns():
    def version(make):
        return lambda dataset, size, rng: make(rng.laplace(size=size), rng.laplace(size=size) + 5)

    def keys(key):
        return lambda dataset, rng: {key: rng.laplace()}

    one, two = version(lambda a, b: {"mean": a}), version(lambda a, b: {"count": a})
    three, four = (
        version(lambda a, b: pd.DataFrame({"a": a, "b": b})),
        version(lambda a, b: pd.DataFrame({"b": b, "a": a})),
    )
    options = {"margin": 0.8, "runs": 1_000, "jobs": 1}
    assert check_equivalence(one, two, 0, **options).verdict.value.startswith("different")
    assert check_equivalence(three, four, 0, **options).verdict.value == "equivalent within the margin"
    assert check_equivalence(keys(1), keys("1"), 0, **options).verdict.value.startswith("different")


def test_a_search_has_the_names():
    found = find_worst_pair(
        as_dictionary, [(0.0, 1.0), (0.0, 4.0)], claim=PureDP(1.0), runs=400, search_runs=400, jobs=1, bits=False
    )
    assert "mean_age" in found.audit.event_in_words


@pytest.mark.parametrize("new", [as_dictionary, frames])
@pytest.mark.parametrize("old", [as_labels, dictionaries_of_columns])
def test_two_versions_are_compared_by_their_names(old, new):
    def moved(answer, rng):
        return columns(answer + 9.0, rng)

    same = check_equivalence(old, new, 0.0, margin=0.8, runs=600, jobs=1)
    assert same.verdict.value == "equivalent within the margin"
    assert "mean_age" in check_equivalence(old, moved, 0.0, margin=0.8, runs=600, jobs=1).event_in_words


@pytest.mark.parametrize("make", [frames, dictionaries_of_columns, structured, lists_of_dictionaries, named_column])
def test_outputs_drawn_elsewhere(make):
    rng = np.random.default_rng(1)
    result = check_outputs(make(0.0, 1_000, rng), make(4.0, 1_000, rng), claim=PureDP(1.0), alpha=1e-6, bits=False)
    assert result.is_refuted
    assert "mean_age" in result.event_in_words


def test_outputs_drawn_elsewhere_are_compared_by_name():
    rng = np.random.default_rng(1)
    options = {"claim": PureDP(1.0), "bits": False}
    both = frames(0.0, 1_000, rng)
    assert not check_outputs(both[:500], both[500:][["n", "mean_age"]], **options).is_refuted
