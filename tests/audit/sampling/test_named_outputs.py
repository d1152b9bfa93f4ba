"""Audits of outputs with named parts, of a part of each output, and of unusual outputs."""

import collections
from dataclasses import dataclass
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest

import dpaudit as dp
from dpaudit.audit.errors import MechanismError, StoreError
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.events.records import Form
from dpaudit.audit.results.equivalence_result import Equivalence
from dpaudit.audit.sampling.draw import plan_blocks
from dpaudit.audit.sampling.output_hashes import hashed_keys
from dpaudit.audit.sampling.sampler import as_sampler, picked
from dpaudit.audit.store.store_settings import code_of

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
    options = {"claim": dp.PureDP(1.0), "runs": 600, "alpha": 1e-6, "bits": False, "jobs": 1} | options
    return dp.check(mechanism, 0.0, 4.0, **options)


@pytest.mark.usefixtures("without_trees")
@pytest.mark.parametrize("mechanism", ALL, ids=lambda mechanism: mechanism.__name__)
def test_events_and_files_have_the_names(mechanism, tmp_path):
    result = audited(mechanism)
    assert result.is_refuted
    assert "mean_age" in result.event_in_words
    assert not {"coordinate", "output"} & set(result.event_in_words.replace("(", " ").split())
    dp.save(result, tmp_path / "result.json")
    read = dp.load(tmp_path / "result.json").entries[0].result
    assert (read.event, read.event_in_words) == (result.event, result.event_in_words)


@pytest.mark.usefixtures("without_trees")
@pytest.mark.parametrize("sequential", [False, True])
def test_workers_and_batches_have_the_same_columns(sequential):
    one, two = (audited(as_dataclass, sequential=sequential, jobs=jobs) for jobs in (1, 2))
    assert one == two
    assert "mean_age" in one.event_in_words


@pytest.mark.usefixtures("without_trees")
def test_warnings_and_cells_have_the_names():
    result = dp.check(frames, 0.0, 1.0, claim=dp.PureDP(1.0), runs=4_000, cells=4, jobs=1, alpha=1e-6)
    assert "of mean_age" in str(result.low_bits)
    cells = dp.count_cells(named_column, 0.0, 1.0, cells=4, runs=400, jobs=1)
    assert cells.names[0].startswith("mean_age in ")


@pytest.mark.usefixtures("without_trees")
def test_a_record_of_another_form_is_another_outcome():
    def mostly(answer, rng):
        return (Failure if answer and rng.random() < 0.3 else Stats)(*noise(0.0, rng))

    result = dp.check(mostly, 0, 1, claim=dp.PureDP(1.0), runs=800, jobs=1, alpha=1e-6, bits=False)
    assert result.is_refuted
    assert "a record with other parts" in result.event_in_words or "class" in result.event_in_words


@pytest.mark.usefixtures("without_trees")
def test_the_form_is_that_of_all_first_runs():
    def sometimes(answer, rng):
        return columns(answer, rng) | ({"more": 1.0} if rng.random() < 0.5 else {})

    plan = plan_blocks(as_sampler(sometimes), 0.0, 1.0, 0, 1)
    assert plan.sampler.form == Form()
    plan = plan_blocks(as_sampler(as_dictionary), 0.0, 1.0, 0, 1)
    assert plan.sampler.column_names == ("mean_age", "n")


@pytest.mark.usefixtures("without_trees")
def test_numbers_cost_no_more_runs():
    calls = []

    def counted(answer, rng):
        calls.append(1)
        return answer + rng.laplace()

    plan_blocks(as_sampler(counted), 0.0, 1.0, 0, 1)
    assert len(calls) == 1


def keyed(v, answer, rng, rare, usual):
    return rare(v) if answer and rng.random() < 0.01 else usual(v)


@pytest.mark.usefixtures("without_trees")
def test_the_order_of_keys_is_no_outcome():
    def in_any_order(answer, rng):
        return keyed(float(rng.laplace()), answer, rng, lambda v: {"b": 1.0, "a": v}, lambda v: {"a": v, "b": 1.0})

    def in_lists(answer, size, rng):
        return [in_any_order(answer, rng) for _ in range(size)]

    for mechanism in (in_any_order, in_lists):
        assert not dp.check(mechanism, 0, 1, claim=dp.PureDP(0.1), runs=3_000, jobs=1, bits=False).is_refuted


