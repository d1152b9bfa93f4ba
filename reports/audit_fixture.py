"""The fixture `dp_audit`: audits with the session's settings, and fails the test where a claim is refuted."""

from __future__ import annotations

import datetime
import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ..audit.check import check
from ..audit.claims import Claim, ClaimAtDistance
from ..audit.comparison import compare
from ..audit.errors import OptionError
from ..audit.records import Entry, Suite
from ..audit.recounts import Accepted, recount
from ..audit.search import LEAST_SEARCH, find_worst_pair
from ..audit.statements import StatementResult
from ..audit.verdicts import AuditResult, Verdict
from .audit_failure import Case, change_message, failure_message
from .audit_script import ScriptError, script
from .audit_session import AuditSession

_OWN = ("audits", "accepted", "until")  # options of the marker that are no options of check


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
        self._calls = 0

    def __call__(
        self,
        mechanism: Any,
        x: Any = None,
        y: Any = None,
        *,
        claim: Claim | ClaimAtDistance,
        neighbours: Any = None,
        **options: Any,
    ) -> AuditResult:
        """Audits a mechanism's claim on a pair, or on the worst pair that a search finds; fails where it is refuted.

        The audit is sequential unless options say otherwise, so that a broken mechanism fails at once.

        Parameters
        ----------
        mechanism, x, y, claim
            As of `check`.
        neighbours : Domain, callable, iterable or Hypothesis strategy, optional
            Instead of x and y: where to look for a pair, as of `find_worst_pair`.
        **options
            Of `check`, and of `find_worst_pair` with `neighbours`. `alpha`, `runs`, `resolution`, `seconds` and `seed`
            are the session's if not given; the seed follows from the test's name.

        Returns
        -------
        AuditResult
            Where the claim is not refuted, or its refutation is accepted.
        """
        __tracebackhide__ = True
        label, options = self._begin(options)
        if (options.get("cells") or 0) > 0:
            options.setdefault("sequential", False)
        options.setdefault("sequential", True)
        if not options["sequential"]:
            options.pop("seconds", None)
        if neighbours is None:
            result = check(mechanism, x, y, claim=claim, **options)
            how = None
        elif x is not None or y is not None:
            raise OptionError("a pair and neighbours= are two ways to say the same; give x and y, or neighbours=.")
        else:
            options["keep_datasets"] = True  # nobody else knows the pair
            options.setdefault("search_runs", max(self._session.settings.runs, LEAST_SEARCH))
            found = find_worst_pair(mechanism, neighbours, claim=claim, **options)
            result, x, y, how = found.audit, found.x, found.y, found
        entry = Entry(name=label, result=result, recounts=self._recounts(mechanism, x, y, result, options, label))
        case = Case(label, self._name, mechanism, x, y, options, how)
        self._conclude(entry, case)
        return result

    def check(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Makes another check of the library's, such as `check_noise`, with the session's alpha and a seed.

        Fails as an audit does: where the result is refuted, or inconclusive.

        Returns
        -------
        AuditResult or StatementResult
        """
        __tracebackhide__ = True
        taken = inspect.signature(function).parameters
        label, whole = self._begin(options)
        result = function(
            *arguments, **{name: value for name, value in whole.items() if name in taken or name in options}
        )
        if not isinstance(result, (AuditResult, StatementResult)):
            raise OptionError(
                f"{getattr(function, '__name__', function)} returned a {type(result).__name__}; use a check that gives "
                "an AuditResult or a StatementResult."
            )
        self._conclude(Entry(name=label, result=result), Case(label, self._name, function, None, None, whole, None))
        return result

    def _begin(self, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The audit's name, and its options with the marker's and the session's; its alpha is charged."""
        __tracebackhide__ = True
        self._calls += 1
        label = self._name if self._calls == 1 else f"{self._name} #{self._calls}"
        settings = self._session.settings
        whole = {"alpha": settings.alpha, "seed": _seed(settings.seed, label), **self._marked, **options}
        for name in ("resolution", "seconds"):
            if getattr(settings, name) is not None:
                whole.setdefault(name, getattr(settings, name))
        if "resolution" not in {*self._marked, *options} or "runs" in {*self._marked, *options}:
            whole.setdefault("runs", settings.runs)
        if self._session.n_workers > 1:
            whole.setdefault("jobs", 1)
        refusal = self._session.charge(self._name, float(whole["alpha"]))
        if refusal:
            pytest.fail(refusal)
        return label, whole

    def _recounts(
        self, mechanism: Any, x: Any, y: Any, result: AuditResult, options: Mapping[str, Any], label: str
    ) -> tuple[Any, ...]:
        """The event counted again where a baseline is saved, and the baseline's event where one is compared with."""
        events = [result.event] if self._session.save else []
        before = self._session.baseline().get(label)
        if before is not None:
            events = [one.event for one in before.recounts[:1]] + events
        runs = options.get("runs") or max(result.runs, self._session.settings.runs)
        return tuple(
            recount(mechanism, x, y, event, runs=runs, seed=options["seed"], jobs=options.get("jobs"))
            for event in dict.fromkeys(events)
        )

    def _conclude(self, entry: Entry, case: Case) -> None:
        """Records the result; fails the test where a claim is refuted, nothing was found out, or something changed."""
        __tracebackhide__ = True
        before = self._session.baseline().get(entry.name)
        accepted = self._accepted or (before.accepted if before else None)
        entry = replace(entry, accepted=accepted)
        self._session.entries.append(entry)
        verdict, messages = entry.result.verdict, []
        if verdict is Verdict.REFUTED and (accepted is None or not accepted.holds_on(datetime.date.today())):
            messages.append(failure_message(entry, case, self._session.settings, self._script(entry, case)))
        elif verdict is Verdict.INCONCLUSIVE:
            messages.append(failure_message(entry, case, self._session.settings, None))
        if before is not None:
            alone = [Suite(title="", entries=(one,)) for one in (replace(before, accepted=accepted), entry)]
            (found,) = compare(*alone, alpha=entry.result.alpha)
            if found.has_changed:
                messages.append(change_message(found, str(self._session.compare)))
        if messages:
            pytest.fail("\n\n".join(messages))

    def _script(self, entry: Entry, case: Case) -> str | None:
        """Where a script that shows the violation has been written, or why there is none."""
        folder = self._session.scripts
        if folder is None or not isinstance(entry.result, AuditResult):
            return None
        safe = "".join(char if char.isalnum() else "-" for char in entry.name)[-100:].strip("-")
        path = folder / f"{safe}.py"
        try:
            text = script(entry.result, case.mechanism, case.x, case.y, self._path, case.options)
        except ScriptError as error:
            return f"no script: {error}"
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return f"python {path}"


def _acceptance(marked: Mapping[str, Any]) -> Accepted | None:
    """The finding that a marker accepts."""
    reason, until = marked.get("accepted"), marked.get("until")
    if reason is None and until is None:
        return None
    return Accepted(reason=str(reason or ""), until=str(until or ""))


def _seed(root: int, label: str) -> int:
    """A seed for an audit, from the session's and its name: adding a test changes no other."""
    digest = hashlib.sha256(f"{root}\n{label}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
