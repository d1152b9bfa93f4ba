"""The sample report, with one audit of each kind, and its picture in a browser."""

from __future__ import annotations

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
from ...audit.results.verdict import Verdict
from ...mechanisms import GaussianMechanism, GeometricMechanism, LaplaceMechanism, RandomisedResponse, exact_epsilon
from ...mechanisms.faulty import VarianceAsScaleGaussian
from ...reports import html

if TYPE_CHECKING:
    from playwright.sync_api import Browser
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
    """Run a browser without a window, or raise an `OptionError` if it or Playwright is missing."""
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
    """An opened file: seconds until its layout, complaints of console and scripts, requested addresses."""

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
    """Noise that is the same in each block, which makes the audit inconclusive; single runs would be refuted."""
    return answer + (np.random.default_rng(1) if size > 1 else rng).laplace(size=size)


def choose(utilities: tuple[float, ...], size: int, rng: np.random.Generator) -> Outputs:
    """The exponential mechanism with ε = 1 without the factor 2."""
    weights = np.exp(np.array(utilities))
    return rng.choice(len(weights), p=weights / weights.sum(), size=size)


def sample_suite(*, seed: int = 0, jobs: int | None = None) -> Suite:
    """Return audits and statements of every kind and verdict, in about ten seconds."""
    common: dict[str, Any] = {"alpha": _ALPHA, "seed": seed, "jobs": jobs}
    entries = []
    for name, mechanism, (x, y), options in _audits():
        told = {key: options.pop(key) for key in ("expected", "exact", "note", "accepted") if key in options}
        given = {"claim": PureDP(1.0), "runs": _RUNS, "keep_datasets": True, **common, **options}
        entries.append(Entry(name=name, result=check(mechanism, x, y, **given), **told))
    entries += _statements({"runs": 20_000, **common})
    environment = {"command": "dpaudit bench pictures"}
    return Suite(title="A report with one of each kind", entries=tuple(entries), environment=environment)


def _audits() -> list[tuple[str, Any, tuple[Any, Any], dict[str, Any]]]:
    """Return name, mechanism, pair and options of each audit, by default of the claim of 1-DP."""
    laplace, geometric, coin = LaplaceMechanism(1.0), GeometricMechanism(1.0), RandomisedResponse(epsilon=1.0, k=3)
    gaussian, wide = GaussianMechanism(epsilon=1.0, delta=1e-3), VarianceAsScaleGaussian(epsilon=8.0, delta=1e-3)
    mu, whole_rows, answers, colours = 1.0 / gaussian.scale, [1.0] * 3, (0.0, 1.0), ["red", "red", "green"]
    refuted: dict[str, Any] = {"expected": Verdict.REFUTED}
    kept: dict[str, Any] = {"expected": Verdict.NOT_REFUTED}
    unclear: dict[str, Any] = {"expected": Verdict.INCONCLUSIVE}
    rows, real, step, removed = AddRemove(), Within("l2"), Within("l1"), (whole_rows, whole_rows[:-1])
    few = refuted | {"adjacency": rows, "exact": 1.25}
    little = few | {"bins": 32, "claim_source": "the docstring of noisy_count"}
    tight = kept | {"adjacency": step, "exact": 1.0}
    stated = tight | {"bins": 32, "claim_source": "LaplaceMechanism(epsilon=1.0).claim"}
    response = kept | {
        "adjacency": Local(),
        "bins": 8,
        "exact": exact_epsilon(coin.distribution(0), coin.distribution(1)),
    }
    approximate = kept | {"claim": ApproxDP(1.0, 1e-3), "adjacency": real, "bins": 32}
    squared = refuted | {"claim": ApproxDP(8.0, 1e-3), "adjacency": real, "runs": 500_000}
    half = refuted | {"claim": ZeroConcentratedDP(mu**2 / 4), "adjacency": real, "exact": mu**2 / 2}
    moved = refuted | {"adjacency": Replace(), "exact": 2.0, "accepted": _ACCEPTED}
    return [
        ("a count with too little noise", noisy_count, removed,
            little | {"note": "The scale is .8 of sensitivity/epsilon."}),
        ("Laplace mechanism", laplace, answers, stated),
        ("randomised response", coin, (0, 1), response),
        ("Gaussian mechanism", gaussian, answers, approximate),
        ("Gaussian with the variance as scale", wide, answers, squared),
        ("the same as Gaussian DP", gaussian, answers, {"claim": GaussianDP(mu), "adjacency": real, "exact": mu}),
        ("Gaussian mechanism, zCDP claim at half the true ρ", gaussian, answers, half),
        ("a count, stopped early", noisy_count, removed, few | {"sequential": True}),
        ("Laplace, to the end", laplace, answers, tight | {"sequential": True}),
        *((f"geometric at distance {k}", geometric, (0, k), tight | {"distance": k}) for k in (1, 2, 3, 4)),
        ("a count with a floating-point leak", naive_count, ([], [1.0]),
            kept | {"adjacency": rows, "runs": 4 * _RUNS, "exact": 1.0}),
        ("a histogram claimed for replaced rows", histogram, (colours, ["red", "blue", "green"]), moved),
        ("a colour or None", colour_or_none, (colours, colours[:-1]),
            refuted | {"adjacency": rows, "runs": 20_000, "exact": np.inf}),
        ("too few runs for the requested excess", laplace, answers, unclear | {"runs": 2_000, "detect": 0.01}),
        ("blocks that repeat", frozen, answers, {**unclear}),
    ]  # fmt: skip


def _statements(options: dict[str, Any]) -> list[Entry]:
    """Return checks of noise and of a slope."""
    right, steps = GaussianNoise(sigma=GaussianMechanism(epsilon=8.0, delta=1e-3).scale), (0.0, 1.0, 2.0, 3.0, 4.0)
    wrong = VarianceAsScaleGaussian(epsilon=8.0, delta=1e-3)
    laplace = check_noise(LaplaceMechanism(1.0), 0.0, noise=LaplaceNoise(scale=1.0), answer=0.0, **options)
    scale = check_noise(wrong, 0.0, noise=right, answer=0.0, **options)
    slope = check_slope(choose, steps, steps, epsilon=1.0, **options)
    return [
        Entry(name="noise of the right distribution", result=laplace, expected=Verdict.NOT_REFUTED),
        Entry(name="noise of a wrong scale", result=scale, expected=Verdict.REFUTED),
        Entry(name="slope of an exponential mechanism", result=slope, expected=Verdict.REFUTED, exact=1.0),
    ]


def pictures(folder: Path, *, jobs: int | None = None) -> list[Path]:
    """Write the sample report and its picture on a laptop, and return the files."""
    page, picture = folder / "report.html", folder / "laptop.png"
    write_atomically(page, html(sample_suite(jobs=jobs)))
    with chromium() as browser:
        visit(browser, page, width=1280).page.screenshot(path=picture)
    return [page, picture]
