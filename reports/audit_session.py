"""What the audits of one pytest session share: settings, an error budget, results, and a baseline to compare with."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..audit.records import Entry, Suite
    from ..audit.statements import StatementResult
    from ..audit.verdicts import AuditResult

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
    "runs": "Runs of the mechanism on each dataset, at most",
    "resolution": "Excess over a claim that every audit has to be able to find",
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
    return int(text.replace("_", "")) if name in ("runs", "seed") and text.replace("_", "").isdigit() else value


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
    spent : dict of str to float
        Alpha that each test's audits have taken.
    entries : list of Entry
        Results, in the order in which they came.
    collected, deselected : set of str
        Names of tests with audits, and of all tests that were left out.
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
    spent: dict[str, float] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    collected: set[str] = field(default_factory=set)
    deselected: set[str] = field(default_factory=set)
    messages: list[str] = field(default_factory=list)
    before: Suite | None = None

    def plan(self, name: str, audits: Any, alpha: Any) -> None:
        """Sets aside a test's share of the budget; a `ValueError` for what is no number of audits, or no alpha."""
        if isinstance(audits, bool) or not isinstance(audits, int) or audits < 1:
            raise ValueError(f"audits={audits!r} is no number of audits; use a whole number >= 1.")
        if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 0.0 < alpha < 1.0:
            raise ValueError(f"alpha={alpha!r} is no probability; use 0 < alpha < 1.")
        self.planned[name] = audits * float(alpha)

    def refusal(self) -> str | None:
        """Why no audit may run: together they may raise more false alarms than the budget allows."""
        planned, budget = math.fsum(self.planned.values()), self.settings.budget
        if planned <= budget * (1 + 1e-9):
            return None
        return (
            f"dp_audit: the audits of {len(self.planned):,} tests may raise a false alarm with probability "
            f"{planned:.3g}, above the budget of {budget:g}; use a smaller alpha (--dp-audit-alpha, now "
            f"{self.settings.alpha:g}), fewer tests at a time, or allow more "
            f"(--dp-audit-budget={_rounded_up(planned)})."
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
        alone = self.settings.alpha
        audits = round(planned / alone, 3)
        times = f"{audits:,.0f} audit{'' if audits == 1 else 's'} × alpha {alone:g} = " if audits == int(audits) else ""
        return (
            f"{tests:,} test{'' if tests == 1 else 's'} with {times}{'' if times else 'alphas of '}{planned:.3g} in "
            f"all, of a budget of {self.settings.budget:g}"
        )

    def baseline_path(self, name: str) -> Path:
        """The file of a baseline: in the folder of baselines, or where a path says."""
        if name.endswith(".json") or "/" in name or "\\" in name:
            return Path(name)
        return self.baselines / f"{name}.json"

    def baseline(self) -> dict[str, Entry]:
        """The entries to compare with, by name; empty where nothing is compared."""
        if self.compare is None:
            return {}
        if self.before is None:
            from ..audit.records import load

            self.before = load(self.baseline_path(self.compare))
        return {entry.name: entry for entry in self.before.entries}

    def suite(self) -> Suite:
        from ..audit.records import Suite

        return Suite(title="Privacy audits of the test suite", entries=tuple(self.entries))

    def packed(self) -> dict[str, Any]:
        """What a worker has found, as plain values."""
        from ..audit.records import to_json

        return {
            "entries": to_json(self.suite()) if self.entries else "",
            "planned": self.planned,
            "spent": self.spent,
            "collected": sorted(self.collected),
            "deselected": sorted(self.deselected),
        }

    def take(self, found: dict[str, Any]) -> None:
        """Adds what a worker has found."""
        if found["entries"]:
            from ..audit.records import from_json

            self.entries += from_json(found["entries"]).entries
        self.planned |= found["planned"]  # every worker collects all tests
        self.spent |= found["spent"]  # and runs its own
        self.collected |= set(found["collected"])
        self.deselected |= set(found["deselected"])

    def finish(self, *, is_whole: bool, given: list[str]) -> bool:
        """Compares, saves and writes what is asked for; whether audits have disappeared.

        `given` are the tests asked for by the command line, of which alone an audit can be missed; none for all.
        """
        if not (self.compare or self.save or self.report):
            return False
        self.entries.sort(key=lambda entry: entry.name)
        missing = self._missing(given) if is_whole else []
        for name in missing:
            self.messages.append(f"{name}: the audit has disappeared since {self.compare} was saved")
        if self.report is not None:
            self._write_report(self.report)
        if self.save is not None:
            self._save(self.save, is_whole)
        return bool(missing)

    def _missing(self, given: list[str]) -> list[str]:
        """Audits of the baseline that should have been made and were not."""
        made = {entry.name for entry in self.entries}
        left_out = self.deselected
        return [
            name
            for name in self.baseline()
            if name not in made
            and owner(name) not in left_out
            and (not given or any(_is_part(owner(name), part) for part in given))
        ]

    def _write_report(self, path: Path) -> None:
        from ..audit.records import save, write_whole
        from . import html, markdown

        if path.suffix in (".html", ".htm"):
            write_whole(path, html(self.suite()))
        elif path.suffix == ".md":
            write_whole(path, markdown(self.suite()))
        else:
            save(self.suite(), path)
        self.messages.append(f"results written to {path}")

    def _save(self, name: str, is_whole: bool) -> None:
        from ..audit.records import load, save

        path = self.baseline_path(name)
        if not is_whole or not self.entries:
            self.messages.append(
                f"{path} not written: " + ("no audit was made" if is_whole else "the session broke off")
            )
            return
        accepted = {entry.name: entry.accepted for entry in load(path).entries} if path.exists() else {}
        kept = [replace(entry, accepted=entry.accepted or accepted.get(entry.name)) for entry in self.entries]
        plain = [replace(entry, result=_for_a_baseline(entry.result)) for entry in kept]
        save(replace(self.suite(), entries=tuple(plain)), path)
        self.messages.append(f"baseline written to {path}")

    def summary(self) -> list[str]:
        """The table of audits, and what else there is to say."""
        if not self.entries and not self.messages:
            return []
        lines = []
        if self.entries:
            from .audit_table import table_lines

            lines = table_lines(self.entries)
            spent = math.fsum(self.spent.values())
            lines += [
                f"{len(self.entries):,} audits, which may raise a false alarm with probability {spent:.3g} at most; "
                f"budget {self.settings.budget:g}"
            ]
        return lines + self.messages


def _for_a_baseline(result: AuditResult | StatementResult) -> AuditResult | StatementResult:
    """Without timings and figures' data: a file under version control is read, and changes when something has."""
    from ..audit.verdicts import AuditResult

    if isinstance(result, AuditResult):
        return replace(result, environment={}, sketch=None, looks=())
    return replace(result, environment={})


def owner(name: str) -> str:
    """The test that an audit of this name belongs to."""
    return name.rsplit(" #", 1)[0]


def _is_part(test: str, given: str) -> bool:
    """Whether a test lies in a folder, file, class or function that the command line gives."""
    return test == given or any(test.startswith(given + mark) for mark in ("/", "::", "["))


def _rounded_up(probability: float) -> str:
    """One digit, rounded up."""
    digits = math.floor(math.log10(probability))
    return f"{math.ceil(probability / 10.0**digits) * 10.0**digits:.0g}"