def of_a_set(answer, rng):
    return {key: answer + rng.laplace() for key in {"apple", "pear"}}


@pytest.mark.usefixtures("without_trees")
def test_the_order_of_a_set_is_no_outcome_of_workers():
    one, two = (dp.check(of_a_set, 0.0, 0.0, claim=dp.PureDP(0.1), runs=400, jobs=jobs, bits=False) for jobs in (1, 2))
    assert not two.is_refuted
    assert one.counts.runs_x == two.counts.runs_x


RARE = {
    "bare": (lambda v: v, lambda v: {"a": v}),
    "tuple": (lambda v: (v, 1.0), lambda v: {"a": v, "b": 1}),
    "dots": (lambda v: {"a.b": v, "a.c": 1}, lambda v: {"a": {"b": v, "c": 1}}),
    "keys": (lambda v: {"1": v, "2": v}, lambda v: {1: v, 2: v}),
    "place": (lambda v: {"a[0]": v, "a[1]": v}, lambda v: {"a": np.array([v, v])}),
}


@pytest.mark.usefixtures("without_trees")
@pytest.mark.parametrize("kind", RARE)
def test_a_rare_output_of_another_form_is_found(kind):
    def mechanism(answer, rng):
        return keyed(float(rng.laplace()), answer, rng, *RARE[kind])

    assert dp.check(mechanism, 0, 1, claim=dp.PureDP(0.1), runs=6_000, jobs=1, bits=False).is_refuted


def columns_of_rows(rows, size, rng):
    return pd.DataFrame({f"c{row}": rng.laplace(size=size) for row in sorted(set(rows))})


@pytest.mark.usefixtures("without_trees")
def test_a_search_finds_columns_that_depend_on_the_data():
    pairs = [([1, 1], [1, 1, 1]), ([1, 1], [1, 1, 2])]
    found = dp.find_worst_pair(columns_of_rows, pairs, claim=dp.PureDP(1.0), runs=400, search_runs=800, jobs=1)
    assert found.audit.is_refuted
    assert not [note for note in found.audit.notes if "skipped" in note]


@pytest.mark.usefixtures("without_trees")
def test_blocks_are_compared_by_the_names_of_columns():
    def named(answer, size, rng):
        return {"count" if answer else "mean": rng.laplace(size=size)}

    def reordered(answer, size, rng):
        drawn = {"a": rng.laplace(size=size), "b": 5 + rng.laplace(size=size)}
        return pd.DataFrame({key: drawn[key] for key in ("ba" if answer else "ab")})

    def labelled(answer, size, rng):
        return pd.DataFrame({"a": rng.laplace(size=size)}, index=[answer] * size)

    options = {"claim": dp.PureDP(1.0), "runs": 600, "jobs": 1, "bits": False}
    assert dp.check(named, 0, 1, **options).is_refuted
    assert dp.check(labelled, 1, 2, **options).is_refuted
    assert not dp.check(reordered, 0, 1, **options).is_refuted


@pytest.mark.usefixtures("without_trees")
def test_columns_that_are_rarely_added_are_another_outcome():
    def changing(answer, size, rng):
        more = {"more": np.zeros(size)} if answer and rng.random() < 0.5 else {}
        return {"a": rng.laplace(size=size)} | more

    result = dp.check(changing, 0, 1, claim=dp.PureDP(1.0), runs=1_000, jobs=1, bits=False)
    assert result.verdict.value in ("refuted", "inconclusive")


@pytest.mark.usefixtures("without_trees")
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
    assert dp.check_equivalence(one, two, 0, **options).verdict.value.startswith("different")
    assert dp.check_equivalence(three, four, 0, **options).verdict.value == "equivalent within the margin"
    assert dp.check_equivalence(keys(1), keys("1"), 0, **options).verdict.value.startswith("different")


@pytest.mark.usefixtures("without_trees")
def test_two_versions_are_compared_by_their_names():
    def moved(answer, rng):
        return columns(answer + 9.0, rng)

    same = dp.check_equivalence(as_labels, frames, 0.0, margin=0.8, runs=600, jobs=1)
    assert same.verdict.value == "equivalent within the margin"
    assert "mean_age" in dp.check_equivalence(as_labels, moved, 0.0, margin=0.8, runs=600, jobs=1).event_in_words


