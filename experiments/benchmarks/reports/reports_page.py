"""Reports: seconds to write and to open, size, and messages of the browser."""

from __future__ import annotations

import functools
import statistics
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....audit.files import write_atomically
from ....audit.records.json_codec import to_json
from ....audit.records.suite import Suite
from ....reports import csv, html, junit, markdown
from ..core.bench_json import Figures, Value, at_most, columns
from ..core.effort import Bench, Effort, Task, once
from ..core.page import Page
from ..core.timing import timed
from .chromium import browser_path, chromium, visit
from .sample_report import sample_suite, suite_of

if TYPE_CHECKING:
    from playwright.sync_api import PdfMargins

_SIZES, _QUICK_SIZES = (20, 200), (4,)
_REPETITIONS = 3
_MOST_SECONDS, _MOST_BYTES, _MOST_TO_OPEN = 10.0, 5e6, 2.0
_FORMS: dict[str, Callable[[Suite], str]] = {
    "HTML": html,
    "Markdown": markdown,
    "JSON": to_json,
    "JUnit XML": junit,
    "CSV": csv,
}


@functools.cache
def _sample(jobs: int) -> Suite:
    return sample_suite(jobs=jobs)


def _tasks(effort: Effort) -> Iterator[Task]:
    for audits in effort.either(_QUICK_SIZES, _SIZES):
        for form in _FORMS:
            if effort.wants(form):
                yield once(f"{form}, {audits}", _cells, effort, audits, form)


def _cells(effort: Effort, audits: int, form: str) -> Figures:
    suite = suite_of(audits, _sample(effort.jobs))
    written = [timed(_FORMS[form], suite) for _ in range(1 if effort.is_quick else _REPETITIONS)]
    text, seconds = written[0][0], statistics.median(taken for _, taken in written)
    size = len(text.encode())
    cells: dict[str, Value] = {"form": form, "audits": audits, "seconds": seconds, "bytes": size}
    if form != "HTML":
        return cells, []
    opened = _opened(text)
    targets = []
    if not effort.is_quick:  # tests run the quick form, and no test asserts a time
        targets.append(at_most("seconds", seconds, _MOST_SECONDS))
        targets += [at_most("seconds to open", opened["opened"], _MOST_TO_OPEN)] if opened else []
    targets.append(at_most("bytes", size, _MOST_BYTES))
    if opened:
        targets += [at_most(name, opened[name], 0) for name in ("complaints", "requests")]
    return cells | opened, targets


def _opened(text: str) -> dict[str, Any]:
    """Return the seconds to open a page, its complaints and requests; an empty dict without a browser."""
    if browser_path() is None or find_spec("playwright") is None:
        return {}
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        path = Path(folder) / "report.html"
        write_atomically(path, text)
        visits = [visit(browser, path, width=1280) for _ in range(_REPETITIONS)]
        return {
            "opened": statistics.median(one.seconds for one in visits),
            "complaints": sum(len(one.complaints) for one in visits),
            "requests": sum(len(one.requests) for one in visits),
        }


_REPORTS = Bench(
    name="reports",
    title="Reports",
    method=(
        "A suite that repeats one audit of each kind up to the number of audits, written in each form with its "
        f"figures: medians of {_REPETITIONS} times. Where Chromium is installed, it opens the report without a window "
        "until the layout is complete. Complaints: errors and warnings of the console. Requests: addresses requested, "
        "except the file itself."
    ),
    columns=columns(
        "form | audits :,d | seconds to write = seconds :.2f | bytes :,d | seconds to open = opened :.2f | "
        "complaints :,d | requests :,d"
    ),
    names=tuple(_FORMS),
    tasks=_tasks,
)

REPORTS = Page("reports", "Benchmarks of reports", (_REPORTS,))


_MARGIN: PdfMargins = {"top": "15mm", "bottom": "15mm", "left": "15mm", "right": "15mm"}


def pictures(folder: Path, *, jobs: int | None = None) -> list[Path]:
    """Write the sample report and its pictures on a laptop, in dark mode, on a phone and on paper; return the files."""
    suite = sample_suite(jobs=jobs)
    page = folder / "report.html"
    write_atomically(page, html(suite))
    made = [page]
    with chromium() as browser:
        for name, width, dark in (("laptop", 1280, False), ("dark", 1280, True), ("phone", 390, False)):
            looked = visit(browser, page, width=width, dark=dark)
            made.append(folder / f"{name}.png")
            looked.page.screenshot(path=made[-1])
        made.append(folder / "report.pdf")
        looked = visit(browser, page, width=1280)
        looked.page.pdf(path=made[-1], format="A4", margin=_MARGIN)
    return made
