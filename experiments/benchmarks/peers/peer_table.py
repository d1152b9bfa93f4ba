"""Comparison of this library with other tools, as a page.

The texts are in `published_figures.toml` and `peers.md.j2`; our figures come from the records of the benchmarks.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....audit.errors import RecordError
from ....audit.extras import require
from ....audit.printing import rounded_down
from ...published.dp_sniper import PUBLISHED
from ..core.bench_json import Record, load_record
from ..detection.detection_page import RUNS as LEAK_RUNS

_TEXTS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("published_figures.toml").read_text(encoding="utf-8"))
STATDP_TRIALS: dict[str, dict[str, Any]] = _TEXTS["statdp_trials"]
_AUDITORIUM_VECTORS = ("svt1", "svt2", "svt3", "svt4", "svt5", "svt6")


@dataclass(frozen=True, slots=True)
class Measured:
    """Records of the benchmarks `detection` and `inference`."""

    detection: Record
    inference: Record

    @classmethod
    def read(cls, folder: Path) -> Measured:
        """Return the records in detection.json and inference.json, which ``dpaudit bench`` writes to a folder."""
        return cls(load_record(folder / "detection.json"), load_record(folder / "inference.json"))

    def cells(self, table: str, keys: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """Return the figures of the rows with the given keys, by default of all rows.

        Raises
        ------
        RecordError
            If a row was not measured.
        """
        rows = self.detection.tables.get(table) or self.inference.tables.get(table) or {}
        wanted = list(rows if keys is None else keys)
        missing = [key for key in wanted if key not in rows]
        if missing or not rows:
            what = f"rows {', '.join(missing)} of {table!r}" if missing and rows else f"table {table!r}"
            raise RecordError(f"the records have no {what}; run `dpaudit bench inference` and `detection`.", path=table)
        return [rows[key].cells for key in wanted]


def figures(measured: Measured) -> dict[str, Any]:
    """Return our figures by their names in the texts."""
    tight = [row for row in measured.cells("tightness") if row["runs"] == 1_000_000]
    fixed, early, double = measured.cells(
        "refutation", ("laplace, 1.01, fixed", "laplace, 1.01, default", "laplace, 2, default")
    )
    alarms = [row for row in measured.cells("false-alarms") if row["kind"] == "fixed size"]
    sniper, statdp = measured.cells("dp-sniper"), measured.cells("suites", STATDP_TRIALS)
    vectors = measured.cells("suites", _AUDITORIUM_VECTORS)
    leak, warned, bits = measured.cells("leaks", ("leak of .002", "naive Laplace", "naive Laplace, with bits"))
    above = sum(map(_is_larger, sniper))
    return {
        "two_limits": _range(row["ratio_two_limits"] for row in tight),
        "joint": _range(row["ratio_bound"] for row in tight),
        "fixed": fixed,
        "early": early,
        "double": double,
        "fixed_refuted": round(fixed["found"] * fixed["audits"]),
        "early_refuted": round(early["found"] * early["audits"]),
        "alarms": _range(row["share"] for row in alarms),
        "alarm_mechanisms": len(alarms),
        "most": max(alarms, key=lambda row: float(row["share"])),
        "size": max(row["largest"] for row in measured.cells("sizes") if row["alpha"] == 0.05),
        "sniper_above": above,
        "sniper_below": len(sniper) - above,
        "sniper_runs": max(row["executions"] for row in sniper),
        "sniper_minutes": sum(row["seconds"] for row in sniper) / 60,
        "statdp_right": sum(map(_is_right, statdp)),
        "statdp_count": len(statdp),
        "statdp_runs": max(row["executions"] for row in statdp),
        "statdp_seconds": _range(row["seconds"] for row in statdp),
        "bits": bits,
        "bits_warned": str(warned["warning"]).rsplit(" ", 1)[-1],
        "bits_bound": rounded_down(bits["bound"]),
        "leak": leak,
        "leak_bound": rounded_down(leak["bound"]),
        "leak_runs": LEAK_RUNS,
        "vectors_right": sum(map(_is_right, vectors)),
        "vectors_count": len(vectors),
        "vectors_runs": max(row["executions"] for row in vectors),
    }


def short_table(measured: Measured) -> str:
    """Return the table at the head of the page, with a row for each question."""
    ours = figures(measured)
    lines = ["| question | other tools | dpaudit |", "| --- | --- | --- |"]
    for line in _TEXTS["comparison"]:
        lines.append("| {question} | {others} | {ours} |".format_map(line).format_map(ours))
    return "\n".join(lines) + "\n"


def peer_page(measured: Measured) -> str:
    """Return the page: the short table, the sources of the figures, and both suites mechanism by mechanism."""
    require("report", "the page needs", "jinja2")
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(Path(__file__).parent)
    templates = Environment(
        loader=loader, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
    )
    templates.filters["four"] = _four_digits
    sniper, statdp = measured.cells("dp-sniper"), measured.cells("suites", STATDP_TRIALS)
    smaller = [row for row in sniper if not _is_larger(row)]
    near = [row["mechanism"] for row in smaller if row["expected"] >= 0.98 * row["published"]]
    trials = [(STATDP_TRIALS[row["mechanism"]], row) for row in statdp]
    return templates.get_template("peers.md.j2").render(
        short=short_table(measured),
        comparisons=_TEXTS["comparison"],
        figures=figures(measured),
        sniper=sniper,
        published=PUBLISHED,
        near=_listed(near),
        far=_listed([row["mechanism"] for row in smaller if row["mechanism"] not in near]),
        statdp=statdp,
        trials=STATDP_TRIALS,
        fewer=sum(1e6 * trial["runs"] < row["executions"] for trial, row in trials),
        faster=sum(trial["seconds"] < row["seconds"] for trial, row in trials),
        rounded_down=lambda bound: f"{rounded_down(bound):g}",
    )


def _is_larger(row: dict[str, Any]) -> bool:
    return bool(row["expected"] >= row["published"])


def _is_right(row: dict[str, Any]) -> bool:
    return bool((row["verdict"] == "refuted") == (row["truth"] == "broken"))


def _range(values: Iterable[float]) -> tuple[float, float]:
    found = sorted(values)
    return found[0], found[-1]


def _four_digits(bound: float | None) -> str:
    if bound is None:
        return "–"
    return "infinite" if math.isinf(bound) else f"{bound:.4f}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else "none"
