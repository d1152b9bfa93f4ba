"""Audits of outputs with named parts, of a part of each output, and of unusual outputs."""

import collections
from dataclasses import dataclass, replace
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest

import dpaudit as dp
from dpaudit.audit.errors import MechanismError, StoreError
from dpaudit.audit.events.outputs import as_outputs, tally
from dpaudit.audit.events.records import Form, form_of
from dpaudit.audit.portfolio.low_bits import bit_columns
from dpaudit.audit.results.equivalence_result import Equivalence
from dpaudit.audit.sampling.draw import plan_blocks
from dpaudit.audit.sampling.output_hashes import hashed_keys
from dpaudit.audit.sampling.sampler import as_sampler, picked
from dpaudit.audit.store.store_settings import code_of

Pair = collections.namedtuple("Pair", "mean_age n")


@pytest.fixture
def rng():
    return np.random.default_rng(1)


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


def as_labels(answer, rng):
    return pd.Series(columns(answer, rng))


def frames(answer, size, rng):
    return pd.DataFrame(columns(answer, rng, size))


def lists_of_dictionaries(answer, size, rng):
    return [columns(answer, rng) for _ in range(size)]


def structured(answer, size, rng):
    drawn = np.empty(size, dtype=[("mean_age", "f8"), ("n", "f8")])
    drawn["mean_age"], drawn["n"] = noise(answer, rng, size)
    return drawn


def named_column(answer, size, rng):
    return pd.Series(noise(answer, rng, size)[0], name="mean_age")


@pytest.mark.parametrize(
    "mechanism",
    [
        as_dataclass, as_labels, columns, frames, lists_of_dictionaries, structured, named_column,
        lambda answer, rng: Pair(*noise(answer, rng)), lambda answer, rng: pd.DataFrame([columns(answer, rng)]),
        lambda answer, size, rng: columns(answer, rng, size), lambda answer, rng: {"mean_age": noise(answer, rng)[0]},
    ],
)  # fmt: skip
def test_parts_have_their_names(mechanism):
    names = plan_blocks(as_sampler(mechanism), 0.0, 1.0, 0, 1).sampler.column_names
    assert names in (("mean_age", "n"), ("mean_age",))


def test_first_runs_of_several_forms_have_no_names():
    def sometimes(answer, rng):
        return columns(answer, rng) | ({"more": 1.0} if rng.random() < 0.5 else {})

    assert plan_blocks(as_sampler(sometimes), 0.0, 1.0, 0, 1).sampler.form == Form()


def test_numbers_cost_no_more_runs():
    calls = []
    plan_blocks(as_sampler(lambda answer, rng: calls.append(1) or rng.laplace()), 0.0, 1.0, 0, 1)
    assert len(calls) == 1


@pytest.mark.parametrize(("mechanism", "sequential"), [(as_dataclass, True), (frames, False)])
def test_events_and_files_have_the_names_with_any_workers(mechanism, sequential, tmp_path):
    options = {"claim": dp.PureDP(1.0), "runs": 200, "alpha": 1e-6, "bits": False, "sequential": sequential}
    result, other = (dp.check(mechanism, 0.0, 4.0, jobs=jobs, **options) for jobs in (1, 2))
    assert result == other
    assert result.is_refuted
    assert "mean_age" in result.event_in_words
    dp.save(result, tmp_path / "result.json")
    read = dp.load(tmp_path / "result.json").entries[0].result
    assert (read.event, read.event_in_words) == (result.event, result.event_in_words)


def test_warnings_and_cells_have_the_names():
    result = dp.check(frames, 0.0, 1.0, claim=dp.PureDP(1.0), runs=1_000, cells=4, jobs=1, alpha=1e-6)
    assert "of mean_age" in str(result.low_bits)
    cells = dp.count_cells(named_column, 0.0, 1.0, cells=4, runs=400, jobs=1)
    assert cells.names[0].startswith("mean_age in ")


def test_a_record_of_another_form_is_another_outcome():
    def mostly(answer, rng):
        return (Failure if answer and rng.random() < 0.3 else Stats)(*noise(0.0, rng))

    result = dp.check(mostly, 0, 1, claim=dp.PureDP(1.0), runs=800, jobs=1, alpha=1e-6, bits=False)
    assert result.is_refuted
    assert "a record with other parts" in result.event_in_words or "class" in result.event_in_words