@pytest.mark.usefixtures("without_trees")
@pytest.mark.parametrize("make", [frames, dictionaries_of_columns, structured, lists_of_dictionaries, named_column])
def test_outputs_drawn_elsewhere(make):
    rng = np.random.default_rng(1)
    result = dp.check_outputs(
        make(0.0, 1_000, rng), make(4.0, 1_000, rng), claim=dp.PureDP(1.0), alpha=1e-6, bits=False
    )
    assert result.is_refuted
    assert "mean_age" in result.event_in_words


@pytest.mark.usefixtures("without_trees")
def test_outputs_drawn_elsewhere_are_compared_by_name():
    rng = np.random.default_rng(1)
    options = {"claim": dp.PureDP(1.0), "bits": False}
    both = frames(0.0, 1_000, rng)
    assert not dp.check_outputs(both[:500], both[500:][["n", "mean_age"]], **options).is_refuted


@dataclass(frozen=True)
class Described:
    mean_age: float
    note: str


def stats(answer, rng):
    if rng.random() < 0.1:
        raise ValueError
    return Described(answer + rng.laplace(), "the answer" if answer else "none")


def frame(answer, size, rng):
    return pd.DataFrame({"mean_age": answer + rng.laplace(size=size), "told": np.full(size, answer)})


def told(answer, rng):
    return Described(answer + rng.laplace(), "the answer" if answer else "none")


def twice(answer, rng):
    return Described(answer + 2 * rng.laplace(), "none")


def doubled(answer, size, rng):
    return pd.DataFrame({"mean_age": answer + 2 * rng.laplace(size=size), "told": np.full(size, answer)})


def same_mean(answer, size, rng):
    return pd.DataFrame({"mean_age": answer + rng.laplace(size=size), "told": rng.random(size)})


def mean_of(drawn):
    return drawn.mean_age


def matrix(answer, size, rng):
    return np.column_stack([answer + rng.laplace(size=size), np.full(size, answer)])


def larger(output):
    return max(output.mean_age, 0.0)


def ages(block):
    return block["mean_age"]


OPTIONS = {"claim": dp.PureDP(1.0), "runs": 400, "alpha": 1e-6, "bits": False}


@pytest.mark.usefixtures("without_trees")
@pytest.mark.parametrize(
    ("mechanism", "output"),
    [
        (stats, "mean_age"), (stats, larger), (frame, "mean_age"), (frame, 0), (matrix, 0),
        (frame, lambda f: f["mean_age"]),
    ],
)  # fmt: skip
def test_only_the_part_is_audited(mechanism, output):
    """The other part tells the dataset at once; exceptions stay outcomes."""
    assert dp.check(mechanism, 0.0, 1.0, **OPTIONS).is_refuted
    for jobs in (1, 2) if output == "mean_age" else (1,):
        result = dp.check(mechanism, 0.0, 1.0, output=output, jobs=jobs, **OPTIONS)
        assert not result.is_refuted
        told = [note for note in result.notes if "ValueError was raised" in note]
        assert bool(told) == (mechanism is stats)


@pytest.mark.usefixtures("without_trees")
@pytest.mark.parametrize(("mechanism", "output"), [(stats, "mean_age"), (frame, "mean_age"), (matrix, 0)])
def test_the_event_has_the_name_of_the_part(mechanism, output):
    result = dp.check(mechanism, 0.0, 9.0, output=output, jobs=1, **OPTIONS)
    assert ("mean_age" if output else "output[0]") in result.event_in_words
    assert "coordinate" not in result.event_in_words


@pytest.mark.usefixtures("without_trees")
def test_a_search_and_outputs_drawn_elsewhere():
    found = dp.find_worst_pair(stats, [(0.0, 1.0), (0.0, 9.0)], output="mean_age", search_runs=400, jobs=1, **OPTIONS)
    assert found.audit.is_refuted
    assert "mean_age" in found.audit.event_in_words
    rng = np.random.default_rng(1)
    options = {"claim": dp.PureDP(1.0), "alpha": 1e-6, "bits": False}
    drawn = frame(0.0, 1_000, rng), frame(1.0, 1_000, rng)
    assert dp.check_outputs(*drawn, **options).is_refuted
    assert not dp.check_outputs(*drawn, output="mean_age", **options).is_refuted
    assert not dp.check_outputs(*([[*map(tuple, each.to_numpy())] for each in drawn]), output=0, **options).is_refuted


