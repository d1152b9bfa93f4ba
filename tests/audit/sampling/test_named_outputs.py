"""Audits of outputs with named parts, of a part of each output, and of unusual outputs."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

import dpaudit as dp
from dpaudit.audit.errors import MechanismError, StoreError
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.sampling.output_hashes import hashed_keys
from dpaudit.audit.sampling.sampler import as_sampler, picked
from dpaudit.audit.store.store_settings import code_of


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@dataclass(frozen=True)
class Stats:
    mean_age: float
    n: float


def noise(answer, rng, size=None):
    return answer + rng.laplace(size=size), rng.laplace(size=size)


def columns(answer, rng, size=None):
    return dict(zip(("mean_age", "n"), noise(answer, rng, size), strict=True))


def as_dataclass(answer, rng):
    return Stats(*noise(answer, rng))


def frames(answer, size, rng):
    return pd.DataFrame(columns(answer, rng, size))


def structured(answer, size, rng):
    drawn = np.empty(size, dtype=[("mean_age", "f8"), ("n", "f8")])
    drawn["mean_age"], drawn["n"] = noise(answer, rng, size)
    return drawn


def named_column(answer, size, rng):
    return pd.Series(noise(answer, rng, size)[0], name="mean_age")


OPTIONS = {"claim": dp.PureDP(1.0), "alpha": 1e-6, "floating_point": "ignore"}
FEW = OPTIONS | {"runs": 200}


def test_events_and_files_have_the_names_with_any_workers(tmp_path):
    result, other = (dp.check(as_dataclass, 0.0, 4.0, jobs=jobs, **FEW) for jobs in (1, 2))
    assert result == other
    assert result.is_refuted
    assert "mean_age" in result.event_in_words
    dp.save(result, tmp_path / "result.json")
    read = dp.load(tmp_path / "result.json").entries[0].result
    assert (read.event, read.event_in_words) == (result.event, result.event_in_words)


def test_blocks_are_compared_by_the_names_of_columns():
    def named(answer, size, rng):
        return {"count" if answer else "mean": rng.laplace(size=size)}

    def reordered(answer, size, rng):
        drawn = {"a": rng.laplace(size=size), "b": 5 + rng.laplace(size=size)}
        return pd.DataFrame({key: drawn[key] for key in ("ba" if answer else "ab")})

    def labelled(answer, size, rng):
        return pd.DataFrame({"a": rng.laplace(size=size)}, index=[answer] * size)

    options = {"claim": dp.PureDP(1.0), "runs": 600, "jobs": 1, "floating_point": "ignore"}
    assert dp.check(named, 0, 1, **options).is_refuted
    assert dp.check(labelled, 1, 2, **options).is_refuted
    assert not dp.check(reordered, 0, 1, **options).is_refuted


def test_outputs_drawn_elsewhere_are_compared_by_name(rng):
    result = dp.check_outputs(structured(0.0, 400, rng), structured(4.0, 400, rng), **OPTIONS)
    assert result.is_refuted
    assert "mean_age" in result.event_in_words
    both = frames(0.0, 400, rng)
    assert not dp.check_outputs(both[:200], both[200:][["n", "mean_age"]], **OPTIONS).is_refuted


@dataclass(frozen=True)
class Described:
    mean_age: float
    note: str


def told(answer, rng):
    return Described(answer + rng.laplace(), "the answer" if answer else "none")


def frame(answer, size, rng):
    return pd.DataFrame({"mean_age": answer + rng.laplace(size=size), "told": np.full(size, answer)})


def ages(block):
    return block["mean_age"]


@pytest.mark.parametrize(("mechanism", "output", "jobs"), [(told, "mean_age", 2), (frame, 0, 1), (frame, ages, 1)])
def test_only_the_part_is_audited_under_its_name(mechanism, output, jobs):
    """The other part tells the dataset at once."""
    result = dp.check(mechanism, 0.0, 1.0, output=output, jobs=jobs, **FEW)
    assert not result.is_refuted
    assert "mean_age" in result.event_in_words


def test_every_procedure_audits_the_part(rng):
    found = dp.find_worst_pair(told, [(0.0, 1.0), (0.0, 9.0)], output="mean_age", search_runs=400, jobs=1, **FEW)
    assert found.audit.is_refuted

    def other(answer, size, rng):
        return frame(answer, size, rng).assign(told=rng.random(size))

    few = {"runs": 400, "jobs": 1}
    assert not dp.check_equivalence(frame, other, 0, output="mean_age", **few).is_refuted, "only another part differs"
    assert ", output " in dp.check_equivalence(frame, frame, 0, margin=0.9, output=ages, **few).new
    drawn = frame(0.0, 400, rng), frame(1.0, 400, rng)
    assert dp.check_outputs(*drawn, **OPTIONS).is_refuted
    assert not dp.check_outputs(*drawn, output="mean_age", **OPTIONS).is_refuted
    assert not dp.check_outputs(*([[*map(tuple, each.to_numpy())] for each in drawn]), output=0, **OPTIONS).is_refuted
    part = {"output": "mean_age", "runs": 1_000, "jobs": 1}
    result = dp.check_noise(frame, 3.0, noise=dp.noise.LaplaceNoise(1.0), answer=3.0, **part)
    assert not result.is_refuted
    assert 'output "mean_age" adds independent' in result.statement
    assert 1.0 < dp.check(frame, 0, 3.0, claim=9.0, bins=4, **part).bins.maximum().lower < 3.0


def test_the_part_belongs_to_the_identity_of_the_mechanism(tmp_path):
    hashes = {code_of(picked(frame, output)) for output in (None, "mean_age", "told", 0, ages, lambda output: 0)}
    assert len(hashes) == 6
    assert picked(frame, None) == as_sampler(frame)
    whole = dp.check(frame, 0.0, 1.0, store=tmp_path, jobs=1, **FEW)
    results = [
        dp.check(frame, 0.0, 1.0, output=output, store=tmp_path, jobs=1, **FEW) for output in ("mean_age", 0, ages)
    ]
    names = ['frame, output "mean_age"', "frame, output 0", "frame, output by ages"]
    assert [result.mechanism for result in results] == names
    assert len({result.provenance.fingerprint for result in [whole, *results]}) == 4
    name = picked(as_sampler(frame, "mine"), lambda block: block["mean_age"]).name
    assert name.startswith("mine, output by lambda at test_named_outputs.py:")


class Stop(BaseException):
    """Not an `Exception`, like exceptions by which frameworks end a program."""


def test_an_exception_that_would_end_a_worker_is_named():
    """A worker receives no signal, so the mechanism raised it; this thread passes on what may be a key press."""

    def stops(dataset, rng):
        if rng.random() < 0.01:
            raise Stop
        return dataset + rng.laplace()

    named = pytest.raises(MechanismError, match=r"raised Stop and would end the audit.*in chunk \d+ of the pilot")
    for jobs, raised in ((2, named), (1, pytest.raises(Stop))):
        with raised:
            dp.check(stops, 0, 1, claim=dp.PureDP(1.0), runs=4_000, seed=1, jobs=jobs)


def test_numbers_of_thousands_of_digits_are_outputs(tmp_path):
    def huge(dataset, rng):
        return 10**5_000 + int(rng.integers(2))

    result = dp.check(huge, 0, 1, claim=dp.PureDP(1.0), runs=400, jobs=1)
    assert result.findings == ()
    dp.save(result, tmp_path / "result.json")
    assert dp.load(tmp_path / "result.json").entries[0].result.verdict is result.verdict
    with pytest.raises(StoreError, match="store"):
        dp.check(huge, 0, 1, claim=dp.PureDP(1.0), runs=400, jobs=1, store=tmp_path / "store")


def test_a_tuple_of_numbers_has_one_key_in_blocks_of_any_kind():
    """Else one outcome counts as two, and equal blocks look rarer than they are."""
    pair = (1.0, 2.0)
    alike, mixed = as_outputs([pair, pair], 2, "m"), as_outputs([pair, None], 2, "m")
    assert (alike.dtype, mixed.dtype) == (np.float64, object)
    assert hashed_keys(alike)[0] == hashed_keys(mixed)[0]


class Named:
    """Compares by its number and prints its origin too."""

    def __init__(self, number, origin):
        self.number, self.origin = number, origin

    def __eq__(self, other):
        return isinstance(other, Named) and self.number == other.number

    def __hash__(self):
        return hash(self.number)

    def __repr__(self):
        return f"Named({self.number}, {self.origin})"


def named_counts(rows, rng):
    return {Named(1, rows): rows + float(rng.laplace()), "zz": "t"} | ({"more": "t"} if rng.random() < 0.5 else {})


def test_keys_of_any_class_work_in_other_processes_and_files(tmp_path):
    result = dp.check(named_counts, 9, 0, claim=dp.PureDP(1.0), runs=200, jobs=2, floating_point="ignore")
    assert result.is_refuted
    dp.save(result, tmp_path / "result.json")
    assert dp.load(tmp_path / "result.json").entries[0].result.event_in_words == result.event_in_words