@pytest.mark.parametrize(
    ("usual", "rare", "n_outcomes"),
    [
        ({"a": 0.5}, 0.5, 2), ({"a": 0.5, "b": 1}, (0.5, 1.0), 2), ({1: 0.5, 2: 0.5}, {"1": 0.5, "2": 0.5}, 2),
        ({"a": {"b": 0.5, "c": 1}}, {"a.b": 0.5, "a.c": 1}, 2),
        ({"a": np.array([0.5, 0.5])}, {"a[0]": 0.5, "a[1]": 0.5}, 2), ({"a": 0.5, "b": 1}, {"b": 1, "a": 0.5}, 1),
    ],
)  # fmt: skip
def test_a_rare_output_of_another_form_is_another_outcome_but_not_in_another_order(usual, rare, n_outcomes, rng):
    outputs = [usual, rare]
    single = replace(as_sampler(lambda _, rng: outputs[rng.integers(2)]), form=form_of([usual]))
    block = replace(as_sampler(lambda _, size: [*outputs] * (size // 2)), form=form_of([usual]))
    for sampler in (single, block):
        assert len(tally(sampler.draw(None, 40, rng))[0]) == n_outcomes


def of_a_set(answer, rng):
    return {key: answer + rng.laplace() for key in {"apple", "pear"}}


def test_the_order_of_a_set_is_no_outcome_of_workers():
    one, two = (dp.check(of_a_set, 0.0, 0.0, claim=dp.PureDP(0.1), runs=400, jobs=jobs, bits=False) for jobs in (1, 2))
    assert not two.is_refuted
    assert one.counts.runs_x == two.counts.runs_x


def columns_of_rows(rows, size, rng):
    return pd.DataFrame({f"c{row}": rng.laplace(size=size) for row in sorted(set(rows))})


def test_a_search_finds_columns_that_depend_on_the_data():
    pairs = [([1, 1], [1, 1, 1]), ([1, 1], [1, 1, 2])]
    found = dp.find_worst_pair(columns_of_rows, pairs, claim=dp.PureDP(1.0), runs=400, search_runs=800, jobs=1)
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

    options = {"claim": dp.PureDP(1.0), "runs": 600, "jobs": 1, "bits": False}
    assert dp.check(named, 0, 1, **options).is_refuted
    assert dp.check(labelled, 1, 2, **options).is_refuted
    assert not dp.check(reordered, 0, 1, **options).is_refuted


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        (
            named_column,
            lambda answer, size, rng: named_column(answer, size, rng).rename("count"),
            Equivalence.DIFFERENT,
        ),
        (lambda _, rng: {1: rng.laplace()}, lambda _, rng: {"1": rng.laplace()}, Equivalence.DIFFERENT),
        (frames, lambda answer, size, rng: frames(answer, size, rng)[["n", "mean_age"]], Equivalence.SHOWN),
        (as_labels, frames, Equivalence.SHOWN),
    ],
)
def test_versions_are_compared_by_the_names_of_columns(old, new, verdict):
    assert dp.check_equivalence(old, new, 0.0, margin=0.8, runs=800, jobs=1).verdict is verdict


@pytest.mark.parametrize("make", [frames, lists_of_dictionaries, structured])
def test_outputs_drawn_elsewhere_are_compared_by_name(make, rng):
    options = {"claim": dp.PureDP(1.0), "alpha": 1e-6, "bits": False}
    result = dp.check_outputs(make(0.0, 1_000, rng), make(4.0, 1_000, rng), **options)
    assert result.is_refuted
    assert "mean_age" in result.event_in_words
    both = frames(0.0, 1_000, rng)
    assert not dp.check_outputs(both[:500], both[500:][["n", "mean_age"]], **options).is_refuted


@dataclass(frozen=True)
class Described:
    mean_age: float
    note: str


def told(answer, rng):
    return Described(answer + rng.laplace(), "the answer" if answer else "none")


def stats(answer, rng):
    if rng.random() < 0.1:
        raise ValueError
    return told(answer, rng)


def frame(answer, size, rng):
    return pd.DataFrame({"mean_age": answer + rng.laplace(size=size), "told": np.full(size, answer)})


def matrix(answer, size, rng):
    return frame(answer, size, rng).to_numpy()


def larger(output):
    return max(output.mean_age, 0.0)


def ages(block):
    return block["mean_age"]


OPTIONS = {"claim": dp.PureDP(1.0), "runs": 200, "alpha": 1e-6, "bits": False}


@pytest.mark.parametrize(
    ("mechanism", "output", "jobs", "name"),
    [
        (stats, "mean_age", 2, "mean_age"), (stats, larger, 1, ""), (frame, "mean_age", 1, "mean_age"),
        (frame, 0, 1, "mean_age"), (matrix, 0, 1, "output[0]"), (frame, ages, 1, "mean_age"),
    ],
)  # fmt: skip
def test_only_the_part_is_audited_under_its_name(mechanism, output, jobs, name):
    """The other part tells the dataset at once; exceptions stay outcomes."""
    assert output == 0 or callable(output) or dp.check(mechanism, 0.0, 1.0, **OPTIONS).is_refuted
    result = dp.check(mechanism, 0.0, 1.0, output=output, jobs=jobs, **OPTIONS)
    assert not result.is_refuted
    assert any("ValueError was raised" in note for note in result.notes) == (mechanism is stats)
    assert name in result.event_in_words
    assert "coordinate" not in result.event_in_words


def test_a_search_and_outputs_drawn_elsewhere(rng):
    found = dp.find_worst_pair(stats, [(0.0, 1.0), (0.0, 9.0)], output="mean_age", search_runs=400, jobs=1, **OPTIONS)
    assert found.audit.is_refuted
    assert "mean_age" in found.audit.event_in_words
    options = {"claim": dp.PureDP(1.0), "alpha": 1e-6, "bits": False}
    drawn = frame(0.0, 1_000, rng), frame(1.0, 1_000, rng)
    assert dp.check_outputs(*drawn, **options).is_refuted
    assert not dp.check_outputs(*drawn, output="mean_age", **options).is_refuted
    assert not dp.check_outputs(*([[*map(tuple, each.to_numpy())] for each in drawn]), output=0, **options).is_refuted


def test_versions_are_compared_by_a_part():
    def wider(answer, size, rng):
        return frame(answer, size, rng).assign(mean_age=answer + 2 * rng.laplace(size=size))

    def same_mean(answer, size, rng):
        return frame(answer, size, rng).assign(told=rng.random(size))

    options = {"output": "mean_age", "runs": 1_000, "jobs": 1}
    assert dp.check_same_distribution(frame, wider, 0, **options).is_refuted
    assert not dp.check_same_distribution(frame, same_mean, 0, **options).is_refuted, "only another part differs"
    result = dp.check_equivalence(frame, wider, 0, margin=0.02, **(options | {"output": ages}))
    assert result.verdict is Equivalence.DIFFERENT
    assert ", output " in result.new


@pytest.mark.parametrize("mechanism", [told, frame])
def test_the_noise_of_a_part_is_checked(mechanism):
    part = {"output": "mean_age", "runs": 2_000, "jobs": 1}
    result = dp.check_noise(mechanism, 3.0, noise=dp.LaplaceNoise(1.0), answer=3.0, **part)
    assert not result.is_refuted
    assert 'output "mean_age" adds independent' in result.statement
    assert dp.check_noise(mechanism, 3.0, noise=dp.LaplaceNoise(2.0), answer=3.0, **part).is_refuted
    counts = dp.count_cells(mechanism, 0, 3.0, cells=4, **part)
    assert 1.0 < counts.maximum().lower < 3.0


@pytest.mark.parametrize(
    ("mechanism", "output"),
    [(frame, "median"), (lambda answer, rng: (answer, rng.laplace()), "count"), (lambda answer: (answer, 1), "index")],
)
def test_a_part_that_an_output_lacks_is_an_error_and_methods_are_no_parts(mechanism, output):
    with pytest.raises(MechanismError, match=f"output='{output}' is not a part of an output of"):
        dp.check(mechanism, 0.0, 1.0, output=output, jobs=1, **OPTIONS)


def test_the_part_belongs_to_the_identity_of_the_mechanism(tmp_path):
    hashes = {code_of(picked(stats, output)) for output in (None, "mean_age", "note", 0, larger, lambda output: 0)}
    assert len(hashes) == 6
    assert picked(stats, None) == as_sampler(stats)
    whole = dp.check(frame, 0.0, 1.0, store=tmp_path, jobs=1, **OPTIONS)
    results = [
        dp.check(frame, 0.0, 1.0, output=output, store=tmp_path, jobs=1, **OPTIONS) for output in ("mean_age", 0, ages)
    ]
    names = ['frame, output "mean_age"', "frame, output 0", "frame, output by ages"]
    assert [result.mechanism for result in results] == names
    assert len({result.provenance.fingerprint for result in [whole, *results]}) == 4
    assert picked(as_sampler(frame, "mine"), lambda block: block["mean_age"]).name == "mine, output by <lambda>"


def test_state_of_a_function_that_picks_is_seen():
    seen = []

    def counting(output):
        seen.append(1)
        return output.mean_age

    assert plan_blocks(picked(told, counting), 0.0, 1.0, 0, 1).is_stateful
    assert not plan_blocks(picked(told, larger), 0.0, 1.0, 0, 1).is_stateful


class Stop(BaseException):
    """Not an `Exception`, like exceptions by which frameworks end a program."""


def stops_with(error, dataset, rng):
    if rng.random() < 0.01:
        raise error
    return dataset + rng.laplace()


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


def test_wide_vectors_take_no_more_than_their_first_coordinates_for_low_bits(rng):
    """All coordinates of a block would take gigabytes."""
    x, y = rng.laplace(size=(2, 8, 6_000))
    first, whole = (len(list(bit_columns(x[:, :width], y[:, :width]))) for width in (64, 6_000))
    assert first == whole > 0


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
