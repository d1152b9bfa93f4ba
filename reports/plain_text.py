"""Results as plain text: how every report writes numbers and names, and a table for a terminal."""

from __future__ import annotations

import datetime
import math
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

from ..audit.claims.claim import GroupClaim
from ..audit.printing import rounded_down
from ..audit.records.suite import Entry, Suite, seconds
from ..audit.results.audit_result import AuditResult, Verdict
from ..audit.results.statement_result import StatementResult

if TYPE_CHECKING:
    from rich.table import Table

MARKS = {Verdict.REFUTED: "✖", Verdict.NOT_REFUTED: "■", Verdict.INCONCLUSIVE: "◆"}
"""A shape for each verdict, so that none is told by its colour alone."""

_COLOURS = {Verdict.REFUTED: "bold red", Verdict.NOT_REFUTED: "blue", Verdict.INCONCLUSIVE: "yellow"}
_SYMBOLS = {"epsilon": "ε", "delta": "δ", "mu": "μ", "rho": "ρ"}
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})  # controls, bidi overrides, lone surrogates, …


def number(value: float | None) -> str:
    """A number with 4 significant digits, ``1e-05`` where tiny; "–" for None."""
    if value is None:
        return "–"
    if math.isnan(value):
        return "undefined"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if 9999.5 <= abs(value) < 1e9:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def symbol(strength_name: str) -> str:
    """The Greek letter of a claim's parameter, or its name."""
    return _SYMBOLS.get(strength_name, strength_name)


def visible(text: str, limit: int = 500) -> str:
    """The text with whatever cannot be seen, or reorders what can, as an escape, cut in the middle beyond `limit`."""
    if len(text) > limit:
        tail = limit // 3
        text = f"{text[: limit - tail - 1]}…{text[-tail:]}"
    if text.isprintable():
        return text
    return "".join(_escaped(char) if unicodedata.category(char) in _UNSEEN else char for char in text)


def _escaped(char: str) -> str:
    known = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
    code = ord(char)
    return known.get(char) or (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
    )


def prose(text: str) -> str:
    """Visible text of a note or message; line breaks become spaces."""
    return visible(" ".join(text.split()), 2_000)


def verdict_counts(suite: Suite) -> dict[Verdict, int]:
    """How many audits ended in each verdict, zeros included."""
    tally = Counter(entry.result.verdict for entry in suite.entries)
    return {verdict: tally[verdict] for verdict in Verdict}


def expectation(entry: Entry) -> str:
    """``yes``, ``no: expected refuted``, or ``–`` where nothing was expected."""
    if entry.expected is None:
        return "–"
    return "yes" if entry.is_met else f"no: expected {entry.expected.value}"


def acceptance(entry: Entry, today: datetime.date) -> str:
    """What has become of an accepted finding, in a few words; empty where none was accepted."""
    accepted, result = entry.accepted, entry.result
    if accepted is None:
        return ""
    if result.verdict is Verdict.INCONCLUSIVE:
        return "not decided"
    if not result.is_refuted:
        return "no longer found: withdraw it"
    if entry.is_excused(today):
        return "accepted"
    if today > datetime.date.fromisoformat(accepted.until):
        return "has expired"
    return "does not cover a bound so large"


def expectations(suite: Suite) -> str:
    """A sentence: whether the audits said what was expected of them."""
    stated = [entry for entry in suite.entries if entry.expected is not None]
    unmet = sum(not entry.is_met for entry in stated)
    if not stated:
        return "No verdict was expected in advance."
    those = f"{len(stated):,} audit{'s' * (len(stated) != 1)} with an expected verdict"
    if unmet:
        return f"{unmet:,} of the {those} came out otherwise."
    return f"The {those} came out as expected." if len(stated) == 1 else f"All {those} came out as expected."


def false_alarms(suite: Suite) -> float:
    """Most refutations to be expected if every audited claim held: the sum of the audits' alphas."""
    return math.fsum(entry.result.alpha for entry in suite.entries)


def held_together(suite: Suite) -> str:
    """A sentence: what is refuted when all audits together may raise one false alarm with probability .05."""
    refuted = sum(p <= 0.05 for p in suite.adjusted_p_values())
    claims = "1 claim is" if refuted == 1 else f"{refuted:,} claims are"
    return f"At family-wise error 0.05 (Holm), {claims} refuted."


def stated(result: AuditResult | StatementResult) -> str:
    """The claim, or what a statement allows its worst number to be."""
    if isinstance(result, AuditResult):
        return str(result.claim)
    return f"{result.worst.at or result.quantity}: {result.worst.allowed}"


