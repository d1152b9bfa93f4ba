"""Suites of audit results with what a file keeps beside each, and their table."""

from __future__ import annotations

import datetime
import enum
import math
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import RecordError
from ..events.events import Event
from ..extras import require
from ..inference.event_test import Counts
from ..inference.multiplicity import holm
from ..options import check_fields
from ..printing import least_beside, shorten
from ..results.audit_result import AuditResult
from ..results.canary_result import CanaryResult
from ..results.result import Result
from ..results.statement_result import StatementResult
from ..results.verdict import Equivalence, ExactVerdict, ReplayVerdict, Verdict

if TYPE_CHECKING:
    from pandas import DataFrame

_LISTED = 10  # entries in the printed form of a suite

Checked: TypeAlias = AuditResult | StatementResult | CanaryResult
"""The results that files and reports hold."""


# What a file keeps beside a result: counts of an event in separate runs, an acceptance, a replay as texts.


@dataclass(frozen=True, slots=True, kw_only=True)
class Recount:
    """Counts of an event in runs that neither chose nor tested it.

    The event is None if a file cannot hold the types of its outcomes; then only the forms are compared. Runs of other
    seeds or streams are independent of these.
    """

    event: Event | None
    counts: Counts | None
    forms: tuple[tuple[str, int, int], ...]  # kinds of outputs, such as "None", with their counts on x and on y
    looked_at: int  # runs on each dataset whose forms were recorded
    seed: int | None = None  # None if the file does not say
    stream: str = ""  # purpose of the runs, such as "baseline main"

    def is_independent_of(self, other: Recount) -> bool:
        """Whether seed or stream differ; false if neither recount records them, true if only one has a stream."""
        return (self.seed, self.stream) != (other.seed, other.stream)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A refutation that is accepted for a stated reason until a date.

    The bound of an audit that stopped at its refutation lies just above the claim, however large the loss is, so a
    finite `up_to` does not cover it.
    """

    reason: str
    until: str  # last day of the acceptance, such as "2027-06-30"
    up_to: float = math.inf  # largest accepted bound, in the units of the claim's privacy parameter

    def __post_init__(self) -> None:
        if not self.up_to > 0.0:  # NaN fails
            raise RecordError(f"up_to={self.up_to!r} accepts nothing; use a positive bound.", up_to=self.up_to)
        if not self.reason.strip():
            raise RecordError("an accepted finding needs a reason; state it.")
        try:
            datetime.date.fromisoformat(self.until)
        except (TypeError, ValueError) as error:
            raise RecordError(
                f"until={self.until!r} is not a date; write it like 2027-06-30.", until=self.until
            ) from error

    def __str__(self) -> str:
        limit = f" up to {self.up_to:g}" if self.up_to < math.inf else ""
        return f"accepted{limit} until {self.until}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRow:
    """A call of a noise primitive."""

    place: str  # file, line and function, and the text of the line; the text is empty if the file could not be read
    source: str
    primitive: str  # what was called, and its distribution on x
    distribution: str
    # How far its input moved between x and y, the sensitivity that it declares, and its largest loss; empty if
    # unknown, as of noise that was handed nothing that may depend on data.
    moved: str
    allowed: str
    loss: str
    finding: str  # what is wrong; empty if nothing is


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayTable:
    """The calls of a replay."""

    sentence: str  # the verdict of the replay
    seed: int  # fixes the path
    rows: tuple[ReplayRow, ...]  # the first calls, and all with a finding
    n_calls: int  # all calls
    remarks: tuple[str, ...]  # findings about the whole run, and why the calls do not bound the loss

    def __post_init__(self) -> None:
        check_fields(self, RecordError)
        if self.seed < 0 or self.n_calls < len(self.rows):
            given = f"seed={self.seed} with n_calls={self.n_calls} and {len(self.rows)} rows cannot be"
            raise RecordError(f"{given}; use a seed >= 0 and no more rows than calls.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactRow:
    """An output of an exact audit: its probabilities on x and on y, and the largest loss that is certain, in nats."""

    output: str
    x: float
    y: float
    loss: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactTable:
    """What an exact audit found."""

    rows: tuple[ExactRow, ...]  # the outputs with the largest losses
    n_outputs: int
    curve: tuple[tuple[float, float, float], ...]  # ε, and both ends of δ(ε)
    at_claim: tuple[tuple[float, float], ...]  # the (ε, δ) of the claim; empty for another boundary


_VERDICTS: dict[str, type[enum.Enum]] = {
    "exact": ExactVerdict, "replay": ReplayVerdict, "equivalence": Equivalence, "sensitivity": Verdict,
    "batches": Verdict, "step": Verdict, "accountant": ExactVerdict, "filter": Verdict,
}  # fmt: skip
"""The verdicts of each kind of `SideCheck`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideCheck:
    """A check that has no entry: an exact audit, a replay, a comparison, a sensitivity, a training step, batches,
    an accountant, a filter.
    """

    name: str
    kind: str  # a key of `_VERDICTS`
    subject: str  # what was checked
    verdict: str  # the name of its verdict, such as "EXCESS"
    claim: str
    found: str  # the number found, such as "loss 2"; empty if there is none
    lines: tuple[str, ...]  # the sentences of the printed result, at least one
    seed: int
    alpha: float = 0.0  # 0 for a check that is not random
    replay: ReplayTable | None = None  # the calls of a replay
    exact: ExactTable | None = None  # the outputs and δ(ε) of an exact audit
    is_expected: bool = False  # whether a test expects this verdict

    def __post_init__(self) -> None:
        check_fields(self, RecordError)
        known = _VERDICTS[self.kind].__members__ if self.kind in _VERDICTS else {}
        for name, is_possible, way_out in (
            ("kind", known, f"use {' or '.join(_VERDICTS)}"),
            ("verdict", self.verdict in known, f"use {' or '.join(known)}"),
            ("lines", self.lines, "use at least one sentence"),
            ("seed", self.seed >= 0, "use a whole number >= 0"),
            ("alpha", 0.0 <= self.alpha < 1.0, "use 0 <= alpha < 1"),
        ):
            if not is_possible:
                value = getattr(self, name)
                raise RecordError(f"{name}={shorten(value)} of a check is impossible; {way_out}.", **{name: value})

    @property
    def word(self) -> str:
        """The verdict as it is printed, such as "excess"."""
        return str(_VERDICTS[self.kind][self.verdict].value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An audit or a checked statement in a suite, with its expectation.

    Attributes
    ----------
    name : str
    result : AuditResult, StatementResult or CanaryResult
    expected : Verdict, optional
        Verdict required for the suite to pass.
    exact : float, optional
        The exact privacy parameter on this pair, if the mechanism's distribution is known; may be infinite.
    note : str
        Reason for the expectation, in a sentence.
    experiment : str
        Id of the entry's experiment; may be empty.
    recounts : tuple of Recount
        Events counted again in separate runs, for later comparison.
    accepted : Accepted, optional
        Acceptance of a refutation.
    replay : ReplayTable, optional
        A replay of the pair, which names the line that overspends the budget.
    """

    name: str
    result: Checked
    expected: Verdict | None = None
    exact: float | None = None
    note: str = ""
    experiment: str = ""
    recounts: tuple[Recount, ...] = ()
    accepted: Accepted | None = None
    replay: ReplayTable | None = None

    @property
    def is_met(self) -> bool:
        """Whether the verdict is the expected one; true without an expectation."""
        return self.expected is None or self.result.verdict is self.expected

    def is_excused(self, day: datetime.date) -> bool:
        """Return whether the entry is refuted and the refutation is accepted on a day."""
        return self.result.is_refuted and self.accepted is not None and not any(self.uncovered(day))

    def uncovered(self, day: datetime.date) -> tuple[str, str]:
        """Return why the acceptance does not cover the refutation on a day, in a few words and in full.

        Both are empty if it does, or one of them is missing.
        """
        accepted, result = self.accepted, self.result
        if accepted is None or not result.is_refuted:
            return "", ""
        if day > datetime.date.fromisoformat(accepted.until):
            return "expired", f"acceptance expired after {accepted.until}: {accepted.reason}"
        if accepted.up_to == math.inf:
            return "", ""
        if result.claim is None:
            short, why = "a statement has no bound, so up_to does not cover it", "a statement has no bound; drop up_to"
        elif result.bound > accepted.up_to:
            sign, least, _ = least_beside(result.bound, accepted.up_to)
            short, why = "bound above the accepted one", f"the bound {sign} {least} is above that"
        elif result.has_stopped_early:
            short = "stopped early, so up_to does not cover it"
            why = "the audit stopped at its refutation, so its bound does not limit the loss; make all runs "
            why += "(sequential=False)"
        else:
            return "", ""
        return short, f"{accepted}; {why}"

    def acceptance_in_words(self, day: datetime.date) -> str:
        """Return the acceptance with its reason, and why it does not cover the result; empty without an acceptance."""
        if self.accepted is None:
            return ""
        if self.result.verdict is Verdict.INCONCLUSIVE:
            return f"{self.accepted}; it covers a refutation alone"
        if not self.result.is_refuted:
            return f"no longer needed: {self.accepted}"
        return self.uncovered(day)[1] or str(self.accepted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """An experiment: its id, the tested statement, and the source of the statement."""

    id: str
    statement: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Suite:
    """Audits that were run together, as written to ``results.json``.

    Attributes
    ----------
    title : str
    entries : tuple of Entry
    topics : tuple of Topic
        Experiments of the entries.
    checks : tuple of SideCheck
        Replays, comparisons of versions and others without an entry.
    environment : dict
        Timings, paths, machine, command line: everything that may differ between two runs with the same seed.
    """

    title: str
    entries: tuple[Entry, ...]
    topics: tuple[Topic, ...] = ()
    checks: tuple[SideCheck, ...] = ()
    environment: dict[str, Any] = field(default_factory=dict, compare=False)

    def __getitem__(self, name: str) -> Any:
        """Return the result of the audit with a name."""
        return {entry.name: entry.result for entry in self.entries}[name]

    def adjusted_pvalues(self) -> tuple[float, ...]:
        """Return the p-value of each audit adjusted for their number (Holm): at most a with family-wise error a.

        A failed health check gives 1, because the counts then prove nothing.
        """
        results = [entry.result for entry in self.entries]
        return tuple(holm([1.0 if one.findings else one.pvalue for one in results]).tolist())

    def __repr__(self) -> str:
        shown = [f"  {entry.name}: {entry.result.sentence}" for entry in self.entries[:_LISTED]]
        more = len(self.entries) - len(shown)
        count = f"{len(self.entries):,} audit{'s' * (len(self.entries) != 1)}"
        return "\n".join([f"<Suite {self.title!r}, {count}>", *shown, *([f"  and {more:,} more"] if more else [])])

    @property
    def is_met(self) -> bool:
        """Whether every audit ended with its expected verdict."""
        return all(entry.is_met for entry in self.entries)

    def to_frame(self) -> DataFrame:
        """Return the suite as a pandas data frame with a row for each entry and the columns `COLUMNS`.

        Types are float64, Int64, string and boolean; a column with integers beyond 64 bits, such as a seed, is object.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        require("pandas", "a data frame needs", "pandas")
        import pandas as pd

        found = rows(self)
        # Python storage for text, because other storage may reject lone surrogates.
        types: dict[type, Any] = {str: pd.StringDtype("python"), int: "Int64", float: "float64", bool: "boolean"}
        series = {}
        for name, kind in COLUMNS.items():
            column = [row[name] for row in found]
            is_long = kind is int and any(value is not None and abs(int(value)) >= 2**63 for value in column)
            series[name] = pd.Series(column, dtype=object if is_long else types[kind])
        return pd.DataFrame(series)


Scalar: TypeAlias = str | int | float | bool | None

COLUMNS: dict[str, type[str] | type[int] | type[float] | type[bool]] = {
    # the question
    "name": str, "experiment": str, "kind": str, "mechanism": str, "claim": str, "claim_type": str,
    "claim_source": str, "parameter_name": str, "claimed_parameter": float, "adjacency": str, "unit": str,
    "distance": float, "difference": str, "doubt": str,
    # the answer
    "verdict": str, "expected": str, "is_met": bool, "bound": float, "estimate": float, "exact": float,
    "alpha": float, "pvalue": float, "adjusted_pvalue": float, "min_detectable_excess": float, "power": float,
    "event": str, "more_likely_on": str, "count_x": int, "runs_x": int, "count_y": int, "runs_y": int,
    # the worst number of a statement
    "quantity": str, "at": str, "lower": float, "upper": float, "low": float, "high": float,
    # the canaries of a training run
    "inclusion": str, "canaries": int, "included": int, "guesses": int, "right_guesses": int,
    "max_attainable_bound": float,
    # the runs
    "runs": int, "pilot_runs": int, "stopped": str, "seed": int, "is_reproducible": bool,
    "floating_point_leak": str, "findings": str, "notes": str, "accepted": str, "seconds": float, "provenance": str,
    "versions": str,
}  # fmt: skip
"""Columns with their types, in order; names are those of the fields of results, pairs, counts and points."""


def rows(suite: Suite) -> list[dict[str, Scalar]]:
    """Return a row for each entry, with a value or None in each of `COLUMNS`.

    Text is unescaped, so escape it before display. Columns for one kind of result are None for the others, as are an
    `is_met` without an expectation and empty text; the worst number represents a statement about several numbers.
    """
    return [_row(entry, p) for entry, p in zip(suite.entries, suite.adjusted_pvalues(), strict=True)]


def _row(entry: Entry, adjusted: float) -> dict[str, Scalar]:
    result = entry.result
    own: dict[str, Any] = {
        "is_met": None if entry.expected is None else entry.is_met,
        "adjusted_pvalue": adjusted,
        "findings": "; ".join(f"{each.check.value}: {each.message}" for each in result.findings),
        "notes": "; ".join(result.notes),
        "seconds": seconds(result),
        "versions": ", ".join(f"{name} {version}" for name, version in result.versions),
    }
    sources: tuple[Any, ...]  # of a column the first that has it and not None
    if result.claim is not None:
        own |= {
            "claim_type": type(result.claim).__name__,
            "parameter_name": result.claim.parameter_name,
            "claimed_parameter": result.directed_claim.parameter,
        }
    if isinstance(result, AuditResult):
        own["event"] = result.event_in_words
        sources = (entry, result, result.pair, result.counts)
    elif isinstance(result, CanaryResult):
        guesses, right = result.best_guesses
        own |= {"guesses": guesses, "right_guesses": right}
        sources = (entry, result)
    else:
        own["claim"] = result.statement
        if len(result.points) > 1:
            own["exact"] = None  # it belongs to an unknown number
        sources = (entry, result, result.worst)
    for source in sources:
        for name in COLUMNS.keys() & dir(source):  # a result that lacks a name takes long to say which was meant
            if name not in own and (value := getattr(source, name)) is not None:
                own[name] = value
    plain = {name: value.value if isinstance(value, enum.Enum) else value for name, value in own.items()}
    return {name: None if plain.get(name, "") in (None, "") else kind(plain[name]) for name, kind in COLUMNS.items()}


_OF_A_SUITE = ("name", "experiment", "expected", "is_met", "exact", "accepted", "adjusted_pvalue")


def is_side_check(result: Any) -> bool:
    """Whether a suite keeps the result as a `SideCheck`."""
    return isinstance(result, Result) and result.kind in _VERDICTS


def side_check(name: str, result: Result, *, is_expected: bool = False) -> SideCheck:
    """Return what a suite keeps of a check that has no entry."""
    table = result.tabulated()
    return SideCheck(
        name=name, kind=result.kind, subject=result.subject, verdict=result.verdict.name, claim=result.claimed,
        found=result.measured, lines=(result.headline, *result.details), seed=result.seed, alpha=float(result.alpha),
        is_expected=is_expected, **({} if table is None else {result.kind: table}),
    )  # fmt: skip


def flat(result: Checked) -> dict[str, Scalar]:
    """Return the values of `Suite.to_frame` that the result has."""
    (row,) = rows(Suite(title="", entries=(Entry(name="", result=result),)))
    return {name: value for name, value in row.items() if value is not None and name not in _OF_A_SUITE}


def seconds(result: Checked) -> float | None:
    """Return the seconds in the result's environment, or None if missing or invalid."""
    spent = result.environment.get("seconds")
    if not isinstance(spent, (int, float)) or isinstance(spent, bool):
        return None
    return float(spent) if 0 <= spent <= sys.float_info.max else None
