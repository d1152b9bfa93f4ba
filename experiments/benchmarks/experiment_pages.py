"""Verdicts of the experiments over many seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...audit.claims.claim import ApproxDP
from ...audit.errors import OptionError
from ...audit.files import write_atomically
from ...audit.procedures.check import check
from ...audit.results.audit_result import AuditResult, Verdict
from ...audit.results.statement_result import StatementResult
from ...reports.figures.output_figures import outputs_figure
from ...reports.figures.svg_figure import standalone_svg
from ...reports.plain_text import found, number, symbol
from ..cases.experiment import Case, Experiment
from ..catalogue.entries import Fault, entries
from .core.bench_json import Table, machine

# The gallery of bugs: for some telling entries of the catalogue an audit each, with the picture of its event.

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
_HEAD = """# Gallery of bugs

Twenty mechanisms that break their claims, from the catalogue with which dpaudit is tested. Each picture shows the pilot
outputs of an audit on x and on y, the natural log of their ratio with its standard error, and the event that the audit
tested (shaded). A ratio beyond the dotted lines ±ε is larger than claimed; a triangle is an output that occurred on one
dataset only. The verdict rests on other runs than the picture: single ratios have large errors.

{overview}

Every audit refutes its claim at alpha {alpha}, with random seed 0. `dpaudit bench gallery --out docs/gallery.md`
writes this page and its pictures. [Detection](benchmarks/detection.md) measures how often audits find these bugs and
the others of the catalogue.
"""


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A bug, its audit, and the picture of the event.

    Attributes
    ----------
    fault : Fault
    result : AuditResult
    picture : str
        Text of an SVG file.
    """

    fault: Fault
    result: AuditResult
    picture: str


def names() -> tuple[str, ...]:
    """Return the names of the bugs in the gallery, in the order of the page."""
    return tuple(_TITLES)


def exhibit(name: str) -> Exhibit:
    """Audit a bug of the gallery and draw its event.

    Raises
    ------
    OptionError
        If the gallery has no such bug.
    """
    if name not in _TITLES:
        raise OptionError(f"the gallery has no bug {name!r}; use one of {', '.join(_TITLES)}.")
    fault = next(fault for fault in entries() if fault.name == name)
    result = check(
        fault.mechanism,
        fault.x,
        fault.y,
        claim=fault.claim,
        adjacency=fault.adjacency,
        distance=fault.distance,
        runs=fault.runs,
        bits=fault.bits,
        alpha=_ALPHA,
        seed=0,
    )
    figure = outputs_figure(result)
    if figure is None:
        raise OptionError(f"{name}: the pilot outputs of this bug cannot be drawn; choose another bug.")
    label = f"{_TITLES[name]}: pilot outputs on x and y, and the log of their ratio; {result.event_in_words}."
    return Exhibit(fault, result, standalone_svg(figure, label=label))


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
    shown = [exhibit(name) for name in names()]
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
    return f"{symbol(fault.claim.strength_name)} = {number(fault.claim.strength)}" + (
        f" at ε = {number(fault.claim.epsilon)}" if isinstance(fault.claim, ApproxDP) else ""
    )


def _true(fault: Fault) -> str:
    if fault.exact is None:
        return "not known"
    return "not bounded" if math.isinf(fault.exact) else f"{symbol(fault.claim.strength_name)} = {fault.exact:.3g}"


def _found(result: AuditResult) -> str:
    return f"{symbol(result.claim.strength_name)} ≥ {math.floor(result.bound * 1e3) / 1e3:g}"


@dataclass(frozen=True, slots=True)
class _Row:
    """Case with its results over the seeds."""

    case: Case
    results: tuple[AuditResult | StatementResult, ...]

    @property
    def n_met(self) -> int:
        return sum(result.verdict is self.case.expected for result in self.results)

    @property
    def seconds(self) -> float:
        return float(statistics.median(result.environment["seconds"] for result in self.results))


def over_seeds(
    experiments: Sequence[Experiment], seeds: int, runs: int | None, alpha: float, jobs: int | None
) -> tuple[tuple[Table, Table], bool]:
    """Run every case with seeds 0, 1, …; return tables by experiment and case, and whether all verdicts are right."""
    done = [
        (experiment, [_measured(case, seeds, runs, alpha, jobs) for case in experiment.cases])
        for experiment in experiments
    ]
    rows = [row for _, measured in done for row in measured]
    method = (
        f"Alpha {alpha:g} for each case, seeds 0 to {seeds - 1}. False versions must be refuted, true versions must "
        f"not. All cases take {sum(row.seconds for row in rows):.0f} s for each seed. {machine()}"
    )
    return (_by_experiment(done, method), _by_case(done)), all(row.n_met == seeds for row in rows)


def _measured(case: Case, seeds: int, runs: int | None, alpha: float, jobs: int | None) -> _Row:
    size = case.runs if runs is None else runs
    results = (case.run(runs=size, alpha=alpha, seed=seed, jobs=jobs, progress=None) for seed in range(seeds))
    return _Row(case, tuple(results))


def _by_experiment(done: Sequence[tuple[Experiment, list[_Row]]], method: str) -> Table:
    header = ("id", "statement", "true versions", "false versions", "runs", "seconds")
    rows = []
    for experiment, measured in done:
        sides = [
            _side([row for row in measured if row.case.expected is verdict])
            for verdict in (Verdict.NOT_REFUTED, Verdict.REFUTED)
        ]
        runs = sum(row.results[0].runs for row in measured)
        spent = sum(row.seconds for row in measured)
        rows.append((experiment.id, experiment.statement, *sides, f"{runs:,}", f"{spent:.2f}"))
    about = (
        f"{method} The number of expected verdicts is followed by the result of the first version with seed 0. Runs on "
        "each dataset are totals over the cases."
    )
    return Table("Experiments", about, header, tuple(rows))


def _side(rows: Sequence[_Row]) -> str:
    """Return the number of expected verdicts and the result of the first version."""
    if not rows:
        return "–"
    first = rows[0].results[0]
    met, total = sum(row.n_met for row in rows), sum(len(row.results) for row in rows)
    stated = f"claimed {number(first.claim.strength)}" if isinstance(first, AuditResult) else first.worst.allowed
    return f"{met} of {total} {rows[0].case.expected.value}; {found(first)}, {stated}"


def _by_case(done: Sequence[tuple[Experiment, list[_Row]]]) -> Table:
    header = (
        "case", "version", "claim or statement", "exact", "minimum", "median", "maximum", "expected verdicts", "runs",
        "seconds",
    )  # fmt: skip
    about = (
        "Minimum, median and maximum are of lower bounds for audits, and of estimates for statements (of the number "
        "nearest to the limit of the statement). Seconds are medians."
    )
    return Table("Cases", about, header, tuple(_case_cells(row) for _, measured in done for row in measured))


def _case_cells(row: _Row) -> tuple[str, ...]:
    case, first = row.case, row.results[0]
    exact = None if isinstance(first, StatementResult) and len(first.points) > 1 else case.exact
    shown = [result.bound if isinstance(result, AuditResult) else result.worst.estimate for result in row.results]
    return (
        case.name,
        "false" if case.expected is Verdict.REFUTED else "true",
        f"{first.claim}, {first.claim.strength_name}" if isinstance(first, AuditResult) else case.claimed,
        number(exact),
        number(min(shown)),
        number(statistics.median(shown)),
        number(max(shown)),
        f"{row.n_met} of {len(row.results)}",
        f"{first.runs:,}",
        f"{row.seconds:.2f}",
    )
