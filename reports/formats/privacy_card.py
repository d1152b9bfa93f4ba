"""A privacy card: for each audit what was claimed, what was examined, and what was not examined."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ...audit.records.json_codec import told_apart
from ...audit.records.suite import Entry, Scalar, Suite, rows
from ...audit.results.audit_result import AuditResult
from ...audit.results.canary_result import CanaryResult
from ...audit.results.verdict import Verdict
from .. import plain_text as plain
from ..pages.audit_facts import IN_NO_AUDIT, place_of_mechanism
from ..pages.markdown_page import escaped
from .sarif import ResultsFile, file_of_each, recorded, strict_json

VERSION: Final = 1
READING: Final = (
    "An audit that samples can refute a claim and never verify it. *Not refuted* says that the counts of one event on "
    "one pair of datasets do not contradict the claim at the stated error probability. A bound is a lower bound on the "
    "privacy loss; no number of runs gives an upper bound."
)


def card_data(suite: Suite, *, files: Sequence[ResultsFile] = (), today: datetime.date | None = None) -> dict[str, Any]:
    """Return the contents of a privacy card as plain values; the parameters are those of `sarif`."""
    day = today or datetime.date.today()
    if files:
        file_of_each(suite, files)
    entries = zip(suite.entries, told_apart(suite), rows(suite), strict=True)
    return {
        "privacy_card": VERSION,
        "title": plain.visible(suite.title),
        "reading": READING.replace("*", ""),
        "results": [{"file": file.name, "sha256": file.sha256, "audits": file.entries} for file in files],
        "verdicts": {verdict.value: count for verdict, count in plain.verdict_counts(suite).items()},
        "multiplicity": f"{plain.held_together(suite)} Expected number of false alarms if every claim held: at most "
        f"{plain.false_alarms(suite):.2g}.",
        "not_examined_in_any_audit": list(IN_NO_AUDIT),
        "audits": [_card(entry, name, row, day) for entry, name, row in entries],
    }


def privacy_card(suite: Suite, *, files: Sequence[ResultsFile] = (), today: datetime.date | None = None) -> str:
    """Return the privacy card as JSON; the same results give the same text.

    Each audit has its claim, the unit of privacy, what was examined with which evidence, the implementation, and what
    was not examined.

    Parameters
    ----------
    suite, files, today
        As for `sarif`.

    Examples
    --------
    >>> import json
    >>> json.loads(privacy_card(Suite(title="Nothing", entries=())))["verdicts"]
    {'refuted': 0, 'not refuted': 0, 'inconclusive': 0}
    """
    return strict_json(card_data(suite, files=files, today=today), levels=2)


def _card(entry: Entry, name: str, row: dict[str, Scalar], day: datetime.date) -> dict[str, Any]:
    result = entry.result
    card: dict[str, Any] = {
        "name": plain.visible(name),
        "verdict": result.verdict.value,
        "sentence": plain.prose(result.sentence),
        "remarks": [plain.prose(remark) for remark in result.remarks],
        "cautions": [plain.prose(one.text) for one in plain.cautions(result)],
        **_subject(entry),
        "evidence": plain.fact_lines(result),
        "attacks": plain.attack_lines(result),
        "implementation": _implementation(entry),
        "accounting": "not examined",
        "not_examined": list(_not_examined(entry)),
        "recorded": recorded(entry, row),
    }
    if entry.expected is not None:
        card["expected"] = entry.expected.value
    if entry.accepted is not None:
        card["accepted"] = f"{plain.prose(str(entry.accepted))} (status: {plain.acceptance(entry, day)})"
    return card


def _subject(entry: Entry) -> dict[str, Any]:
    """What the audit is about: the claim with its unit and neighbours, or the statement."""
    result = entry.result
    if result.claim is None:
        return {"statement": plain.prose(result.statement), "claim": "none; a statement is not a privacy claim"}
    if isinstance(result, AuditResult):
        pair = result.pair
        unit, adjacency = plain.visible(pair.unit) or "not stated", plain.visible(result.adjacency)
        checked = (
            plain.prose(pair.doubt)
            or f"{plain.visible(pair.x)} and {plain.visible(pair.y)}: {plain.visible(pair.difference)}"
        )
        more: dict[str, Any] = {"distance": pair.distance, "pair_checked": checked}
    else:
        unit, adjacency, more = "one canary", f"{plain.visible(result.adjacency)}, of one canary", {}
    return {
        "claim": plain.visible(str(result.claim)),
        "claim_source": plain.visible(result.claim_source) or "not stated",
        "unit_of_privacy": unit,
        "adjacency": adjacency,
        **more,
    }


def _implementation(entry: Entry) -> dict[str, Any]:
    """The code that was run, as far as it is recorded."""
    result = entry.result
    known: dict[str, Any] = {
        "versions": {plain.visible(name): plain.visible(version) for name, version in result.versions}
    }
    if result.claim is not None:
        known = {"mechanism": plain.visible(result.mechanism, 300), **known}
    code = result.provenance
    if code is not None:
        known |= {"code": plain.visible(code.where)}
        parts = {"package": code.package, "fingerprint": code.fingerprint}
        known |= {name: plain.visible(text) for name, text in parts.items() if text}
    place = place_of_mechanism(entry)
    known["source"] = "not recorded"
    if place is not None:
        known["source"] = {"file": plain.visible(place.file), "line": place.line, "sha256": place.sha256}
    return known


def _not_examined(entry: Entry) -> tuple[str, ...]:
    """What a reader might take for examined, and is not."""
    result = entry.result
    if result.claim is None:
        return "every privacy claim of the mechanism", "other datasets"
    if isinstance(result, CanaryResult):
        return (
            "other training data, other canaries and other scores than the given ones",
            "losses of records that are not canaries",
        )
    pairs = "every other pair of neighbours"
    if result.searched:
        pairs = "every pair of neighbours other than the one that the search chose"
    leaks = () if result.floating_point != "ignore" else ("floating-point leaks of outputs",)
    silenced = tuple(f"the health check {plain.visible(name)}, which was silenced" for name in result.ignored)
    return (pairs, "every event other than the tested ones", *leaks, *silenced, "claims at other distances")


# A privacy card as Markdown for people.

_LONG = 2_000


def privacy_card_markdown(
    suite: Suite, *, files: Sequence[ResultsFile] = (), today: datetime.date | None = None
) -> str:
    """Return the privacy card in Markdown: a table of the audits, and a section for each.

    Names and notes appear literally; markup, links, mentions and HTML in them have no effect.

    Parameters
    ----------
    suite, files, today
        As for `sarif`.
    """
    card = card_data(suite, files=files, today=today)
    verdicts = ", ".join(f"{count:,} {verdict}" for verdict, count in card["verdicts"].items())
    parts = [f"# Privacy card: {_text(card['title'])}", READING]
    parts.append(f"**Verdicts:** {verdicts}. {_text(card['multiplicity'])}")
    if card["results"]:
        parts.append(_list(f"results: {_text(one['file'])}, SHA-256 `{one['sha256']}`" for one in card["results"]))
    parts += ["## Not examined in any audit", _list(map(_text, card["not_examined_in_any_audit"]))]
    if card["audits"]:
        parts += ["## Audits", _table(card["audits"])]
    parts += [_section(one) for one in card["audits"]]
    return "\n\n".join(parts) + "\n"


def _text(value: Any) -> str:
    return escaped(str(value), _LONG)


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _table(audits: Sequence[dict[str, Any]]) -> str:
    names = ("audit", "claim", "unit of privacy", "verdict", "minimum detectable excess", "read with")
    rows = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    for one in audits:
        unit, excess = one.get("unit_of_privacy", "–"), one["recorded"].get("min_detectable_excess")
        accepted = [f"accepted: {one['accepted']}"] if "accepted" in one else []
        read_with = "; ".join([*accepted, *one["cautions"]]) or "–"
        verdict = plain.marked(Verdict(one["verdict"]))
        cells = (one["name"], one["claim"], unit, verdict, plain.number(excess), read_with)
        rows.append(f"| {' | '.join(map(_text, cells))} |")
    return "\n".join(rows)


def _section(one: dict[str, Any]) -> str:
    facts = [("Verdict", one["sentence"])]
    for name, title in (
        ("expected", "Expected verdict"), ("accepted", "Accepted"), ("statement", "Statement"), ("claim", "Claim"),
        ("claim_source", "Source of the claim"), ("unit_of_privacy", "Unit of privacy"), ("adjacency", "Adjacency"),
        ("distance", "Distance"), ("pair_checked", "Pair"),
    ):  # fmt: skip
        if name in one:
            facts.append((title, f"{one[name]:g}" if isinstance(one[name], float) else one[name]))
    facts += [("Accounting", one["accounting"]), ("Implementation", _code_line(one["implementation"]))]
    facts.append(("Repeat with", one["recorded"]["repeat"]))
    parts = [f"### {_text(one['name'])}", _list(f"**{title}:** {_text(value)}" for title, value in facts)]
    for title, name in (
        ("Remarks", "remarks"), ("Examined", "evidence"), ("Guesses of the dataset from one output", "attacks"),
        ("Not examined", "not_examined"),
    ):  # fmt: skip
        parts += [f"**{title}**", _list(map(_text, one[name]))] if one[name] else []
    return "\n\n".join(parts)


def _code_line(known: dict[str, Any]) -> str:
    source = known["source"]
    place = source if isinstance(source, str) else f"{source['file']}:{source['line']}, SHA-256 {source['sha256']}"
    parts = [known.get("mechanism"), known.get("code"), known.get("package")]
    parts += [f"fingerprint {known['fingerprint']}"] if "fingerprint" in known else []
    parts += [f"source: {place}", ", ".join(f"{name} {version}" for name, version in known["versions"].items())]
    return "; ".join(filter(None, parts))
