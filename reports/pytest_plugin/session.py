"""State of a pytest session: error budget, results and baselines."""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import shutil
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from ...audit.errors import described

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from ...audit.records.suite import Checked, Entry, Suite

# Settings of a session: their defaults, their help, and their form on the command line.

HELP = {
    "alpha": "Probability that one audit refutes a correct mechanism",
    "budget": "Largest sum of the alphas of all audits in a session",
    "runs": "Largest number of runs on each dataset if no resolution is requested",
    "resolution": "Excess over the claim that every audit must be able to detect; determines the number of runs",
    "seconds": "Time limit of an audit in seconds",
    "seed": 'Whole number that determines the random seeds together with the tests\' names, or "random"',
}
_RULES = {
    "alpha": "a probability, 0 < alpha < 1, such as 1e-5",
    "budget": "a probability, 0 < budget < 1, such as 0.01",
    "runs": "a whole number of runs, 40 or more",
    "resolution": "a positive number in the units of the claims",
    "seconds": "a positive number of seconds",
    "seed": 'a whole number >= 0, or "random"',
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a session. Precedence: call, marker, command line, configuration file."""

    alpha: float = 1e-5
    budget: float = 0.01
    runs: int = 100_000
    resolution: float | None = None
    seconds: float | None = None
    seed: int = 0


DEFAULTS: dict[str, Any] = vars(Settings())


def setting_from_text(name: str, text: str) -> Any:
    """Parse a setting from the command line or the configuration file, with a `ValueError` for an invalid one."""
    if name == "seed" and text == "random":
        return text
    digits = text.replace("_", "")
    is_whole = name in ("runs", "seed")
    try:
        value = float(digits)
        if is_whole:
            is_right = value >= (40 if name == "runs" else 0) and value == math.floor(value)
        else:
            is_right = 0.0 < value < (1.0 if name in ("alpha", "budget") else math.inf)
    except (ValueError, OverflowError):
        is_right = False
    if not is_right:
        raise ValueError(
            f"--dp-audit-{name} (or dp_audit_{name} in the configuration) is {text!r}; use {_RULES[name]}."
        )
    if is_whole:
        return int(digits) if digits.isdigit() else int(value)
    return value


Failed: Final = pytest.fail.Exception  # which a test may replace, in the module of pytest
_MOST_NAMED = 10  # tests in a line of the summary
_IN_PROCESS = threading.Lock()  # where processes do not fork, so that no child inherits it while it is held


_LOCK = "lock"  # a file of the journal, which is locked while the journal is read and written
_GONE = (
    "the journal of the session, a folder dp-audit-… for temporary files, was deleted, and with it what audits in "
    "other processes found; do not delete files that the test has not made."
)


def with_lock(journal: Path) -> Path:
    """Return the folder, made if it is missing, with a file for the lock."""
    journal.mkdir(parents=True, exist_ok=True)
    (journal / _LOCK).touch()
    return journal


@dataclass(slots=True)
class Failure:
    """An audit that failed, or ended in an error."""

    test: str
    message: str
    has_verdict: bool  # refuted, inconclusive or changed, so that a rerun does not audit again
    is_settled: bool = False  # the test expected the exception, or a rerun made the audit without an error
    is_reported: bool = False  # a report of pytest has shown that the test failed, in the present run of the test
    error: BaseException | None = field(default=None, repr=False)  # the last one that the audit raised

    @property
    def is_lost(self) -> bool:
        """Whether the test would be green in spite of it."""
        return not (self.is_settled or self.is_reported)

    @property
    def lost(self) -> str:
        """The message for a test that went on after the failure."""
        if self.message == _GONE:
            return _GONE
        return (
            "the test lost the failure of its audit (in a thread, a task, `suppress`, `except` or a rerun). Let the "
            'exception leave the test; if it is expected, pass expect="refuted" or use pytest.raises.\n\n'
            f"{self.message}"
        )


@dataclass(slots=True, kw_only=True)
class AuditSession:
    """State of a session or of one xdist worker."""

    settings: Settings
    baselines: Path  # folder of the named baselines
    started_in: Path = field(default_factory=Path.cwd)  # a test may change the working folder
    report: Path | None = None
    scripts: Path | None = None
    store: Path | None = None
    explain: bool = False  # whether the message of a refuted audit has a replay of its pair
    save: str | None = None  # baseline to write
    compare: str | None = None  # baseline to compare with
    n_workers: int = 1
    is_worker: bool = False
    planned: dict[str, float] = field(default_factory=dict)  # alpha that each test has reserved
    alphas: set[float] = field(default_factory=set)
    # Alpha that each process has used for each test, and the number of audits, also of those without a result.
    charges: dict[str, dict[str, tuple[float, int]]] = field(default_factory=dict)
    running: str = ""  # name of the audit that is being made
    notes: dict[str, str] = field(default_factory=dict)  # remarks by audit, such as what became of draws in the store
    entries: dict[str, Entry] = field(default_factory=dict)  # results by name; a rerun replaces the result of its test
    # By audit; a test must not be green with one that is not settled.
    failed: dict[str, Failure] = field(default_factory=dict)
    # The test of each audit that has begun and not ended, and the number of the process that makes it.
    unfinished: dict[str, tuple[str, int]] = field(default_factory=dict)
    test: str = ""  # the latest that began
    finished: set[str] = field(default_factory=set)  # tests with an audit that has ended, also without an entry
    # Folder in which xdist workers and child processes write what they find, since they may crash.
    journal: Path | None = None
    read: dict[Path, int] = field(default_factory=dict)  # bytes of the files of the journal that were read
    process: int = field(default_factory=os.getpid)
    identity: tuple[int, str] = (0, "")  # the process, and its name in the journal, which no other process gets
    compared: dict[str, str] = field(default_factory=dict)  # how each audit was compared, such as "by counts" or "new"
    files: set[str] = field(default_factory=set)  # of all collected tests
    left_out: set[str] = field(default_factory=set)  # tests that were deselected or skipped
    red: set[str] = field(default_factory=set)  # tests that failed
    messages: list[str] = field(default_factory=list)
    before: Suite | None = None  # the baseline to compare with, once loaded

    def plan(self, name: str, audits: Any, alpha: Any) -> None:
        """Reserve a test's share of the budget, with a `ValueError` for an invalid number of audits or alpha."""
        if isinstance(audits, bool) or not isinstance(audits, int) or audits < 0:
            raise ValueError(f"audits={audits!r} is not a number of audits; use a whole number >= 0.")
        if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 0.0 < alpha < 1.0:
            raise ValueError(f"alpha={alpha!r} is not a probability; use 0 < alpha < 1.")
        self.planned[name] = audits * float(alpha) * self.tests_each
        self.alphas.add(float(alpha))

    @property
    def tests_each(self) -> int:
        """Number of tests of alpha per audit: the audit and, with a baseline, the comparison."""
        return 1 if self.compare is None else 2

    def refusal(self) -> str | None:
        """Return the message if the planned audits exceed the error budget, so that none may run."""
        planned, budget = math.fsum(self.planned.values()), self.settings.budget
        most = max(self.planned, key=lambda name: self.planned[name], default="")
        if planned <= budget * (1 + 1e-9):
            return None
        from ...audit.printing import rounded_up

        return (
            f"dp_audit: the alphas of {len(self.planned):,} tests add up to {planned:.3g}, above the error budget "
            f"{budget:g} (largest share: {most}, {self.planned[most]:.3g}). Lower alpha (--dp-audit-alpha, now "
            f"{self.settings.alpha:g}, or the markers' alpha), run fewer tests at a time, or raise the budget "
            f"(--dp-audit-budget={rounded_up(planned, 1):g})."
        )

    def charge(self, name: str, alpha: float, *, audits: int = 1) -> str | None:
        """Charge alpha for one more audit of a test, or return a message if the budget does not suffice.

        `audits` is 0 for more alpha of an audit that was charged before.

        Workers share the unreserved part of the budget equally, so that together they stay within the budget without
        communicating. Child processes of a session or a worker charge one after another, through its journal.
        """
        with self._locked():
            self._read_journal()
            spent = self.spent
            beyond = {**spent, name: spent.get(name, 0.0) + alpha}
            extra = math.fsum(max(0.0, value - self.planned.get(test, 0.0)) for test, value in beyond.items())
            left = (self.settings.budget - math.fsum(self.planned.values())) / self.n_workers
            if extra > left + 1e-9 * self.settings.budget:
                return (
                    f"dp_audit: this test has reserved alpha {self.planned.get(name, 0.0):g}, and the rest of the "
                    f"error budget {self.settings.budget:g} is too small for a further alpha of {alpha:g}. Declare the "
                    "number of audits (@pytest.mark.dp_audit(audits=…, alpha=…)), lower alpha, or raise the budget "
                    "(--dp-audit-budget)."
                )
            process = self._name_of_process()
            own = self.charges.setdefault(process, {})
            before, n_before = own.get(name, (0.0, 0))
            own[name] = (before + alpha, n_before + audits)
            self._write({"charges": {process: {name: own[name]}}})
        return None

    @property
    def spent(self) -> dict[str, float]:
        """Alpha that each test has used, in all processes."""
        spent = dict[str, float]()
        for of_process in self.charges.values():
            for name, (alpha, _) in of_process.items():
                spent[name] = spent.get(name, 0.0) + alpha
        return spent

    def statement(self) -> str:
        """Return the planned use of the error budget (number of audits times alpha), and the session's settings."""
        planned, tests = math.fsum(self.planned.values()), len(self.planned)
        alone = self.settings.alpha * self.tests_each
        audits, is_one = round(planned / alone), self.alphas == {self.settings.alpha}
        times = f"{audits:,} audit{'s' * (audits != 1)} × alpha {alone:g} = " if is_one else "sum of alphas "
        both = " (half of each alpha for the comparison)" if self.tests_each > 1 else ""
        resolution = self.settings.resolution
        size = f"at most {self.settings.runs:,} runs" if resolution is None else f"runs for resolution {resolution:g}"
        time = "" if self.settings.seconds is None else f", {self.settings.seconds:g} s each"
        return (
            f"{tests:,} test{'s' * (tests != 1)}, {times}{planned:.3g} of error budget {self.settings.budget:g}{both}; "
            f"{size}{time}, seed {self.settings.seed}"
        )

    def baseline_path(self, name: str) -> Path:
        """Return the file of a baseline: a name lies in the folder of baselines, and a path ends in .json."""
        if name.endswith(".json"):
            return self.started_in / name
        parts = re.split(r"[/\\]", name)
        if any(part in ("", ".", "..") or ":" in part or part[0] == "~" or len(part) > 100 for part in parts):
            raise ValueError(
                f"the baseline {name[:100]!r} would not lie in {self.baselines}; use a short name such as main, or "
                "a path that ends in .json."
            )
        return self.baselines.joinpath(*parts[:-1], f"{parts[-1]}.json")

    def missing_baseline(self) -> str | None:
        """Return the message if the baseline to compare with does not exist."""
        if self.compare is None or (path := self.baseline_path(self.compare)).exists():
            return None
        known = sorted(
            each.relative_to(self.baselines).with_suffix("").as_posix() for each in self.baselines.rglob("*.json")
        )
        return (
            f"--dp-audit-compare={self.compare}: {path} does not exist. Use an existing baseline "
            f"({', '.join(known) or f'none in {self.baselines}'}), or save one with --dp-audit-save={self.compare}."
        )

    def check_former(self) -> None:
        """Read the baseline that is to be replaced, since its entries outside this session are kept."""
        from ...audit.records.json_codec import load

        if self.save is not None and self.baseline_path(self.save).exists():
            load(self.baseline_path(self.save))

    def baseline(self) -> dict[str, Entry]:
        """Return the baseline's entries by name; empty without a comparison."""
        if self.compare is None:
            return {}
        if self.before is None:
            from ...audit.records.json_codec import load

            self.before = load(self.baseline_path(self.compare))
        return {entry.name: entry for entry in self.before.entries}

    def begun(self, label: str, test: str) -> None:
        """Take note that an audit begins; in the journal, too, if it may end unseen with its process."""
        self.unfinished[label] = (test, os.getpid())
        if os.getpid() != self.process:
            with self._locked():
                self._write({"unfinished": {label: self.unfinished[label]}})

    def raised(self, label: str, test: str, error: BaseException) -> None:
        """Keep the failure of an audit, which ended in an exception, until a report of pytest shows it."""
        self.unfinished.pop(label, None)
        known = self.failed.get(label)
        if known is None or not known.has_verdict:
            self.failed[label] = known = Failure(
                test, f"{label}: {described(error, shows_data=isinstance(error, Failed))}", has_verdict=False
            )
        known.error, known.is_settled = error, False
        self.note(label)

    def expected(self, error: BaseException | None) -> None:
        """Take note that a test caught an exception that it expected; audits that raised it are as they should be."""
        for label, failure in list(self.failed.items()):
            if failure.error is not None and failure.error in _causes(error):
                if label in self.entries:
                    entry = self.entries[label]
                    self.entries[label] = replace(entry, expected=entry.result.verdict)
                self.settled(label, failure.test)

    def settled(self, label: str, test: str) -> None:
        """Take note that an audit ended as it should."""
        self.unfinished.pop(label, None)
        self.finished.add(test)
        if label in self.failed:
            self.failed[label].is_settled, self.failed[label].error = True, None
        self.note(label)

    def reported(self, test: str, error: BaseException | None) -> None:
        """Take note that a report shows the test's failure, and that of the audit which raised the exception."""
        for label, failure in list(self.failed.items()):
            if failure.test == test or (failure.error is not None and failure.error in _causes(error)):
                failure.is_reported, failure.error = True, None  # the error holds the datasets
                self.note(label)

    def begins(self, test: str) -> None:
        """Take note that a test runs, perhaps again: then the failures of its last run are no longer reported."""
        self.test = test
        for failure in self.failed.values():
            if failure.test == test:
                failure.is_reported = False

    def skipped(self, test: str) -> None:
        """Forgive audits without a verdict of a test that was skipped, such as those that miss a library."""
        for failure in self.failed.values():
            failure.is_settled |= failure.test == test and not failure.has_verdict

    def lost(self, test: str) -> list[str]:
        """Return the messages of a test's failures that no report shows."""
        return [one.lost for one in self.failed.values() if one.is_lost and one.test == test]

    def still_running(self, is_of: Callable[[str], bool]) -> list[str]:
        """Return messages about audits that have not ended with their test, of some of the tests."""
        return [
            f"{label}: the test ended before its audit, which began in process {process}; wait for the thread, the "
            "task or the process that makes it, and let it finish."
            for label, (test, process) in self.unfinished.items()
            if is_of(test)
        ]

    def suite(self) -> Suite:
        from ...audit.records.suite import Suite

        missing = self.without_audit()
        return Suite(
            title="Privacy audits of the test suite",
            entries=tuple(self.entries.values()),
            environment={"missing": missing} if missing else {},
        )

    def without_audit(self) -> list[str]:
        """Tests that planned an audit and finished none, except those left out on purpose."""
        return sorted(
            name
            for name, alpha in self.planned.items()
            if alpha > 0 and name not in self.finished and name not in self.left_out
        )

    def packed(self, label: str | None = None) -> dict[str, Any]:
        """Return a worker's findings, or those on one audit, as plain values."""
        test = None if label is None else owner(label)
        entries = [entry for name, entry in self.entries.items() if label in (None, name)]
        text = ""
        if entries:  # without audits the library is not imported
            from ...audit.records.json_codec import to_json
            from ...audit.records.suite import Suite

            text = to_json(Suite(title="", entries=tuple(entries)))
        of_audits: dict[str, dict[str, Any]] = {
            "notes": self.notes,
            "compared": self.compared,
            "failed": {
                name: (one.test, one.message, one.has_verdict, one.is_settled, one.is_reported)
                for name, one in self.failed.items()
            },
        }
        return {
            "entries": text,
            "planned": {name: alpha for name, alpha in self.planned.items() if test in (None, name)},
            "charges": {
                process: {name: sums for name, sums in charged.items() if test in (None, name)}
                for process, charged in self.charges.items()
            },
            **{key: {name: v for name, v in held.items() if label in (None, name)} for key, held in of_audits.items()},
            "finished": [name for name in self.finished if test in (None, name)],
            "ended": [label] * (label is not None and label not in self.unfinished),
            "files": [] if label else sorted(self.files),
            "left_out": [] if label else sorted(self.left_out),
        }

    def take(self, found: dict[str, Any]) -> None:
        """Add the findings of a worker or a child process; those that are known already change nothing."""
        for process, charged in found.get("charges", {}).items():
            own = self.charges.setdefault(process, {})
            for name, (alpha, audits) in charged.items():  # what a process has charged grows
                own[name] = max(own.get(name, (0.0, 0)), (alpha, audits))
        if found.get("entries"):
            from ...audit.records.json_codec import from_json

            self.entries |= {entry.name: entry for entry in from_json(found["entries"]).entries}
        self.failed |= {label: Failure(*held) for label, held in found.get("failed", {}).items()}
        self.unfinished |= {label: (test, process) for label, (test, process) in found.get("unfinished", {}).items()}
        for label in found.get("ended", ()):
            self.unfinished.pop(label, None)
        for into, key in ((self.planned, "planned"), (self.notes, "notes"), (self.compared, "compared")):
            into |= found.get(key, {})
        for held, key in ((self.finished, "finished"), (self.files, "files"), (self.left_out, "left_out")):
            held.update(found.get(key, ()))

    def note(self, label: str | None = None) -> None:
        """Write the findings on an audit to the journal, in a process that may end without handing them over."""
        if self.is_worker or os.getpid() != self.process:
            with self._locked():
                self._write(self.packed(label))

    def read_journal(self) -> None:
        """Add what other processes wrote since the last call, in the order of writing."""
        with self._locked():
            self._read_journal()

    def _read_journal(self) -> None:
        files = sorted(self.journal.rglob("*.jsonl"), key=lambda file: file.stat().st_mtime_ns) if self.journal else []
        for file in files:
            if file.stem != self._name_of_process():
                with file.open("rb") as opened:
                    opened.seek(self.read.get(file, 0))
                    lines = opened.read().split(b"\n")[:-1]  # a process may be writing the last, or die while it does
                self.read[file] = self.read.get(file, 0) + sum(len(line) + 1 for line in lines)
                for line in lines:
                    self.take(json.loads(line))

    def _write(self, found: dict[str, Any]) -> None:
        """Append a line to this process's file of the journal."""
        if self.journal is not None:
            with (self.journal / f"{self._name_of_process()}.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")

    def _name_of_process(self) -> str:
        """The name of this process in the journal; the number of a process that ended may be given to another."""
        if self.identity[0] != os.getpid():
            self.identity = (os.getpid(), secrets.token_hex(8))
        return self.identity[1]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Exclude the other threads, and the other processes that use the journal."""
        if self.journal is not None and not (self.journal / _LOCK).exists():
            if os.getpid() != self.process:
                raise Failed(_GONE)
            with_lock(self.journal)
            self.read.clear()
            self.failed[f"{self.test} journal"] = Failure(self.test, _GONE, has_verdict=False)
        if sys.platform == "win32" or self.journal is None:
            with _IN_PROCESS:
                yield
            return
        with (self.journal / _LOCK).open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)  # a child that was forked meanwhile has the file open, too

    def close_journal(self) -> None:
        """Delete the journal, which belongs to the process that made it."""
        if self.journal is not None and not self.is_worker and os.getpid() == self.process:
            shutil.rmtree(self.journal, ignore_errors=True)

    def finish(self, *, is_whole: bool, is_green: bool, given: list[str], root: Path) -> bool:
        """Write the requested report and baseline; return whether the session fails although its tests passed.

        It fails if audits of the baseline are missing, if none could be compared, or if a failed audit is in no report.
        A report or baseline that cannot be written is a message.

        Parameters
        ----------
        is_whole, is_green : bool
            Whether the session was complete, and whether no test failed.
        given : list of str
            Tests selected on the command line, to which the search for missing audits is limited; empty for all.
        root : Path
            Root folder of the tests.
        """
        lost = [f"WARNING {one.lost}" for one in self.failed.values() if one.is_lost and one.test not in self.red]
        lost += [f"WARNING {said}" for said in self.still_running(lambda test: is_whole and test not in self.red)]
        self.messages += lost
        if missing := self.without_audit():
            more = f" and {len(missing) - _MOST_NAMED:,} more" if len(missing) > _MOST_NAMED else ""
            named = ", ".join(missing[:_MOST_NAMED])
            self.messages.append(f"WARNING {len(missing):,} planned without a finished audit: {named}{more}")
        if not (self.compare or self.save or self.report):
            return bool(lost)
        self.entries = dict(sorted(self.entries.items()))
        absent = self._missing(self.baseline(), given, root) if is_whole else []
        for name in absent:
            self.messages.append(
                f"{name}: the audit of baseline {self.compare} is missing; if it was removed on purpose, run all tests "
                f"with --dp-audit-save={self.compare}"
            )
        is_stranger = bool(self.compare and self.entries and not self.baseline().keys() & self.entries.keys())
        if is_stranger:
            self.messages.append(f"baseline {self.compare} has no audit of this session, so nothing was compared")
        try:
            if self.report is not None:
                self._write_report(self.report)
        except Exception as error:
            self.messages.append(_not_written("--dp-audit-report", self.report, error))
        try:
            if self.save is not None:
                self._save(self.save, is_whole, is_green, given, root)
        except Exception as error:
            self.messages.append(_not_written("--dp-audit-save", self.baseline_path(str(self.save)), error))
        return bool(lost or absent) or is_stranger

    def _missing(self, before: Iterable[str], given: list[str], root: Path) -> list[str]:
        """Audits in `before` that this session should have made: their file was collected or no longer exists."""
        return [
            name
            for name in before
            if name not in self.entries
            and owner(name) not in self.left_out
            and (not given or any(_is_part(owner(name), part) for part in given))
            and (_file(name) in self.files or not (root / _file(name)).exists())
        ]

    def _write_report(self, path: Path) -> None:
        from ...audit.files import write_atomically
        from ...audit.records.json_codec import save
        from ..pages.html_page import html
        from ..pages.markdown_page import markdown

        if path.suffix in (".html", ".htm"):
            write_atomically(path, html(self.suite()))
        elif path.suffix == ".md":
            write_atomically(path, markdown(self.suite()))
        else:
            save(self.suite(), path)
        self.messages.append(f"results written to {path}")

    def _save(self, name: str, is_whole: bool, is_green: bool, given: list[str], root: Path) -> None:
        """Write a baseline; keep entries of an existing one that lie outside this session."""
        from ...audit.records.json_codec import load, save

        path = self.baseline_path(name)
        if not is_whole or not self.entries:
            reason = "the session made no audit" if is_whole else "the session was interrupted"
            self.messages.append(f"{path} not written: {reason}")
            return
        former = {entry.name: entry for entry in load(path).entries} if path.exists() else {}
        # A failed test may have stopped before its audit, so entries are removed only if all tests passed.
        gone = set(self._missing(former, given, root)) if is_green else set()
        kept = {name: entry for name, entry in former.items() if name not in gone and name not in self.entries}
        new = {
            name: replace(
                entry,
                result=_for_a_baseline(entry.result),
                accepted=entry.accepted or (former[name].accepted if name in former else None),
            )
            for name, entry in self.entries.items()
        }
        save(replace(self.suite(), entries=tuple(dict(sorted({**kept, **new}.items())).values())), path)
        told = f"{len(new):,} from this session ({len(new.keys() - former.keys()):,} new)"
        told += f", {len(kept):,} kept" * bool(kept) + f", {len(gone):,} removed" * bool(gone)
        self.messages.append(f"baseline written to {path}: {told}")

    def summary(self) -> list[str]:
        """Return the table of audits with remarks, budget and messages."""
        lines: list[str] = []
        if self.entries:
            from ..pages.terminal_tables import remarks, table_lines

            entries = list(self.entries.values())
            lines = [*table_lines(entries), *remarks(entries)]
        lines += [f"note {name}: {what}" for name, what in sorted(self.notes.items())]
        if self.charges:
            lines.append(self._spent_in_all())
        if self.compared:
            said = ", ".join(f"{times:,} {how}" for how, times in Counter(self.compared.values()).items())
            lines.append(f"compared with baseline {self.compare}: {said}")
        return lines + self.messages

    def _spent_in_all(self) -> str:
        """The audits of the table and those beside it, with the sum of their alphas."""
        listed = len(self.entries)
        audits = sum(n for of_process in self.charges.values() for _, n in of_process.values())
        more = max(0, audits - listed)
        told = [f"{listed:,} audit{'s' * (listed != 1)}"] if listed else []
        if more:
            told.append(
                f"{more:,} {'more ' * bool(listed)}outside the table (checks without a row, audits that raised an "
                "error or ran again)"
            )
        return (
            f"{', '.join(told)}; probability of any false alarm at most {math.fsum(self.spent.values()):.3g}, error "
            f"budget {self.settings.budget:g}"
        )

    def interrupted(self) -> None:
        """Say how the audit that Ctrl-C ended is continued."""
        if self.running and self.store is None:
            self.messages.append(
                f"{self.running}: interrupted; with --dp-audit-store=DIR, the next session continues such an audit"
            )
        elif self.running:
            self.messages.append(
                f"{self.running}: interrupted; its draws are kept in {self.store}, and the same command continues it"
            )


def _for_a_baseline(result: Checked) -> Checked:
    """Drop timings and figure data, so that a baseline under version control changes only with the results."""
    from ...audit.results.audit_result import AuditResult, SequentialResult
    from ...audit.results.canary_result import CanaryResult

    if isinstance(result, CanaryResult):
        return replace(result, environment={}, sketch=None)
    if isinstance(result, AuditResult):
        light = replace(result, environment={}, sketch=None)
        return replace(light, looks=()) if isinstance(light, SequentialResult) else light
    return replace(result, environment={})


def _not_written(option: str, path: Path | None, error: Exception) -> str:
    """The message about a file that costs a session nothing but the file."""
    kind = "" if isinstance(error, OSError) else f"{type(error).__name__}: "
    return f"WARNING {option}={path} not written ({kind}{error}); use a path that can be written"


def _causes(error: BaseException | None) -> list[BaseException]:
    """An exception, those in it if it is a group, and their explicit causes."""
    found: list[BaseException] = []
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and not any(one is known for known in found):
            found.append(one)
            waiting += [one.__cause__, *(one.exceptions if isinstance(one, BaseExceptionGroup) else ())]
    return found


def saved_as(name: str) -> str:
    """Random stream for the counts saved as a baseline."""
    return f"baseline {name}"


def compared_with(name: str) -> str:
    """Random stream for the counts compared with a baseline."""
    return f"comparison with {name}"


def owner(name: str) -> str:
    """Name of the test to which an audit belongs."""
    test, mark, number = name.rpartition(" #")
    return test if mark and number.isdigit() else name


def _file(name: str) -> str:
    return name.partition("::")[0]


def _is_part(test: str, given: str) -> bool:
    """Whether a test lies in a folder, file, class or function named on the command line."""
    return test == given or any(test.startswith(given + mark) for mark in ("/", "::", "["))
