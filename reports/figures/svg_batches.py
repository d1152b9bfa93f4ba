"""The drawings of many results, spread over processes: most of the time of a long report."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...audit.results.audit_result import AuditResult
from ...audit.results.statement_result import StatementResult
from .figure_style import in_report_style
from .figures import figures_of
from .svg_figure import svg

Result = AuditResult | StatementResult
_ALONE, _BATCH = 40, 10
"""So many results are drawn here, before processes would have started; and so many at once in one of them."""


def drawings_of(results: Sequence[Result], *, jobs: int | None = None) -> list[list[tuple[str, str]]]:
    """Of each result the captions and SVG elements of its figures, with ids of their own.

    Parameters
    ----------
    jobs : int, optional
        Processes; by default what `joblib.parallel_config` says, or every core.
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
def _drawn(results: Sequence[Result], start: int) -> list[list[tuple[str, str]]]:
    with _uncollected():
        return [
            [
                (one.caption, svg(one.figure, label=one.label, prefix=f"a{index}-{place}-"))
                for place, one in enumerate(figures_of(result))
            ]
            for index, result in enumerate(results, start + 1)
        ]


@contextmanager
def _uncollected() -> Iterator[None]:
    """Puts off the collection of garbage, in which matplotlib's many small objects spend a fifth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
