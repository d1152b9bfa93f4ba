"""The page that sums up the JSON files of the benchmarks: a short table of each, and the targets that are missed."""

from __future__ import annotations

import math
import statistics
import tomllib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from ...audit.errors import RecordError
from ...audit.printing import rounded_down
from .detection import LEAK_RUNS
from .measure import Row, is_met, load_record, words

Cells: TypeAlias = dict[str, Any]
Rows: TypeAlias = Iterable[Sequence[Any]]
_TEXTS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("summary.toml").read_text(encoding="utf-8"))
TRIALS: dict[str, dict[str, Any]] = _TEXTS["statdp_trials"]
"""What StatDP took for each of its mechanisms."""
_FILES = (
    "inference", "detection", "regression", "libraries", "google", "replays", "canaries", "fuzz", "exact",
)  # fmt: skip
_VECTORS = ("svt1", "svt2", "svt3", "svt4", "svt5", "svt6")
_DIGITS = 4  # of published bounds
_HEAD = """# Measurements

What dpaudit finds, what it misses, and how often it is wrong. `dpaudit bench summary --out docs/benchmarks/index.md`
writes this page from the JSON files beside it, which have every row; `dpaudit bench all --resume --out docs/benchmarks`
measures what is missing. A share is followed by its exact 95% interval.
"""


