"""State of a pytest session: error budget, results and baselines."""

from __future__ import annotations

import math
import mmap
import os
import re
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from ...audit.errors import OptionError, described
from ...audit.options import RULES, checked

if TYPE_CHECKING:
    from ...audit.records.suite import Checked, Entry, SideCheck, Suite

# Settings of a session: their defaults, their help, and their form on the command line.

HELP = {
    "alpha": "Probability that one audit refutes a correct mechanism",
    "budget": "Largest sum of the alphas of all audits in a session",
    "runs": "Largest number of runs on each dataset if no excess to detect is named",
    "detect": "Excess over the claim that every audit must be able to detect; determines the number of runs",
    "seconds": "Time limit of an audit in seconds",
    "seed": 'Whole number that determines the random seeds together with the tests\' names, or "random"',
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a session. Precedence: call, marker, command line, configuration file."""

    alpha: float = 1e-5
    budget: float = 0.01
    runs: int = 100_000
    detect: float | None = None
    seconds: float | None = None
    seed: int = 0


DEFAULTS: dict[str, Any] = vars(Settings())


def setting_from_text(name: str, text: str) -> Any:
    """Parse a setting from the command line or the configuration file, with a `ValueError` for an invalid one."""
    if name == "seed" and text == "random":
        return text
    digits = text.replace("_", "")
    try:
        return checked(name, int(digits) if digits.isdigit() else float(digits))
    except (ValueError, OptionError) as error:
        way_out = RULES[name].way_out + ' or "random"' * (name == "seed")
        raise ValueError(
            f"--dp-audit-{name} (or dp_audit_{name} in the configuration) is {text!r}; use {way_out}."
        ) from error


Failed: Final = pytest.fail.Exception  # which a test may replace, in the module of pytest
_MOST_NAMED = 10  # tests in a line of the summary
IN_FORK = (
    "an audit was made in a child process of a test, whose result the session would not see; make it in the process of "
    "the test."
)


@dataclass(slots=True)
class Failure:
    """An audit that failed, or ended in an error."""

    test: str
    message: str
    has_verdict: bool  # refuted, inconclusive or changed, so that a rerun does not audit again
    is_settled: bool = False  # the test expected the exception, or a rerun made the audit without an error
    is_reported: bool = False  # a report of pytest has shown that the test failed, in the present run of the test
    error: BaseException | None = field(default=None, repr=False)  # the last one that the audit raised

    def packed(self) -> dict[str, Any]:
        """The plain values, without the error, which cannot be sent."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "error"}

    @property
    def is_lost(self) -> bool:
        """Whether the test would be green in spite of it."""
        return not (self.is_settled or self.is_reported)

    @property
    def lost(self) -> str:
        """The message for a test that went on after the failure."""
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
    explain: bool = False  # whether every refuted audit is replayed, and its report has the calls
    save: str | None = None  # baseline to write
    compare: str | None = None  # baseline to compare with
    n_workers: int = 1
    is_worker: bool = False
    planned: dict[str, float] = field(default_factory=dict)  # alpha that each test has reserved
    alphas: set[float] = field(default_factory=set)
    # Test, alpha and number of audits of each charge, also for audits without a result; no other process has its key.
    charges: dict[str, tuple[str, float, int]] = field(default_factory=dict)
    charging: threading.Lock = field(default_factory=threading.Lock, repr=False)
    running: str = ""  # name of the audit that is being made
    notes: dict[str, str] = field(default_factory=dict)  # remarks by audit, such as what became of draws in the store
    entries: dict[str, Entry] = field(default_factory=dict)  # results by name; a rerun replaces the result of its test
    checks: dict[str, SideCheck] = field(default_factory=dict)  # replays, comparisons of versions and the like, by name
    # By audit; a test must not be green with one that is not settled.
    failed: dict[str, Failure] = field(default_factory=dict)
    unfinished: dict[str, str] = field(default_factory=dict)  # the test of each audit that has begun and not ended
    finished: set[str] = field(default_factory=set)  # tests with an audit that has ended, also without an entry
    process: tuple[int, str] = field(default_factory=lambda: (os.getpid(), secrets.token_hex(8)))
    # Shared with forked children: whether one of them asked for an audit, which is refused there.
    in_forks: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, 1), repr=False)
    has_told_plan: bool = False  # whether a child process has handed over what it collected
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
        communicating.
        """
        with self.charging:
            beyond = self.spent
            beyond[name] = beyond.get(name, 0.0) + alpha
            extra = math.fsum(max(0.0, value - self.planned.get(test, 0.0)) for test, value in beyond.items())
            left = (self.settings.budget - math.fsum(self.planned.values())) / self.n_workers
            if extra <= left + 1e-9 * self.settings.budget:
                self.charges[f"{os.getpid()} {self.process[1]} {len(self.charges)}"] = (name, alpha, audits)
                return None
        return (
            f"dp_audit: this test has reserved alpha {self.planned.get(name, 0.0):g}, and the rest of the error budget "
            f"{self.settings.budget:g} is too small for a further alpha of {alpha:g}. Declare the number of audits "
            "(@pytest.mark.dp_audit(audits=…, alpha=…)), lower alpha, or raise the budget (--dp-audit-budget)."
        )

    @property
    def spent(self) -> dict[str, float]:
        """Alpha that each test has used, in all processes."""
        spent = dict[str, float]()
        for test, alpha, _ in self.charges.values():
            spent[test] = spent.get(test, 0.0) + alpha
        return spent

    def statement(self) -> str:
        """Return the planned use of the error budget (number of audits times alpha), and the session's settings."""
        planned, tests = math.fsum(self.planned.values()), len(self.planned)
        alone = self.settings.alpha * self.tests_each
        audits, is_one = round(planned / alone), self.alphas == {self.settings.alpha}
        times = f"{audits:,} audit{'s' * (audits != 1)} × alpha {alone:g} = " if is_one else "sum of alphas "
        both = " (half of each alpha for the comparison)" if self.tests_each > 1 else ""
        detect = self.settings.detect
        size = f"at most {self.settings.runs:,} runs" if detect is None else f"runs to detect {detect:g}"
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

    def read_baselines(self) -> None:
        """Read the baseline to compare with, and the one to replace, since its entries outside this session are kept.

        A `ValueError` says that the first does not exist.
        """
        if self.compare is not None and not (path := self.baseline_path(self.compare)).exists():
            found = (each.relative_to(self.baselines).with_suffix("") for each in self.baselines.rglob("*.json"))
            known = ", ".join(sorted(each.as_posix() for each in found)) or f"none in {self.baselines}"
            raise ValueError(
                f"--dp-audit-compare={self.compare}: {path} does not exist. Use an existing baseline ({known}), or "
                f"save one with --dp-audit-save={self.compare}."
            )
        self.baseline()
        if self.save is not None and (former := self.baseline_path(self.save)).exists():
            from ...audit.records.json_codec import load

            load(former)

    def baseline(self) -> dict[str, Entry]:
        """Return the baseline's entries by name; empty without a comparison."""
        if self.compare is None:
            return {}
        if self.before is None:
            from ...audit.records.json_codec import load

            self.before = load(self.baseline_path(self.compare))
        return {entry.name: entry for entry in self.before.entries}

    def raised(self, label: str, test: str, error: BaseException) -> None:
        """Keep the failure of an audit, which ended in an exception, until a report of pytest shows it."""
        self.unfinished.pop(label, None)
        known = self.failed.get(label)
        if known is None or not known.has_verdict:
            self.failed[label] = known = Failure(
                test, f"{label}: {described(error, shows_data=isinstance(error, Failed))}", has_verdict=False
            )
        known.error, known.is_settled = error, False

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

    def reported(self, test: str, error: BaseException | None) -> None:
        """Take note that a report shows the test's failure, and that of the audit which raised the exception."""
        for failure in list(self.failed.values()):
            if failure.test == test or (failure.error is not None and failure.error in _causes(error)):
                failure.is_reported, failure.error = True, None  # the error holds the datasets

    def begins(self, test: str) -> None:
        """Take note that a test runs, perhaps again: then the failures of its last run are no longer reported."""
        for failure in list(self.failed.values()):
            if failure.test == test:
                failure.is_reported = False

    def skipped(self, test: str) -> None:
        """Forgive audits without a verdict of a test that was skipped, such as those that miss a library."""
        for failure in list(self.failed.values()):
            failure.is_settled |= failure.test == test and not failure.has_verdict

    def lost(self, test: str) -> list[str]:
        """Return the messages of a test's failures that no report shows."""
        lost = [one.lost for one in list(self.failed.values()) if one.is_lost and one.test == test]
        return lost + self._lost_in_forks()

    def _lost_in_forks(self) -> list[str]:
        """The message of an audit in a forked child, once."""
        found, self.in_forks[0] = [IN_FORK] * self.in_forks[0], 0
        return found

    def still_running(self, is_of: Callable[[str], bool]) -> list[str]:
        """Return messages about audits that have not ended with their test, of some of the tests."""
        return [
            f"{label}: the test ended before its audit; wait for the thread or the task that makes it."
            for label, test in list(self.unfinished.items())
            if is_of(test)
        ]

    def suite(self) -> Suite:
        from ...audit.records.suite import Suite

        missing = self.without_audit()
        return Suite(
            title="Privacy audits of the test suite",
            entries=tuple(self.entries.values()),
            checks=tuple(self.checks.values()),
            environment={"missing": missing} if missing else {},
        )

    def without_audit(self) -> list[str]:
        """Tests that planned an audit and finished none, except those left out on purpose."""
        return sorted(
            name
            for name, alpha in self.planned.items()
            if alpha > 0 and name not in self.finished and name not in self.left_out
        )

    @property
    def is_in_child(self) -> bool:
        """Whether this process, a worker or a fork for a test, hands its findings over to the one of the session."""
        return self.is_worker or os.getpid() != self.process[0]

    def packed(self, test: str | None = None) -> dict[str, Any]:
        """Return a child process's findings, or those of one test, as plain values.

        The first pack has what was collected too, so that the tests of a worker that crashes later are known.
        """

        def of(held: dict[str, Any]) -> dict[str, Any]:  # a thread may outlast the test and change what is held
            return {name: value for name, value in list(held.items()) if test in (None, owner(name))}

        text, entries, checks = "", of(self.entries), of(self.checks)
        if entries or checks:  # without audits the library is not imported
            from ...audit.records.json_codec import to_json
            from ...audit.records.suite import Suite

            text = to_json(Suite(title="", entries=tuple(entries.values()), checks=tuple(checks.values())))
        has_plan, self.has_told_plan = test is None or not self.has_told_plan, True
        return {
            "entries": text,
            # Of the whole process, when it ends: audits that still run, and those of forked children.
            "unfinished": {} if test is not None else dict(self.unfinished),
            "in_forks": test is None and bool(self.in_forks[0]),
            "failed": {name: one.packed() for name, one in of(self.failed).items()},
            "charges": {key: held for key, held in list(self.charges.items()) if test in (None, held[0])},
            "notes": of(self.notes),
            "compared": of(self.compared),
            "finished": [name for name in list(self.finished) if test in (None, name)],
            "planned": self.planned if has_plan else {},
            "files": sorted(self.files) if has_plan else [],
            "left_out": sorted(self.left_out) if has_plan else [],
        }

    def take(self, found: dict[str, Any]) -> None:
        """Add the findings of a child process; those that are known already change nothing."""
        if found["entries"]:
            from ...audit.records.json_codec import from_json

            suite = from_json(found["entries"])
            self.entries |= {entry.name: entry for entry in suite.entries}
            self.checks |= {check.name: check for check in suite.checks}
        self.failed |= {label: Failure(**held) for label, held in found["failed"].items()}
        for name in ("charges", "notes", "compared", "finished", "planned", "files", "left_out", "unfinished"):
            getattr(self, name).update(found[name])
        self.in_forks[0] |= found["in_forks"]

    def finish(self, *, is_whole: bool, is_green: bool, given: list[str], root: Path) -> bool:
        """Write the requested report and baseline; return whether the session fails although its tests passed.

        It fails if audits of the baseline are missing, if none could be compared, or if a failed audit is in no report.
        A report or baseline that cannot be written is a message. `is_whole` and `is_green` say whether the session was
        complete, and whether no test failed. The search for missing audits is limited to the tests that are `given` on
        the command line, if any; `root` is the folder of the tests.
        """
        lost = [one.lost for one in self.failed.values() if one.is_lost and one.test not in self.red]
        lost += self.still_running(lambda test: is_whole and test not in self.red) + self._lost_in_forks()
        self.messages += [f"WARNING {said}" for said in lost]
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
        if self.report is not None:
            with self._costing_the_file("report", self.report):
                self._write_report(self.report)
        if self.save is not None:
            with self._costing_the_file("save", self.baseline_path(self.save)):
                self._save(self.save, is_whole, is_green, given, root)
        return bool(lost or absent) or is_stranger

    @contextmanager
    def _costing_the_file(self, option: str, path: Path) -> Iterator[None]:
        """An error in the block costs the session nothing but the file."""
        try:
            yield
        except Exception as error:
            kind = "" if isinstance(error, OSError) else f"{type(error).__name__}: "
            self.messages.append(
                f"WARNING --dp-audit-{option}={path} not written ({kind}{error}); use a path that can be written"
            )

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
        entries = tuple(dict(sorted({**kept, **new}.items())).values())
        save(replace(self.suite(), entries=entries, checks=()), path)
        told = f"{len(new):,} from this session ({len(new.keys() - former.keys()):,} new)"
        told += f", {len(kept):,} kept" * bool(kept) + f", {len(gone):,} removed" * bool(gone)
        self.messages.append(f"baseline written to {path}: {told}")

    def summary(self) -> list[str]:
        """Return the table of audits with remarks, budget and messages."""
        lines: list[str] = []
        if self.entries or self.checks:
            from ..pages.terminal_tables import remarks, table_lines

            entries = list(self.entries.values())
            lines = [*table_lines(entries, list(self.checks.values())), *remarks(entries)]
        lines += [f"note {name}: {what}" for name, what in sorted(self.notes.items())]
        if self.charges:
            lines.append(self._spent_in_all())
        if self.compared:
            said = ", ".join(f"{times:,} {how}" for how, times in Counter(self.compared.values()).items())
            lines.append(f"compared with baseline {self.compare}: {said}")
        return lines + self.messages

    def _spent_in_all(self) -> str:
        """The audits of the table and those beside it, with the sum of their alphas."""
        listed = len(self.entries) + sum(check.alpha > 0.0 for check in self.checks.values())
        audits = sum(n for _, _, n in self.charges.values())
        more = max(0, audits - listed)
        told = [f"{listed:,} audit{'s' * (listed != 1)}"] if listed else []
        if more:
            told.append(
                f"{more:,} {'more ' * bool(listed)}outside the table (audits that raised an error or ran again)"
            )
        return (
            f"{', '.join(told)}; probability of any false alarm at most {math.fsum(self.spent.values()):.3g}, error "
            f"budget {self.settings.budget:g}"
        )

    def interrupted(self) -> None:
        """Say how the audit that Ctrl-C ended is continued."""
        way_on = f"its draws are kept in {self.store}, and the same command continues it"
        if self.store is None:
            way_on = "with --dp-audit-store=DIR, the next session continues such an audit"
        if self.running:
            self.messages.append(f"{self.running}: interrupted; {way_on}")


def _for_a_baseline(result: Checked) -> Checked:
    """Drop timings and figure data, so that a baseline under version control changes only with the results."""
    from ...audit.results.audit_result import AuditResult, SequentialResult
    from ...audit.results.canary_result import CanaryResult

    kept = {name: value for name, value in result.environment.items() if name == "repeat"}
    light = replace(result, environment=kept)
    if isinstance(light, AuditResult | CanaryResult):
        light = replace(light, sketch=None)
    return replace(light, interim_analyses=()) if isinstance(light, SequentialResult) else light


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


def owner(name: str) -> str:
    """Name of the test to which an audit belongs."""
    test, mark, number = name.rpartition(" #")
    return test if mark and number.isdigit() else name


def _file(name: str) -> str:
    return name.partition("::")[0]


def _is_part(test: str, given: str) -> bool:
    """Whether a test lies in a folder, file, class or function named on the command line."""
    return test == given or any(test.startswith(given + mark) for mark in ("/", "::", "["))
