"""A privacy card as Markdown for people."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Any

from ...audit.records.suite import Suite
from ..pages.markdown_page import escaped
from ..plain_text import number
from .privacy_card import READING, card_data
from .results_files import ResultsFile

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
    names = ("audit", "claim", "unit of privacy", "verdict", "detectable excess", "read with")
    rows = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    for one in audits:
        unit, excess = one.get("unit_of_privacy", "–"), one["recorded"].get("resolution")
        accepted = [f"accepted: {one['accepted']}"] if "accepted" in one else []
        read_with = "; ".join([*accepted, *one["cautions"]]) or "–"
        cells = (one["name"], one["claim"], unit, one["verdict"], number(excess), read_with)
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
    facts.append(("Accounting", one["accounting"]))
    facts += [("Implementation", _implementation(one["implementation"])), ("Repeat with", one["recorded"]["repeat"])]
    parts = [f"### {_text(one['name'])}", _list(f"**{title}:** {_text(value)}" for title, value in facts)]
    for title, name in (
        ("Remarks", "remarks"),
        ("Examined", "evidence"),
        ("Not examined", "not_examined"),
    ):
        texts = one[name]
        if texts:
            parts += [f"**{title}**", _list(map(_text, texts))]
    return "\n\n".join(parts)


def _implementation(known: dict[str, Any]) -> str:
    source = known["source"]
    place = source if isinstance(source, str) else f"{source['file']}:{source['line']}, SHA-256 {source['sha256']}"
    parts = [known.get("mechanism"), known.get("code"), known.get("package")]
    parts += [f"fingerprint {known['fingerprint']}"] if "fingerprint" in known else []
    parts += [f"source: {place}", ", ".join(f"{name} {version}" for name, version in known["versions"].items())]
    return "; ".join(filter(None, parts))
