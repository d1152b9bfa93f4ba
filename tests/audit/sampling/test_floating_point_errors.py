"""For any `numpy.seterr` the library computes as usual, and in one thread; the mechanism has the user's settings."""

import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import dpaudit
from dpaudit import PureDP
from dpaudit.audit.floating_point_errors import in_one_thread

SETTINGS = {"runs": 200, "seed": 1, "jobs": 1}


def block(dataset, size, rng):
    return dataset + rng.normal(size=size)


@pytest.mark.parametrize(
    "kind",
    [
        {"sequential": True, "claim": dpaudit.RenyiDP(4.0, 1.0)},
        {"bins": 8, "claim": dpaudit.GaussianDP(1.0)},
        {"claim": PureDP(0.1)},  # refuted, so that the comparison is the first to read the detectable excess
    ],
)
def test_an_audit_is_the_same(kind):
    options = SETTINGS | {"runs": 200} | kind
    plain = dpaudit.check(block, 0.0, 1.0, **options)
    with np.errstate(all="raise"):
        guarded = dpaudit.check(block, 0.0, 1.0, **options)
        assert np.geterr()["under"] == "raise"
        assert f"{guarded}\n{guarded!r}" == f"{plain}\n{plain!r}"
        assert guarded == plain


def test_an_exact_audit_says_the_same():
    result = dpaudit.check(lambda x, rng: x + int(rng.integers(4)), 0, 1, claim=1.0, exact=True)
    with np.errstate(all="raise"):
        shown = f"{result}\n{result!r}\n{result.to_dict()}"
    assert shown.startswith("REFUTED")


def underflows(dataset, rng):
    return float(np.exp(np.float64(-800.0)) + rng.integers(2))


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_mechanism_runs_as_the_user_has_it(jobs):
    """The settings also apply in worker processes, although numpy does not transfer them."""
    settings = {**SETTINGS, "claim": PureDP(1.0), "jobs": jobs}
    assert not any("FloatingPointError" in note for note in dpaudit.check(underflows, 0, 1, **settings).notes)
    with np.errstate(under="raise"), pytest.raises(dpaudit.AuditError, match="FloatingPointError: underflow"):
        dpaudit.check(underflows, 0, 1, **settings)


def test_what_only_reports_changes_no_output():
    """A callback is not sent to other processes and threads; numpy would then raise, on one dataset alone."""

    def by_zero(dataset, rng):
        np.float64(1.0) / np.float64(dataset)
        return rng.integers(2)

    options = {"claim": PureDP(1.0), "runs": 400, "seed": 1}
    with np.errstate(divide="ignore"):
        plain = dpaudit.check(by_zero, 1.0, 0.0, jobs=1, **options)
    before = np.seterrcall(lambda kind, flag: None)
    try:
        with np.errstate(divide="call"):
            assert dpaudit.check(by_zero, 1.0, 0.0, jobs=2, **options) == plain
    finally:
        np.seterrcall(before)


def _threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_linear_algebra_of_the_library_has_one_thread_and_that_of_others_keeps_theirs():
    """Also if threads of the library overlap."""
    with threadpool_limits(2):
        before, wait = _threads(), in_one_thread(lambda seconds: time.sleep(seconds))
        assert in_one_thread(_threads)() == {1}
        assert _threads() == before

        threads = [threading.Thread(target=wait, args=(seconds,)) for seconds in (0.1, 0.2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert _threads() == before
