"""Reports in Chromium without a window, driven by Playwright."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ....audit.errors import OptionError

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# As in a container: no sandbox, no graphics card and no background requests.
_OPTIONS = (
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip


def browser_path() -> str | None:
    """Return the path of a browser of the Chromium family, or None."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run a browser without a window.

    Raises
    ------
    OptionError
        If the browser or Playwright is missing.
    """
    path = browser_path()
    if path is None:
        raise OptionError(f"no browser is installed; install one of {', '.join(_NAMES)}.")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise OptionError("Playwright is not installed; pip install playwright.") from error
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(_OPTIONS))
        try:
            yield browser
        finally:
            browser.close()


@dataclass(slots=True)
class Visit:
    """Record of an opened file.

    Attributes
    ----------
    page : Page
    seconds : float
        Time until the page was loaded and laid out.
    complaints : list of str
        Errors and warnings of the console, and errors of scripts.
    requests : list of str
        Requested addresses, except the file itself.
    """

    page: Page
    seconds: float
    complaints: list[str]
    requests: list[str]


def visit(browser: Browser, path: Path, *, width: int, height: int = 900, dark: bool = False) -> Visit:
    """Open a file in a new page of the given size; the lists continue to grow while the page is in use."""
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light")
    complaints: list[str] = []
    requests: list[str] = []
    own = path.resolve().as_uri()
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: None if request.url == own else requests.append(request.url))
    started = time.perf_counter()
    page.goto(own, wait_until="load")
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return Visit(page=page, seconds=time.perf_counter() - started, complaints=complaints, requests=requests)
