"""The headings of NIST SP 800-226, with what the audits examined under each, or "not examined".

References
----------
Near, Darais, Lefkovitz & Howarth (2025), Guidelines for Evaluating Differential Privacy Guarantees, NIST Special
Publication 800-226, https://doi.org/10.6028/NIST.SP.800-226.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ...audit.records.suite import Checked, Suite
from ...audit.results.audit_result import AuditResult
from ...audit.results.canary_result import CanaryResult
from ...audit.results.statement_result import StatementResult
from ..plain_text import counted, tally, visible
from .sarif_rules import family, family_title

NOT_EXAMINED: Final = "not examined"
OF_NIST: Final = (
    "The headings are those of the publication. The last column says what dpaudit examined; NIST has not reviewed it."
)

_AUDITING: Final = "Auditing and Empirical Measures of Privacy"
_SECTIONS: Final = {
    "The Differential Privacy Guarantee": (
        "The Privacy Parameter ε",
        "Variants of Differential Privacy",
        "The Unit of Privacy",
        "Comparing Differential Privacy Guarantees",
        "Mixing Differential Privacy With Other Data Releases",
        _AUDITING,
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
    claims = [*(audit.claim for audit in audits), *(training.claim for training in trainings)]
    if not claims:
        return {_AUDITING: _statements(results)}
    families = _listed(family_title(family(claim)) for claim in claims)
    units = [audit.pair.unit or f"not stated ({audit.pair.adjacency})" for audit in audits]
    units += [f"one canary ({training.adjacency})" for training in trainings]
    made = [f"{counted(len(audits), 'audit')} of a mechanism on one pair of datasets each"] if audits else []
    made += [f"{counted(len(trainings), 'audit')} of a training run with canaries"] if trainings else []
    made += [_statements(results)] if len(results) > len(claims) else []
    examined = {
        "The Privacy Parameter ε": f"whether counts contradict the claims {_listed(map(str, claims))}; not whether "
        "these parameters are adequate",
        "Variants of Differential Privacy": f"{families}; no conversion between variants",
        "The Unit of Privacy": f"neighbours of the tested pairs: {_listed(units)}; not whether the unit is adequate, "
        "nor how many rows a person contributes",
        _AUDITING: f"{'; '.join(made)}; verdicts: {tally(suite)}. An audit can refute a claim and never verify it",
    }
    if audits:
        examined |= _of_mechanisms(audits)
    if trainings:
        examined["Machine Learning"] = f"guesses of canaries in {counted(len(trainings), 'audit')}"
    return examined


def _of_mechanisms(audits: Sequence[AuditResult]) -> dict[str, str]:
    mechanisms = counted(len({audit.mechanism for audit in audits}), "mechanism")
    decided, warned = sum(audit.bits is True for audit in audits), sum(audit.bits == "warn" for audit in audits)
    bits = f"low bits of floating-point outputs in {counted(decided + warned, 'audit')}"
    bits += f" ({decided:,} in the verdict, {warned:,} for a warning)"
    return {
        "Basic Mechanisms and Common Elements": f"outputs of {mechanisms} on the tested pairs; not proofs, nor the "
        "sensitivity on other datasets",
        "Mechanism Implementation Challenges": f"{bits}; not running time, memory, back ends, the random generator "
        "used in production, nor the tuning of hyperparameters",
    }


def _statements(results: Sequence[Checked]) -> str:
    checked = sum(isinstance(result, StatementResult) for result in results)
    return f"{counted(checked, 'check')} of statements, which are not privacy claims" if checked else ""


def _listed(texts: Iterable[str], most: int = 8) -> str:
    """The first different texts, and how many more there are."""
    known = list(dict.fromkeys(texts))
    shown = [visible(text, 100) for text in known[:most]]
    return ", ".join(shown) + (f" and {len(known) - most:,} more" if len(known) > most else "")
