"""The drawings of many results, spread over processes: most of the time of a long report."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ..audit.statements import StatementResult
from ..audit.verdicts import AuditResult
from .figures import figures_of
from .svg import svg

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
    if len(results) <= _ALONE or jobs == 1:
        return _drawn(results, 0)
    import joblib

    starts = range(0, len(results), _BATCH)
    calls = [joblib.delayed(_drawn)(results[start : start + _BATCH], start) for start in starts]
    if jobs is None:
        _, configured = joblib.parallel.get_active_backend()
        jobs = -1 if configured is None else configured
    return list(itertools.chain.from_iterable(joblib.Parallel(n_jobs=jobs)(calls)))


def _drawn(results: Sequence[Result], start: int) -> list[list[tuple[str, str]]]:
    return [
        [
            (one.caption, svg(one.figure, label=one.label, prefix=f"a{index}-{place}-"))
            for place, one in enumerate(figures_of(result))
        ]
        for index, result in enumerate(results, start + 1)
    ]
