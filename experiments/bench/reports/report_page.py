"""Reports measured: how long one takes to be made and to be opened, how large it is, and what a browser says of it."""

from __future__ import annotations

import functools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....audit.records.json_codec import to_json, write_whole
from ....audit.records.suite import Suite
from ....reports import csv, html, junit, markdown
from ..core.bench_json import Column, Row, Target, Value
from ..core.effort import Bench, Effort, Task, finished
from ..core.page import Page
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


def _sizes(effort: Effort) -> tuple[int, ...]:
    return _QUICK_SIZES if effort.is_quick else _SIZES


def _tasks(effort: Effort) -> Iterator[Task]:
    for audits in _sizes(effort):
        for form in _FORMS:
            if effort.wants(form):
                yield Task(f"{form}, {audits}", partial(_measured, effort, audits, form))


def _measured(effort: Effort, audits: int, form: str, former: Row | None) -> Iterator[Row]:
    if former is not None:
        yield former
        return
    started = time.perf_counter()
    suite = suite_of(audits, _sample(effort.jobs))
    seconds = []
    for _ in range(1 if effort.is_quick else _REPETITIONS):
        before = time.perf_counter()
        text = _FORMS[form](suite)
        seconds.append(time.perf_counter() - before)
    size = len(text.encode())
    cells: dict[str, Value] = {"form": form, "audits": audits, "seconds": statistics.median(seconds), "bytes": size}
    targets = []
    if form == "HTML":
        opened = _opened(text)
        cells |= opened
        spent: dict[str, tuple[float, float]] = {"seconds": (statistics.median(seconds), _MOST_SECONDS)}
        held: dict[str, tuple[float, float]] = {"bytes": (size, _MOST_BYTES)}
        if opened:
            spent["seconds to open"] = (opened["opened"], _MOST_TO_OPEN)
            held |= {"complaints": (opened["complaints"], 0.0), "requests": (opened["requests"], 0.0)}
        if not effort.is_quick:  # a test runs the quick form, and no test asserts a time
            held = spent | held
        targets = [Target(what=what, value=value, sense="<=", limit=limit) for what, (value, limit) in held.items()]
    yield finished(f"{form}, {audits}", cells, targets, time.perf_counter() - started)


def _opened(text: str) -> dict[str, Any]:
    """Seconds to open a page, complaints and requests; nothing where there is no browser."""
    if browser_path() is None or find_spec("playwright") is None:
        return {}
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        path = Path(folder) / "report.html"
        write_whole(path, text)
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
        "A suite with one audit of each kind, over and over until there are so many, written in each form: median of "
        f"{_REPETITIONS} times, with the figures; opened in Chromium without a window until all is laid out, where "
        "there is one. Complaints: errors and warnings of the console. Requests: anything asked for beside the file."
    ),
    columns=(
        Column("form", "form"),
        Column("audits", "audits", ",d"),
        Column("seconds to make", "seconds", ".2f"),
        Column("bytes", "bytes", ",d"),
        Column("seconds to open", "opened", ".2f"),
        Column("complaints", "complaints", ",d"),
        Column("requests", "requests", ",d"),
    ),
    names=tuple(_FORMS),
    tasks=_tasks,
)

REPORTS = Page("reports", "Reports, measured", (_REPORTS,))


_MARGIN: PdfMargins = {"top": "15mm", "bottom": "15mm", "left": "15mm", "right": "15mm"}


def pictures(folder: Path, *, jobs: int | None = None) -> list[Path]:
    """The sample report as a reader sees it: on a laptop, in the dark, on a phone, on paper; and the file itself."""
    suite = sample_suite(jobs=jobs)
    page = folder / "report.html"
    write_whole(page, html(suite))
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
