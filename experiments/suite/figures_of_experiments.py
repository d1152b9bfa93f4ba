"""The figures of the experiments in a suite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...audit.records.suite import Suite
from .registry import all_experiments

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
