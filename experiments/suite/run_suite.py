"""All experiments: their registry, their lists for the terminal, their run into a suite, and their figures there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...audit.claims.claim import claim_at
from ...audit.records.json_codec import save
from ...audit.records.suite import Entry, Suite, Topic
from ...audit.results.audit_result import Verdict
from ...audit.store.sqlite_store import Store
from ...reports.plain_text import number, symbol
from ..cases.experiment import AuditCase, Case, Experiment, select
from ..documents import (
    analytic_gaussian,
    definition,
    exponential_mechanism,
    laplace_composition,
    named_mechanisms,
    renyi_proposition,
)
from . import reference_mechanisms

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MODULES = (
    reference_mechanisms,
    exponential_mechanism,
    analytic_gaussian,
    renyi_proposition,
    definition,
    laplace_composition,
    named_mechanisms,
)


@cache
def all_experiments() -> tuple[Experiment, ...]:
    """Return the reference suite, then the experiments of the documents."""
    return tuple(experiment for module in _MODULES for experiment in module.experiments())


def chosen_experiments(names: Sequence[str] | None, documents: Sequence[str] | None) -> list[Experiment]:
    """Return the requested experiments, by default the reference suite."""
    if not names and not documents:
        documents = ["reference"]
    return select(all_experiments(), names or [], documents or [])


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
    return f"{symbol(claim_at(case.claim, case.distance).parameter_name)} = {number(case.exact)}"


def run_experiments(
    experiments: Sequence[Experiment],
    *,
    alpha: float,
    seed: int,
    runs: int | None = None,
    jobs: int | None = None,
    out: Path | None = None,
    watch: Callable[[Case, int], Callable[[int], None]] | None = None,
    environment: dict[str, Any] | None = None,
    store: Store | None = None,
) -> Suite:
    """Run every case; with `out`, ``results.json`` there holds the finished cases at any time.

    Parameters
    ----------
    alpha : float
        Allowed error probability of each case; for the suite it is at most this times the number of cases.
    runs : int, optional
        Runs on each dataset for every case; by default the number in each case.
    watch : callable, optional
        Function called with each case and its runs before the case runs; returns its progress callback.
    store : Store, optional
        Store of finished draws, which are not drawn again.
    """
    started = time.perf_counter()
    entries: list[Entry] = []
    topics = tuple(Topic(id=each.id, statement=each.statement, source=each.source) for each in experiments)
    title = _title([each.id for each in experiments])
    suite = Suite(title=title, entries=(), topics=topics)
    for experiment in experiments:
        for case in experiment.cases:
            size = case.runs if runs is None else runs
            watched = None if watch is None else watch(case, size)
            result = case.run(runs=size, alpha=alpha, seed=seed, jobs=jobs, progress=watched, store=store)
            entries.append(
                Entry(
                    name=case.name,
                    experiment=experiment.id,
                    result=result,
                    expected=case.expected,
                    exact=case.exact,
                    note=case.note,
                )
            )
            suite = Suite(
                title=title,
                entries=tuple(entries),
                topics=topics,
                environment={**(environment or {}), "seconds": round(time.perf_counter() - started, 3)},
            )
            if out is not None:
                save(suite, out / "results.json")
    return suite


def _title(ids: Sequence[str]) -> str:
    if list(ids) == ["reference"]:
        return "Reference suite"
    shown = ", ".join(ids[:8])
    return f"Experiment{'s' * (len(ids) != 1)} {shown}" + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")


def drawings(suite: Suite) -> list[tuple[str, str, Figure]]:
    """Return (id, statement, figure) for each experiment with a figure whose cases are all in the suite."""
    if not any(entry.experiment for entry in suite.entries):
        return []
    found = []
    for experiment in all_experiments():
        entries = [entry for entry in suite.entries if entry.experiment == experiment.id]
        if experiment.draw is not None and {case.name for case in experiment.cases} <= {e.name for e in entries}:
            found.append((experiment.id, experiment.statement, experiment.draw(entries)))
    return found
