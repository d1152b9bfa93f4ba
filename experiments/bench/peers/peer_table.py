"""What this library measures beside what its peers publish: a page, and the short table of the README.

Our figures are read from the records of the benchmarks, so both texts follow from the records and `peer_figures`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....audit.errors import RecordError
from ....audit.printing import rounded_down
from ...published.dp_sniper import PUBLISHED
from ..core.bench_json import Record, load_record
from ..detection.leaks_and_low_bits import RUNS as LEAK_RUNS
from .published_figures import (
    ALARMS,
    BITS,
    EARLY,
    ELEVEN,
    ERROR,
    LEAK,
    OUTPUTS,
    STATDP_TRIALS,
    TIGHT,
    TWENTY,
    Figure,
)

_BLOCK = re.compile(r"(<!-- peers -->\n).*?(<!-- /peers -->)", re.DOTALL)
_AUDITORIUM_VECTORS = ("svt1", "svt2", "svt3", "svt4", "svt5", "svt6")


@dataclass(frozen=True, slots=True)
class Measured:
    """Records of the benchmarks `detection` and `inference`."""

    detection: Record
    inference: Record

    @classmethod
    def read(cls, folder: Path) -> Measured:
        """From detection.json and inference.json in a folder, which ``dpaudit bench`` writes."""
        return cls(load_record(folder / "detection.json"), load_record(folder / "inference.json"))

    def cells(self, table: str, keys: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """The figures of rows with these keys, of all where none are given.

        Raises
        ------
        RecordError
            Where one was not measured.
        """
        rows = self.detection.tables.get(table) or self.inference.tables.get(table) or {}
        missing = [key for key in keys or () if key not in rows]
        if missing or not rows:
            what = f"rows {', '.join(missing)} of {table!r}" if missing else f"table {table!r}"
            raise RecordError(f"the records have no {what}; run `dpaudit bench inference` and `detection`.", path=table)
        return [rows[key].cells for key in keys or rows]

    def cell(self, table: str, key: str) -> dict[str, Any]:
        """The figures of one row."""
        return self.cells(table, [key])[0]


def _error(measured: Measured) -> str:
    fixed, early = measured.cell("refutation", "1.01, fixed size"), measured.cell("refutation", "1.02, sequential")
    return (
        f"ε = 1.01 in {_found(fixed)} audits, {fixed['cap']:,} runs on each dataset; 1.02 in {_found(early)} that stop "
        f"early, median {early['median']:,.0f} runs on each"
    )


def _found(row: dict[str, Any]) -> str:
    return f"{round(row['found'] * row['audits'])} of {row['audits']}"


def _alarms(measured: Measured) -> str:
    audits = [row for row in measured.cells("false-alarms") if row["kind"] == "fixed size"]
    most = max(audits, key=lambda row: float(row["share"]))
    sizes = [row["largest"] for row in measured.cells("sizes") if row["alpha"] == 0.05]
    shares = f"{_range(row['share'] for row in audits)} of {most['audits']:,} audits, for {len(audits)} mechanisms"
    interval = f"95% interval {most['low']:.4f} to {most['high']:.4f}"
    return f"{shares} (the largest: {interval}); exact size of the test at most {max(sizes):.4f}"


def _tight_rows(measured: Measured) -> list[dict[str, Any]]:
    return [row for row in measured.cells("tightness") if row["runs"] == 1_000_000]


def _tight(measured: Measured) -> str:
    return f"joint test: {_range((row['ratio_bound'] for row in _tight_rows(measured)), '.2f')}, on the same hits"


def _higher(row: dict[str, Any]) -> bool:
    return bool(row["expected"] >= row["published"])


def _twenty(measured: Measured) -> str:
    rows = measured.cells("dp-sniper")
    higher = sum(map(_higher, rows))
    return (
        f"above the best published bound on {higher}, **below it on {len(rows) - higher}**; at most "
        f"{max(row['executions'] for row in rows):,} runs each, {_minutes(rows)} in all"
    )


def _eleven(measured: Measured) -> str:
    rows = measured.cells("suites", list(STATDP_TRIALS))
    right = sum(_is_right(row) for row in rows)
    return (
        f"{right} of {len(rows)} right at alpha 1e-5, the pair searched too: {max(r['executions'] for r in rows):,} "
        f"runs and {_range((row['seconds'] for row in rows), '.0f')} s each"
    )


def _bits(measured: Measured) -> str:
    warned, refuted = measured.cell("leaks", "naive Laplace"), measured.cell("leaks", "naive Laplace, with bits")
    least = str(warned["warning"]).rsplit(" ", 1)[-1]
    return (
        f"warned of by default (ε ≥ {least}); with `bits=True` ε ≥ {rounded_down(refuted['bound']):g}, "
        f"{LEAK_RUNS:,} runs on each dataset, {refuted['seconds']:.0f} s"
    )


def _leak(measured: Measured) -> str:
    row = measured.cell("leaks", "leak of .002")
    bound = rounded_down(row["bound"])
    return f"{row['verdict']}, ε ≥ {bound:g}, {LEAK_RUNS:,} runs on each dataset, {row['seconds']:.1f} s"


def _outputs(measured: Measured) -> str:
    rows = measured.cells("suites", _AUDITORIUM_VECTORS)
    return (
        f"read as they are; {sum(map(_is_right, rows))} of {len(rows)} verdicts right, "
        f"{max(row['executions'] for row in rows):,} runs in all"
    )


def _early(measured: Measured) -> str:
    row = measured.cell("refutation", "2, sequential")
    return (
        f"valid at every look; ε = 2 where 1 is claimed is refuted after {row['median']:.0f} runs on each dataset "
        f"(median of {row['audits']} audits)"
    )


@dataclass(frozen=True, slots=True)
class _Line:
    """A question with the peers' figures and ours, and the table of the benchmarks that ours are from."""

    figure: Figure
    ours: Callable[[Measured], str]
    table: str


