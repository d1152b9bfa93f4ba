"""A correct step passes; the step with a bug is refuted."""

import numpy as np
import pytest
import step
import step_with_a_bug

from dpaudit import GaussianDP, Verdict, check

Y = np.array([[1.0, 0.0], [0.0, 0.1]])
X = np.vstack([Y, [-100.0, 0.0]])


@pytest.mark.dp_audit(runs=20_000, floating_point="ignore")
def test_step(dp_audit):
    dp_audit(step.noisy_gradient, X, Y, claim=GaussianDP(1.0), adjacency="add-remove")


def test_the_bug_is_found():
    result = check(step_with_a_bug.noisy_gradient, X, Y, claim=GaussianDP(1.0), adjacency="add-remove", runs=4_000)
    assert result.verdict is Verdict.REFUTED
