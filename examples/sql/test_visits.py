"""A correct query passes; the query with a bug is refuted."""

import pytest
import visits
import visits_with_a_bug

from dpaudit import UserLevel, Verdict, check

Y = [{"person": "ann", "city": "Bern"}, {"person": "bob", "city": "Oslo"}]
X = Y + 3 * [{"person": "cy", "city": "Oslo"}]


@pytest.mark.dp_audit(runs=1_000, floating_point="ignore")
def test_visits(dp_audit):
    dp_audit(visits.noisy_visits, X, Y, claim=1.0, adjacency=UserLevel("person"))


def test_the_bug_is_found():
    result = check(visits_with_a_bug.noisy_visits, X, Y, claim=1.0, adjacency=UserLevel("person"), runs=400, jobs=1)
    assert result.verdict is Verdict.REFUTED