def found(result: AuditResult | StatementResult) -> str:
    """``ε ≥ 1.2``, or the interval of a statement's worst number; "–" where a health check failed."""
    if not isinstance(result, AuditResult):
        return result.worst.interval
    if result.findings:
        return "–"
    claim = result.directed_claim
    bound = rounded_down(result.bound)
    is_just_above = result.is_refuted and bound <= claim.strength
    per_step = " per step" * isinstance(claim, GroupClaim)
    least = f"> {number(claim.strength)}" if is_just_above else f"≥ {number(bound)}"
    return f"{symbol(claim.strength_name)} {least}{per_step}"


def other_way(result: AuditResult) -> str:
    """The same event by its complement, where that has the larger ratio: it is the one to hold against epsilon.

    Empty where the event was seen no more on the side that is tested.
    """
    counts = result.directed_counts
    misses_p, misses_q = counts.runs_x - counts.hits_x, counts.runs_y - counts.hits_y
    ratio = math.inf if misses_p == 0 else (misses_q / counts.runs_y) / (misses_p / counts.runs_x)
    if misses_q == 0 or not 1.0 < result.ratio < ratio:
        return ""
    p, q = ("x", "y") if result.likelier_on == "x" else ("y", "x")
    times = "occur only on" if math.isinf(ratio) else f"are {ratio:.3g} times likelier on"
    return f"outputs outside the event {times} {q}: {misses_q:,} there, {misses_p:,} on {p}"


def p_text(p_value: float | None) -> str:
    """A p-value; below a billionth it only says so, as tests state none much smaller."""
    return "< 1e-9" if p_value is not None and p_value < 1e-9 else number(p_value)


def sentences(result: AuditResult | StatementResult) -> tuple[str, list[str]]:
    """The verdict in a sentence, and what comes with it: warnings, notes, failed health checks."""
    first, *others = str(result).splitlines()
    return prose(first), [prose(line) for line in others]


def exact(entry: Entry) -> float | None:
    """The exact value of what is bounded, where it is known; a statement of many numbers has none."""
    if isinstance(entry.result, StatementResult) and len(entry.result.points) > 1:
        return None
    return entry.exact


def findable(result: AuditResult | StatementResult) -> float | None:
    """The smallest excess that would have been found.

    None of a statement, of an audit that a refutation stopped, and where a health check failed.
    """
    if not isinstance(result, AuditResult) or result.stopped == "refuted" or result.findings:
        return None
    return result.resolution


def lines(result: AuditResult) -> str:
    """One result in a few lines of plain text: verdict, event, counts, pair, runs."""
    pair, claim = result.pair, result.claim
    how = f"{result.pilot_runs:,} of them to choose the event"
    if result.stopped is not None:
        how = "bet on as they came; the counts are of the last event in all of them"
    return "\n".join(
        [
            f"{visible(result.mechanism, 80)}: {prose(str(result))}",
            f"  claim  {visible(str(claim), 80)}",
            f"  event  {visible(result.event_in_words)}",
            f"  counts {result.counts}; p-value {p_text(result.p_value)}, estimate {number(result.estimate)}",
            f"  pair   {visible(pair.x)} and {visible(pair.y)}: {visible(pair.difference)}; {visible(pair.adjacency)}",
            f"  runs   {result.runs:,} on each dataset, {how}; seed {result.seed}",
            f"  error  {result.ledger}",
        ]
    )


def table(suite: Suite) -> Table:
    """The suite as a rich table that fits 100 columns."""
    from rich import box
    from rich.table import Table
    from rich.text import Text  # cells are Text, in which square brackets are no markup

    counts = verdict_counts(suite)
    tally = ", ".join(f"{count:,} {verdict.value}" for verdict, count in counts.items())
    drawn = Table(
        title=Text(visible(suite.title, 80)),
        caption=Text(f"{tally}. {expectations(suite)} {held_together(suite)}"),
        box=box.SIMPLE_HEAD,
        padding=0,
        show_edge=False,
        title_justify="left",
        caption_justify="left",
    )
    drawn.add_column("audit", overflow="fold", min_width=10)
    drawn.add_column("claim", overflow="fold", min_width=8, max_width=12)
    drawn.add_column("verdict", min_width=14, no_wrap=True)
    for heading in ("bound", "exact", "excess\nfindable", "runs", "seconds"):
        drawn.add_column(heading, justify="right", overflow="fold")
    drawn.add_column("as expected", overflow="fold", max_width=12)
    for entry in suite.entries:
        result = entry.result
        colour = _COLOURS[result.verdict]
        drawn.add_row(
            Text(visible(entry.name, 60)),
            Text(visible(stated(result), 80)),
            Text(f"{MARKS[result.verdict]} {result.verdict.value}", style=colour),
            Text(found(result).partition("≥ ")[2] or found(result)),
            Text(number(exact(entry))),
            Text(number(findable(result))),
            Text(f"{result.runs:,}"),
            Text(number(seconds(result))),
            Text(expectation(entry), style="" if entry.is_met else "bold red"),
        )
    return drawn
