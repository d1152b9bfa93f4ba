"""Drawings of many results in several processes; drawing takes most of the time of a long report."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from ...audit.records.suite import Checked
from .figure_style import in_report_style
from .figures import figures_of
from .runs_figure import projection_of, runs_svg
from .svg_figure import svg

_ALONE, _BATCH = 40, 10
"""Largest number of results drawn without worker processes, and number of results per batch."""


Drawing: TypeAlias = tuple[str, str]
"""A caption and an SVG element."""


def drawings_of(results: Sequence[Checked], *, jobs: int | None = None) -> tuple[list[list[Drawing]], dict[str, str]]:
    """Return the drawings of each result, with distinct ids, and the style sheet that they share.

    Parameters
    ----------
    jobs : int, optional
        Number of processes; by default the setting of `joblib.parallel_config`, or all cores.
    """
    starts = range(0, len(results), _BATCH)
    if len(results) <= _ALONE or jobs == 1:
        return _joined(_drawn(results[start : start + _BATCH], start) for start in starts)
    import joblib

    calls = [joblib.delayed(_drawn)(results[start : start + _BATCH], start) for start in starts]
    if jobs is None:
        _, configured = joblib.parallel.get_active_backend()
        jobs = -1 if configured is None else configured
    return _joined(joblib.Parallel(n_jobs=jobs)(calls))


def _joined(
    batches: Iterable[tuple[list[list[Drawing]], dict[str, str]]],
) -> tuple[list[list[Drawing]], dict[str, str]]:
    drawings, sheet = list[list[Drawing]](), dict[str, str]()
    for own, styles in batches:
        drawings += own
        sheet |= styles
    return drawings, sheet


@in_report_style
def _drawn(results: Sequence[Checked], start: int) -> tuple[list[list[Drawing]], dict[str, str]]:
    sheet: dict[str, str] = {}
    was_enabled = gc.isenabled()
    gc.disable()  # collection takes a fifth of the time, because matplotlib makes many small objects
    try:
        return [_of_one(result, index, sheet) for index, result in enumerate(results, start + 1)], sheet
    finally:
        if was_enabled:
            gc.enable()


def _of_one(result: Checked, index: int, sheet: dict[str, str]) -> list[Drawing]:
    """The drawings of a result; a sequential audit and a training run have their own figure of the bound."""
    drawn = figures_of(result)
    drawings = [
        (one.caption, svg(one.figure, label=one.label, prefix=f"a{index}-{place}-", sheet=sheet))
        for place, one in enumerate(drawn)
    ]
    projection = None if any(one.is_of_the_bound for one in drawn) else projection_of(result)
    if projection is not None:
        drawings.insert(1, (projection.caption, runs_svg(projection, sheet=sheet)))
    return drawings
