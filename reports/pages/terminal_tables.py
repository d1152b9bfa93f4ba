"""Tables for the terminal: of a plan, of changes between two records, and of the audits of a test session."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...audit.claims.claim import Claim
from ...audit.errors import OptionError
from ...audit.options import checked
from ...audit.power.joint_test_power import Alternative, GaussianNoise, best_q, detectable_excess, event_of, runs_needed
from ...audit.printing import counted
from ...audit.procedures.check import runs_by_divergence
from ...audit.procedures.detectable_excess import SHARE, detectable_by_divergence, power_of_the_test
from ...audit.records.baseline_comparison import Comparison
from ...audit.records.suite import Entry, SideCheck, seconds
from ...audit.results.claim_pair_and_alpha import FINAL_SHARE
from ...audit.results.verdict import Verdict
from ...audit.sampling.pilot_and_batch_sizes import main_runs, pilot_runs, with_pilot
from .. import plain_text as plain

if TYPE_CHECKING:
    from rich.table import Table

# Terminal table that compares two records of the same audits.


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """A row for each audit: verdict, bound, claim and runs before and after, and the changes."""
    table = plain.empty_table(numbers_of(comparisons))
    from rich.text import Text

    for heading, width in (("audit", 10), ("before", 12), ("after", 12)):
        table.add_column(heading, overflow="fold", min_width=width)
    table.add_column("p-value", justify="right")
    table.add_column("changes", overflow="fold", min_width=20)
    for one in comparisons:
        said = [Text(plain.visible(change), style="bold red") for change in one.changes]
        said += [Text(plain.visible(one.not_compared), style="bold")] if one.not_compared else []
        said += [Text(plain.visible(note)) for note in one.notes]
        table.add_row(
            Text(plain.visible(one.name, 80)),
            *(Text(plain.spelled("\n".join(side_of(entry)))) for entry in (one.before, one.after)),
            Text(plain.p_text(one.pvalue)),
            Text("\n").join(said) if said else Text("none"),
        )
    return table


def numbers_of(comparisons: Sequence[Comparison]) -> str:
    """Count the audits, other checks, those that changed and those that could not be compared."""
    changed, missed = sum(one.has_changed for one in comparisons), sum(bool(one.not_compared) for one in comparisons)
    others = sum(isinstance(one.before or one.after, SideCheck) for one in comparisons)
    also = f" and {counted(others, 'other check')}" if others else ""
    said = f"{counted(len(comparisons) - others, 'audit')}{also}, {changed:,} changed"
    return f"{said}, {missed:,} not compared" if missed else said


def side_of(entry: Entry | SideCheck | None) -> list[str]:
    """Verdict, bound, claim and runs before or after; "–" where the audit is missing."""
    if entry is None:
        return ["–"]
    if isinstance(entry, SideCheck):
        return [plain.outcome(entry), *(plain.visible(text, 100) for text in (entry.found, entry.claim) if text)]
    result = entry.result
    words = [plain.visible(plain.found(result)), plain.visible(result.claimed, 100)]
    return [plain.marked(result.verdict), *words, plain.size(result, " runs")]


_SHARES = (0.5, 0.1, 0.05, 0.02, 0.01)  # of the claim, without a requested excess
_CAPTION = (
    "An audit that has to find its event usually needs one to three times as many runs, and far more if its pilot "
    "shows only a rare event."
)


def plan_table(
    claim: Claim, resolutions: list[float], runs: list[int], *, power: float, alpha: float, q: float | None
) -> Table:
    """Return a row for each excess and each number of runs, by default for shares of the parameter of the claim.

    Shares that no possible number of runs detects are left out.
    """
    from rich.table import Table
    from rich.text import Text

    plan = _Plan(claim, power, alpha, q)
    rows = [plan.row_of_excess(excess) for excess in resolutions]
    if not resolutions and not runs:
        room = claim.max_parameter - claim.parameter
        excesses = [min(share * (claim.parameter or 1.0), share * room) for share in _SHARES]
        rows = [row for excess in excesses for row in plan.rows_if_possible(excess)]
    rows += [plan.row_of_runs(checked("runs", number)) for number in runs]
    shown = Table(
        f"minimum detectable\nexcess of {claim.parameter_name}",
        "runs on each\ndataset",
        "of which\npilot runs",
        "minimum detectable\nexcess, sequential",
        "probability of\nthe event on y",
        title=Text(f"{claim}, alpha {alpha:g}, power {power:g}, {plan.event_in_words}"),
        title_justify="left",
        caption=_CAPTION if q is None else None,
        caption_justify="left",
    )
    for column in shown.columns:
        column.justify = "right"
    for excess, of_each, pilot, early, rate in rows:
        of_event = "in bins" if plan.is_in_bins else f"{rate:.3g}"
        shown.add_row(f"{excess:.4g}", f"{of_each:,}", f"{pilot:,}", f"{early:.3g}", of_event)
    return shown


Row = tuple[float, int, int, float, float]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The audit that is planned: its claim, power and alpha, and the probability of its event on y, if given."""

    claim: Claim
    power: float
    alpha: float
    q: float | None

    @property
    def is_in_bins(self) -> bool:
        return self.q is None and bool(self.claim.divergence_slopes)

    @property
    def event_in_words(self) -> str:
        if self.q is not None:
            return f"an event of probability {self.q:g}"
        return "the best possible event" if self.claim.gaussian_mu is None else "Gaussian noise"

    def alternative(self, excess: float) -> Alternative:
        """Return the planned event: of the given probability, an event of Gaussian noise, or the best event."""
        if self.q is not None:
            return self.q
        if self.claim.gaussian_mu is not None:
            return GaussianNoise(SHARE)
        return best_q(self.claim, excess=min(excess, 0.99 * (self.claim.max_parameter - self.claim.parameter)))

    def row_of_excess(self, excess: float) -> Row:
        """Return the row of an excess, with the runs that detect it."""
        claim, alpha, alternative = self.claim, self.alpha, self.alternative(excess)
        rate = event_of(claim, excess, alternative).q
        if self.is_in_bins:
            number = runs_by_divergence(claim, excess, alpha=alpha, power=self.power)
            return excess, number, pilot_runs(number), self.early(number), rate
        power = power_of_the_test(self.power)
        number = with_pilot(runs_needed(claim, alternative, excess=excess, power=power, alpha=alpha), rate)
        return excess, number, number - main_runs(number, rate), self.early(number), rate

    def rows_if_possible(self, excess: float) -> list[Row]:
        """Return the row of an excess; none if no possible number of runs detects it."""
        try:
            return [self.row_of_excess(excess)]
        except OptionError:
            return []

    def row_of_runs(self, number: int) -> Row:
        """Return the row of a number of runs, with its detectable excess."""
        excess, main, rate = self.detectable(number, self.alpha)
        return excess, number, number - main, self.early(number), rate

    def early(self, number: int) -> float:
        """Return the detectable excess of a sequential audit, which is that of its final test."""
        return self.detectable(number, FINAL_SHARE * self.alpha)[0]

    def detectable(self, number: int, alpha: float) -> tuple[float, int, float]:
        """Return the detectable excess of a number of runs, the main runs among them, and the event's chance on y."""
        claim, main = self.claim, number - pilot_runs(number)
        if self.is_in_bins:
            excess = detectable_by_divergence(claim, number - main, main, main, alpha=alpha, power=self.power)
            return excess, main, event_of(claim, excess, GaussianNoise(SHARE)).q if excess < math.inf else 0.5
        excess, rate = 1e-2 * min(claim.parameter or 1.0, claim.max_parameter - claim.parameter), 0.5
        for _ in range(1 if self.q is not None else 3):  # the best event depends on the excess, and that on the event
            alternative = self.alternative(excess)
            excess = detectable_excess(claim, main, main, alternative, alpha=alpha, power=power_of_the_test(self.power))
            if excess == math.inf:
                break
            rate = event_of(claim, excess, alternative).q
            main = main_runs(number, rate)
        return excess, main, rate


