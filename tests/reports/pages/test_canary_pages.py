"""Audits of training runs in every form of report, and their figures."""

import html as escapes
import math
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from dpaudit import load
from dpaudit.audit.errors import OptionError
from dpaudit.reports import html, kinds_of, lines, markdown, plot
from dpaudit.reports.figures.plot import figures_of
from dpaudit.reports.pages.audit_facts import card
from dpaudit.reports.plain_text import detectable_text, exact_text, found, size
from dpaudit.results import Entry, Suite

from ..examples import facts

SNAPSHOT = Path(__file__).parents[1] / "snapshots" / "results.json"
RESULT = next(entry.result for entry in load(SNAPSHOT).entries if entry.name == "training")
SMALL = replace(RESULT, bound=0.5, pvalue=0.2, min_detectable_excess=math.inf)
PAIRS = replace(RESULT, inclusion="fixed", adjacency="replace", canaries=2_000)


def suite(*results):
    return Suite(title="t", entries=tuple(Entry(name=f"a{n}", result=each) for n, each in enumerate(results)))


def test_short_texts():
    assert (found(RESULT), size(RESULT), detectable_text(RESULT)) == ("ε ≥ 1.934", "1,000 canaries", "0.25")
    assert detectable_text(SMALL) == "∞"
    assert exact_text(Entry(name="a", result=RESULT, exact=3.0)) == "ε = 3"
    assert found(replace(RESULT, bound=1.00001)) == "ε ≥ 1.00001"


def test_facts_name_canaries_theorems_and_shares():
    known = facts(Entry(name="a", result=RESULT, exact=3.0))
    assert known["Canaries"].startswith("1,000, of which 489 were in the training data")
    assert known["Maximum attainable bound"] == "epsilon >= 5.6 at delta 1e-05 if every guess had been correct"
    assert "theorem 1" in known["Theorems"]
    assert "theorem 2" in known["Theorems"]
    assert known["Error budget"].startswith("0.05 = betting (up to 1,000 guesses) 0.025 + counts (100 guesses) 0.0125")
    assert known["Exact value"] == "ε = 3"
    known = facts(Entry(name="a", result=PAIRS))
    assert "in 1,000 random pairs of one in and one out" in known["Canaries"]
    assert known["Answers"].startswith("which canary of a pair is in")
    assert lines(RESULT).startswith(f"{RESULT}\n")
    rest = lines(RESULT).removeprefix(f"{RESULT}\n").splitlines()
    assert [line.split()[0] for line in rest] == ["claim", "canaries", "guesses", "at", "seed", "alpha"]


def test_a_page_of_training_runs_alone_says_nothing_of_pairs_of_datasets():
    page = html(suite(RESULT, SMALL))
    assert "2 claims on training runs with 1,000 canaries." in page
    assert "Theorem 5.2 of Steinke" in page
    assert "The audits examined only these canaries and scores" in page
    assert "pilot runs" not in page.partition('id="methods"')[2].partition('id="glossary"')[0]
    text = markdown(suite(RESULT, SMALL))
    assert "pilot runs" not in text
    assert "*maximum attainable bound*" in text
    assert "- at most: ε ≥ 5.6 if every guess had been correct" in text
    other = html(Suite(title="t", entries=load(SNAPSHOT).entries[:2]))
    assert "Theorem 5.2" not in other
    assert "pilot runs" in other


def test_a_card_shows_canaries_guesses_and_figures():
    shown = card(RESULT)
    assert f"<strong>{escapes.escape(RESULT.headline)}</strong>" in shown
    assert "at most: ε ≥ 5.6 if every guess had been correct" in shown
    assert shown.count("<svg") == 2, "the row of the forest, and the scores"
    assert "<b>tag" not in shown


def test_every_kind_is_drawn():
    (scores,) = figures_of(RESULT)
    assert scores.label.endswith("96 of 100 guesses were correct, of 1,000 canaries.")
    assert figures_of(replace(RESULT, sketch=None)) == []
    assert kinds_of(RESULT) == ("scores", "forest")
    assert kinds_of(replace(RESULT, sketch=None)) == ("forest",)
    for kind in kinds_of(RESULT):
        plot(RESULT, kind, ax=Figure().subplots())
    axes = plot(RESULT, ax=Figure().subplots())
    assert axes.get_legend_handles_labels()[1] == ["canaries in", "canaries out", "100 guesses"]
    axes = plot(PAIRS, ax=Figure().subplots())
    assert "pairs first in" in axes.get_legend_handles_labels()[1]
    alone = replace(RESULT, sketch=replace(RESULT.sketch, said_out=None))
    assert [text.get_text().strip() for text in plot(alone, ax=Figure().subplots()).texts] == ["guessed in"]
    with pytest.raises(OptionError, match="requires an audit of a training run"):
        plot(load(SNAPSHOT).entries[0].result, "scores")
