"""The geometric mechanism."""

import math

import pytest

from dpaudit.audit.claims.claim import PureDP
from dpaudit.audit.errors import DatasetError
from dpaudit.mechanisms import GeometricMechanism, exact_epsilon


@pytest.mark.parametrize(("x", "y"), [(0, 3), (10, 7), (1, 2), (5, 5)])
def test_claim_holds_exactly_and_is_attained_at_the_sensitivity(x, y):
    mechanism = GeometricMechanism(0.7, sensitivity=3)
    assert mechanism.claim == PureDP(0.7)
    assert exact_epsilon(mechanism.law(x), mechanism.law(y)) == pytest.approx(0.7 * abs(x - y) / 3, rel=1e-12)


@pytest.mark.parametrize("answer", [0.5, 2.0**60])
def test_answers_that_are_not_whole_are_refused(answer):
    with pytest.raises(DatasetError, match="which is not a whole number within"):
        GeometricMechanism(1).law(answer)


def test_answers_that_are_no_numbers_are_refused():
    with pytest.raises(DatasetError, match="which is not a finite number"):
        GeometricMechanism(1).law(math.nan)