# Table of audits at the end of a test session.

_HEADINGS = ("audit", "claim", "bound", "detectable excess", "runs", "time", "verdict")
_WIDEST = 60
_NAMED = 10  # audits of a warning, as in pytest's summary


def table_lines(entries: Sequence[Entry], checks: Sequence[SideCheck] = ()) -> list[str]:
    """A line for each audit and other check; inconclusive and refuted ones come last, next to the end of the output."""
    told = [(entry.result.verdict, entry.name, _row(entry)) for entry in entries]
    told += [(plain.alike(check.verdict), check.name, _row_of_check(check)) for check in checks]
    ordered = sorted(told, key=lambda one: (-plain.READING_ORDER.index(one[0]), one[1]))
    rows = [_HEADINGS, *(row for _, _, row in ordered)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def remarks(entries: Sequence[Entry]) -> list[str]:
    """Warnings, with one floating-point leak in full, notes, and acceptances that can be withdrawn."""
    said, leaking = list[str](), list[str]()
    for entry in entries:
        result = entry.result
        if result.doubt:
            said.append(f"WARNING {_short(entry.name)}: {result.doubt}")
        if result.floating_point_leak is not None:
            leaking.append(_short(entry.name))
            if len(leaking) == 1:  # the others are of the same kind, and their results have them in full
                said.append(f"WARNING {leaking[0]}: {plain.prose(str(result.floating_point_leak))}")
        said += [f"note {_short(entry.name)}: {plain.visible(note, 200)}" for note in result.notes]
        if entry.accepted is not None and result.verdict is Verdict.NOT_REFUTED:
            said.append(
                f"note {_short(entry.name)}: no longer refuted, so the acceptance can be withdrawn (accepted= in the "
                f"marker, and in the file of a baseline): {plain.prose(str(entry.accepted))}"
            )
    if others := leaking[1:]:
        leaks = "has a floating-point leak" if len(others) == 1 else "have floating-point leaks"
        said.append(f"WARNING {counted(len(others), 'more audit')} {leaks}: {_listed(others)}")
    if own := [_short(entry.name) for entry in entries if entry.result.why_not_reproducible]:
        what = "as the seed does not fix all randomness, so the bounds differ from session to session"
        said.append(f"note not reproducible, {what} (draw from the parameter rng): {_listed(own)}")
    return said


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + ", …" * (len(names) > _NAMED)


def _short(name: str) -> str:
    name = plain.visible(name)
    return name if len(name) <= _WIDEST else "…" + name[1 - _WIDEST :]


def _row(entry: Entry) -> tuple[str, ...]:
    result = entry.result
    return (
        _short(entry.name),
        plain.visible(result.claimed, 40),
        plain.spelled(plain.found(result)),
        "–" if result.is_refuted else plain.detectable_text(result),
        plain.size(result),
        plain.duration(seconds(result)),
        f"{plain.marked(result.verdict)}{_acceptance(entry)}",
    )


def _row_of_check(check: SideCheck) -> tuple[str, ...]:
    claim, found = (plain.visible(text or "–", 40) for text in (check.claim, check.found))
    return (_short(check.name), claim, found, "–", "–", "–", plain.outcome(check))


def _acceptance(entry: Entry) -> str:
    """The acceptance of a refutation, or why it does not cover it; or that the verdict was expected."""
    today = datetime.date.today()
    if entry.expected is not None:
        return ", as expected" if entry.is_met else f", expected: {entry.expected.value}"
    if entry.accepted is None or not entry.result.is_refuted:
        return ""
    return f", {plain.prose(str(entry.accepted)) if entry.is_excused(today) else plain.acceptance_note(entry, today)}"