@pytest.mark.usefixtures("without_trees")
@pytest.mark.parametrize(("old", "new", "output"), [(stats, doubled, "mean_age"), (frame, doubled, mean_of)])
def test_versions_are_compared_by_a_part(old, new, output):
    options = {"output": output, "runs": 1_000, "jobs": 1}
    assert dp.check_same_distribution(old, new, 0, **options).is_refuted
    result = dp.check_equivalence(old, new, 0, margin=0.02, **options)
    assert result.verdict is Equivalence.DIFFERENT
    assert "new version" in result.new
    assert ", output " in result.new
    assert not dp.check_same_distribution(frame, same_mean, 0, **options).is_refuted, "only another part differs"


@pytest.mark.usefixtures("without_trees")
@pytest.mark.parametrize("mechanism", [told, frame])
def test_the_noise_of_a_part_is_checked(mechanism):
    part = {"output": "mean_age", "runs": 2_000, "jobs": 1}
    result = dp.check_noise(mechanism, 3.0, noise=dp.LaplaceNoise(1.0), answer=3.0, **part)
    assert not result.is_refuted
    assert 'output "mean_age" adds independent' in result.statement
    assert dp.check_noise(mechanism, 3.0, noise=dp.LaplaceNoise(2.0), answer=3.0, **part).is_refuted
    counts = dp.count_cells(mechanism, 0, 3.0, cells=4, **part)
    assert 1.0 < counts.maximum().lower < 3.0


@pytest.mark.usefixtures("without_trees")
def test_a_part_that_an_output_lacks_is_an_error():
    with pytest.raises(
        MechanismError, match="output='median' is not a part of an output of frame with the parts mean_age"
    ):
        dp.check(frame, 0.0, 1.0, output="median", jobs=1, **OPTIONS)


@pytest.mark.usefixtures("without_trees")
def test_the_part_belongs_to_the_identity_of_the_mechanism(tmp_path):
    hashes = {code_of(picked(stats, output)) for output in (None, "mean_age", "note", 0, larger, lambda output: 0)}
    assert len(hashes) == 6
    assert picked(stats, None) == as_sampler(stats)
    whole = dp.check(frame, 0.0, 1.0, store=tmp_path, jobs=1, **OPTIONS)
    results = [
        dp.check(frame, 0.0, 1.0, output=output, store=tmp_path, jobs=1, **OPTIONS) for output in ("mean_age", 0, ages)
    ]
    said = ['frame, output "mean_age"', "frame, output 0", "frame, output by ages"]
    assert [result.mechanism for result in results] == said
    assert len({result.provenance.fingerprint for result in [whole, *results]}) == 4
    named = dp.check(frame, 0.0, 1.0, output=lambda block: block["mean_age"], name="mine", jobs=1, **OPTIONS)
    assert named.mechanism == "mine, output by <lambda>"


@pytest.mark.usefixtures("without_trees")
def test_methods_are_no_parts():
    for output in ("count", "index"):
        with pytest.raises(MechanismError, match="is not a part"):
            dp.check(lambda answer, rng: (answer, rng.laplace()), 0, 1, output=output, jobs=1, **OPTIONS)


@pytest.mark.usefixtures("without_trees")
def test_state_of_a_function_that_picks_is_seen():
    seen = []

    def counting(output):
        seen.append(1)
        return output.mean_age

    def right(answer, rng):
        return Described(answer + rng.laplace(), "")

    assert plan_blocks(picked(right, counting), 0.0, 1.0, 0, 1).is_stateful
    assert not plan_blocks(picked(right, larger), 0.0, 1.0, 0, 1).is_stateful


class Stop(BaseException):
    """Not an `Exception`, like exceptions by which frameworks end a program."""


class UnprintableError(Exception):
    def __str__(self):
        raise ValueError("no text")


class Hashless:
    def __hash__(self):
        raise ValueError("no hash")


