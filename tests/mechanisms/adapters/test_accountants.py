"""Accountants of other libraries: what each claims over the cases, the errors that are known, and what is refused."""

import importlib.util
import logging

import pytest

from dpaudit import PureDP
from dpaudit.accountants import GRID, Case, Laplace, Outcome
from dpaudit.audit.errors import MissingExtraError, OptionError
from dpaudit.audit.results.verdict import ExactVerdict
from dpaudit.mechanisms.adapters import accountants as module
from dpaudit.mechanisms.adapters import check_library_accountant

FEW = [each for each in GRID if each.steps <= 50]
NEEDS = {
    "dp-accounting-pld": "dp_accounting", "dp-accounting-rdp": "dp_accounting", "opacus-rdp": "opacus",
    "opacus-prv": "opacus", "opacus-gdp": "opacus", "prv-accountant": "prv_accountant", "autodp": "autodp",
    "opendp": "opendp",
}  # fmt: skip


def needs(name):
    is_missing = importlib.util.find_spec(NEEDS[name]) is None
    return pytest.param(
        name, marks=pytest.mark.skipif(is_missing, reason=f"{NEEDS[name]} is missing: make matrix ROWS=accountants")
    )


def checked(name, cases):
    logging.disable(logging.WARNING)  # of orders that did not converge
    try:
        return check_library_accountant(name, cases)
    finally:
        logging.disable(logging.NOTSET)


# Errors of the releases of docs/findings/accountants.md; a later release without them is news too.


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [needs(name) for name in ("opacus-rdp", "opacus-prv", "prv-accountant", "autodp")])
def test_accountants_without_a_known_error_hold(name):
    result = checked(name, FEW)
    assert result.verdict is ExactVerdict.VERIFIED, str(result)
    assert len(result.those(Outcome.HOLDS)) >= 10


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [needs("opacus-gdp")])
def test_the_central_limit_is_too_small(name):
    result = checked(name, FEW)
    assert result.verdict is ExactVerdict.REFUTED
    assert result.worst.error < -0.8


def test_distributions_of_dp_accounting_and_compositions_of_opendp_hold():
    cases = [Case(((Laplace(2.0), 3),), 0.01), Case(((PureDP(0.5), 4),), 0.0)]
    for name in ("dp-accounting-pld", "opendp"):
        assert checked(name, cases).verdict is ExactVerdict.VERIFIED


def test_divergences_of_replaced_records_are_those_of_added_ones():
    """dp-accounting 0.6.0, issue 378: a replaced record moves a sum by twice its norm."""
    cases = [Case.dp_sgd(2.0, 1.0, 4, adjacency=relation) for relation in ("add-remove", "replace", "zero-out")]
    cases.append(Case(((Laplace(2.0), 4),), adjacency="replace"))
    result = checked("dp-accounting-rdp", cases)
    assert [row.outcome for row in result.rows] == [Outcome.HOLDS, Outcome.TOO_SMALL] * 2
    assert result.rows[1].claimed == result.rows[0].claimed


def test_unknown_names_and_missing_libraries_are_errors(monkeypatch):
    with pytest.raises(OptionError, match="name='moments' is not an accountant; use one of dp-accounting-pld"):
        check_library_accountant("moments")
    monkeypatch.setitem(__import__("sys").modules, "autodp.mechanism_zoo", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dpaudit\[accountants\]'"):
        check_library_accountant("autodp")


def test_every_accountant_is_named_in_the_docstring():
    assert set(NEEDS) == set(module._ACCOUNTANTS)
    assert all(f'"{name}"' in check_library_accountant.__doc__ for name in NEEDS)
