"""The search of the built site finds what users type. `make docs` builds the site and runs this.

Queries are scored as the theme's search scores them: lunr with b = 0, terms as prefixes, titles boosted, and a factor
for pages and for the share of the words that are found.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

pytestmark = pytest.mark.site

SITE = Path(__file__).resolve().parents[1] / "build" / "site"

# What users type, and pages of which one has to be among the first three.
QUESTIONS = {
    "DataFrame": "how-to/pandas",
    "how many runs": "how-to/runs-and-alpha",
    "sample size": "how-to/runs-and-alpha",
    "epsilon too small": "troubleshooting",
    "flaky": "how-to/pytest troubleshooting",
    "DP-SGD": "tutorial-training",
    "false alarm": "how-to/continuous-integration how-to/many-audits troubleshooting",
    "group privacy": "explanation/group-privacy",
    "what does INCONCLUSIVE mean": "troubleshooting",
    "duplicate-outputs": "troubleshooting",
    "no-power": "troubleshooting",
    "options of check": "cheat-sheet reference/audits",
    "jobs": "how-to/slow-mechanisms cheat-sheet",
    "time limit": "how-to/slow-mechanisms",
    "chunk_seconds": "how-to/slow-mechanisms",
    "floating_point": "explanation/floating-point",
    "floating-point leak": "explanation/floating-point",
    "low bits": "explanation/floating-point",
    "least significant bits": "explanation/floating-point",
    "minimum detectable excess": "explanation/limits how-to/runs-and-alpha",
    "detect": "how-to/runs-and-alpha cheat-sheet",
    "power": "how-to/runs-and-alpha",
    "vectorised mechanism": "how-to/slow-mechanisms",
    "interim analyses": "explanation/sequential-test how-to/many-audits",
    "early stopping": "explanation/sequential-test",
    "inclusion bits": "how-to/canaries tutorial-training",
    "maximum attainable bound": "how-to/canaries tutorial-training",
    "error budget": "how-to/pytest how-to/many-audits",
    "undetermined": "how-to/replay",
    "nonstationary": "troubleshooting",
    "not reproducible": "troubleshooting how-to/reading-a-report",
    "bins": "how-to/curves",
    "random seed": "cheat-sheet how-to/pytest",
    "baseline": "how-to/compare-versions",
    "github action": "how-to/continuous-integration",
    "pre-commit": "how-to/continuous-integration",
    "which line": "how-to/replay",
    "find_worst_pair": "how-to/worst-pair reference/audits",
    "opacus": "guides/deep-learning",
    "RAPPOR": "guides/local findings",
    "rust": "guides/program",
    "clopper pearson": "explanation/clopper-pearson",
    "multiple testing": "how-to/many-audits",
    "is my mechanism private": "explanation/limits index",
    "upper bound": "explanation/limits",
    "slow mechanism": "how-to/slow-mechanisms",
    "resume after a crash": "how-to/slow-mechanisms",
    "zCDP": "how-to/choose-a-claim",
    "add-remove or replace": "how-to/choose-a-claim",
    "exit status": "how-to/shell cheat-sheet",
    "SARIF": "how-to/reviewers",
    "JSON schema": "reference/json",
    "cite": "how-to/reviewers",
}

# lunr's list, of which these occur in the questions.
STOP = {"a", "after", "does", "how", "i", "in", "is", "my", "not", "of", "or", "the", "to", "too", "what", "which"}


class Search:
    """An index of the site's sections."""

    def __init__(self, index: dict) -> None:
        self.separator = re.compile(index["config"]["separator"])
        self.docs = index["docs"]
        boosts = {name: field["boost"] for name, field in index["config"]["fields"].items()}
        found: dict[str, list[tuple[int, float, int]]] = defaultdict(list)
        for number, doc in enumerate(self.docs):
            for name in ("title", "text"):
                for term, times in Counter(self.terms(re.sub(r"<[^>]*>", " ", doc[name]))).items():
                    found[term].append((number, boosts[name] * doc.get("boost", 1.0), times))
        self.weights = {term: list(self.scored(places)) for term, places in found.items()}

    def terms(self, text: str) -> list[str]:
        return [term.lower() for term in self.separator.split(unescape(text)) if term and term.lower() not in STOP]

    def scored(self, places: list[tuple[int, float, int]]) -> Iterator[tuple[int, float]]:
        rarity = math.log(1 + abs(len(self.docs) - len(places) + 0.5) / (len(places) + 0.5))
        for number, boost, times in places:
            yield number, rarity * 2.2 * times / (1.2 + times) * boost

    def pages(self, query: str) -> list[str]:
        """The pages of the best sections, best first."""
        words = self.terms(query)
        total: Counter[int] = Counter()
        matched: dict[int, set[str]] = defaultdict(set)
        for word in words:
            for term in self.weights:
                if term.startswith(word):
                    for number, score in self.weights[term]:
                        total[number] += score
                        matched[number].add(word)

        def final(number: int) -> float:
            is_page = "#" not in self.docs[number]["location"]
            return total[number] * (1 + (is_page + len(matched[number]) / len(words)) ** 2)

        best = sorted(total, key=final, reverse=True)
        return list(dict.fromkeys(self.docs[number]["location"].partition(".html")[0] for number in best))


@pytest.fixture(scope="module")
def search() -> Search:
    index = SITE / "search" / "search_index.json"
    assert index.exists(), "build the site first: make docs"
    return Search(json.loads(index.read_text(encoding="utf-8")))


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_finds_its_page(search, question):
    first = search.pages(question)[:3]
    assert set(QUESTIONS[question].split()) & set(first), f"{question!r} finds {first}"


def test_a_question_without_a_page_finds_none(search):
    """The wrong variant: what no page has."""
    assert search.pages("homomorphic") == []


def test_theory_and_measurements_are_left_out(search):
    pages = {doc["location"].partition("/")[0] for doc in search.docs}
    assert "how-to" in pages
    assert not pages & {"proofs", "benchmarks", "findings", "decisions"}
