"""Terminal table that compares two records of the same audits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...audit.records.baseline_comparison import Comparison
from ...audit.records.suite import Entry
from ..plain_text import MARKS, counted, empty_table, found, p_text, size, stated, visible

if TYPE_CHECKING:
    from rich.table import Table


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """A row for each audit: verdict, bound, claim and runs before and after, and the changes."""
    table = empty_table(numbers_of(comparisons))
    from rich.text import Text

    table.add_column("audit", overflow="fold", min_width=10)
    table.add_column("before", overflow="fold", min_width=12)
    table.add_column("after", overflow="fold", min_width=12)
    table.add_column("p-value", justify="right")
    table.add_column("changes", overflow="fold", min_width=20)
    for one in comparisons:
        said = [Text(visible(change), style="bold red") for change in one.changes]
        said += [Text(visible(one.not_compared), style="bold")] if one.not_compared else []
        said += [Text(visible(note)) for note in one.notes]
        table.add_row(
            Text(visible(one.name, 80)),
            *(Text("\n".join(side_of(entry))) for entry in (one.before, one.after)),
            Text(p_text(one.p_value)),
            Text("\n").join(said) if said else Text("none"),
        )
    return table


def numbers_of(comparisons: Sequence[Comparison]) -> str:
    """Count the audits, those that changed and those that could not be compared."""
    changed, missed = sum(one.has_changed for one in comparisons), sum(bool(one.not_compared) for one in comparisons)
    said = f"{counted(len(comparisons), 'audit')}, {changed:,} changed"
    return f"{said}, {missed:,} not compared" if missed else said


def side_of(entry: Entry | None) -> list[str]:
    """Verdict, bound, claim and runs before or after; "–" where the audit is missing."""
    if entry is None:
        return ["–"]
    result = entry.result
    verdict = f"{MARKS[result.verdict]} {result.verdict.value}"
    return [verdict, visible(found(result)), visible(stated(result), 100), size(result, " runs")]
