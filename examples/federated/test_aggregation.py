"""A correct round passes; the round with a bug is refuted."""

import aggregation
import aggregation_with_a_bug
import numpy as np

from dpaudit import GaussianDP
from dpaudit.training import check_step

UPDATES, EXAMPLES = np.random.default_rng(0).normal(size=(8, 100)), np.array([10, 20, 10, 30, 10, 20, 10, 700])


def correct_round(batch, rng):
    return aggregation.new_model(*batch, rng)


def faulty_round(batch, rng):
    return aggregation_with_a_bug.new_model(*batch, rng)


def test_round(dp_audit):
    dp_audit.check(check_step, correct_round, (UPDATES, EXAMPLES), claim=GaussianDP(1.0))


def test_the_bug_is_found():
    result = check_step(faulty_round, (UPDATES, EXAMPLES), claim=GaussianDP(2.0), adjacency="replace")
    assert result.is_refuted
    assert {"privacy", "isolation"} <= {row.name for row in result.rows if row.verdict.name == "REFUTED"}
