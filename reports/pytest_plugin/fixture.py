"""The fixture `dp_audit`: audits with the session's settings, and fails the test where a claim is refuted."""

from __future__ import annotations

import datetime
import hashlib
import inspect
import math
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ...audit.claims.at_distance import ClaimAtDistance
from ...audit.claims.claim import Claim
from ...audit.errors import OptionError
from ...audit.events.events import Event
from ...audit.options import LEAST_RUNS
from ...audit.procedures.check import check
from ...audit.procedures.count_again import recount
from ...audit.records.baseline_comparison import ANOTHER_PAIR, compare
from ...audit.records.json_codec import is_storable
from ...audit.records.suite import Entry, Suite
from ...audit.results.audit_result import AuditResult, Verdict
from ...audit.results.equivalence_result import EquivalenceResult
from ...audit.results.recount import Accepted, Recount
from ...audit.results.statement_result import StatementResult
from ...audit.search.find_worst_pair import LEAST_SEARCH, find_worst_pair
from .failure import Case, change_message, failure_message, repetition
from .reproduction_script import ScriptError, script
from .session import AuditSession, compared_with, saved_as

_OWN = ("audits", "accepted", "until", "up_to")  # options of the marker that are no options of check


class DPAudit:
    """Audits in a test; each call is one audit with an error probability of its own.

    Parameters
    ----------
    session : AuditSession
    name : str
        Of the test, relative to the root.
    path : Path
        Of the test's file.
    marked : mapping
        Options of its markers.
    """

    def __init__(self, session: AuditSession, name: str, path: Path, marked: Mapping[str, Any]) -> None:
        self._session, self._name, self._path = session, name, path
        self._marked = {option: value for option, value in marked.items() if option not in _OWN}
        self._accepted = _acceptance(marked)
        self.calls = 0

    def __call__(
        self,
        mechanism: Any,
        x: Any = None,
        y: Any = None,
        *,
        claim: Claim | ClaimAtDistance | None = None,
        neighbours: Any = None,
        **options: Any,
    ) -> AuditResult:
        """Audits a mechanism's claim on a pair, or on the worst pair that a search finds; fails where it is refuted.

        The audit is sequential unless options say otherwise, so that a broken mechanism fails at once, and runs in
        this process (jobs=1), so that what a test has patched is what is audited.

        Parameters
        ----------
        mechanism, x, y, claim
            As of `check`.
        neighbours : Domain, callable, iterable or Hypothesis strategy, optional
            Instead of x and y: where to look for a pair, as of `find_worst_pair`.
        **options
            Of `check`, and of `find_worst_pair` with `neighbours`, such as `search_runs`. `alpha`, `runs`,
            `resolution`, `seconds` and `seed` are the session's if not given; the seed follows from the test's name.
            With a resolution, and no runs in the call or its marker, there are as many runs as that takes.

        Returns
        -------
        AuditResult
            Where the claim is not refuted, or its refutation is accepted.
        """
        __tracebackhide__ = True
        started = time.perf_counter()
        if (neighbours is None) == (x is None and y is None):
            raise OptionError("an audit needs a pair: give x and y, or neighbours= and where to look for one.")
        known = {*inspect.signature(check).parameters, *inspect.signature(find_worst_pair).parameters} - {"options"}
        unknown = [name for name in {**self._marked, **options} if name not in known]
        if unknown:
            raise OptionError(f"{unknown[0]} is no option of an audit; use one of {', '.join(sorted(known))}.")
        label, options = self._begin(options)
        if (options.get("cells") or 0) > 0:
            options.setdefault("sequential", False)
        options.setdefault("sequential", True)
        if not options["sequential"]:
            options.pop("seconds", None)
        if neighbours is None:
            options.pop("search_runs", None)
            result, how = check(mechanism, x, y, claim=claim, **options), None
        else:
            options["keep_datasets"] = True  # nobody else knows the pair
            options.setdefault("search_runs", max(self._session.settings.runs, LEAST_SEARCH))
            how = find_worst_pair(mechanism, neighbours, claim=claim, **options)
            result, x, y = how.audit, how.x, how.y
        entry = Entry(name=label, result=result, recounts=self._recounts(mechanism, x, y, result, options, label))
        result.environment["seconds"] = round(time.perf_counter() - started, 3)
        self._conclude(entry, Case(label, self._name, mechanism, x, y, options, how))
        return result

    def check(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Makes another check of the library's, such as `check_noise`, with the session's alpha and a seed.

        Fails as an audit does: where the result is refuted, or inconclusive.

        Returns
        -------
        AuditResult, StatementResult or EquivalenceResult
        """
        __tracebackhide__ = True
        parameters = inspect.signature(function).parameters
        takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        label, whole = self._begin(options)
        given = {name: value for name, value in whole.items() if name in options or name in parameters}
        if takes_any:
            given |= {name: whole[name] for name in ("alpha", "seed")}
        result = function(*arguments, **given)
        if not isinstance(result, (AuditResult, StatementResult, EquivalenceResult)):
            raise OptionError(
                f"{getattr(function, '__name__', function)} returned a {type(result).__name__}; use a check that gives "
                "an AuditResult, a StatementResult or an EquivalenceResult."
            )
        more = result.alpha - float(whole["alpha"])
        if more > 1e-9 * result.alpha and (refusal := self._session.charge(self._name, more)):
            pytest.fail(refusal)
        if isinstance(result, EquivalenceResult):
            if not result.is_shown:
                self._session.failed[label] = f"{result}\n  seed {result.seed}"
                pytest.fail(self._session.failed[label])
            return result
        case = Case(label, self._name, function, None, None, whole, None)
        self._conclude(Entry(name=label, result=result), case)
        return result

    def _begin(self, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The audit's name, and its options with the marker's and the session's; its alpha is charged."""
        __tracebackhide__ = True
        self.calls += 1
        label = self._name if self.calls == 1 else f"{self._name} #{self.calls}"
        if label in self._session.failed:
            pytest.fail(f"{self._session.failed[label]}\n\n(found earlier in this session: a rerun changes nothing)")
        settings, own = self._session.settings, {**self._marked, **options}
        whole = {"alpha": settings.alpha, "seed": _seed(settings.seed, label), "jobs": 1, **own}
        for name in ("resolution", "seconds"):
            if getattr(settings, name) is not None:
                whole.setdefault(name, getattr(settings, name))
        if whole.get("resolution") is None:
            whole.setdefault("runs", settings.runs)
        refusal = self._session.charge(self._name, float(whole["alpha"]) * self._session.tests_each)
        if refusal:
            pytest.fail(refusal)
        return label, whole

    def _recounts(
        self, mechanism: Any, x: Any, y: Any, result: AuditResult, options: Mapping[str, Any], label: str
    ) -> tuple[Recount, ...]:
        """The baseline's event counted again where one is compared with, and this audit's where one is saved.

        Each in a stream that nothing else draws from: with the same random numbers a baseline and what is compared with
        it would depend on each other. The last event of a baseline is the one that was counted to be its own.
        """
        wanted = list[tuple[Event | None, str]]()
        before = self._session.baseline().get(label)
        if self._session.compare and before is not None:
            wanted += [(one.event, compared_with(self._session.compare)) for one in before.recounts[-1:]]
        if self._session.save:
            event = result.event if is_storable(result.event) else None
            wanted.append((event, saved_as(self._session.save)))
        runs = options.get("runs") or max(result.runs, self._session.settings.runs)
        if result.stopped in ("time", "request"):
            runs = max(result.runs, LEAST_RUNS)
        return tuple(
            recount(mechanism, x, y, event, stream=stream, runs=runs, seed=options["seed"], jobs=options.get("jobs"))
            for event, stream in wanted
        )

    def _conclude(self, entry: Entry, case: Case) -> None:
        """Records the result; fails the test where a claim is refuted, nothing was found out, or something changed."""
        __tracebackhide__ = True
        before = self._session.baseline().get(entry.name)
        accepted = self._accepted or (before.accepted if before else None)
        entry = replace(entry, accepted=accepted)
        entry.result.environment["repeat"] = repetition(case, self._session.settings)
        self._session.entries[entry.name] = entry
        verdict, messages = entry.result.verdict, []
        if verdict is Verdict.REFUTED and not entry.is_excused(datetime.date.today()):
            messages.append(failure_message(entry, case, self._session.settings, self._script(entry, case)))
        elif verdict is Verdict.INCONCLUSIVE:
            messages.append(failure_message(entry, case, self._session.settings, None))
        if self._session.compare is not None:
            messages += self._compared(before, entry)
        if messages:
            self._session.failed[entry.name] = "\n\n".join(messages)
            pytest.fail(self._session.failed[entry.name])

    def _compared(self, before: Entry | None, entry: Entry) -> list[str]:
        """What has changed since the baseline, in words."""
        if before is None:
            self._session.compared[entry.name] = "new"
            return []
        alone = [Suite(title="", entries=(one,)) for one in (replace(before, accepted=entry.accepted), entry)]
        (found,) = compare(*alone, alpha=entry.result.alpha)
        if found.p_value is not None:
            how = "by counts"
        elif found.not_compared is not None:
            how = "not by counts, which cannot be compared"
        elif isinstance(entry.result, StatementResult):
            how = "by intervals"
        else:
            how = "by claims and settings only"
        self._session.compared[entry.name] = how
        is_told = found.has_changed or found.not_compared not in (None, ANOTHER_PAIR)
        return [change_message(found, str(self._session.compare))] if is_told else []

    def _script(self, entry: Entry, case: Case) -> str | None:
        """Where a script that shows the violation has been written, or why there is none."""
        folder = self._session.scripts
        if folder is None or not isinstance(entry.result, AuditResult):
            return None
        safe = "".join(char if char.isalnum() else "-" for char in entry.name)[-80:].strip("-")
        path = folder / f"{safe}-{hashlib.sha256(entry.name.encode()).hexdigest()[:6]}.py"
        try:
            text = script(entry.result, case.mechanism, case.x, case.y, self._path, case.options)
        except ScriptError as error:
            return f"no script: {error}"
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return f"python {shlex.quote(str(path))}"


def _acceptance(marked: Mapping[str, Any]) -> Accepted | None:
    """The finding that a marker accepts."""
    reason, until = marked.get("accepted"), marked.get("until")
    if reason is None and until is None:
        return None
    if reason is None or until is None:
        raise OptionError("a finding is accepted for a reason and until a day: give both accepted= and until=.")
    return Accepted(reason=str(reason), until=str(until), up_to=float(marked.get("up_to", math.inf)))


def _seed(root: int, label: str) -> int:
    """A seed for an audit, from the session's and its name: adding a test changes no other."""
    digest = hashlib.sha256(f"{root}\n{label}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
