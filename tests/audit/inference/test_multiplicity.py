"""The Holm adjustment and shares of an error budget."""

from __future__ import annotations

import math

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from dpaudit import PureDP, check
from dpaudit.audit.errors import OptionError
from dpaudit.audit.inference.multiplicity import Ledger, holm, split_budget


@pytest.mark.parametrize("size", [1, 5, 20])  # few, because statsmodels collects garbage in every call
def test_holm_agrees_with_statsmodels(size):
    p = np.random.default_rng(size).random(size) ** 3
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])


def test_holm_of_none_and_of_ties():
    assert holm([]).tolist() == []
    assert holm([0.5, 0.5]).tolist() == [1.0, 1.0]
    assert holm([1e-10] * 3) == pytest.approx([3e-10] * 3)


@pytest.mark.parametrize("bad", [[-0.1], [1.1], [math.nan], [[0.5]]])
def test_holm_refuses_what_is_no_p_value(bad):
    with pytest.raises(OptionError, match="are not p-values"):
        holm(bad)


def test_a_budget_is_spent_exactly():
    ledger = split_budget(0.01, [f"audit {i}" for i in range(7)])
    assert math.fsum(alpha for _, alpha in ledger.shares) == pytest.approx(0.01)
    assert len({alpha for _, alpha in ledger.shares}) == 1


@pytest.mark.parametrize("weights", [[], ["a", "a"], {"a": 0.0}, {"a": -1.0, "b": 2.0}, {"a": math.inf}])
def test_impossible_budgets(weights):
    with pytest.raises(OptionError, match="do not divide a budget"):
        split_budget(0.01, weights)


@pytest.mark.parametrize("shares", [(("a", 0.04), ("b", 0.02)), (("a", 0.0),), (("a", -0.01), ("b", 0.02))])
def test_shares_that_do_not_fit(shares):
    with pytest.raises(OptionError, match="do not fit"):
        Ledger(0.05, shares)


@pytest.mark.parametrize("bound", [0.0, 1.0, math.nan, -1e-6])
def test_what_stands_beside_alpha_is_a_probability(bound):
    with pytest.raises(OptionError, match="is not a probability"):
        Ledger(0.05, (("a", 0.05),), beside=(("b", bound),))


@pytest.mark.parametrize("options", [{}, {"cells": 8}, {"sequential": True}, {"bits": False}, {"bits": True}])
def test_every_audit_says_how_its_alpha_is_spent(options):
    def laplace(dataset, size, rng):
        return dataset + rng.laplace(size=size)

    result = check(laplace, 0.0, 1.0, claim=PureDP(1.0), runs=4_000, alpha=0.02, **options)
    assert result.ledger.total == 0.02
    assert math.fsum(alpha for _, alpha in result.ledger.shares) == pytest.approx(0.02)
    tests = ["event test", "events in reserve", "each of 53 plain events"]
    if "cells" in options:
        tests = [*tests, "cell intervals"]
    elif "sequential" in options:
        tests = ["betting test", "final test", *tests[1:]]
    assert [name for name, _ in result.ledger.shares] == tests
    names = [what for what, bound in result.ledger.beside if bound == 1e-6]
    assert len(names) == len(result.ledger.beside) == 1 + ("bits" not in options)
    assert ("false low-bits warning" in names) == (result.bits == "warn")
