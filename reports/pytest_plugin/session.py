"""What the audits of one pytest session share: settings, an error budget, results, and a baseline to compare with."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...audit.records.suite import Entry, Suite
    from ...audit.results.audit_result import AuditResult
    from ...audit.results.statement_result import StatementResult

DEFAULTS: dict[str, Any] = {
    "alpha": 1e-5,
    "budget": 0.01,
    "runs": 100_000,
    "resolution": None,
    "seconds": None,
    "seed": 0,
}
"""Settings of a session; a call's options come first, then its marker's, the command line's and those of the file."""

HELP = {
    "alpha": "Probability that one audit refutes a correct mechanism",
    "budget": "Most that the alphas of all audits of a session may add up to",
    "runs": "Runs of the mechanism on each dataset, at most, where no resolution is asked for",
    "resolution": "Excess over a claim that every audit has to be able to find, with as many runs as that takes",
    "seconds": "Time after which an audit stops",
    "seed": 'Whole number from which, with a test\'s name, its draws follow, or "random"',
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Options of a session, of the types that `DEFAULTS` shows."""

    alpha: float
    budget: float
    runs: int
    resolution: float | None
    seconds: float | None
    seed: int


def setting_from_text(name: str, text: str) -> Any:
    """A setting from the command line or a configuration file; a `ValueError` says what is wrong with it."""
    rules = {
        "alpha": "a probability, 0 < alpha < 1, such as 1e-5",
        "budget": "a probability, 0 < budget < 1, such as 0.01",
        "runs": "a whole number of runs, 40 or more",
        "resolution": "a positive number in the units of the claims",
        "seconds": "a positive number of seconds",
        "seed": 'a whole number >= 0, or "random"',
    }
    wrong = f"--dp-audit-{name} (or dp_audit_{name} in the configuration) is {text!r}; use {rules[name]}."
    if name == "seed" and text == "random":
        return text
    try:
        value = float(text.replace("_", ""))
        is_right = {
            "alpha": 0.0 < value < 1.0,
            "budget": 0.0 < value < 1.0,
            "runs": value >= 40 and value == math.floor(value),
            "resolution": 0.0 < value < math.inf,
            "seconds": 0.0 < value < math.inf,
            "seed": value >= 0 and value == math.floor(value),
        }[name]
    except (ValueError, OverflowError):
        is_right = False
    if not is_right:
        raise ValueError(wrong)
    if name not in ("runs", "seed"):
        return value
    digits = text.replace("_", "")
    return int(digits) if digits.isdigit() else int(value)


@dataclass(slots=True, kw_only=True)
class AuditSession:
    """The state of a session, or of one worker of it.

    Attributes
    ----------
    settings : Settings
    baselines : Path
        Folder of the baselines that are called by name.
    report, scripts : Path, optional
        Where results, and scripts that show violations, are to be written.
    save, compare : str, optional
        Baseline to write, and to compare with.
    n_workers : int
        Workers among which what is left of the budget is divided.
    is_worker : bool
    planned : dict of str to float
        Alpha of each test that asks for audits, of all of them together.
    alphas : set of float
        Of all audits planned.
    spent : dict of str to float
        Alpha that each test's audits have taken.
    entries : dict of str to Entry
        Results by name; of a test that is run again, the last one.
    failed : dict of str to str
        What audits that failed have said: a rerun is no second chance.
    compared : dict of str to str
        How each audit was compared, in words, such as "by counts" or "new".
    files : set of str
        Files of all tests that were collected.
    left_out : set of str
        Tests that were deselected or skipped.
    messages : list of str
        For the summary.
    """

    settings: Settings
    baselines: Path
    report: Path | None = None
    scripts: Path | None = None
    save: str | None = None
    compare: str | None = None
    n_workers: int = 1
    is_worker: bool = False
    planned: dict[str, float] = field(default_factory=dict)
    alphas: set[float] = field(default_factory=set)
    spent: dict[str, float] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    compared: dict[str, str] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)
    messages: list[str] = field(default_factory=list)
    before: Suite | None = None

    def plan(self, name: str, audits: Any, alpha: Any) -> None:
        """Sets aside a test's share of the budget; a `ValueError` for what is no number of audits, or no alpha."""
        if isinstance(audits, bool) or not isinstance(audits, int) or audits < 1:
            raise ValueError(f"audits={audits!r} is no number of audits; use a whole number >= 1.")
        if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 0.0 < alpha < 1.0:
            raise ValueError(f"alpha={alpha!r} is no probability; use 0 < alpha < 1.")
        self.planned[name] = audits * float(alpha) * self.tests_each
        self.alphas.add(float(alpha))

    @property
    def tests_each(self) -> int:
        """Tests of alpha that an audit stands for: where a baseline is compared with, that as well."""
        return 1 if self.compare is None else 2

    def refusal(self) -> str | None:
        """Why no audit may run: together they may raise more false alarms than the budget allows."""
        planned, budget = math.fsum(self.planned.values()), self.settings.budget
        most = max(self.planned, key=lambda name: self.planned[name], default="")
        if planned <= budget * (1 + 1e-9):
            return None
        from ...audit.printing import rounded_up

        return (
            f"dp_audit: the audits of {len(self.planned):,} tests may raise a false alarm with probability "
            f"{planned:.3g}, above the budget of {budget:g} (the most has {most}, {self.planned[most]:.3g}); use a "
            f"smaller alpha (--dp-audit-alpha, now {self.settings.alpha:g}, or that of a marker), fewer tests at a "
            f"time, or allow more (--dp-audit-budget={rounded_up(planned, 1):g})."
        )

    def charge(self, name: str, alpha: float) -> str | None:
        """Takes alpha for one more audit of a test; if what is left does not suffice, says what to change instead.

        What no test has set aside is divided among the workers in equal parts, so that together they keep within the
        budget without asking each other.
        """
        spent = self.spent.get(name, 0.0) + alpha
        beyond = {**self.spent, name: spent}
        extra = math.fsum(max(0.0, value - self.planned.get(test, 0.0)) for test, value in beyond.items())
        left = (self.settings.budget - math.fsum(self.planned.values())) / self.n_workers
        if extra > left + 1e-9 * self.settings.budget:
            return (
                f"dp_audit: an audit of alpha {alpha:g} more than this test has set aside "
                f"({self.planned.get(name, 0.0):g}) is above what is left of the budget of "
                f"{self.settings.budget:g}; say how many audits it makes (@pytest.mark.dp_audit(audits=…, alpha=…)), "
                f"use a smaller alpha, or allow more (--dp-audit-budget)."
            )
        self.spent[name] = spent
        return None

    def statement(self) -> str:
        """How many audits, times alpha."""
        planned, tests = math.fsum(self.planned.values()), len(self.planned)
        alone = self.settings.alpha * self.tests_each
        audits, is_one = round(planned / alone), self.alphas == {self.settings.alpha}
        times = f"{audits:,} audit{'' if audits == 1 else 's'} × alpha {alone:g} = " if is_one else ""
        both = " (each is compared as well)" if self.tests_each > 1 else ""
        return (
            f"{tests:,} test{'' if tests == 1 else 's'} with {times}{'' if times else 'alphas of '}{planned:.3g} in "
            f"all, of a budget of {self.settings.budget:g}{both}"
        )

    def baseline_path(self, name: str) -> Path:
        """The file of a baseline: what ends in .json is a path, and a name belongs into the folder of baselines.

        Raises
        ------
        ValueError
            For a name that would leave the folder.
        """
        if name.endswith(".json"):
            return Path(name)
        parts = re.split(r"[/\\]", name)
        if any(part in ("", ".", "..") or ":" in part or part[0] == "~" or len(part) > 100 for part in parts):
            raise ValueError(
                f"the baseline {name[:100]!r} would not lie in {self.baselines}; use a short name such as main, or "
                "a path that ends in .json."
            )
        return self.baselines.joinpath(*parts[:-1], f"{parts[-1]}.json")

    def baseline(self) -> dict[str, Entry]:
        """The entries to compare with, by name; empty where nothing is compared."""
        if self.compare is None:
            return {}
        if self.before is None:
            from ...audit.records.json_codec import load

            self.before = load(self.baseline_path(self.compare))
        return {entry.name: entry for entry in self.before.entries}

    def suite(self) -> Suite:
        from ...audit.records.suite import Suite

        return Suite(title="Privacy audits of the test suite", entries=tuple(self.entries.values()))

    def packed(self) -> dict[str, Any]:
        """What a worker has found, as plain values."""
        from ...audit.records.json_codec import to_json

        return {
            "entries": to_json(self.suite()) if self.entries else "",
            "planned": self.planned,
            "spent": self.spent,
            "compared": self.compared,
            "files": sorted(self.files),
            "left_out": sorted(self.left_out),
        }

    def take(self, found: dict[str, Any]) -> None:
        """Adds what a worker has found."""
        if found["entries"]:
            from ...audit.records.json_codec import from_json

            self.entries |= {entry.name: entry for entry in from_json(found["entries"]).entries}
        self.planned |= found["planned"]  # every worker collects all tests
        self.spent |= found["spent"]  # and runs its own
        self.compared |= found["compared"]
        self.files |= set(found["files"])
        self.left_out |= set(found["left_out"])

    def finish(self, *, is_whole: bool, is_green: bool, given: list[str], root: Path) -> bool:
        """Compares, saves and writes what is asked for; whether audits have disappeared, or none was compared.

        Parameters
        ----------
        is_whole, is_green : bool
            Whether the session came to its end, and no test failed.
        given : list of str
            The tests asked for by the command line, of which alone an audit can be missed; none for all.
        root : Path
            Of the tests.
        """
        if not (self.compare or self.save or self.report):
            return False
        self.entries = dict(sorted(self.entries.items()))
        missing = self._missing(self.baseline(), given, root) if is_whole else []
        for name in missing:
            self.messages.append(
                f"{name}: the audit has disappeared since {self.compare} was saved; if it should have, save it anew "
                f"(--dp-audit-save={self.compare}, all tests)"
            )
        is_stranger = bool(self.compare and self.entries and not self.baseline().keys() & self.entries.keys())
        if is_stranger:
            self.messages.append(f"no audit of this session is in {self.compare}: nothing was compared")
        if self.report is not None:
            self._write_report(self.report)
        if self.save is not None:
            self._save(self.save, is_whole, is_green, given, root)
        return bool(missing) or is_stranger

    def _missing(self, before: Iterable[str], given: list[str], root: Path) -> list[str]:
        """Audits of before that this session should have made and did not: their file was read, or is gone."""
        return [
            name
            for name in before
            if name not in self.entries
            and owner(name) not in self.left_out
            and (not given or any(_is_part(owner(name), part) for part in given))
            and (_file(name) in self.files or not (root / _file(name)).exists())
        ]

    def _write_report(self, path: Path) -> None:
        from ...audit.records.json_codec import save, write_whole
        from ..pages.html_page import html
        from ..pages.markdown_page import markdown

        if path.suffix in (".html", ".htm"):
            write_whole(path, html(self.suite()))
        elif path.suffix == ".md":
            write_whole(path, markdown(self.suite()))
        else:
            save(self.suite(), path)
        self.messages.append(f"results written to {path}")

    def _save(self, name: str, is_whole: bool, is_green: bool, given: list[str], root: Path) -> None:
        """Writes a baseline; of one that is there, what this session was not about is kept."""
        from ...audit.records.json_codec import load, save

        path = self.baseline_path(name)
        if not is_whole or not self.entries:
            self.messages.append(
                f"{path} not written: " + ("no audit was made" if is_whole else "the session broke off")
            )
            return
        former = {entry.name: entry for entry in load(path).entries} if path.exists() else {}
        # A test that failed may not have come to its audit, so nothing is taken for gone unless all is green.
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
        told = [f"{len(new):,} of this session, {len(new.keys() - former.keys()):,} of them new"]
        told += [f"{len(kept):,} kept"] * bool(kept) + [f"{len(gone):,} removed"] * bool(gone)
        self.messages.append(f"baseline written to {path}: {', '.join(told)}")

    def summary(self) -> list[str]:
        """The table of audits, and what else there is to say."""
        if not self.entries and not self.messages:
            return []
        lines = []
        if self.entries:
            from .session_table import remarks, table_lines

            entries, spent = list(self.entries.values()), math.fsum(self.spent.values())
            number = f"{len(entries):,} audit{'' if len(entries) == 1 else 's'}"
            lines = [*table_lines(entries), *remarks(entries)]
            lines += [
                f"{number}, which may raise a false alarm with probability {spent:.3g} at most; budget "
                f"{self.settings.budget:g}"
            ]
        if self.compared:
            said = Counter(self.compared.values())
            lines += [f"compared with {self.compare}: " + ", ".join(f"{times:,} {how}" for how, times in said.items())]
        return lines + self.messages


def _for_a_baseline(result: AuditResult | StatementResult) -> AuditResult | StatementResult:
    """Without timings and figures' data: a file under version control is read, and changes when something has."""
    from ...audit.results.audit_result import AuditResult
    from ...audit.results.sequential_result import SequentialResult

    if isinstance(result, AuditResult):
        light = replace(result, environment={}, sketch=None)
        return replace(light, looks=()) if isinstance(light, SequentialResult) else light
    return replace(result, environment={})


def saved_as(name: str) -> str:
    """The stream of random numbers of what is saved as a baseline."""
    return f"baseline {name}"


def compared_with(name: str) -> str:
    """The stream of random numbers of what is compared with a baseline."""
    return f"comparison with {name}"


def owner(name: str) -> str:
    """The test that an audit of this name belongs to."""
    test, mark, number = name.rpartition(" #")
    return test if mark and number.isdigit() else name


def _file(name: str) -> str:
    return name.partition("::")[0]


def _is_part(test: str, given: str) -> bool:
    """Whether a test lies in a folder, file, class or function that the command line gives."""
    return test == given or any(test.startswith(given + mark) for mark in ("/", "::", "["))
