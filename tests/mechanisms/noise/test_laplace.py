"""The Laplace mechanism."""

import math

import numpy as np
import pytest

from dpaudit.audit.claims.claim import PureDP
from dpaudit.audit.errors import DatasetError
from dpaudit.mechanisms import LaplaceLaw, LaplaceMechanism, exact_epsilon
from dpaudit.mechanisms.noise_samplers import grid_step


@pytest.mark.parametrize(("x", "y"), [(0, 3.0), (10.5, 7.5), (1, 1.5), (0, 0)])
def test_claim_holds_exactly_and_is_attained_at_the_sensitivity(x, y):
    mechanism = LaplaceMechanism(0.7, sensitivity=3.0)
    assert mechanism.claim == PureDP(0.7)
    assert exact_epsilon(mechanism.law(x), mechanism.law(y)) == pytest.approx(0.7 * abs(x - y) / 3, rel=1e-14)


def test_law_is_that_of_the_query_answer():
    assert LaplaceMechanism(0.5, query=len).law("abc") == LaplaceLaw(3.0, 2.0)


def test_outputs_for_every_answer_lie_on_one_grid():
    mechanism = LaplaceMechanism(0.3)
    for answer in (0, 1, 0.1, -1e6 / 3):
        steps = mechanism.sample(answer, 5000, np.random.default_rng(1)) / grid_step(mechanism.scale)
        assert np.array_equal(steps, np.rint(steps))


@pytest.mark.parametrize("answer", [math.nan, "many", [1.0, 2.0]])
def test_answers_that_are_no_numbers_are_refused(answer):
    with pytest.raises(DatasetError, match="which is not a finite number; use a query"):
        LaplaceMechanism(1).law(answer)


def test_an_answer_beyond_the_grid_is_refused():
    with pytest.raises(DatasetError, match=r"answer=1000000000000\.0 is too large for a double"):
        LaplaceMechanism(1).sample(1e12, 1, np.random.default_rng())
