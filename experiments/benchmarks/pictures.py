"""The sample report, with one audit of each kind, and its pictures in a browser."""

from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import ApproxDP, GaussianDP, PureDP
from ...audit.claims.renyi import ZeroConcentratedDP
from ...audit.datasets.adjacency import AddRemove, Local, Replace, Within
from ...audit.distribution_checks.check_noise import check_noise
from ...audit.distribution_checks.check_slope import check_slope
from ...audit.distribution_checks.noise_distributions import GaussianNoise, LaplaceNoise
from ...audit.errors import OptionError
from ...audit.files import write_atomically
from ...audit.procedures.check import check
from ...audit.records.suite import Accepted, Entry, Suite
from ...audit.results.audit_result import Verdict
from ...mechanisms import GaussianMechanism, GeometricMechanism, LaplaceMechanism, RandomisedResponse, exact_epsilon
from ...mechanisms.faulty import VarianceAsScaleGaussian
from ...reports import html

if TYPE_CHECKING:
    from playwright.sync_api import Browser, PdfMargins
    from playwright.sync_api import Page as BrowserPage

# Reports in Chromium without a window, driven by Playwright.

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

    page: BrowserPage
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


# A suite with one audit of each kind that a report shows; it takes about ten seconds to make.

_RUNS, _ALPHA = 100_000, 1e-3
_ACCEPTED = Accepted(reason="the release of March is withdrawn in the summer", until="2027-06-30", up_to=2.0)
Outputs = npt.NDArray[Any]


def noisy_count(rows: list[float], size: int, rng: np.random.Generator) -> Outputs:
    """A count with .8 of the noise scale that its claim needs."""
    return len(rows) + rng.laplace(scale=0.8, size=size)


def naive_count(rows: list[float], size: int, rng: np.random.Generator) -> Outputs:
    """A count with enough noise, whose low bits reveal the count."""
    return len(rows) + rng.laplace(scale=1.0, size=size)


def histogram(rows: list[str], size: int, rng: np.random.Generator) -> Outputs:
    """Counts of three colours with independent noise."""
    counts = np.array([rows.count(colour) for colour in ("red", "green", "blue")])
    return counts + rng.laplace(scale=1.0, size=(size, 3))


def colour_or_none(rows: list[str], rng: np.random.Generator) -> str | None:
    """The most frequent colour, or None if there are few rows."""
    return None if len(rows) + rng.integers(0, 2) < 3 else max(sorted(set(rows)), key=rows.count)


def frozen(answer: float, size: int, rng: np.random.Generator) -> Outputs:
    """Noise that is the same in each block, which makes the audit inconclusive."""
    return answer + np.random.default_rng(1).laplace(size=size)


def choose(utilities: tuple[float, ...], size: int, rng: np.random.Generator) -> Outputs:
    """The exponential mechanism with ε = 1 without the factor 2."""
    weights = np.exp(np.array(utilities))
    return rng.choice(len(weights), p=weights / weights.sum(), size=size)


def sample_suite(*, seed: int = 0, jobs: int | None = None) -> Suite:
    """Return audits and statements of every kind and verdict, in about ten seconds."""
    environment = {"command": "dpaudit bench pictures"}
    return Suite(title="A report with one of each kind", entries=tuple(_entries(seed, jobs)), environment=environment)


