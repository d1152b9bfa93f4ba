"""What an audit of so many canaries can show, before the training."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit import ApproxDP, GaussianDP, PureDP, check_canaries, plan_canaries
from dpaudit.audit.errors import OptionError


@pytest.mark.parametrize(
    ("claim", "options"),
    [
        (PureDP(1.0), {}),
        (ApproxDP(1.0, 1e-4), {}),
        (GaussianDP(1.0), {}),
        (PureDP(1.0), {"say": "in"}),
        (PureDP(1.0), {"method": "f-dp", "alpha": 0.01}),
    ],
)
def test_a_plan_says_what_the_audit_says(claim, options):
    included = np.arange(400) % 2 == 0
    scores = np.random.default_rng(0).normal(size=400)
    result = check_canaries(scores, included, claim=claim, coins="independent", **options)
    plan = plan_canaries(400, claim=claim, **options)
    assert (plan.ceiling, plan.resolution) == (result.ceiling, result.resolution)
    assert plan.tests == result.tests


def test_a_rare_inclusion_limits_right_guesses():
    assert (
        plan_canaries(1_000, claim=PureDP(1.0), probability=0.1).ceiling
        < plan_canaries(1_000, claim=PureDP(1.0)).ceiling
    )


def test_words():
    few = plan_canaries(50, claim=PureDP(8.0))
    assert math.isinf(few.resolution)
    assert "no excess over the claim is detected" in str(few)
    assert str(plan_canaries(1_000, claim=PureDP(1.0))).startswith("1,000 canaries, claim 1-DP: epsilon >= 5.8")
    assert repr(few) == "<CanaryPlan 50 canaries, 8-DP: ceiling 2.784>"


@pytest.mark.parametrize("options", [{"canaries": 7}, {"canaries": 10.5}, {"canaries": 100, "power": 1.0}])
def test_options_that_are_refused(options):
    with pytest.raises(OptionError, match=r"is not .*; use"):
        plan_canaries(options.pop("canaries"), claim=PureDP(1.0), **options)