_LINES = (
    _Line(ERROR, _error, "inference, refutation"),
    _Line(EARLY, _early, "inference, refutation"),
    _Line(ALARMS, _alarms, "inference, false-alarms and sizes; alpha .05, audits of a fixed size"),
    _Line(TIGHT, _tight, "inference, tightness; medians over audits"),
    _Line(TWENTY, _twenty, "detection, dp-sniper; expected bounds of the events chosen"),
    _Line(ELEVEN, _eleven, "detection, suites"),
    _Line(BITS, _bits, "detection, leaks; 1 claimed, alpha 1e-5"),
    _Line(LEAK, _leak, "detection, leaks; alpha 1e-5"),
    _Line(OUTPUTS, _outputs, "detection, suites; alpha 1e-5"),
)


def short_table(measured: Measured) -> str:
    """The table of the README: a line for each question."""
    two_limits = _range((row["ratio_two_limits"] for row in _tight_rows(measured)), ".2f")
    rows = [
        (line.figure.question, line.figure.peers.format(two_limits=two_limits), line.ours(measured)) for line in _LINES
    ]
    return _markdown(("question", "peers", "dpaudit"), rows)


def peer_page(measured: Measured) -> str:
    """The page: the short table, how each figure came about, and the suites mechanism by mechanism."""
    sources = [(line.figure.question, line.figure.source, f"`dpaudit bench` {line.table}") for line in _LINES]
    return "\n\n".join(
        [
            "# Comparison with other tools",
            "Our figures are those of [the statistics](inference.md) and [detection](detection.md). Those of others "
            "are published, or were measured by running their code; times are not from one machine. This page is "
            "written by `dpaudit bench peers` from the records of the benchmarks.",
            short_table(measured).rstrip(),
            "## Where the figures are from",
            _markdown(("question", "peers", "dpaudit"), sources).rstrip(),
            "## DP-Sniper's suite",
            _sniper_text(measured),
            _sniper_table(measured).rstrip(),
            "## StatDP's suite",
            _statdp_text(measured),
            _statdp_table(measured),
        ]
    )


