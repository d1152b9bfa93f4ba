"""Gallery of bugs: for some telling entries of the catalogue an audit each, with the picture of its event."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from ...audit.claims.claim import ApproxDP
from ...audit.errors import OptionError
from ...audit.files import write_atomically
from ...audit.procedures.check import check
from ...audit.results.audit_result import AuditResult
from ...reports.figures.output_figures import outputs_figure
from ...reports.figures.plot import svg
from ...reports.plain_text import number, symbol
from ..catalogue.entries import Fault, entries

_ALPHA = 1e-5
_TITLES = {
    "sensitivity-understated": "A sum with the noise of a count",
    "scale-epsilon": "The privacy parameter as the scale of the noise",
    "variance-as-deviation": "The variance as the standard deviation",
    "noise-cut-off": "Noise without tails",
    "noise-one-sided": "Noise on one side only",
    "redrawn-until-nonnegative": "A count drawn again until it is not negative",
    "one-wrong-entry": "One wrong entry in a table of probabilities",
    "noise-rounded-to-zero": "Noise rounded towards zero",
    "clamped-to-the-rows": "A count clamped to the number of rows",
    "digits-of-the-answer": "Rounding by the digits of the exact answer",
    "laplace-doubles": "Low bits of a double",
    "exponential-without-two": "The exponential mechanism without its 2",
    "flip-without-permuting": "Permute-and-flip without the permutation",
    "weights-underflow": "Weights that underflow",
    "zero-for-no-rows": "An early return for an empty table",
    "rounded-before-noise": "Rounding before the noise",
    "mean-by-exact-count": "A mean divided by the exact count",
    "median-by-local-sensitivity": "A median with noise for its local sensitivity",
    "sampling-not-shuffled": "The first half as a random half",
    "edge-noise-for-nodes": "Noise for an edge where a node is protected",
}
NAMES = tuple(_TITLES)
"""Names of the bugs in the gallery, in the order of the page."""
_HEAD = """# Gallery of bugs

Twenty mechanisms that break their claims, from the catalogue with which dpaudit is tested. Each picture shows the pilot
outputs of an audit on x and on y, the natural log of their ratio with its standard error, and the events that the audit
tested (shaded). A ratio beyond the dotted lines ±ε is larger than claimed; a triangle is an output that occurred on one
dataset only. The verdict rests on other runs than the picture: single ratios have large errors.

{overview}

Every audit refutes its claim at alpha {alpha}, with random seed 0. `dpaudit bench gallery --out docs/gallery.md`
writes this page and its pictures. [Measurements](benchmarks/index.md#catalogue-of-bugs) say how often audits find these
bugs and the others of the catalogue.
"""


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A bug, its audit, and the picture of the event as the text of an SVG file."""

    fault: Fault
    result: AuditResult
    picture: str


def exhibit(name: str) -> Exhibit:
    """Audit a bug of the gallery and draw its event."""
    if name not in _TITLES:
        raise OptionError(f"the gallery has no bug {name!r}; use one of {', '.join(_TITLES)}.")
    fault = next(fault for fault in entries() if fault.name == name)
    result = check(fault.mechanism, fault.x, fault.y, runs=fault.runs, alpha=_ALPHA, seed=0, **fault.options)
    figure = outputs_figure(result)
    if figure is None:
        raise OptionError(f"{name}: the pilot outputs of this bug cannot be drawn; choose another bug.")
    label = f"{_TITLES[name]}: pilot outputs on x and y, and the log of their ratio; {result.event_in_words}."
    of_page = svg(figure, label=label, prefix="")
    return Exhibit(fault, result, of_page.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n")


def section(shown: Exhibit) -> str:
    """Return the part of the page about one bug, in Markdown."""
    fault, result = shown.fault, shown.result
    practice = fault.practice.removeprefix("In practice, ")
    practice = practice[:1].upper() + practice[1:]
    x, y = _dataset(fault.x), _dataset(fault.y)
    return f"""## {_TITLES[fault.name]}

{fault.cause}. {practice}

| | |
|---|---|
| datasets | x: `{x}`, y: `{y}` |
| claimed | {_claimed(fault)} |
| true loss on this pair | {_true(fault)} |
| found with {fault.runs:,} runs on each dataset | {_found(result)} |
| event | {result.event_in_words} |

![{_TITLES[fault.name]}: pilot outputs, ratio and event](pictures/gallery/{fault.name}.svg)
"""


def gallery_page(folder: Path) -> str:
    """Audit all bugs of the gallery, write their pictures into a folder, and return the page in Markdown."""
    shown = [exhibit(name) for name in NAMES]
    for one in shown:
        write_atomically(folder / f"{one.fault.name}.svg", one.picture)
    rows = ["| bug | claimed | true | found |", "|---|---|---|---|"]
    for one in shown:
        title = _TITLES[one.fault.name]
        link = f"[{title}](#{_anchor(title)})"
        rows.append(f"| {link} | {_claimed(one.fault)} | {_true(one.fault)} | {_found(one.result)} |")
    return "\n".join([_HEAD.format(overview="\n".join(rows), alpha=number(_ALPHA)), *map(section, shown)])


def _anchor(title: str) -> str:
    """Return the place of a heading, as Markdown names it."""
    kept = "".join(letter for letter in title.lower() if letter.isascii() and (letter.isalnum() or letter in " -"))
    return "-".join(kept.split())


def _dataset(dataset: object) -> str:
    text = str(dataset)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _claimed(fault: Fault) -> str:
    return f"{symbol(fault.claim.parameter_name)} = {number(fault.claim.parameter)}" + (
        f" at ε = {number(fault.claim.epsilon)}" if isinstance(fault.claim, ApproxDP) else ""
    )


def _true(fault: Fault) -> str:
    if fault.exact is None:
        return "not known"
    return "not bounded" if math.isinf(fault.exact) else f"{symbol(fault.claim.parameter_name)} = {fault.exact:.3g}"


def _found(result: AuditResult) -> str:
    return f"{symbol(result.claim.parameter_name)} ≥ {math.floor(result.bound * 1e3) / 1e3:g}"