class Measured:
    """The rows of all JSON files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.tables: dict[str, dict[str, Row]] = {}
        for name in _FILES:
            self.tables |= load_record(folder / f"{name}.json")

    def rows(self, table: str, keys: Iterable[str] | None = None) -> list[Cells]:
        """Return the figures of rows, by default of all; a `RecordError` says which was not measured."""
        rows = self.tables.get(table, {})
        wanted = list(rows if keys is None else keys)
        missing = [key for key in wanted if key not in rows]
        if missing or not rows:
            what = f"rows {', '.join(missing)} of {table!r}" if missing and rows else f"table {table!r}"
            raise RecordError(f"the records have no {what}; run `dpaudit bench all --resume`.", path=table)
        return [rows[key]["cells"] for key in wanted]

    def grouped(self, table: str, name: str) -> dict[str, list[Cells]]:
        """Return the figures of all rows by one of them, in the order of the rows."""
        found: dict[str, list[Cells]] = {}
        for row in self.rows(table):
            found.setdefault(str(row[name]), []).append(row)
        return found


def summary(folder: Path) -> str:
    """Return the page in Markdown."""
    measured = Measured(folder)
    sections = [
        f"## {each['title']}\n\n{each['about']} [Rows]({each['file']}.json).\n\n{_section_table(measured, each)}"
        for each in _TEXTS["section"]
    ]
    compared = _table("question | other tools | dpaudit", _comparison(measured))
    tools = f"## Comparison with other tools\n\n{_COMPARED}\n\n{compared}"
    missed = "\n".join(f"- {line}" for line in misses(measured)) or "None."
    return "\n".join([_HEAD, tools, *sections, f"## Where dpaudit misses\n\n{_MISSED}\n\n{missed}\n"])


def _section_table(measured: Measured, section: dict[str, str]) -> str:
    """Return the table of a section, whose rows are shown as they are or computed by a function below."""
    if "row" in section:
        cells = section["row"].split(" | ")
        shown = [row for row in measured.rows(section["table"]) if "having" not in section or section["having"] in row]
        rows: Rows = [[cell.format_map(row) for cell in cells] for row in shown]
    else:
        rows = _ROWS[section["title"]](measured)
    return _table(section["columns"], rows)


def _table(header: str, rows: Rows) -> str:
    lines = [f"| {header} |", "|" + "---|" * (header.count(" | ") + 1)]
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _of(counts: int, total: int) -> str:
    return f"{counts} of {total}"


def _span(values: Iterable[float], form: str = ".3g") -> str:
    """Return the least and the largest of some numbers, or the one that all are."""
    found = sorted(values)
    if not found:
        return "–"
    low, high = format(found[0], form), format(found[-1], form)
    return low if low == high else f"{low} to {high}"


def _interval(row: Cells) -> str:
    return f"{row['share']:.4f} ({row['low']:.4f} to {row['high']:.4f})"


def _finite(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else "none"


def _is_right(row: Cells) -> bool:
    return bool((row["verdict"] == "refuted") == (row["truth"] == "broken"))


def _reaches(row: Cells, name: str = "expected") -> bool:
    """Whether a bound is at or above the published one, in the digits of the latter."""
    return bool(round(row[name], _DIGITS) >= row["published"])


# Comparison with other tools.

_COMPARED = (
    "Figures of other tools are published, or were measured by running their code (in brackets: how); times come from "
    "different machines."
)


def figures(measured: Measured) -> dict[str, Any]:
    """Return our figures by their names in the texts."""
    fixed, early, double = measured.rows(
        "refutation", ("laplace, 1.01, fixed", "laplace, 1.01, default", "laplace, 2, default")
    )
    alarms = measured.grouped("false-alarms", "kind")["fixed size"]
    shares = sorted(row["share"] for row in alarms)
    sniper, statdp = measured.rows("dp-sniper"), measured.rows("suites", TRIALS)
    vectors = measured.rows("suites", _VECTORS)
    leak, warned, bits = measured.rows("leaks", ("leak of .002", "naive Laplace", "naive Laplace, with bits"))
    above = sum(map(_reaches, sniper))
    seconds = sorted(row["seconds"] for row in statdp)
    return {
        "fixed": fixed,
        "early": early,
        "double": double,
        "fixed_refuted": round(fixed["found"] * fixed["audits"]),
        "early_refuted": round(early["found"] * early["audits"]),
        "alarms": (shares[0], shares[-1]),
        "alarm_mechanisms": len(alarms),
        "most": max(alarms, key=lambda row: float(row["share"])),
        "size": max(row["largest"] for row in measured.rows("sizes") if row["alpha"] == 0.05),
        "sniper_above": above,
        "sniper_below": len(sniper) - above,
        "sniper_runs": max(row["executions"] for row in sniper),
        "sniper_minutes": sum(row["seconds"] for row in sniper) / 60,
        "statdp_right": sum(map(_is_right, statdp)),
        "statdp_count": len(statdp),
        "statdp_runs": max(row["executions"] for row in statdp),
        "statdp_seconds": (seconds[0], seconds[-1]),
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


def _comparison(measured: Measured) -> Rows:
    ours = figures(measured)
    for line in _TEXTS["comparison"]:
        yield line["question"], f"{line['others']} [{line['source']}]", line["ours"].format_map(ours)


# Statistics.


def _false_alarms(measured: Measured) -> Rows:
    for name, rows in measured.grouped("false-alarms", "subject").items():
        by_kind = {row["kind"]: _interval(row) for row in rows}
        yield name, rows[0]["claim"], *(by_kind[kind] for kind in ("fixed size", "sequential", "sequential, short"))


def _sizes(measured: Measured) -> Rows:
    for alpha, found in measured.grouped("sizes", "alpha").items():
        worst = max(found, key=lambda row: float(row["largest"]))
        yield alpha, len(found), f"{worst['largest']:.4f}", worst["claim"]


def _refutation(measured: Measured) -> Rows:
    for truth in (2, 1.5, 1.1, 1.05, 1.01):
        default, whole = measured.rows("refutation", (f"laplace, {truth}, default", f"laplace, {truth}, all of alpha"))
        others = [
            row["median"] for row in measured.rows("refutation") if (row["truth"], row["kind"]) == (truth, "default")
        ]
        medians = f"{default['median']:,.0f}", f"{whole['median']:,.0f}"
        yield truth, *medians, f"{default['found']:.3f}", f"{min(others):,.0f} to {_finite(max(others), ',.0f')}"


def _power(measured: Measured) -> Rows:
    for kind, found in measured.grouped("power", "kind").items():
        for alpha in (0.05, 1e-5):
            shares = [row["share"] for row in found if row["alpha"] == alpha]
            yield kind, f"{alpha:g}", len(shares), f"{statistics.median(shares):.3f}", _span(shares, ".3f")


# Detection.


def _catalogue(measured: Measured) -> Rows:
    for name, table, share in (
        ("fixed size, pair of the catalogue", "catalogue", "caught"),
        ("sequential, pair of the catalogue", "catalogue", "sequential"),
        ("pair searched", "catalogue-searched", "caught"),
    ):
        found = measured.rows(table)
        shares = [row[share] for row in found]
        variants = [row["alarms"] for row in found if row.get("alarms") is not None]
        alarms = f"{sum(variants)} on {len(variants)} variants" if share == "caught" else "–"
        yield name, len(found), shares.count(1), f"{min(shares):.0%}", alarms


def _suites(measured: Measured) -> Rows:
    for suite, found in measured.grouped("suites", "suite").items():
        shares = [row["bound"] / row["best"] for row in found if row["best"]]
        runs = f"{max(row['executions'] for row in found):,}"
        yield suite, _of(sum(map(_is_right, found)), len(found)), _span(shares, ".2f"), runs


def _sniper(measured: Measured) -> Rows:
    found = measured.rows("dp-sniper")
    reached, oracle = (_of(sum(_reaches(row, name) for row in found), len(found)) for name in ("expected", "oracle"))
    seconds = sum(row["seconds"] for row in found)
    yield f"{max(row['executions'] for row in found):,}", reached, oracle, f"{seconds / 60:.0f}"


def _rare_leaks(measured: Measured) -> Rows:
    for place, found in measured.grouped("rare-leaks", "place").items():
        for alpha in (0.05, 1e-5):
            times = sorted(row["times"] for row in found if row["alpha"] == alpha)
            shown = [_finite(value, ".2f") for value in times]
            yield place, f"{alpha:g}", f"{shown[0]} to {shown[-1]}"


def _small_excesses(measured: Measured) -> Rows:
    for place, found in measured.grouped("small-excesses", "place").items():
        shares = (_span([row[name] for row in found], ".2f") for name in ("found", "correct"))
        yield place, len(found), *shares


# Regression testing, libraries, replays.


def _libraries(measured: Measured) -> Rows:
    for library in ("opendp", "diffprivlib", "pydp"):
        found = measured.rows(library)
        counts = (sum(row[name] > 0 for row in found) for name in ("refuted", "refuted_by_bits"))
        yield found[0]["version"], f"{len(found)} objects without a known defect", *counts, "–"
    found = measured.rows("defects")
    caught = _of(sum(row["refuted"] == row["searches"] for row in found), len(found))
    yield ("all", "known defects, searched", f"{caught} with every seed", "–", sum(r["variant_refuted"] for r in found))


def _google(measured: Measured) -> Rows:
    for file, found in measured.grouped("google", "file").items():
        refuted = sum("refuted" in (row["verdict"], row["right"]) for row in found)
        variants = _of(sum(row["variant"] == "refuted" for row in found), len(found))
        minutes = sum(row["seconds"] + row["variant_seconds"] for row in found) / 60
        theirs = sum(row["their_seconds"] for row in found) / 60
        passing = _of(sum(row["they_pass_variant"] == "yes" for row in found), len(found))
        noise = _span([row["they_pass"] for row in found], ".1%")
        yield file, refuted, variants, f"{minutes:.1f}", f"{theirs:.0f}", passing, noise


def _replays(measured: Measured) -> Rows:
    composites, single = measured.rows("composites"), measured.rows("false-findings")
    right, wrong = ([row for row in composites if row[f"{kind}_pairs"]] for kind in ("right", "wrong"))
    for words_of, prefix, found in (
        ("reference mechanisms and models", "", single),
        ("composite, without a known bug", "right_", right),
        ("composite, with a bug", "wrong_", wrong),
    ):
        sums = (sum(row[prefix + name] for row in found) for name in _REPLAYED)
        yield words_of, *(f"{number:,}" for number in (len(found), *sums))


_REPLAYED = ("pairs", "excess", "bounded", "open", "raised")

# Audits of one training run.


def _canary_alarms(measured: Measured) -> Rows:
    found = measured.rows("canary-false-alarms")
    for method in ("auto", "betting", "counts", "steinke", "f-dp"):
        shares = {row["mechanism"]: row[method] for row in found if method in row}
        worst = max(shares, key=lambda name: float(shares[name]))
        yield method, len([row for row in found if method in row]), f"{shares[worst]:.4f}", worst


def _dp_sgd(measured: Measured) -> Rows:
    for name, found in measured.grouped("dp-sgd", "setting").items():
        yield name, *(f"{row['bound']:.2f}" for row in found)


# Where dpaudit misses.

_MISSED = "Targets that the figures miss, wrong verdicts, and comparisons in which another tool is ahead."


def misses(measured: Measured) -> list[str]:
    """Return a line for each missed target, and for each comparison in which another tool is ahead."""
    lines = [
        f"{table}, {key}: {words(target)}"
        for table, rows in measured.tables.items()
        for key, row in rows.items()
        for target in row["targets"]
        if not is_met(target)
    ]
    wrong = [f"{row['mechanism']} ({row['verdict']})" for row in measured.rows("suites") if not _is_right(row)]
    if wrong:
        lines.append(f"suites: wrong verdicts on {', '.join(wrong)}")
    below = [row["mechanism"] for row in measured.rows("dp-sniper") if not _reaches(row)]
    if below:
        lines.append(f"dp-sniper: another tool has the larger bound on {', '.join(below)}")
    statdp = measured.rows("suites", TRIALS)
    for what, fewer in (
        ("fewer runs", [row for row in statdp if 1e6 * TRIALS[row["mechanism"]]["runs"] < row["executions"]]),
        ("less time", [row for row in statdp if TRIALS[row["mechanism"]]["seconds"] < row["seconds"]]),
    ):
        if fewer:
            lines.append(f"suites: StatDP took {what} on {_of(len(fewer), len(statdp))} mechanisms")
    return lines


_ROWS: dict[str, Callable[[Measured], Rows]] = {
    "False alarms": _false_alarms,
    "Exact size": _sizes,
    "Runs to a refutation": _refutation,
    "Power at the stated excess": _power,
    "Catalogue of bugs": _catalogue,
    "StatDP, DP-Auditorium and a ladder of excess losses": _suites,
    "DP-Sniper's suite": _sniper,
    "Runs until a rare leak is found": _rare_leaks,
    "Small excesses amid noise": _small_excesses,
    "Released libraries": _libraries,
    "Google's statistical test cases": _google,
    "Record and replay": _replays,
    "False alarms of audits of one run": _canary_alarms,
    "DP-SGD": _dp_sgd,
}
