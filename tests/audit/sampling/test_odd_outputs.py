"""Unusual outputs and exceptions are refused or audited without a traceback."""

from __future__ import annotations

from functools import partial

import joblib
import numpy as np
import pytest

from dpaudit import PureDP, check, load, save
from dpaudit.audit.errors import MechanismError, StoreError
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.sampling.output_hashes import hashed_keys


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
        check(stops, 0, 1, claim=PureDP(1.0), runs=4_000, seed=1, jobs=2)
    with pytest.raises(error):
        check(stops, 0, 1, claim=PureDP(1.0), runs=4_000, seed=1, jobs=1)


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
        check(lambda dataset, rng: made(), 0, 1, claim=PureDP(1.0), runs=400, jobs=1)


def test_an_exception_without_a_text_has_its_type():
    def raises(dataset, size, rng):
        raise UnprintableError

    with pytest.raises(MechanismError, match="raises raised UnprintableError while drawing"):
        check(raises, 0, 1, claim=PureDP(1.0), runs=400, jobs=1)


def test_numbers_of_thousands_of_digits_are_outputs(tmp_path):
    result = check(huge, 0, 1, claim=PureDP(1.0), runs=400, jobs=1)
    assert result.findings == ()
    save(result, tmp_path / "result.json")
    assert load(tmp_path / "result.json").entries[0].result.verdict is result.verdict
    with pytest.raises(StoreError, match="store"):
        check(huge, 0, 1, claim=PureDP(1.0), runs=400, jobs=1, store=tmp_path / "store")


def huge(dataset, rng):
    return 10**5_000 + int(rng.integers(2))


def test_a_rare_output_of_another_kind_repeats():
    """Blocks with and without the rare output are arrays of different types."""

    def rare(dataset, rng):
        return None if rng.random() < 0.01 else dataset + rng.laplace()

    results = [check(rare, 0, 1, claim=PureDP(1.0), runs=4_000, seed=seed, jobs=1) for seed in range(2)]
    assert all(result.is_replayable for result in results)


@pytest.mark.usefixtures("without_trees")
def test_wide_vectors_take_no_more_than_their_first_coordinates_for_low_bits():
    def wide(dataset, size, rng):
        return dataset + rng.laplace(size=(size, 6_000))

    result = check(wide, 0.0, 1.0, claim=PureDP(1.0), runs=64, jobs=1)  # all coordinates would take gigabytes
    assert result.is_refuted


@pytest.mark.usefixtures("without_trees")
def test_blocks_of_tuples_may_all_have_one_length():
    """A block in which all do is a matrix, the others are objects."""

    def listed(dataset, size, rng):
        return [(1.0,) if short else (1.0, 2.0) for short in rng.random(size) < (0.08 if dataset else 0.02)]

    assert check(listed, 1, 0, claim=PureDP(0.3), runs=4_000, jobs=1).is_refuted


def test_a_tuple_of_numbers_has_one_key_in_blocks_of_any_kind():
    """Else one outcome counts as two, and equal blocks look rarer than they are."""
    pair = (1.0, 2.0)
    alike, mixed = as_outputs([pair, pair], 2, "m"), as_outputs([pair, None], 2, "m")
    assert (alike.dtype, mixed.dtype) == (np.float64, object)
    assert hashed_keys(alike)[0] == hashed_keys(mixed)[0]
