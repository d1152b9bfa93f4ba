"""Results as plain text: numbers, names and short sentences for every report, and a table for the terminal."""

from __future__ import annotations

import datetime
import enum
import math
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from ..audit.claims.claim import GroupClaim
from ..audit.extras import require
from ..audit.health.findings import HealthCheck
from ..audit.printing import confidence, counted, rounded_down, verdict_text
from ..audit.records.suite import Checked, Entry, SideCheck, Suite, seconds
from ..audit.results.attack_limits import attack_limits, attack_limits_of_profile
from ..audit.results.audit_result import AuditResult
from ..audit.results.canary_result import CanaryResult
from ..audit.results.result import Result
from ..audit.results.statement_result import StatementResult
from ..audit.results.verdict import Verdict

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, slots=True)
class Look:
    """How a verdict looks in every format: a shape, because colour alone would exclude some readers, and one hue."""

    mark: str
    marker: str  # of matplotlib, in the same shape
    colour: str  # in terminals, cards and figures: a contrast of 4.5 with white and with black, within 0.1
    fill: str  # of areas in figures
    light: str  # on pages: a contrast of at least 6
    dark: str  # on pages in the dark: a contrast of at least 7
    style: str  # name in the style sheet of pages


LOOKS: Final = {
    Verdict.REFUTED: Look("✖", "X", "#C25500", "#F2B88F", "#A63D00", "#FF9D5C", "refuted"),
    Verdict.INCONCLUSIVE: Look("◆", "D", "#767676", "#D0D0D0", "#5A5A5A", "#C4C4C4", "inconclusive"),
    Verdict.NOT_REFUTED: Look("■", "s", "#0079BD", "#9CCBE8", "#005B8F", "#7CC4F2", "not-refuted"),
}
"""The look of each verdict, in reading order.

Hues of Okabe & Ito (2008), which are distinct for readers with any colour vision.
"""
READING_ORDER: Final = tuple(LOOKS)
_ALIKE: Final = {
    "DIFFERENT": Verdict.REFUTED, "EXCESS": Verdict.REFUTED, "SHOWN": Verdict.NOT_REFUTED,
    "BOUNDED": Verdict.NOT_REFUTED, "VERIFIED": Verdict.NOT_REFUTED, "UNDETERMINED": Verdict.INCONCLUSIVE,
}  # fmt: skip


def alike(name: str) -> Verdict:
    """Return the verdict of an audit that looks like a verdict of this name, of a comparison or a replay, say."""
    return _ALIKE.get(name) or Verdict[name]


def marked(verdict: enum.Enum) -> str:
    """Return the words of a verdict after its mark."""
    return f"{LOOKS[alike(verdict.name)].mark} {verdict.value}"


_SYMBOLS = {"epsilon": "ε", "delta": "δ", "mu": "μ", "rho": "ρ"}
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})  # controls, bidi overrides, lone surrogates, …


def require_for_html() -> None:
    """Raise a `MissingExtraError` unless HTML reports can be drawn, so that a long audit fails before it starts."""
    require("report", "reports need", "matplotlib", "jinja2")


def number(value: float | None) -> str:
    """Format a number with 4 significant digits, small ones as ``1e-05``; None as "–"."""
    if value is None:
        return "–"
    if math.isnan(value):
        return "undefined"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:,.0f}" if 9999.5 <= abs(value) < 1e9 else f"{value:.4g}"


def symbol(parameter_name: str) -> str:
    """Return the Greek letter of a claim's parameter, or its name if it has none."""
    return _SYMBOLS.get(parameter_name, parameter_name)


def outcome(check: SideCheck) -> str:
    """``✖ excess``, or ``✖ excess, as expected`` if a test expects this verdict."""
    return f"{LOOKS[alike(check.verdict)].mark} {check.word}{', as expected' * check.is_expected}"


def spelled(text: str) -> str:
    """Return a text for the terminal, where results print ``epsilon >= 1.2`` and not ``ε ≥ 1.2``."""
    for name, letter in _SYMBOLS.items():
        text = text.replace(letter, name)
    return text.replace("≥", ">=")