def _entries(seed: int, jobs: int | None) -> Iterator[Entry]:
    common: dict[str, Any] = {"runs": _RUNS, "alpha": _ALPHA, "seed": seed, "jobs": jobs, "keep_datasets": True}
    pure, rows = PureDP(1.0), [1.0] * 3
    laplace, geometric = LaplaceMechanism(epsilon=1.0), GeometricMechanism(epsilon=1.0)
    gaussian = GaussianMechanism(epsilon=1.0, delta=1e-3)

    def audited(name: str, mechanism: Any, x: Any, y: Any, claim: Any, **options: Any) -> Entry:
        more = {key: options.pop(key) for key in ("expected", "exact", "note", "accepted") if key in options}
        return Entry(name=name, result=check(mechanism, x, y, claim=claim, **{**common, **options}), **more)

    yield audited(
        "a count with too little noise", noisy_count, rows, rows[:-1], pure, adjacency=AddRemove(), cells=32,
        expected=Verdict.REFUTED, exact=1.25, claim_source="the docstring of noisy_count",
        note="The scale is .8 of sensitivity/epsilon.",
    )  # fmt: skip
    yield audited(
        "Laplace mechanism", laplace, 0.0, 1.0, pure, adjacency=Within("l1"), cells=32, expected=Verdict.NOT_REFUTED,
        exact=1.0, claim_source="LaplaceMechanism(epsilon=1.0).claim",
    )  # fmt: skip
    coin = RandomisedResponse(epsilon=1.0, k=3)
    yield audited(
        "randomised response", coin, 0, 1, pure, adjacency=Local(), cells=8, expected=Verdict.NOT_REFUTED,
        exact=exact_epsilon(coin.distribution(0), coin.distribution(1)),
    )  # fmt: skip
    approx = ApproxDP(1.0, 1e-3)
    yield audited(
        "Gaussian mechanism", gaussian, 0.0, 1.0, approx, adjacency=Within("l2"), cells=32,
        expected=Verdict.NOT_REFUTED,
    )  # fmt: skip
    yield audited(
        "Gaussian with the variance as scale", VarianceAsScaleGaussian(epsilon=8.0, delta=1e-3), 0.0, 1.0,
        ApproxDP(8.0, 1e-3), adjacency=Within("l2"), expected=Verdict.REFUTED, runs=500_000,
    )  # fmt: skip
    mu = 1.0 / gaussian.scale
    yield audited("the same as Gaussian DP", gaussian, 0.0, 1.0, GaussianDP(mu), adjacency=Within("l2"), exact=mu)
    yield audited(
        "Gaussian mechanism, zCDP claim at half the true ρ", gaussian, 0.0, 1.0, ZeroConcentratedDP(mu**2 / 4),
        adjacency=Within("l2"), expected=Verdict.REFUTED, exact=mu**2 / 2,
    )  # fmt: skip
    yield audited(
        "a count, stopped early", noisy_count, rows, rows[:-1], pure, adjacency=AddRemove(), sequential=True,
        expected=Verdict.REFUTED, exact=1.25,
    )  # fmt: skip
    yield audited(
        "Laplace, to the end", laplace, 0.0, 1.0, pure, adjacency=Within("l1"), sequential=True, exact=1.0,
        expected=Verdict.NOT_REFUTED,
    )  # fmt: skip
    for distance in (1, 2, 3, 4):
        yield audited(
            f"geometric at distance {distance}", geometric, 0, distance, pure, adjacency=Within("l1"),
            distance=distance, exact=1.0, expected=Verdict.NOT_REFUTED,
        )  # fmt: skip
    yield audited(
        "a count whose low bits leak", naive_count, [], [1.0], pure, adjacency=AddRemove(), runs=4 * _RUNS, exact=1.0,
        expected=Verdict.NOT_REFUTED,
    )  # fmt: skip
    colours = ["red", "red", "green"]
    yield audited(
        "a histogram claimed for replaced rows", histogram, colours, ["red", "blue", "green"], pure,
        adjacency=Replace(), expected=Verdict.REFUTED, exact=2.0, accepted=_ACCEPTED,
    )  # fmt: skip
    yield audited(
        "a colour or None", colour_or_none, colours, colours[:-1], pure, adjacency=AddRemove(), runs=20_000,
        expected=Verdict.REFUTED, exact=np.inf,
    )  # fmt: skip
    yield audited(
        "too few runs for the resolution", laplace, 0.0, 1.0, pure, runs=2_000, resolution=0.01,
        expected=Verdict.INCONCLUSIVE,
    )  # fmt: skip
    yield audited("blocks that repeat", frozen, 0.0, 1.0, pure, expected=Verdict.INCONCLUSIVE)
    statistics: dict[str, Any] = {"runs": 20_000, "alpha": _ALPHA, "seed": seed, "jobs": jobs}
    yield Entry(
        name="noise of the right distribution",
        result=check_noise(laplace, 0.0, noise=LaplaceNoise(scale=1.0), answer=0.0, **statistics),
        expected=Verdict.NOT_REFUTED,
    )
    wrong = VarianceAsScaleGaussian(epsilon=8.0, delta=1e-3)
    yield Entry(
        name="noise of a wrong scale",
        result=check_noise(
            wrong,
            0.0,
            noise=GaussianNoise(sigma=GaussianMechanism(epsilon=8.0, delta=1e-3).scale),
            answer=0.0,
            **statistics,
        ),
        expected=Verdict.REFUTED,
    )
    steps = (0.0, 1.0, 2.0, 3.0, 4.0)
    yield Entry(
        name="slope of an exponential mechanism",
        result=check_slope(choose, steps, steps, epsilon=1.0, **statistics),
        expected=Verdict.REFUTED,
        exact=1.0,
    )


def suite_of(audits: int, suite: Suite) -> Suite:
    """Return a suite of `audits` entries that repeats the entries of another suite under new names."""
    names = [(index, suite.entries[index % len(suite.entries)]) for index in range(audits)]
    entries = tuple(dataclasses.replace(entry, name=f"{entry.name} {index + 1}") for index, entry in names)
    return dataclasses.replace(suite, title=f"A report of {audits:,} audits", entries=entries)


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
