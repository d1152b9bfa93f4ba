"""For any `numpy.seterr` the library computes as usual, and in one thread; the mechanism has the user's settings."""

import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import dpaudit
from dpaudit import AddRemove, PureDP, Rows
from dpaudit.audit.floating_point_errors import in_one_thread

SETTINGS = {"runs": 500, "seed": 1, "jobs": 1}


def noisy(dataset, rng):
    return dataset + rng.laplace()


def block(dataset, size, rng):
    return dataset + rng.normal(size=size)


def vectors(dataset, size, rng):
    return dataset + rng.laplace(size=(size, 3))


def count(rows, rng):
    return len(rows) + rng.laplace()


CLAIMS = [
    lambda: dpaudit.PureDP(1.0), lambda: dpaudit.ApproxDP(1.0, 1e-6), lambda: dpaudit.GaussianDP(1.0),
    lambda: dpaudit.RenyiDP(4.0, 1.0), lambda: dpaudit.ZeroConcentratedDP(0.5),
    lambda: dpaudit.PrivacyProfile([0.0, 1.0, 2.0], [0.4, 0.1, 0.0]),
    lambda: dpaudit.TradeOffCurve([0.0, 0.2, 1.0], [1.0, 0.4, 0.0]), lambda: dpaudit.ProbabilityPreservation(2.0, 0.3),
    lambda: dpaudit.NFoldComposition(0.1, 4),
]  # fmt: skip
PROCEDURES = {
    "outputs": lambda: dpaudit.check_outputs(
        np.random.default_rng(1).laplace(size=900), np.random.default_rng(2).laplace(1, size=900), claim=PureDP(1.0)
    ),
    "cells": lambda: dpaudit.count_cells(noisy, 0, 1, cells=8, **SETTINGS).maximum(),
    "search": lambda: dpaudit.find_worst_pair(
        count, Rows(low=0, high=1, most=3), adjacency=AddRemove(), claim=PureDP(1.0), runs=2_000, jobs=1, seed=1
    ),
    "versions": lambda: dpaudit.check_same_distribution(noisy, noisy, 0, **SETTINGS),
    "equivalence": lambda: dpaudit.check_equivalence(noisy, noisy, 0, margin=0.2, **SETTINGS),
    "bound": lambda: dpaudit.epsilon_lower(900, 1_000, 300, 1_000, alpha=0.05),
}


@pytest.mark.parametrize("number", range(len(CLAIMS)))
def test_an_audit_is_the_same(number):
    """Sequential for every other claim, and of fixed size with cells for the rest."""
    kind = {"sequential": True, "bits": False, "runs": 200} if number % 2 else {"cells": 8}
    plain = dpaudit.check(block, 0.0, 1.0, claim=CLAIMS[number](), **SETTINGS | kind)
    with np.errstate(all="raise"):
        guarded = dpaudit.check(block, 0.0, 1.0, claim=CLAIMS[number](), **SETTINGS | kind)
        assert np.geterr()["under"] == "raise"
        assert f"{guarded}\n{guarded!r}" == f"{plain}\n{plain!r}"
    assert guarded == plain


@pytest.mark.parametrize("name", PROCEDURES)
def test_procedures_run(name):
    plain = PROCEDURES[name]()
    with np.errstate(all="raise"):
        assert str(PROCEDURES[name]()) == str(plain)


def underflows(dataset, rng):
    return float(np.exp(np.float64(-800.0)) + rng.integers(2))


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_mechanism_runs_as_the_user_has_it(jobs):
    """The settings also apply in worker processes, although numpy does not transfer them."""
    settings = {**SETTINGS, "claim": PureDP(1.0), "jobs": jobs}
    assert not any("FloatingPointError" in note for note in dpaudit.check(underflows, 0, 1, **settings).notes)
    with np.errstate(under="raise"), pytest.raises(dpaudit.AuditError, match="FloatingPointError: underflow"):
        dpaudit.check(underflows, 0, 1, **settings)


def test_an_audit_within_a_mechanism_keeps_what_the_user_has():
    seen = []

    def inner(dataset, rng):
        seen.append(np.geterr()["over"])
        return dataset + rng.laplace()

    def outer(dataset, rng):
        if not seen:
            dpaudit.check(inner, 0, 1, claim=PureDP(1.0), runs=200, jobs=1, bits=False)
        return dataset + rng.laplace()

    with np.errstate(over="raise"):
        dpaudit.check(outer, 0, 1, claim=PureDP(1.0), **SETTINGS)
    assert set(seen) == {"raise"}


def by_zero(dataset, rng):
    np.float64(1.0) / np.float64(dataset)
    return rng.integers(2)


@pytest.mark.parametrize("answer", ["call", "log", "print"])
def test_what_only_reports_changes_no_output(answer):
    """A callback is not sent to other processes and threads; numpy would then raise, on one dataset alone."""
    plain, *others = (in_workers(by_zero, *each) for each in ((1, "ignore"), (1, answer), (2, answer)))
    assert all(other == plain for other in others)


def in_workers(mechanism, jobs, answer):
    before = np.seterrcall(lambda kind, flag: None) if answer != "log" else np.seterrcall(Log())
    try:
        with np.errstate(divide=answer):
            return dpaudit.check(mechanism, 1.0, 0.0, claim=PureDP(1.0), runs=2_000, seed=1, jobs=jobs)
    finally:
        np.seterrcall(before)


class Log:
    def write(self, text):
        pass


def _threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_linear_algebra_of_the_library_has_one_thread_and_that_of_others_keeps_theirs():
    with threadpool_limits(2):
        before = _threads()
        assert in_one_thread(_threads)() == {1}
        assert _threads() == before


def test_threads_that_overlap_leave_the_number_of_threads_as_it_was():
    with threadpool_limits(2):
        before, wait = _threads(), in_one_thread(lambda seconds: time.sleep(seconds))
        threads = [threading.Thread(target=wait, args=(seconds,)) for seconds in (0.1, 0.2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert _threads() == before