def duration(seconds: float | None) -> str:
    """Format a time as ``12 ms``, ``3.2 s``, ``1 min 15 s`` or ``1 h 7 min``; None as "–"."""
    if seconds is None:
        return "–"
    if seconds < 59.95:
        return f"{1000 * seconds:.3g} ms" if seconds < 0.9995 else f"{seconds:.3g} s"
    (large, small), units = divmod(round(seconds), 60), ("min", "s")
    if large >= 60:
        (large, small), units = divmod(round(seconds / 60), 60), ("h", "min")
    return f"{large:,} {units[0]} {small} {units[1]}"


def visible(text: str, limit: int = 500) -> str:
    """Escape invisible and reordering characters, and cut the middle of texts longer than `limit`, between words."""
    if len(text) > limit:
        tail = limit // 3
        start, end = text[: limit - tail - 1], text[-tail:]
        start = start[: start.rfind(" ", len(start) // 2) + 1] or start
        text = f"{start}…{end[max(end.find(' ', 0, tail // 2), 0) :]}"
    if text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode() if unicodedata.category(char) in _UNSEEN else char for char in text
    )


def prose(text: str) -> str:
    """Visible text of a note or message on one line."""
    return visible(" ".join(text.split()), 2_000)


def verdict_counts(suite: Suite) -> dict[Verdict, int]:
    """Number of audits with each verdict, zeros included."""
    tally = Counter(entry.result.verdict for entry in suite.entries)
    return {verdict: tally[verdict] for verdict in Verdict}


def tally(suite: Suite) -> str:
    """``1 refuted, 2 not refuted, 0 inconclusive``."""
    return ", ".join(f"{count:,} {verdict.value}" for verdict, count in verdict_counts(suite).items())


def expectation(entry: Entry) -> str:
    """``met``, ``not met (expected refuted)`` for example, or ``–`` if no verdict was expected."""
    if entry.expected is None:
        return "–"
    return "met" if entry.is_met else f"not met (expected {entry.expected.value})"


def acceptance(entry: Entry, today: datetime.date) -> str:
    """Status of an accepted finding; empty without an acceptance."""
    accepted, result = entry.accepted, entry.result
    if accepted is None:
        return ""
    if result.verdict is Verdict.INCONCLUSIVE:
        return "undecided"
    if not result.is_refuted:
        return "no longer refuted; withdraw the acceptance"
    return entry.uncovered(today)[0] or "accepted"


def acceptance_note(entry: Entry, today: datetime.date) -> str:
    """``accepted``, or for example ``acceptance: expired``; empty without an acceptance."""
    status = acceptance(entry, today)
    return status if status in ("", "accepted") else f"acceptance: {status}"


def is_self_test(suite: Suite) -> bool:
    """Whether the suite tests dpaudit: every audit is a case of an experiment, with an expected verdict."""
    return bool(suite.entries) and all(entry.experiment and entry.expected is not None for entry in suite.entries)


def severity(result: AuditResult | CanaryResult) -> float:
    """The lower bound as a multiple of the claim: infinite above a claim of 0."""
    if result.bound <= 0.0:
        return 0.0
    return result.bound / result.claim.parameter if result.claim.parameter > 0.0 else math.inf


def severity_text(result: Checked) -> str:
    """The lower bound of a refuted audit as a multiple of its claim, ``×4,093``; empty for a claim of 0."""
    if result.claim is None or not result.is_refuted or math.isinf(severity(result)):
        return ""
    factor = severity(result)
    return f"×{factor:,.0f}" if 999.5 <= factor < 1e9 else f"×{factor:.3g}"


def severity_note(result: Checked) -> str:
    """The severity for lists, ``×1.04 at an early stop`` if the audit stopped at its refutation."""
    text = severity_text(result)
    return f"{text} at an early stop" if text and result.stopped == "refuted" else text


def expectations(suite: Suite) -> str:
    """Say in a sentence how many audits ended with their expected verdict."""
    stated = [entry for entry in suite.entries if entry.expected is not None]
    unmet = sum(not entry.is_met for entry in stated)
    if not stated:
        return "No verdict was expected in advance."
    if is_self_test(suite):
        return f"Self-test: {len(stated) - unmet:,} of {counted(len(stated), 'verdict')} as expected."
    those = f"{counted(len(stated), 'audit')} with an expected verdict"
    if unmet:
        return f"{unmet:,} of the {those} came out otherwise."
    return f"The {those} came out as expected." if len(stated) == 1 else f"All {those} came out as expected."


def environments(suite: Suite) -> list[Mapping[str, Any]]:
    """The environment of a suite, and those of the suites that were merged into it."""
    merged = suite.environment.get("merged")
    told = [each.get("environment") for each in merged if isinstance(each, Mapping)] if isinstance(merged, list) else []
    return [suite.environment, *(each for each in told if isinstance(each, Mapping))]


def missing(suite: Suite) -> list[str]:
    """Names of planned audits that have no result, such as those of a worker that crashed."""
    named = [record.get("missing") for record in environments(suite)]
    return [str(name) for names in named if isinstance(names, list) for name in names]


def false_alarms(suite: Suite) -> float:
    """Largest expected number of refutations if every audited claim held: the sum of the alphas."""
    return math.fsum(entry.result.alpha for entry in suite.entries)


def held_together(suite: Suite) -> str:
    """Say in a sentence how many claims are refuted at family-wise error 0.05."""
    refuted = sum(p <= 0.05 for p in suite.adjusted_pvalues())
    return f"At family-wise error 0.05 (Holm), {counted(refuted, 'claim')} {'is' if refuted == 1 else 'are'} refuted."


def found(result: Checked) -> str:
    """``ε ≥ 1.2``, or the interval of a statement's worst number; "–" after a failed health check."""
    if result.findings:
        return "–"
    if result.claim is None:
        return result.measured
    claim = result.directed_claim
    per_step = " per step" * isinstance(claim, GroupClaim)
    sign, least = result.limit
    has_few_digits = float(f"{float(least):.4g}") == float(least)
    shown = number(float(least)) if has_few_digits else least
    return f"{symbol(claim.parameter_name)} {sign.replace('>=', '≥')} {shown}{per_step}"


def printed_lines(result: Result, limit: int, *, unnamed: str = "", is_replayed: bool = False) -> list[str]:
    """The lines of a printed result, with its headline and details cut to `limit` characters each.

    Left out are the name `unnamed`, and of a result whose replay is told beside it the advice to make one.
    """
    headline = result.headline.replace(f"  {unnamed}: ", ": ", 1) if unnamed else result.headline
    details = [one for one in result.details if not (is_replayed and one.startswith("next: replay("))]
    short = verdict_text(visible(headline, limit), [visible(detail, limit) for detail in details])
    return [*short.splitlines(), *(visible(line, limit) for line in result.below)]


def other_way(result: AuditResult) -> str:
    """Describe the event of the other direction, or the complement of the event if its likelihood ratio is larger.

    Epsilon bounds that ratio too. Empty unless the event is also more frequent on the tested side.
    """
    if result.opposite is not None:
        return result.opposite_in_words
    counts = result.directed_counts
    misses_p, misses_q = counts.runs_x - counts.count_x, counts.runs_y - counts.count_y
    ratio = math.inf if misses_p == 0 else (misses_q / counts.runs_y) / (misses_p / counts.runs_x)
    if misses_q == 0 or not 1.0 < result.ratio < ratio:
        return ""
    p, q = ("x", "y") if result.more_likely_on == "x" else ("y", "x")
    times = "occur only on" if math.isinf(ratio) else f"are {ratio:.3g} times as likely on"
    return f"outputs outside the event {times} {q}: {misses_q:,} there, {misses_p:,} on {p}"


def p_text(pvalue: float | None) -> str:
    """Format a p-value; the tests state none much below a billionth, shown as ``< 1e-9``."""
    return "< 1e-9" if pvalue is not None and pvalue < 1e-9 else number(pvalue)


def sentences(result: Checked) -> tuple[str, list[str]]:
    """The verdict in a sentence, and the warnings, notes and failed health checks."""
    return prose(result.sentence), [prose(remark) for remark in result.remarks]


def size(result: Checked, unit: str = "") -> str:
    """The number of runs with a unit, or that of canaries for a training run."""
    return counted(result.canaries, "canary") if isinstance(result, CanaryResult) else f"{result.runs:,}{unit}"


def exact(entry: Entry) -> float | None:
    """The known exact value of the bounded number; None for a statement about several numbers."""
    result = entry.result
    return None if result.claim is None and len(result.points) > 1 else entry.exact


def exact_text(entry: Entry) -> str:
    """``ε = 1.25``, ``0.5`` for a statement's number, or "–" if the exact value is unknown."""
    value, result = exact(entry), entry.result
    if value is None or result.claim is None:
        return number(value)
    return f"{symbol(result.claim.parameter_name)} = {number(value)}"


def detectable(result: Checked) -> float | None:
    """The minimum detectable excess; None for a statement and after a failed health check."""
    return None if result.claim is None or result.findings else result.min_detectable_excess


def detectable_text(result: Checked) -> str:
    """The minimum detectable excess as ``0.02``, ``∞`` or "–"."""
    return number(detectable(result))


def error_budget(result: AuditResult | CanaryResult) -> str:
    """The error budget without its leading label."""
    return str(result.error_budget).removeprefix("error budget ")


def runs_made(result: AuditResult) -> str:
    """The runs of an audit, which may have divided its main runs unevenly, and those of its search."""
    if result.stopped is not None:
        shown = "of the final test" if result.is_closed else "of the last event over all runs"
        learned = f"; {result.searched:,} runs of the search on each were learned from too" if result.searched else ""
        how = "in the batches of a betting test; the counts are those"
        return f"{result.runs:,} on each dataset, {how} {shown}{learned}"
    counts, main = result.counts, result.runs - result.pilot_runs
    is_uneven = counts.runs_x != counts.runs_y and counts.runs_x + counts.runs_y == 2 * main
    on_each = f"{result.runs:,} on each dataset"
    on_either = f"{counts.runs_x:,} on x and {counts.runs_y:,} on y, divided so that the error is least"
    searched = f"; {result.searched:,} runs of the search on each chose the event" if result.searched else ""
    if searched and not result.pilot_runs:
        return f"{on_either if is_uneven else on_each}{searched}"
    if is_uneven:
        made = f"{result.pilot_runs:,} on each dataset that chose the event, then {on_either}"
    else:
        made = f"{on_each}, {result.pilot_runs:,} of them pilot runs that chose the event"
    return made + (f"{searched} too" if searched else "")


def lines(result: Checked) -> str:
    """One result in a few lines of plain text: the printed result, then its facts."""
    return "\n".join([*printed_lines(result, 2_000), *(f"  {name:<8} {value}" for name, value in facts(result))])


def facts(result: Checked) -> list[tuple[str, str]]:
    """Short names and values of a result: what was claimed, seen and run; without a name what belongs to the last."""
    if isinstance(result, StatementResult):
        points = ((one.at or result.quantity, f"{one.interval}, {one.allowed}") for one in result.points)
        own = [("statement", prose(result.statement)), *((visible(at), told) for at, told in points)]
        how = [("intervals", visible(result.method)), ("runs", f"{result.runs:,}")]
        return [*own, *how, ("seed", str(result.seed)), ("alpha", f"{result.alpha:g}")]
    is_sick, claim = bool(result.findings), f"{result.claim}, {result.adjacency}"
    p_value = "no p-value, as a failed health check leaves no bound" if is_sick else f"p-value {p_text(result.pvalue)}"
    if isinstance(result, CanaryResult):
        most = f"{symbol(result.claim.parameter_name)} ≥ {number(rounded_down(result.max_attainable_bound))}"
        own = [
            ("canaries", canaries_in_words(result)),
            ("guesses", f"{result.guesses_in_words}; {p_value}"),
            ("at most", f"{most} if every guess had been correct"),
        ]
    else:
        pair, other = result.pair, visible(other_way(result))
        claim += f", distance {pair.distance:g}"
        estimate = "" if is_sick or not math.isfinite(result.estimate) else f", estimate {number(result.estimate)}"
        own = [
            ("event", visible(result.event_in_words)),
            *([("", other)] if other else []),
            ("counts", f"{result.tested}; {p_value}{estimate}"),
            ("pair", f"{visible(pair.x)} and {visible(pair.y)}: {visible(pair.difference)}"),
            ("runs", runs_made(result)),
        ]
    return [("claim", visible(claim, 120)), *own, ("seed", str(result.seed)), ("alpha", error_budget(result))]


def fact_lines(result: Checked) -> list[str]:
    """The facts of a result, a line each, such as "seed: 7"."""
    return [f"{name}: {value}" if name else value for name, value in facts(result)]


def canaries_in_words(result: CanaryResult) -> str:
    """``1,000, of which 489 were in the training data, by independent coins of probability 0.5``."""
    coins = f"by independent coins of probability {number(result.guesses.probability)}"
    if result.inclusion == "fixed":
        coins = f"by a fixed split, in {result.guesses.canaries:,} random pairs of one in and one out"
    return f"{result.canaries:,}, of which {result.included:,} were in the training data, {coins}"


def empty_table(caption: str, title: str = "") -> Table:
    """Return a rich table without columns."""
    require("cli", "tables need", "rich")
    from rich import box
    from rich.table import Table
    from rich.text import Text  # strings would be read as markup

    drawn = Table(caption=Text(caption), box=box.SIMPLE_HEAD, padding=0, show_edge=False, caption_justify="left")
    drawn.title, drawn.title_justify = (Text(title) if title else None), "left"
    return drawn


def table(suite: Suite) -> Table:
    """The suite as a rich table that fits 100 columns."""
    caption = f"{tally(suite)}. {expectations(suite)} {held_together(suite)}"
    drawn = empty_table(caption, visible(suite.title, 80))
    from rich.text import Text

    drawn.add_column("audit", overflow="fold", min_width=10)
    drawn.add_column("claim", overflow="fold", min_width=8, max_width=12)
    drawn.add_column("verdict", min_width=14, no_wrap=True)
    for heading in ("bound", "exact\nvalue", "detectable\nexcess", "runs", "time"):
        drawn.add_column(heading, justify="right", overflow="fold")
    drawn.add_column("expectation", overflow="fold", max_width=12)
    for entry in suite.entries:
        result = entry.result
        drawn.add_row(
            Text(visible(entry.name, 60)),
            Text(visible(result.claimed, 80)),
            Text(marked(result.verdict), style=f"bold {LOOKS[result.verdict].colour}"),
            Text(spelled(found(result))),
            Text(exact_text(entry).rpartition(" = ")[2]),
            Text(detectable_text(result)),
            Text(size(result)),
            Text(duration(seconds(result))),
            Text(expectation(entry), style="" if entry.is_met else "bold red"),
        )
    return drawn


# What an audit says of an attacker who guesses from which dataset an output came.


def attack_table(found: Checked | SideCheck) -> list[tuple[str, str, str]]:
    """Headings, and then the measures of attacks with what was shown and what is allowed; empty without any."""
    if isinstance(found, SideCheck):
        if found.exact is None:
            return []
        measures, shown, allowed = attack_limits_of_profile(found.exact.curve), "certainly", "certainly"
    elif found.claim is None:
        return []
    else:
        measures, shown, allowed = attack_limits(found), f"shown, {confidence(found.alpha)}", "if the claim holds"
    rows, told = [("guesses of the dataset from one output", shown, allowed)], set[str]()
    for each in measures:
        shown, allowed = ("—" if cell in told else cell for cell in (each.shown, each.allowed))
        rows.append((each.name, shown, allowed))
        told |= {cell for cell in (shown, allowed) if cell.startswith("— ")}
    return rows


def attack_lines(found: Checked | SideCheck) -> list[str]:
    """The rows of `attack_table` as a line each, with the heading of the last column."""
    headings, *rows = attack_table(found) or [("", "", "")]
    return [f"{name} {shown}, {headings[2]} {allowed}" for name, shown, allowed in rows]


# What weakens the verdict of an audit: reasons for a person to read it before a program acts on it.

Kind = Literal["floating-point leak", "pair", "silenced", "idle", "excess"]
_OF_USE: Final = frozenset(
    check.value for check in (HealthCheck.EQUAL_DATASETS, HealthCheck.CONSTANT_OUTPUT, HealthCheck.NO_POWER)
)
KINDS: Final[tuple[Kind, ...]] = ("floating-point leak", "pair", "silenced", "idle", "excess")

APART: Final = frozenset[Kind]({"silenced", "idle", "excess"})
"""Kinds that the remarks of a result do not state."""


@dataclass(frozen=True, slots=True)
class Caution:
    """A reason to read a verdict with care."""

    kind: Kind
    text: str  # not escaped


def cautions(result: Checked) -> tuple[Caution, ...]:
    """Return the cautions of a result: a floating-point leak, a doubtful pair, silenced checks, no loss, a large
    excess.

    No loss is visible if the claim is not refuted and the bound is 0: a mechanism that ignores its data gives the same.
    The bound of a training run is often 0; there, scores that are all equal or of the wrong sign are a caution. A
    detectable excess is large if the claim is not refuted and the excess exceeds the claim, as the audit's call has
    accepted: a mechanism with twice the claimed loss may then pass unnoticed. A claim of 0 has no such scale and gets
    no such caution. It says that the outputs on x and y have the same distribution, so the checks that ask whether the
    data are used do not concern it.
    """
    if result.claim is None:
        return ()
    claimed, found = result.directed_claim.parameter, list[Caution]()
    if result.floating_point_leak is not None:
        leak = "a floating-point leak breaks the claim; the verdict covers values only"
        found.append(Caution("floating-point leak", leak))
    if result.doubt:
        found.append(Caution("pair", f"doubtful pair: {result.doubt}"))
    if silenced := [name for name in result.ignored if claimed > 0.0 or name not in _OF_USE]:
        found.append(Caution("silenced", f"silenced health checks: {', '.join(silenced)}"))
    if result.verdict is Verdict.NOT_REFUTED and claimed > 0.0:
        if isinstance(result, CanaryResult):
            found += [Caution("idle", f"the scores tell little: {note.removesuffix('.')}") for note in result.notes]
        elif result.bound == 0.0:
            found.append(Caution("idle", "the lower bound is 0, as if the mechanism did not use its data"))
    if result.verdict is Verdict.NOT_REFUTED and 0.0 < claimed < (excess := result.min_detectable_excess or 0.0):
        told = f"the minimum detectable excess ({number(excess)}) is larger than the claim ({number(claimed)})"
        found.append(Caution("excess", told))
    return tuple(found)


def heading(kind: Kind, n: int) -> str:
    """Return what is said of `n` audits with a caution of one kind."""
    audits, is_one = counted(n, "audit"), n == 1
    if kind == "floating-point leak":
        claims, verdicts = ("the claim", "verdict covers") if is_one else (f"{n:,} claims", "verdicts cover")
        return f"Floating-point leaks break {claims}; the {verdicts} values only"
    if kind == "pair":
        verdicts = "verdict" if is_one else "verdicts"
        return f"The datasets of {audits} may not be neighbours, so the {verdicts} may not concern the claim"
    if kind == "silenced":
        return f"Health checks were silenced in {audits}; a failure that they would have found is not shown"
    if kind == "idle":
        return f"No loss is visible in {audits}, as if the data were not used or scores had the wrong sign"
    claims = "one claim that is" if is_one else f"{n:,} claims that are"
    excess = f"The minimum detectable excess of {claims} not refuted"
    return f"{excess} is larger than the claim; twice the claim may pass unnoticed"