class Incomparable:
    def __eq__(self, other):
        raise ValueError("no equality")

    def __hash__(self):
        return 1


def nested(depth):
    value = frozenset()
    for _ in range(depth):
        value = frozenset([value])
    return value


@pytest.mark.parametrize("error", [Stop, KeyboardInterrupt])
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_an_exception_that_would_end_a_worker_is_named(error, backend):
    """A worker receives no signal, so the mechanism raised it; this thread passes on what may be a key press."""
    stops = partial(stops_with, error)
    said = rf"raised {error.__name__} and would end the audit.*in block \d+ of the pilot"
    with joblib.parallel_config(backend), pytest.raises(MechanismError, match=said):
        dp.check(stops, 0, 1, claim=dp.PureDP(1.0), runs=4_000, seed=1, jobs=2)
    with pytest.raises(error):
        dp.check(stops, 0, 1, claim=dp.PureDP(1.0), runs=4_000, seed=1, jobs=1)


def stops_with(error, dataset, rng):
    if rng.random() < 0.01:
        raise error
    return dataset + rng.laplace()


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (Hashless, r"of type Hashless, which cannot be compared \(ValueError: no hash\)"),
        (Incomparable, r"of type Incomparable, which cannot be compared \(ValueError: no equality\)"),
        (lambda: nested(5_000), "nested more than 100 deep"),
    ],
)
def test_outputs_that_raise_are_refused(made, said):
    with pytest.raises(MechanismError, match=said):
        dp.check(lambda dataset, rng: made(), 0, 1, claim=dp.PureDP(1.0), runs=400, jobs=1)


def test_an_exception_without_a_text_has_its_type():
    def raises(dataset, size, rng):
        raise UnprintableError

    with pytest.raises(MechanismError, match="raises raised UnprintableError while drawing"):
        dp.check(raises, 0, 1, claim=dp.PureDP(1.0), runs=400, jobs=1)


def test_numbers_of_thousands_of_digits_are_outputs(tmp_path):
    result = dp.check(huge, 0, 1, claim=dp.PureDP(1.0), runs=400, jobs=1)
    assert result.findings == ()
    dp.save(result, tmp_path / "result.json")
    assert dp.load(tmp_path / "result.json").entries[0].result.verdict is result.verdict
    with pytest.raises(StoreError, match="store"):
        dp.check(huge, 0, 1, claim=dp.PureDP(1.0), runs=400, jobs=1, store=tmp_path / "store")


def huge(dataset, rng):
    return 10**5_000 + int(rng.integers(2))


def test_a_rare_output_of_another_kind_repeats():
    """Blocks with and without the rare output are arrays of different types."""

    def rare(dataset, rng):
        return None if rng.random() < 0.01 else dataset + rng.laplace()

    results = [dp.check(rare, 0, 1, claim=dp.PureDP(1.0), runs=4_000, seed=seed, jobs=1) for seed in range(2)]
    assert all(result.is_replayable for result in results)


@pytest.mark.usefixtures("without_trees")
def test_wide_vectors_take_no_more_than_their_first_coordinates_for_low_bits():
    def wide(dataset, size, rng):
        return dataset + rng.laplace(size=(size, 6_000))

    result = dp.check(wide, 0.0, 1.0, claim=dp.PureDP(1.0), runs=64, jobs=1)  # all coordinates would take gigabytes
    assert result.is_refuted


@pytest.mark.usefixtures("without_trees")
def test_blocks_of_tuples_may_all_have_one_length():
    """A block in which all do is a matrix, the others are objects."""

    def listed(dataset, size, rng):
        return [(1.0,) if short else (1.0, 2.0) for short in rng.random(size) < (0.08 if dataset else 0.02)]

    assert dp.check(listed, 1, 0, claim=dp.PureDP(0.3), runs=4_000, jobs=1).is_refuted


def test_a_tuple_of_numbers_has_one_key_in_blocks_of_any_kind():
    """Else one outcome counts as two, and equal blocks look rarer than they are."""
    pair = (1.0, 2.0)
    alike, mixed = as_outputs([pair, pair], 2, "m"), as_outputs([pair, None], 2, "m")
    assert (alike.dtype, mixed.dtype) == (np.float64, object)
    assert hashed_keys(alike)[0] == hashed_keys(mixed)[0]
