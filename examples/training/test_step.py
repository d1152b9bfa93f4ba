"""A correct step passes; the step with a bug is refuted."""

import numpy as np
import step
import step_with_a_bug

from dpaudit import GaussianDP
from dpaudit.training import check_step

GRADIENTS = np.random.default_rng(0).normal(size=(8, 100))


def test_step(dp_audit):
    dp_audit.check(check_step, step.noisy_gradient, GRADIENTS, claim=GaussianDP(1.0))


def test_the_bug_is_found():
    result = check_step(step_with_a_bug.noisy_gradient, GRADIENTS, claim=GaussianDP(1.0))
    assert result.is_refuted
    assert "isolation" in {row.name for row in result.rows if row.verdict.name == "REFUTED"}
