"""The page on errors in the sources: its cases exist, and it quotes their results."""

import re

import pytest

from dpaudit import Verdict
from dpaudit.experiments.cases.experiment import select
from dpaudit.experiments.documents.errata import ERRATA, cases_of, errata_page
from dpaudit.experiments.suite.run_suite import all_experiments, run_experiments

NAMES = cases_of()
DEDUCED = {"Definition of the error function", "Misprints"}
"""Titles of errors that no run can show."""


@pytest.fixture(scope="module")
def suite():
    """Run every case of the page with few runs, since the tests compare words, not verdicts."""
    return run_experiments(select(all_experiments(), NAMES, []), alpha=1e-3, seed=0, runs=1_000)


def test_fourteen_errata_name_cases_unless_deduced():
    assert len(ERRATA) == 14
    for erratum in ERRATA:
        assert bool(cases_of([erratum])) == (erratum.title not in DEDUCED), erratum.title


def test_named_cases_exist_and_include_both_verdicts():
    cases = {case.name: case for experiment in all_experiments() for case in experiment.cases}
    assert set(NAMES) <= set(cases)
    for erratum in ERRATA:
        verdicts = {cases[name].expected for name in cases_of([erratum])}
        # The pointwise definition is an empty condition, so no case is refuted.
        if verdicts and erratum.title != "Pointwise definition of differential privacy":
            assert verdicts == {Verdict.REFUTED, Verdict.NOT_REFUTED}, erratum.title


@pytest.mark.evidence
def test_page_has_a_section_for_each_erratum_and_no_unreplaced_name(suite):
    page = errata_page(suite)
    assert re.findall(r"^## (\d+)\. ", page, flags=re.M) == [str(place) for place in range(1, 15)]
    assert not re.search(r"\{[A-Z]\d+-", page)
    for name in NAMES:
        assert f"(`{name}` **" in page
    assert "with seed 0" in page
    assert "at 99.9% confidence" in page


@pytest.mark.evidence
def test_page_quotes_the_verdicts(suite):
    page = errata_page(suite)
    for entry in suite.entries:
        words = page.split(f"(`{entry.name}` ", 1)[1].split(")", 1)[0]
        assert words.startswith(f"**{entry.result.verdict.value}**")
