"""Lists of experiments for the terminal: one line each, or with every case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...audit.claims.claim import claim_at
from ...audit.results.audit_result import Verdict
from ...reports.plain_text import number, symbol
from ..cases.experiment import AuditCase, Case, Experiment


def overview(experiments: Sequence[Experiment]) -> Any:
    """Return a table of ids, documents and statements, with the numbers of true and false versions."""
    from rich.table import Table
    from rich.text import Text

    shown = Table("id", "document", "statement", "true", "false", show_lines=True)
    for each in experiments:
        n_true = sum(case.expected is Verdict.NOT_REFUTED for case in each.cases)
        cells = (each.id, each.document, each.statement, str(n_true), str(len(each.cases) - n_true))
        shown.add_row(*map(Text, cells))
    return shown


def details(experiments: Sequence[Experiment]) -> Iterator[Any]:
    """Yield for each experiment its statement, its source and a table of its cases."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    for each in experiments:
        yield Text.assemble((each.id, "bold"), f"  {each.statement}")
        yield Text(f"{each.document}: {each.source}", style="dim")
        shown = Table(box=SIMPLE_HEAD)
        shown.add_column("case", no_wrap=True)  # users type it, so it is never cut
        for name in ("claim", "expected", "exact value", "what it shows"):
            shown.add_column(name)
        for case in each.cases:
            shown.add_row(*map(Text, (case.name, case.claimed, case.expected.value, _exact(case), case.note)))
        yield shown


def _exact(case: Case) -> str:
    """``ε = 1.25``, ``0.5`` for a statement's number, or "–" if the exact value is unknown."""
    if case.exact is None or not isinstance(case, AuditCase):
        return number(case.exact)
    return f"{symbol(claim_at(case.claim, case.distance).strength_name)} = {number(case.exact)}"
