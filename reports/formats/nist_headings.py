"""The headings of NIST SP 800-226, with what the audits examined under each, or "not examined".

References
----------
Near, Darais, Lefkovitz & Howarth (2025), Guidelines for Evaluating Differential Privacy Guarantees, NIST Special
Publication 800-226, https://doi.org/10.6028/NIST.SP.800-226.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...audit.records.suite import Checked, Suite
from ...audit.results.audit_result import AuditResult
from ...audit.results.canary_result import CanaryResult
from ...audit.results.statement_result import StatementResult
from ..plain_text import counted, tally, visible
from .sarif_rules import family, family_title

NOT_EXAMINED: Final = "not examined"
OF_NIST: Final = (
    "The headings are those of the publication. What stands beside them is what dpaudit examined; NIST has not reviewed "
    "it."
)

_SECTIONS: Final = {
    "The Differential Privacy Guarantee": (
        "The Privacy Parameter ε",
        "Variants of Differential Privacy",
        "The Unit of Privacy",
        "Comparing Differential Privacy Guarantees",
        "Mixing Differential Privacy With Other Data Releases",
        "Auditing and Empirical Measures of Privacy",
    ),
    "Differentially Private Algorithms": (
        "Basic Mechanisms and Common Elements",
        "Utility and Accuracy",
        "Bias",
        "Analytics Queries",
        "Machine Learning",
        "Synthetic Data",
        "Unstructured Data",
    ),
    "Deploying Differential Privacy": (
        "Query Models",
        "Trust Models",
        "Mechanism Implementation Challenges",
        "Data Security and Access Control",
        "Data Collection Exposure",
    ),
}
"""Sections 2 to 4 with their headings."""


def nist_headings(suite: Suite) -> list[dict[str, str]]:
    """Return section, heading and what was examined, for each heading in order."""
    results = [entry.result for entry in suite.entries]
    examined = _examined(suite, results)
    return [
        {"section": section, "heading": heading, "examined": examined.get(heading) or NOT_EXAMINED}
        for section, headings in _SECTIONS.items()
        for heading in headings
    ]


def _examined(suite: Suite, results: Sequence[Checked]) -> dict[str, str]:
    """What was examined, by heading; headings without anything are left out or empty."""
    audits = [result for result in results if isinstance(result, AuditResult)]
    trainings = [result for result in results if isinstance(result, CanaryResult)]
    found = [result.claim for result in (*audits, *trainings)]
    claims = list(dict.fromkeys(map(str, found)))
    if not claims:
        return {"Auditing and Empirical Measures of Privacy": _statements(results)}
    units = list(dict.fromkeys(audit.pair.unit or f"not stated ({audit.pair.adjacency})" for audit in audits))
    units += list(dict.fromkeys(f"one canary ({training.adjacency})" for training in trainings))
    pairs = [f"{counted(len(audits), 'audit')} of a mechanism on one pair of datasets each"] if audits else []
    pairs += [f"{counted(len(trainings), 'audit')} of a training run with canaries"] if trainings else []
    bits = sum(audit.bits is not False for audit in audits)
    verdict, warning = (sum(audit.bits is kind for audit in audits) for kind in (True, "warn"))
    return {
        "The Privacy Parameter ε": f"whether the counts contradict the claims {_listed(claims)}; not whether such "
        "parameters are adequate",
        "Variants of Differential Privacy": f"{_listed(list(dict.fromkeys(family_title(family(claim)) for claim in found)))}; no "
        "conversion between variants",
        "The Unit of Privacy": f"neighbours of the tested pairs: {_listed(units)}; not whether the unit is adequate, "
        "nor how many rows a person contributes",
        "Auditing and Empirical Measures of Privacy": "; ".join(
            filter(None, [*pairs, _statements(results), f"verdicts: {tally(suite)}"])
        )
        + ". An audit can refute a claim and never verify it",
        "Basic Mechanisms and Common Elements": (
            f"the outputs of {counted(len({audit.mechanism for audit in audits}), 'mechanism')} on the tested pairs; not "
            "the proofs, nor the sensitivity on other datasets"
            if audits
            else ""
        ),
        "Machine Learning": f"guesses of canaries in {counted(len(trainings), 'training run')}" if trainings else "",
        "Mechanism Implementation Challenges": (
            f"low bits of floating-point outputs in {counted(bits, 'audit')} ({verdict:,} in the verdict, {warning:,} "
            "for a warning); exceptions of a mechanism count as outputs. Not examined: running time, memory, back ends, "
            "the random generator of production, tuning of hyperparameters"
            if audits
            else ""
        ),
    }


def _statements(results: Sequence[Checked]) -> str:
    checked = sum(isinstance(result, StatementResult) for result in results)
    return f"{counted(checked, 'check')} of statements, which are not privacy claims" if checked else ""


def _listed(texts: Sequence[str], most: int = 8) -> str:
    """The first texts, and how many more there are."""
    shown = [visible(text, 100) for text in texts[:most]]
    return ", ".join(shown) + (f" and {len(texts) - most:,} more" if len(texts) > most else "")
