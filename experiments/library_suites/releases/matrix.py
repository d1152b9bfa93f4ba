"""Suites of several releases of a library as a matrix: what became of each public callable in each release."""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....audit.errors import OptionError, StoreError
from ....audit.records.json_codec import load
from ....audit.records.suite import Entry
from ....audit.results.audit_result import Verdict
from ....reports.plain_text import found, severity, stated
from ..coverage import Status
from ..run_plan import PLAN_FILE
from ..run_target import BITS

LOG_FILE = "log.txt"
"""Output of a suite in the folder of its release; alone in a folder if the suite could not run."""


class Standing(enum.Enum):
    """What became of a callable in a release."""

    NOT_REFUTED = "not refuted"
    REFUTED = "refuted by values"
    REFUTED_BY_BITS = "refuted by low bits"
    NOT_CONFIRMED = "refuted once, not confirmed"
    INCONCLUSIVE = "inconclusive"
    NOT_REACHED = "not reached"
    FAILED = "could not be audited"
    NOT_COVERED = "not covered"
    SAME = "calls another callable"
    ABSENT = "not in this release"
    NO_SUITE = "the suite did not run"


REFUTED = (Standing.REFUTED, Standing.REFUTED_BY_BITS)
_STANDINGS = {
    Status.AUDITED: Standing.NOT_REFUTED,
    Status.REFUTED: Standing.REFUTED,
    Status.REFUTED_BY_BITS: Standing.REFUTED_BY_BITS,
    Status.NOT_CONFIRMED: Standing.NOT_CONFIRMED,
    Status.INCONCLUSIVE: Standing.INCONCLUSIVE,
    Status.SAME: Standing.SAME,
    Status.NOT_REACHED: Standing.NOT_REACHED,
    Status.FAILED: Standing.FAILED,
    Status.NOT_COVERED: Standing.NOT_COVERED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The suite of one release.

    Attributes
    ----------
    name : str
        Name and version of the release, or of the folder if the suite did not run.
    folder : Path
    alpha : float
        Family-wise, of this suite; 0 if it did not run.
    settings : dict
        As in the suite's ``suite.json``.
    lines : dict
        Coverage of each public callable, as in ``coverage.json``.
    entries : dict
        The audits by their names, those of low bits included.
    problem : str
        Why the suite did not run; empty if it did.
    """

    name: str
    folder: Path
    alpha: float = 0.0
    settings: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    entries: Mapping[str, Entry] = field(default_factory=dict)
    problem: str = ""

    @property
    def reached(self) -> tuple[int, int]:
        """Points that were audited, and points of the plan."""
        held = self.lines.values()
        return sum(line["points audited"] for line in held), sum(line["points"] for line in held)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A callable in a release.

    Attributes
    ----------
    standing : Standing
    points, audited : int
        Points of the parameter grid, and those that were audited.
    bound : str
        The strongest refutation: bound and claim; empty without one.
    point : str
        The point of that refutation.
    remark : str
        Why the callable, or points of its grid, were not audited.
    """

    standing: Standing
    points: int = 0
    audited: int = 0
    bound: str = ""
    point: str = ""
    remark: str = ""

    @property
    def words(self) -> str:
        """The standing, with the bound of a refutation or the numbers of points."""
        if self.bound:
            return f"{self.standing.value}: {self.bound}"
        if self.standing is Standing.NOT_REFUTED and self.audited < self.points:
            return f"{self.standing.value} ({self.audited} of {self.points} points)"
        return self.standing.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A callable with its cells, one for each release."""

    callable: str
    cells: tuple[Cell, ...]

    @property
    def is_refuted(self) -> bool:
        """Whether a release is refuted."""
        return any(cell.standing in REFUTED for cell in self.cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A point that is refuted in some release and audited in another without a refutation.

    Attributes
    ----------
    name : str
        Name of the audit.
    told : tuple of str
        For each release, the bound and the runs on each dataset, or why there is none.
    """

    name: str
    told: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Public callables of a library by release, oldest release first.

    Attributes
    ----------
    library : str
    releases : tuple of Release
    rows : tuple of Row
        Callables that are refuted in some release first.
    """

    library: str
    releases: tuple[Release, ...]
    rows: tuple[Row, ...]

    @property
    def alpha(self) -> float:
        """Allowed probability that any claim that holds is refuted in any release: the sum over the suites."""
        return sum(release.alpha for release in self.releases)

    @property
    def changes(self) -> tuple[Change, ...]:
        """Points that are refuted in one release and not in another."""
        audits = [pair for release in self.releases for pair in release.entries.items()]
        names = dict.fromkeys(name for name, entry in audits if _is_refuted(entry))
        return tuple(
            Change(name=name, told=tuple(_told(release, name) for release in self.releases))
            for name in names
            if any(_has_spared(release, name) for release in self.releases)
        )

    @property
    def status(self) -> int:
        """Exit status: 1 for a refutation, 3 for doubt or a suite that did not run, otherwise 0."""
        standings = {cell.standing for row in self.rows for cell in row.cells}
        if standings & set(REFUTED):
            return 1
        doubts = {Standing.NOT_CONFIRMED, Standing.INCONCLUSIVE, Standing.NO_SUITE}
        is_doubtful = bool(standings & doubts) or any(release.problem for release in self.releases)
        return 3 if is_doubtful or Standing.NOT_REFUTED not in standings else 0

    def to_dict(self) -> dict[str, Any]:
        """Return the matrix as JSON values."""
        names = [release.name for release in self.releases]
        return {
            "library": self.library,
            "alpha": self.alpha,
            "releases": [_release_dict(release) for release in self.releases],
            "callables": {
                row.callable: {
                    name: {
                        "standing": cell.standing.value,
                        "points": cell.points,
                        "points audited": cell.audited,
                        "bound": cell.bound,
                        "point": cell.point,
                        "remark": cell.remark,
                    }
                    for name, cell in zip(names, row.cells, strict=True)
                }
                for row in self.rows
            },
            "changes": {change.name: dict(zip(names, change.told, strict=True)) for change in self.changes},
        }


def read_release(folder: Path, library: str) -> Release:
    """Return the suite of a release from its folder.

    A folder with nothing but ``log.txt`` is a release whose suite did not run; the last line of the log is the reason.

    Raises
    ------
    OptionError
        If the folder holds no suite and no log, or the suite of another library.
    StoreError
        If its files are damaged.
    """
    plan, coverage, log = folder / PLAN_FILE, folder / "coverage.json", folder / LOG_FILE
    if not coverage.exists():
        if log.exists():
            said = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
            return Release(name=folder.name, folder=folder, problem=said[-1].strip() if said else "no output")
        raise OptionError(f"{folder} holds no finished suite; pass the folder of `dpaudit suite --out`.")
    try:
        settings, lines = (json.loads(path.read_text(encoding="utf-8")) for path in (plan, coverage))
        name, own, alpha = str(settings["release"]), settings["library"], float(settings["alpha"])
        lines = {str(line["callable"]): line for line in lines["callables"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{folder} is damaged ({error!r}); run its suite again.", path=str(folder)) from error
    if own != library:
        raise OptionError(f"{folder} holds a suite of {own}, not of {library}; pass suites of one library.")
    results = folder / "results.json"
    entries = load(results).entries if results.exists() else ()
    return Release(
        name=name,
        folder=folder,
        alpha=alpha,
        settings=settings,
        lines=lines,
        entries={entry.name: entry for entry in entries},
    )


def matrix_of(library: str, releases: Iterable[Release]) -> Matrix:
    """Return the matrix of the suites of several releases.

    Raises
    ------
    OptionError
        If a release has two suites, or the suites have different selections of callables.
    """
    ordered = tuple(sorted(releases, key=lambda one: (bool(one.problem), _natural(one.name))))
    names = [release.name for release in ordered]
    for name in names:
        if names.count(name) > 1:
            raise OptionError(f"{name} has more than one suite; pass one folder for each release.", release=name)
    selections = {json.dumps(release.settings.get("only")) for release in ordered if not release.problem}
    if len(selections) > 1:
        raise OptionError(
            f"the suites select different callables (--only {' and '.join(sorted(selections))}), so that absent ones "
            "cannot be told; use the same selection."
        )
    callables = sorted({name for release in ordered for name in release.lines})
    rows = [Row(callable=name, cells=tuple(_cell(release, name) for release in ordered)) for name in callables]
    return Matrix(library=library, releases=ordered, rows=tuple(sorted(rows, key=lambda row: not row.is_refuted)))


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key by which 0.9 comes before 0.10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _cell(release: Release, name: str) -> Cell:
    if release.problem:
        return Cell(standing=Standing.NO_SUITE, remark=release.problem)
    line = release.lines.get(name)
    if line is None:
        return Cell(standing=Standing.ABSENT)
    standing = _STANDINGS[Status(line["status"])]
    worst = _worst([entry for entry in release.entries.values() if entry.experiment == name], standing)
    return Cell(
        standing=standing,
        points=line["points"],
        audited=line["points audited"],
        bound="" if worst is None else _bound(worst),
        point="" if worst is None else worst.name.partition(": ")[2],
        remark="; ".join(line["reasons"]),
    )


def _worst(entries: Sequence[Entry], standing: Standing) -> Entry | None:
    """Return the most severe refutation of a callable by the kind of its standing."""
    if standing not in REFUTED:
        return None
    is_by_bits = standing is Standing.REFUTED_BY_BITS
    refuted = [entry for entry in entries if _is_refuted(entry) and entry.name.endswith(BITS) is is_by_bits]
    return max(refuted, key=lambda entry: severity(entry.result), default=None)  # type: ignore[arg-type]


def _is_refuted(entry: Entry) -> bool:
    return entry.result.verdict is Verdict.REFUTED


def _bound(entry: Entry) -> str:
    return f"{found(entry.result)}, claimed {stated(entry.result)}"


def _has_spared(release: Release, name: str) -> bool:
    """Whether a release was audited at a point and not refuted; by values, if the pilot showed no low bits.

    A suite with ``--no-bits`` spares no point of low bits, as its pilot did not look at them.
    """
    entry = release.entries.get(name)
    if entry is None and release.settings.get("bits", True):
        entry = release.entries.get(name.removesuffix(BITS))
    return entry is not None and not _is_refuted(entry)


def _told(release: Release, name: str) -> str:
    """Return the bound of a point in a release, with the runs on each dataset, or why it was not audited."""
    entry = release.entries.get(name)
    if entry is None:
        if release.problem:
            return Standing.NO_SUITE.value
        known = name.removesuffix(BITS) in release.settings["targets"]
        by_values = release.entries.get(name.removesuffix(BITS))
        if by_values is not None:
            if _is_refuted(by_values):
                return "low bits not audited: refuted by values"
            if not release.settings.get("bits", True):
                return "low bits not audited: --no-bits"
            return f"no low bits in the pilot, {by_values.result.runs:,} runs"
        return "not audited" if known else "no such point"
    return f"{entry.result.verdict.value}, {_bound(entry)}, {entry.result.runs:,} runs"


def _release_dict(release: Release) -> dict[str, Any]:
    audited, points = release.reached
    return {
        "release": release.name,
        "alpha": release.alpha,
        "seed": release.settings.get("seed"),
        "points": points,
        "points audited": audited,
        "problem": release.problem,
    }
