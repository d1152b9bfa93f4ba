"""Clients of local differential privacy: their claims are read, their draws repeat, and leaks of order are found."""

from __future__ import annotations

import functools
import math
import random
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from dpaudit import Local, PureDP, check
from dpaudit.audit.errors import ClaimError, DatasetError, MechanismError
from dpaudit.mechanisms.adapters import flat_report, from_ldp
from dpaudit.mechanisms.adapters import global_generators as generators


class Response:
    """Randomised response on k values, drawn from the global generators of Python and numpy in turn."""

    def __init__(self, epsilon, k=3):
        self.epsilon, self.k = epsilon, k

    def privatise(self, value):
        if random.random() < math.exp(self.epsilon) / (math.exp(self.epsilon) + self.k - 1):
            return value
        return (value + 1 + int(np.random.randint(self.k - 1))) % self.k  # noqa: NPY002


def two_values(value, k, epsilon):
    """Subset selection of two values of k, the kept one first: at least 1 of them is shown to be true."""
    keep = 2 * math.exp(epsilon) / (2 * math.exp(epsilon) + k - 2)
    others = [other for other in range(k) if other != value]
    return np.array([value, random.choice(others)] if random.random() < keep else random.sample(others, 2))


def test_claims_are_read_from_objects_and_from_named_parameters():
    made = from_ldp(Response(0.5))
    assert (made.claim, made.claim_source, made.adjacency) == (PureDP(0.5), "epsilon of Response", Local())
    assert from_ldp(functools.partial(two_values, k=4, epsilon=2.0)).claim == PureDP(2.0)
    longitudinal = functools.partial(two_values, k=4, eps_perm=2.0, eps_1=1.0)
    assert from_ldp(longitudinal).claim == PureDP(1.0)  # of one report
    assert from_ldp(longitudinal).claim_source == "eps_1 of two_values"
    assert from_ldp(two_values, claim=PureDP(3.0)).claim == PureDP(3.0)
    assert str(from_ldp(longitudinal)) == "two_values"


def test_a_value_outside_the_stated_domain_is_an_error_and_no_output():
    client = Response(1.0)
    client.d, client.index_mapper = 3, lambda value: value - 1
    rng = np.random.default_rng(0)
    for value, mechanism, values in (
        (0, from_ldp(client), "1 to 3"),
        (4, from_ldp(client), "1 to 3"),
        (4, from_ldp(functools.partial(two_values, k=4, epsilon=1.0)), "0 to 3"),
    ):
        with pytest.raises(DatasetError, match=f"value {value} is outside the domain of .*; its values are {values}"):
            mechanism.sample(value, 2, rng)
    assert len(from_ldp(client).sample(3, 2, rng)) == 2


def test_what_states_no_claim_or_makes_no_report_is_an_error():
    with pytest.raises(ClaimError, match="Response states none of epsilon, eps_1, eps_perm"):
        from_ldp(Response(None))
    with pytest.raises(ClaimError, match="two_values states none"):
        from_ldp(functools.partial(two_values, k=4))
    with pytest.raises(MechanismError, match="cannot be called"):
        from_ldp(3)


def test_draws_follow_the_seed_and_leave_the_global_generators_where_they_were():
    made = from_ldp(Response(1.0))
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    expected = random.random(), np.random.random()  # noqa: NPY002
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    first = made.sample(0, 50, np.random.default_rng(5))
    assert (random.random(), np.random.random()) == expected  # noqa: NPY002
    assert made.sample(0, 50, np.random.default_rng(5)) == first
    assert made.sample(0, 50, np.random.default_rng(6)) != first


def test_other_threads_draw_from_the_global_generators_while_a_block_is_drawn():
    begun, is_over = threading.Event(), threading.Event()

    def slowly(value):
        begun.set()
        is_over.wait(10.0)
        return random.random(), np.random.random()  # noqa: NPY002

    made, found = from_ldp(slowly, claim=PureDP(1.0)), []
    threads = [
        threading.Thread(target=lambda: found.append(made.sample(0, 2, np.random.default_rng(5)))) for _ in range(2)
    ]
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    functions = random.random, np.random.random
    for thread in threads:
        thread.start()
    assert begun.wait(10.0)
    drawn = random.random(), np.random.random(), np.random.mtrand._rand.normal()  # noqa: NPY002
    is_over.set()
    for thread in threads:
        thread.join()
    numpy = np.random.RandomState(1)
    assert drawn == (random.Random(1).random(), numpy.random(), numpy.normal())
    assert found[0] == found[1] != drawn
    assert (random.random, np.random.random) == functions
    assert type(np.random.mtrand._rand) is np.random.RandomState


def test_compiled_functions_are_seeded_too(monkeypatch):
    seeds = []
    monkeypatch.setitem(sys.modules, "numba", SimpleNamespace(njit=lambda function: seeds.append))
    generators._numba_seed.cache_clear()
    try:
        for seed in (5, 5, 6):
            with generators.generators_of_body(np.random.default_rng(seed)):
                pass
    finally:
        generators._numba_seed.cache_clear()
    of_bodies, afterwards = seeds[::2], seeds[1::2]
    assert of_bodies[0] == of_bodies[1] != of_bodies[2]
    assert len({*afterwards, *of_bodies}) == 5, "what follows is not foretold by the seed"


def test_reports_are_one_tuple_in_which_iterators_are_not_lists():
    assert flat_report((np.array([1, 0]), 3)) == (1, 0, 3)
    assert flat_report([(1, -1), (2, 1)]) == (1, -1, 2, 1)
    assert flat_report(zip((1, 2), (-1, 1), strict=True)) == ("zip", 1, -1, 2, 1)
    assert flat_report((np.int64(4), 7)) == (4, 7)
    assert flat_report("word") == "word"


def test_an_exception_is_an_output_and_a_wrong_kind_of_value_is_an_error():
    def of_numbers(value):
        if value < 0:
            raise ValueError
        return value

    made = from_ldp(of_numbers, claim=PureDP(1.0))
    (output,) = made.sample(-1, 1, np.random.default_rng(0))
    assert output.exception == "ValueError"
    with pytest.raises(TypeError):
        made.sample("a", 1, np.random.default_rng(0))


def test_a_right_client_is_not_refuted():
    # Alpha 1e-6 is the false-alarm rate.
    result = check(from_ldp(Response(1.0)), 0, 1, runs=1_500, alpha=1e-6, seed=0, jobs=1)
    assert not result.is_refuted
    assert result.is_replayable


def test_a_kept_value_in_the_first_place_is_found_and_a_sorted_subset_is_right():
    client = functools.partial(two_values, k=6, epsilon=1.0)
    options = {"runs": 1_500, "alpha": 1e-6, "seed": 0, "jobs": 1}
    as_returned = from_ldp(client, release=lambda held, value: str(held(value).tolist()))
    assert check(as_returned, 0, 1, **options).is_refuted
    in_order = from_ldp(client, release=lambda held, value: str(sorted(held(value).tolist())))
    assert not check(in_order, 0, 1, **options).is_refuted