def with_table(readme: str, table: str) -> str:
    """The text of the README with this table between its two marks.

    Raises
    ------
    RecordError
        Where it has no such marks.
    """
    if not _BLOCK.search(readme):
        raise RecordError("the text has no <!-- peers --> … <!-- /peers -->; add both marks.", path="README.md")
    return _BLOCK.sub(lambda match: f"{match[1]}\n{table}\n{match[2]}", readme)


def _sniper_text(measured: Measured) -> str:
    rows = measured.cells("dp-sniper")
    behind = [str(row["mechanism"]) for row in rows if not _higher(row)]
    within = [row["mechanism"] for row in rows if not _higher(row) and row["expected"] >= 0.98 * row["published"]]
    far = [name for name in behind if name not in within]
    return (
        "Lower bounds on epsilon at confidence .9. Published: DP-Sniper by logistic regression and by a neural "
        "network, and two runs of StatDP by the same authors. *Best* leaves out bounds above the exact value, which "
        "did not hold. Ours is the expected bound of the event that was chosen, with at most "
        f"{max(row['executions'] for row in rows):,} runs for search and audit together; the *oracle* is that of the "
        "best event on the worst pair known, with every run counted.\n\n"
        f"Others are ahead on {len(behind)} of {len(rows)}: by up to 2% of the bound on {_listed(within)}; by more on "
        f"{_listed(far)}."
    )


def _sniper_table(measured: Measured) -> str:
    rows = []
    for row in measured.cells("dp-sniper"):
        bounds = ["–" if bound is None else f"{bound:.4f}" for bound in PUBLISHED[str(row["mechanism"])]]
        exact = "infinite" if row["exact"] == float("inf") else f"{row['exact']:.4f}"
        ahead = "dpaudit" if _higher(row) else "others"
        figures = [f"{row[name]:.4f}" for name in ("published", "expected", "oracle")]
        rows.append((str(row["mechanism"]), exact, *bounds, *figures, ahead))
    header = (
        "mechanism",
        "exact",
        "logistic",
        "network",
        "StatDP",
        "StatDP again",
        "best",
        "dpaudit",
        "oracle",
        "ahead",
    )
    return _markdown(header, rows)


def _statdp_text(measured: Measured) -> str:
    rows = measured.cells("suites", list(STATDP_TRIALS))
    faster = sum(STATDP_TRIALS[str(row["mechanism"])].seconds < row["seconds"] for row in rows)
    fewer = sum(1e6 * STATDP_TRIALS[str(row["mechanism"])].runs < row["executions"] for row in rows)
    return (
        "StatDP's figures are of one audit each, at its own settings and without a bound on epsilon; ours look for the "
        f"pair of datasets as well, at alpha 1e-5. StatDP took fewer runs on {fewer} of {len(rows)} and less time on "
        f"{faster}."
    )


def _statdp_table(measured: Measured) -> str:
    rows = []
    for row in measured.cells("suites", list(STATDP_TRIALS)):
        trial = STATDP_TRIALS[str(row["mechanism"])]
        rows.append(
            (
                str(row["mechanism"]),
                str(row["truth"]),
                trial.p_value,
                f"{trial.runs:g}·10⁶",
                f"{trial.seconds:g}",
                str(row["verdict"]),
                f"{rounded_down(row['bound']):g}",
                f"{row['executions']:,}",
                f"{row['seconds']:.1f}",
            )
        )
    header = ("mechanism", ".7-DP", "StatDP's p", "runs", "s", "dpaudit", "bound", "runs", "s")
    return _markdown(header, rows)


def _is_right(row: dict[str, Any]) -> bool:
    return bool((row["verdict"] == "refuted") == (row["truth"] == "broken"))


def _range(values: Iterable[float], form: str = ".4f") -> str:
    found = sorted(values)
    return f"{found[0]:{form}} to {found[-1]:{form}}"


def _minutes(rows: Iterable[dict[str, Any]]) -> str:
    return f"{sum(row['seconds'] for row in rows) / 60:.0f} minutes"


def _listed(names: Sequence[Any]) -> str:
    return " and ".join(filter(None, [", ".join(map(str, names[:-1])), str(names[-1])])) if names else "none"


def _markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
