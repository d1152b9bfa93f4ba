"""Audits of a part of each output."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from dpaudit import (
    LaplaceNoise,
    PureDP,
    check,
    check_equivalence,
    check_noise,
    check_outputs,
    check_same_distribution,
    count_cells,
    find_worst_pair,
)
from dpaudit.audit.errors import MechanismError
from dpaudit.audit.results.equivalence_result import Equivalence
from dpaudit.audit.sampling.draw import plan_blocks
from dpaudit.audit.sampling.sampler import as_sampler, picked
from dpaudit.audit.store.store_settings import code_of

pytestmark = pytest.mark.usefixtures("learned_seldom", "without_trees")


@dataclass(frozen=True)
class Stats:
    mean_age: float
    note: str


def stats(answer, rng):
    if rng.random() < 0.1:
        raise ValueError
    return Stats(answer + rng.laplace(), "the answer" if answer else "none")


def frame(answer, size, rng):
    return pd.DataFrame({"mean_age": answer + rng.laplace(size=size), "told": np.full(size, answer)})


def told(answer, rng):
    return Stats(answer + rng.laplace(), "the answer" if answer else "none")


def twice(answer, rng):
    return Stats(answer + 2 * rng.laplace(), "none")


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


OPTIONS = {"claim": PureDP(1.0), "runs": 400, "alpha": 1e-6, "bits": False}


@pytest.mark.parametrize(
    ("mechanism", "output"),
    [
        (stats, "mean_age"),
        (stats, larger),
        (frame, "mean_age"),
        (frame, 0),
        (matrix, 0),
        (frame, lambda f: f["mean_age"]),
    ],
)
def test_only_the_part_is_audited(mechanism, output):
    """The other part tells the dataset at once; exceptions stay outcomes."""
    assert check(mechanism, 0.0, 1.0, **OPTIONS).is_refuted
    for jobs in (1, 2):
        result = check(mechanism, 0.0, 1.0, output=output, jobs=jobs, **OPTIONS)
        assert not result.is_refuted
        told = [note for note in result.notes if "ValueError was raised" in note]
        assert bool(told) == (mechanism is stats)


@pytest.mark.parametrize(("mechanism", "output"), [(stats, "mean_age"), (frame, "mean_age"), (matrix, 0)])
def test_the_event_has_the_name_of_the_part(mechanism, output):
    result = check(mechanism, 0.0, 9.0, output=output, jobs=1, **OPTIONS)
    assert ("mean_age" if output else "output[0]") in result.event_in_words
    assert "coordinate" not in result.event_in_words


def test_a_search_and_outputs_drawn_elsewhere():
    found = find_worst_pair(stats, [(0.0, 1.0), (0.0, 9.0)], output="mean_age", search_runs=400, jobs=1, **OPTIONS)
    assert found.audit.is_refuted
    assert "mean_age" in found.audit.event_in_words
    rng = np.random.default_rng(1)
    options = {"claim": PureDP(1.0), "alpha": 1e-6, "bits": False}
    drawn = frame(0.0, 1_000, rng), frame(1.0, 1_000, rng)
    assert check_outputs(*drawn, **options).is_refuted
    assert not check_outputs(*drawn, output="mean_age", **options).is_refuted
    assert not check_outputs(*([[*map(tuple, each.to_numpy())] for each in drawn]), output=0, **options).is_refuted


@pytest.mark.parametrize(("old", "new"), [(stats, twice), (frame, doubled), (stats, doubled)])
@pytest.mark.parametrize("output", ["mean_age", mean_of])
def test_versions_are_compared_by_a_part(old, new, output):
    options = {"output": output, "runs": 1_000, "jobs": 1}
    assert check_same_distribution(old, new, 0, **options).is_refuted
    result = check_equivalence(old, new, 0, margin=0.02, **options)
    assert result.verdict is Equivalence.DIFFERENT
    assert "new version" in result.new
    assert ", output " in result.new
    assert not check_same_distribution(frame, same_mean, 0, **options).is_refuted, "only another part differs"


@pytest.mark.parametrize("mechanism", [told, frame])
def test_the_noise_of_a_part_is_checked(mechanism):
    part = {"output": "mean_age", "runs": 2_000, "jobs": 1}
    result = check_noise(mechanism, 3.0, noise=LaplaceNoise(1.0), answer=3.0, **part)
    assert not result.is_refuted
    assert 'output "mean_age" adds independent' in result.statement
    assert check_noise(mechanism, 3.0, noise=LaplaceNoise(2.0), answer=3.0, **part).is_refuted
    counts = count_cells(mechanism, 0, 3.0, cells=4, **part)
    assert 1.0 < counts.maximum().lower < 3.0


def test_a_part_that_an_output_lacks_is_an_error():
    with pytest.raises(
        MechanismError, match="output='median' is not a part of an output of frame with the parts mean_age"
    ):
        check(frame, 0.0, 1.0, output="median", jobs=1, **OPTIONS)


def test_the_part_belongs_to_the_identity_of_the_mechanism(tmp_path):
    hashes = {code_of(picked(stats, output)) for output in (None, "mean_age", "note", 0, larger, lambda output: 0)}
    assert len(hashes) == 6
    assert picked(stats, None) == as_sampler(stats)
    whole = check(frame, 0.0, 1.0, store=tmp_path, jobs=1, **OPTIONS)
    results = [
        check(frame, 0.0, 1.0, output=output, store=tmp_path, jobs=1, **OPTIONS) for output in ("mean_age", 0, ages)
    ]
    said = ['frame, output "mean_age"', "frame, output 0", "frame, output by ages"]
    assert [result.mechanism for result in results] == said
    assert len({result.provenance.fingerprint for result in [whole, *results]}) == 4
    named = check(frame, 0.0, 1.0, output=lambda block: block["mean_age"], name="mine", jobs=1, **OPTIONS)
    assert named.mechanism == "mine, output by <lambda>"


def test_methods_are_no_parts():
    for output in ("count", "index"):
        with pytest.raises(MechanismError, match="is not a part"):
            check(lambda answer, rng: (answer, rng.laplace()), 0, 1, output=output, jobs=1, **OPTIONS)


def test_state_of_a_function_that_picks_is_seen():
    seen = []

    def counting(output):
        seen.append(1)
        return output.mean_age

    def right(answer, rng):
        return Stats(answer + rng.laplace(), "")

    assert plan_blocks(picked(right, counting), 0.0, 1.0, 0, 1).is_stateful
    assert not plan_blocks(picked(right, larger), 0.0, 1.0, 0, 1).is_stateful
