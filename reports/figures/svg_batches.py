"""Drawings of many results in several processes; drawing takes most of the time of a long report."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Sequence

from ...audit.records.suite import Checked
from .figure_style import in_report_style
from .figures import figures_of
from .svg_figure import svg

_ALONE, _BATCH = 40, 10
"""Largest number of results drawn without worker processes, and number of results per batch."""


def drawings_of(results: Sequence[Checked], *, jobs: int | None = None) -> list[list[tuple[str, str]]]:
    """Return, for each result, the captions and SVG elements of its figures, with distinct ids.

    Parameters
    ----------
    jobs : int, optional
        Number of processes; by default the setting of `joblib.parallel_config`, or all cores.
    """
    starts = range(0, len(results), _BATCH)
    if len(results) <= _ALONE or jobs == 1:
        batches = (_drawn(results[start : start + _BATCH], start) for start in starts)
        return list(itertools.chain.from_iterable(batches))
    import joblib

    calls = [joblib.delayed(_drawn)(results[start : start + _BATCH], start) for start in starts]
    if jobs is None:
        _, configured = joblib.parallel.get_active_backend()
        jobs = -1 if configured is None else configured
    return list(itertools.chain.from_iterable(joblib.Parallel(n_jobs=jobs)(calls)))


@in_report_style
def _drawn(results: Sequence[Checked], start: int) -> list[list[tuple[str, str]]]:
    was_enabled = gc.isenabled()
    gc.disable()  # collection takes a fifth of the time, because matplotlib makes many small objects
    try:
        return [
            [
                (one.caption, svg(one.figure, label=one.label, prefix=f"a{index}-{place}-"))
                for place, one in enumerate(figures_of(result))
            ]
            for index, result in enumerate(results, start + 1)
        ]
    finally:
        if was_enabled:
            gc.enable()
