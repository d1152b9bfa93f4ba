"""The fixture `dp_audit`: audits with the session's settings; fails if the audit is refuted or inconclusive."""

from __future__ import annotations

import datetime
import hashlib
import importlib
import inspect
import itertools
import math
import os
import re
import shlex
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType
from typing import Any, NoReturn

from ...audit.canaries.check_canaries import check_canaries
from ...audit.claims.claim import Claim, ClaimAtDistance
from ...audit.clock import now
from ...audit.datasets.description import difference_and_rows, summarise
from ...audit.datasets.domains import Domain
from ...audit.datasets.tables import as_domain
from ...audit.errors import AuditError, OptionError, StoreError, WriteError, described
from ...audit.events.events import Event
from ...audit.files import write_atomically
from ...audit.known_options import refuse_unknown
from ...audit.options import EXACT_OPTIONS, LEAST_RUNS, LEAST_SEARCH, checked
from ...audit.printing import one_line, shorten
from ...audit.procedures.check import check
from ...audit.procedures.count_again import recount
from ...audit.records.baseline_comparison import ANOTHER_PAIR, Comparison, compare
from ...audit.records.json_codec import is_storable
from ...audit.records.suite import Accepted, Checked, Entry, Recount, Suite, is_side_check, side_check
from ...audit.replay.replay import replay
from ...audit.replay.replay_result import ReplayResult
from ...audit.results.audit_result import AuditResult
from ...audit.results.canary_result import CanaryResult
from ...audit.results.verdict import ReplayVerdict, Verdict
from ...audit.results.worst_pair import WorstPair
from ...audit.sampling.sampler import picked
from ...audit.search.candidates import show
from ...audit.search.find_worst_pair import find_worst_pair
from ...audit.store.sqlite_store import Store
from ..plain_text import alike, facts, printed_lines, prose, visible
from .reproduction_script import ScriptError, script
from .session import DEFAULTS, IN_FORK, AuditSession, Failed, Failure, Settings

# Failure messages of audits: claim, bound, event, counts, pair, and the command that repeats the audit.

_STOPPED = "the audit stopped there; with sequential=False it shows how large the loss is"
_SICK = "the audit is inconclusive, so the test fails; see the failed health check above"
_MEANINGS = {
    "audit": (
        "the claim is refuted on this pair: the privacy loss is larger than claimed",
        "the audit is inconclusive, so the test fails; runs= and --dp-audit-runs are the most runs per dataset",
    ),
    "canaries": (
        "the claim is refuted: the training reveals more of its canaries than claimed",
        "the audit is inconclusive, so the test fails",
    ),
    "statement": ("", ""),
}
"""What a refuted and an inconclusive result of each kind mean for a test."""


@dataclass(frozen=True, slots=True)
class Case:
    """An audit made by a test, with the options passed to `check` and the search that found the pair, if any."""

    test: str
    mechanism: Any
    x: Any
    y: Any
    options: Mapping[str, Any]
    search: WorstPair | None


def failure_message(entry: Entry, case: Case, settings: Settings, script: str | None, *, is_replayed: bool) -> str:
    """Return the failure message of an audit that is refuted or inconclusive.

    The name of the audit, which a lambda has for want of its own, is left out: pytest prints it before the message.
    """
    result = entry.result
    left_out = {"at most", "intervals", "runs", "seed", "alpha"} | ({"counts", "guesses"} if result.seen else set())
    told = [fact for fact in facts(result) if fact[0] not in left_out]
    if case.options.get("keep_datasets"):
        told.append(("rows", visible(f"x = {show(case.x)}, y = {show(case.y)}")))
    if (search := case.search) is not None:
        best = visible(f": {search.ranking[0].label}", 100) if case.options.get("keep_datasets") else ""
        told.append(("search", f"of {len(search.ranking):,} pairs{best or '; keep_datasets=True shows the rows'}"))
        told += [(name, visible(line)) for name, line in search.simpler_lines] if best else []
    meaning = _MEANINGS[result.kind]
    if result.findings:
        meaning = meaning[0], _SICK
    if result.verdict is not Verdict.NOT_REFUTED:
        told.append(("meaning", meaning[not result.is_refuted]))
    if result.is_refuted and result.has_stopped_early:
        told.append(("", _STOPPED))
    if result.is_refuted:
        told.append(("alpha", f"{result.alpha:g}, the largest probability of refuting a true claim"))
    told += [("seed", str(result.seed)), ("repeat", repetition(case, settings))]
    if result.why_not_reproducible:
        told.append(("", f"(not reproducible: {result.why_not_reproducible})"))
    if entry.accepted is not None:
        told.append(("acceptance", prose(entry.acceptance_in_words(datetime.date.today())).removeprefix("acceptance ")))
    if script is None and isinstance(result, AuditResult) and result.is_refuted:
        script = "--dp-audit-scripts=DIR writes a script that shows the violation with numpy alone"
    told.append(("script", script or ""))
    unnamed = one_line(entry.name, 100) if case.options.get("name") == one_line(entry.name, 100) else ""
    printed = printed_lines(result, 1_000, unnamed=unnamed, is_replayed=is_replayed)
    return "\n".join([*printed, *(f"  {name:<10} {text}" for name, text in told if text)])


def change_message(change: Comparison, baseline: str) -> str:
    """Return the failure message of an audit that differs from its baseline or cannot be compared."""
    not_compared = [change.not_compared] if change.not_compared else []
    said = [*change.changes, *not_compared, *(f"note: {note}" for note in change.notes)]
    return "\n".join(
        [
            f"{'CHANGED since' if change.has_changed else 'NOT COMPARED with'} baseline {baseline}: {change.name}",
            *(f"  {visible(each, 400)}" for each in said),
            f"  If this is intended, save the baseline again: --dp-audit-save={baseline}",
        ]
    )


def repetition(case: Case, settings: Settings) -> str:
    """Return the command line that repeats the audit."""
    options = [
        f"--dp-audit-{name}={getattr(settings, name)!r}"
        for name, usual in DEFAULTS.items()
        if name != "budget" and getattr(settings, name) != usual
    ]
    return " ".join([f"pytest {shlex.quote(case.test)}", *options])


# Draws of unfinished audits, which the session's store keeps and the next session continues.


def made(session: AuditSession, label: str, audit: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Make the audit, and keep its draws in the session's store until it is finished.

    Draws of former code are of no use, so the audit begins again. The session records either kind of earlier draws,
    and which audit an interruption ends.
    """
    __tracebackhide__ = True
    session.running = label
    try:
        if session.store is None or "store" in options:
            result, note = audit(*arguments, **options), ""
        else:
            result, note = _kept(session.store / file_name(label), audit, *arguments, **options)
    except Exception:
        session.running = ""
        raise
    session.running = ""
    if note:
        session.notes[label] = note
    return result


def _kept(folder: Path, audit: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, str]:
    """Make the audit with a store in the folder, and also return what became of earlier draws."""
    __tracebackhide__ = True
    try:
        result, has_continued = _in_store(folder, audit, *arguments, **options)
    except StoreError as error:
        if not error.facts.get("is_of_former_code"):
            raise
        note = "made anew, because the code has changed since the kept draws"
        return _in_store(folder, audit, *arguments, **options)[0], note
    return result, "continued with the draws of an earlier session" * has_continued


def _in_store(folder: Path, audit: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, bool]:
    """Make the audit with a store in the folder, which is deleted unless there is something to continue.

    Also return whether the store had draws.
    """
    with Store(folder) as store:
        has_draws, is_over = not store.is_empty, False
        try:
            result = audit(*arguments, **options, store=store)
            is_over = True
        except AuditError as error:
            is_over = not isinstance(error, StoreError) or bool(error.facts.get("is_of_former_code"))
            raise
        finally:
            if is_over:
                store.discard()
                folder.rmdir()
    return result, has_draws


def file_name(label: str) -> str:
    """Return a file name for an audit's name, different for different names."""
    safe = "".join(char if char.isalnum() else "-" for char in label)[-80:].strip("-")
    return f"{safe}-{hashlib.sha256(label.encode()).hexdigest()[:6]}"


_FLAG = "--dp-audit-explain"
_BOUNDED = (
    "The counts refute the claim all the same. The recorded calls have noise enough on this path, so look at what "
    "the replay does not see: other paths, noise that is not drawn anew in each run, and floating-point leaks."
)
_OWN = ("audits", "accepted", "until", "up_to", "expect")  # options that no audit takes
_OF_SEARCHES = ("guide", "search_runs", "on_round")


_FIRST, _DESCRIBED = 10**6, 9 * 10**6  # numbers of audits in threads: the first, and how many
_NUMBERING = threading.Lock()
_SAME = (
    "made at the same time as another audit with this description, in a thread, so which of them it is may change "
    "between sessions; give each a name= or a test (pytest.mark.parametrize)"
)


class DPAudit:
    """Audits of a test; each call is an audit with a separate error probability."""

    def __init__(self, session: AuditSession, name: str, path: Path, marked: Mapping[str, Any]) -> None:
        """`name` is the test's name relative to the root, `path` its file, `marked` the options of its markers."""
        self._session, self._name, self._path = session, name, path
        self._marked = {option: value for option, value in marked.items() if option not in _OWN}
        self._accepted, self._expected = _acceptance(marked), _verdict(marked.get("expect"))
        self._numbers, self._described = itertools.count(1), set[int]()
        self._process, self._thread = os.getpid(), threading.get_ident()

    def __repr__(self) -> str:
        return f"<dp_audit of {self._name}>"

    def __call__(
        self,
        mechanism: Any,
        x: Any = None,
        y: Any = None,
        *,
        claim: Claim | ClaimAtDistance | None = None,
        neighbours: Any = None,
        expect: Verdict | str | None = None,
        **options: Any,
    ) -> AuditResult:
        """Audit a claim on a given pair or on the worst pair found; fail if the audit is refuted or inconclusive.

        A failure that the test loses, because a thread or a task makes the audit or `suppress` takes the exception,
        fails the test when it ends.

        By default the audit is sequential, so that a broken mechanism fails early, and runs in this process (jobs=1),
        so that the test's patches apply. An acceptance with `up_to` makes the audit one of fixed size, since only the
        bound of all runs shows how large the loss is.

        Parameters
        ----------
        mechanism, x, y, claim
            As for `check`.
        neighbours : Domain, callable, iterable or Hypothesis strategy, optional
            Search space for the pair instead of x and y, as for `find_worst_pair`.
        expect : Verdict or {"refuted", "inconclusive", "not refuted"}, optional
            The verdict with which the audit must end.
        **options
            With ``keep_datasets=True`` the datasets are in the message of a failure, the report and the baseline. By
            default they are if the search made them up, from a domain without listed values.
            Options of `check` and, with `neighbours`, of `find_worst_pair`, such as `search_runs`. With ``exact=True``
            the claim must be verified, which costs no alpha. For other audits the session gives
            `alpha`, `runs`, `detect`, `seconds` and `seed` unless the call or the marker does; the seed depends
            on the test's name. An excess to detect without runs in the call or marker determines the number of runs.

        Returns
        -------
        AuditResult or ExactResult
            Result that is not refuted, or whose refutation is accepted.
        """
        __tracebackhide__ = True
        x, neighbours = as_domain(x), as_domain(neighbours)
        with self._audit(mechanism, (x, y), {"claim": claim, "neighbours": neighbours, **options}) as label:
            started, expected = now(), self._expectation(expect)
            refuse_unknown({**self._marked, **options}, "dp_audit", "expect", "neighbours", *_OF_SEARCHES)
            if isinstance(x, Domain):
                raise OptionError(f"x={shorten(x)} is a domain of datasets; pass it as neighbours=, not as x.")
            missing = " and ".join(side for side, dataset in (("x", x), ("y", y)) if dataset is None)
            if neighbours is not None and missing != "x and y":
                raise OptionError("the audit needs a pair of datasets; pass x and y or neighbours=, not both.")
            if neighbours is None and missing:
                way_out = f"pass x and y, or neighbours= to search for a pair (missing: {missing})"
                raise OptionError(f"the audit needs a pair of datasets; {way_out}.")
            if {**self._marked, **options}.get("exact"):
                own = {name: value for name, value in self._marked.items() if name in EXACT_OPTIONS}  # not runs=, say
                options = {**own, **options}
                self._begin(label, {}, has_alpha=False)
                audit, where = (check, (x, y)) if neighbours is None else (find_worst_pair, (neighbours,))
                certain: Any = audit(mechanism, *where, claim=claim, **options)
                self._conclude_check(label, certain, expected, Case(self._name, mechanism, x, y, options, None))
                return certain  # type: ignore[no-any-return]
            options = self._begin(label, options)
            if getattr(mechanism, "__name__", "") == "<lambda>":  # no name of its own
                options.setdefault("name", one_line(label, 100))
            needs_all = checked("bins", options.get("bins", 0)) or self._is_limited(label, options)
            if not options.setdefault("sequential", not needs_all):
                options.pop("seconds", None)
            if neighbours is None:
                options.pop("search_runs", None)
                how = None
                result: AuditResult = made(self._session, label, check, mechanism, x, y, claim=claim, **options)
            else:
                options.setdefault("keep_datasets", isinstance(neighbours, Domain) and not neighbours.lists_values)
                options.setdefault("search_runs", max(self._session.settings.runs, LEAST_SEARCH))
                how = made(self._session, label, find_worst_pair, mechanism, neighbours, claim=claim, **options)
                result, x, y = how.audit, how.x, how.y
            recounts = self._recounts(mechanism, x, y, result, options, label)
            entry = Entry(name=label, result=result, recounts=recounts, expected=expected)
            result.environment["seconds"] = round(now() - started, 3)
            self._conclude(entry, Case(self._name, mechanism, x, y, options, how))
            return result

    def check(
        self, function: Callable[..., Any], *arguments: Any, expect: Verdict | str | None = None, **options: Any
    ) -> Any:
        """Run another check, such as `check_noise` or `check_sensitivity`, with the session's alpha and a seed.

        Fails if the result is refuted or inconclusive, or is not the verdict in `expect`. A check without alpha, such
        as `check_sensitivity`, costs none.
        """
        __tracebackhide__ = True
        with self._audit(function, arguments, options) as label:
            expected = self._expectation(expect)
            parameters = inspect.signature(function).parameters
            is_open = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
            if not is_open:
                refuse_unknown({**self._marked, **options}, "dp_audit.check", "expect", *_OF_SEARCHES, *parameters)
            takes_alpha = is_open or "alpha" in options or "alpha" in parameters
            whole = self._begin(label, options, has_alpha=takes_alpha)
            self._is_limited(label, whole)
            taken = {*options, *parameters, *(("alpha", "seed") if is_open else ())}
            result = function(*arguments, **{name: value for name, value in whole.items() if name in taken})
            has_entry = isinstance(result, Checked)
            if not has_entry and not is_side_check(result):
                raise OptionError(
                    f"{getattr(function, '__name__', function)} returned a {type(result).__name__}; use a check that "
                    "returns a result of dpaudit."
                )
            if result.alpha > 0.0:
                alpha = float(result.alpha)  # a worker cannot send a number of numpy
                more = alpha - float(whole["alpha"]) if takes_alpha else alpha * self._session.tests_each
                if more > 1e-9 * result.alpha:
                    refusal = self._session.charge(self._name, more, audits=0 if takes_alpha else 1)
                    if refusal:
                        raise Failed(refusal)
            if not has_entry:
                self._conclude_check(label, result, expected, Case(self._name, function, None, None, whole, None))
                return result
            entry = Entry(name=label, result=result, expected=expected)
            self._conclude(entry, Case(self._name, function, None, None, whole, None))
            return result

    def _conclude_check(self, label: str, result: Any, expected: Verdict | None, case: Case) -> None:
        """Keep a check without an entry, and fail unless it is verified, not refuted, or as expected."""
        __tracebackhide__ = True
        is_met = alike(result.verdict.name) is (expected or Verdict.NOT_REFUTED)
        self._session.checks[label] = side_check(label, result, is_expected=is_met and expected is not None)
        if not is_met:
            again, seed = repetition(case, self._session.settings), case.options.get("seed")
            told = [("check", label), *([] if seed is None else [("seed", seed)]), ("repeat", again)]
            rest = "\n".join(f"  {word:<7} {value}" for word, value in told)
            self._fail(label, f"{_instead_of(expected)}{result}\n{rest}")

    def canaries(self, scores: Any, included: Any, *, claim: Claim, **options: Any) -> CanaryResult:
        """Audit a claim on one training run, as `check_canaries` does; fail if it is refuted or inconclusive.

        The session gives `alpha` and `seed` unless the call or the marker does. The maximum attainable bound falls with
        alpha, so a smaller alpha needs more canaries.
        """
        __tracebackhide__ = True
        return self.check(check_canaries, scores, included, claim=claim, **options)  # type: ignore[no-any-return]

    def replay(self, mechanism: Any, x: Any, y: Any, **options: Any) -> ReplayResult:
        """Replay a run on x on y, as `dpaudit.replay` does; fail if a call exceeds the claim or its sensitivity.

        A replay costs no alpha. The session gives the seed, which fixes the path, unless the call does. An
        undetermined replay passes with a warning, because it shows neither an excess nor a bound.
        """
        __tracebackhide__ = True
        with self._audit(mechanism, (x, y), options) as label:
            whole = self._begin(label, options, has_alpha=False)
            result = replay(mechanism, x, y, **{"seed": whole["seed"], **options})
            self._session.checks[label] = side_check(label, result)
            if result.has_excess:
                lines = [visible(line, 1_000) for line in str(result).splitlines()]
                self._fail(label, "\n".join([*lines, f"  seed    {result.seed}"]))
        if result.verdict is ReplayVerdict.UNDETERMINED:
            warnings.warn(visible(f"replay of {result.mechanism}: {result.sentence}", 1_000), stacklevel=2)
        return result

    @contextmanager
    def _audit(self, function: Any, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Iterator[str]:
        """Name of one more audit, whose exception the session keeps until the test's report shows it.

        Audits are numbered in the order of their calls, except those in other threads, whose order may change from run
        to run: the number of such an audit follows from its description.
        """
        if os.getpid() != self._process:
            self._session.in_forks[0] = 1
            raise OptionError(IN_FORK)
        if threading.get_ident() == self._thread:
            number = next(self._numbers)
            label = self._name if number == 1 else f"{self._name} #{number}"
        else:
            label = self._described_by(_description(function, arguments, options))
        self._session.unfinished[label] = self._name
        try:
            yield label
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._session.raised(label, self._name, error)
            raise
        self._session.settled(label, self._name)

    def _described_by(self, description: str) -> str:
        """The name of an audit with this description; the next free number if another audit of the test has it."""
        first = number = _FIRST + int(hashlib.sha256(description.encode()).hexdigest(), 16) % _DESCRIBED
        with _NUMBERING:
            while number in self._described:
                number += 1
            self._described.add(number)
        label = f"{self._name} #{number}"
        if number > first:
            self._session.notes[label] = _SAME
        return label

    def _fail(self, label: str, message: str) -> NoReturn:
        """Fail the test, and the session's record of the audit, so that a rerun fails too."""
        __tracebackhide__ = True
        self._session.finished.add(self._name)
        self._session.failed[label] = Failure(self._name, message, has_verdict=True)
        raise Failed(message)

    def _expectation(self, expect: Verdict | str | None) -> Verdict | None:
        """The verdict that the call expects, or else the marker."""
        return self._expected if expect is None else _verdict(expect)

    def _begin(self, label: str, options: dict[str, Any], *, has_alpha: bool = True) -> dict[str, Any]:
        """Charge the audit's alpha; return its options completed by marker and session."""
        __tracebackhide__ = True
        earlier = self._session.failed.get(label)
        if earlier is not None and earlier.has_verdict and not earlier.is_settled:
            raise Failed(f"{earlier.message}\n\n(failed earlier in this session; a rerun does not audit again)")
        settings, own = self._session.settings, {**self._marked, **options}
        whole = {"alpha": settings.alpha, "seed": _seed(settings.seed, label), "jobs": 1, **own}
        for name in ("detect", "seconds"):
            if getattr(settings, name) is not None:
                whole.setdefault(name, getattr(settings, name))
        if whole.get("detect") is None:
            whole.setdefault("runs", settings.runs)
        alpha = float(whole["alpha"]) * self._session.tests_each
        refusal = self._session.charge(self._name, alpha) if has_alpha else None
        if refusal:
            raise Failed(refusal)
        return whole

    def _accepted_for(self, label: str) -> Accepted | None:
        """The acceptance of the marker, or else that of the audit's entry in the baseline."""
        before = self._session.baseline().get(label)
        return self._accepted or (before.accepted if before else None)

    def _is_limited(self, label: str, options: Mapping[str, Any]) -> bool:
        """Whether the audit's acceptance has a largest bound, which an explicitly sequential audit cannot have."""
        accepted = self._accepted_for(label)
        if accepted is None or accepted.up_to == math.inf:
            return False
        if options.get("sequential"):
            raise OptionError(
                f"sequential=True stops the audit as soon as its bound exceeds the claim, so up_to={accepted.up_to:g} "
                "would limit nothing; drop sequential=True, or drop up_to to accept a refutation with any bound."
            )
        return True

    def _recounts(
        self, mechanism: Any, x: Any, y: Any, result: AuditResult, options: Mapping[str, Any], label: str
    ) -> tuple[Recount, ...]:
        """Count the baseline's event again for a comparison, and this audit's event for a new baseline.

        Each count has a separate random stream: with the same random numbers a baseline and its comparison would be
        dependent. The last recount of a baseline is that of its event.
        """
        wanted = list[tuple[Event | None, str]]()
        if (before := self._session.baseline().get(label)) is not None:
            wanted += [(one.event, f"comparison with {self._session.compare}") for one in before.recounts[-1:]]
        if self._session.save:
            event = result.event if is_storable(result.event) else None
            wanted.append((event, f"baseline {self._session.save}"))
        runs = options.get("runs") or max(result.runs, self._session.settings.runs)
        if result.stopped in ("time", "request"):
            runs = max(result.runs, LEAST_RUNS)
        how = {"runs": runs, "seed": options["seed"], "jobs": options.get("jobs")}
        audited = picked(mechanism, options.get("output"))
        return tuple(recount(audited, x, y, event, stream=stream, **how) for event, stream in wanted)

    def _conclude(self, entry: Entry, case: Case) -> None:
        """Record the result; fail the test if it is refuted or inconclusive, or differs from the baseline."""
        __tracebackhide__ = True
        before = self._session.baseline().get(entry.name)
        entry = replace(entry, accepted=self._accepted_for(entry.name))
        entry.result.environment["repeat"] = repetition(case, self._session.settings)
        self._session.entries[entry.name] = entry
        is_news = entry.result.is_refuted and not entry.is_excused(datetime.date.today())
        is_bad, messages = is_news or entry.result.verdict is Verdict.INCONCLUSIVE, list[str]()
        if is_bad if entry.expected is None else not entry.is_met:
            has_pair = case.x is not None or case.y is not None
            is_open = entry.expected is None and is_news and has_pair
            settings, is_asked, text, found = self._session.settings, self._session.explain, "", None
            if is_open and isinstance(entry.result, AuditResult):
                text, found = _explanation(case, entry.result, settings, is_asked=is_asked)
            if found is not None and is_asked:
                self._session.entries[entry.name] = entry = replace(entry, replay=found.tabulated())
            script, is_replayed = self._script(entry, case), found is not None
            message = failure_message(entry, case, settings, script, is_replayed=is_replayed)
            messages.append(f"{_instead_of(entry.expected)}{message}{text}")
        if self._session.compare is not None:
            messages += self._compared(before, entry)
        if messages:
            self._fail(entry.name, "\n\n".join(messages))

    def _compared(self, before: Entry | None, entry: Entry) -> list[str]:
        """Failure messages about changes since the baseline."""
        if before is None:
            self._session.compared[entry.name] = "new"
            return []
        alone = [Suite(title="", entries=(one,)) for one in (replace(before, accepted=entry.accepted), entry)]
        (found,) = compare(*alone, alpha=entry.result.alpha)
        how = "by intervals" if entry.result.claim is None else "by claims and settings only"
        if found.pvalue is not None or found.not_compared is not None:
            how = "not comparable by counts" if found.pvalue is None else "by counts"
        self._session.compared[entry.name] = how
        is_told = found.has_changed or found.not_compared not in (None, ANOTHER_PAIR)
        return [change_message(found, str(self._session.compare))] if is_told else []

    def _script(self, entry: Entry, case: Case) -> str | None:
        """Write a script that shows the violation; return its command line, or the reason why none was written."""
        folder = self._session.scripts
        if folder is None or not isinstance(entry.result, AuditResult) or not entry.result.is_refuted:
            return None
        if case.options.get("keep_datasets") is False:
            return "not written: it would contain the datasets, and keep_datasets=False"
        path = folder / f"{file_name(entry.name)}.py"
        try:
            text = script(entry.result, case.mechanism, case.x, case.y, self._path, case.options)
            write_atomically(path, text)
        except (ScriptError, WriteError) as error:
            return f"not written: {error}"
        return f"python {shlex.quote(str(path))}"


def _description(function: Any, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> str:
    """A text that is the same in every run, with no contents of datasets; different for different audits in general."""
    parts = [_words(function), *(f"{name}={_words(value)}" for name, value in sorted(options.items()))]
    parts += [_words(each) if callable(each) else summarise(each) for each in arguments]
    with suppress(Exception):  # objects of the caller's may raise anything; then the audit refuses them
        parts.append(difference_and_rows(*arguments)[0])
    return "\n".join(parts)


def _words(value: Any) -> str:
    """A callable with the numbers and texts that its closure holds, or another value, without addresses and rows."""
    held = []
    for cell in getattr(value, "__closure__", None) or ():
        with suppress(ValueError):  # a variable that is not set yet
            held.append(cell.cell_contents)
    named = [_words(each) if each is not value and callable(each) else each for each in held]
    is_of_rows = getattr(as_domain(value), "lists_values", False) or isinstance(value, (list, tuple))
    text = type(value).__name__ if is_of_rows else re.sub(r" at 0x[0-9a-fA-F]+", "", shorten(value))
    return text + "".join(f", {shorten(each)}" for each in named if isinstance(each, (int, float, str)))


def _explanation(
    case: Case, result: AuditResult, settings: Settings, *, is_asked: bool
) -> tuple[str, ReplayResult | None]:
    """Return the lines of a failure message on a replay of the pair, and the replay if one was made.

    Without the flag it is made where the audit ran in this process, and takes no longer than the rest of its runs.
    """
    seconds = None
    if not is_asked:
        if not result.next_step.startswith("replay("):
            return "", None
        if (jobs := case.options["jobs"]) != 1 or case.options.get("keep_datasets") is False:
            why = "keep_datasets=False" if jobs == 1 else f"jobs={jobs}"
            return f"\n  replay     not made with {why}; {_FLAG} replays the pair, and names the line", None
        importlib.import_module("scipy.stats")  # takes a second, which says nothing of the mechanism
        asked = max((case.options.get("runs") or settings.runs) / max(result.runs, 1), 1.0)
        seconds = min(asked * max(result.environment["seconds"], 1e-3), case.options.get("seconds") or math.inf)
    try:
        found = replay(
            case.mechanism,
            case.x,
            case.y,
            claim=lambda distance: result.claim,  # which is at the pair's distance already
            distance=result.pair.distance,
            output=case.options.get("output"),
            seed=result.seed,
            seconds=seconds,
        )
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also exit() or a skip of the audited code: the audit has failed all the same
        late = f"not finished in {seconds or 0.0:.2g} s; {_FLAG} waits for it"
        is_late = isinstance(error, AuditError) and "seconds" in error.facts
        return f"\n  replay     {late if is_late else f'not made: {visible(described(error), 1_000)}'}", None
    lines = [found.sentence]
    if found.has_excess:
        remedy = [f"next: {found.remedy}"] if found.remedy else []
        lines = [found.headline, *(line for line in found.details if not line.startswith("next: ")), *remedy]
    elif is_asked and found.verdict is ReplayVerdict.BOUNDED:
        lines.append(_BOUNDED)
    text = "\n             ".join(visible(line, 1_000) for line in lines)
    return f"\n  replay     {text}", found


def _acceptance(marked: Mapping[str, Any]) -> Accepted | None:
    """The acceptance in a marker."""
    reason, until, up_to = (marked.get(name) for name in ("accepted", "until", "up_to"))
    if reason is None and until is None and up_to is None:
        return None
    if reason is None or until is None:
        raise OptionError(
            "a marker with accepted=, until= or up_to= needs accepted= and until=; pass the reason and the last day of "
            "the acceptance."
        )
    if isinstance(up_to, bool) or not isinstance(up_to, (int, float, NoneType)):
        raise OptionError(f"up_to={up_to!r} is not a number; use the largest accepted bound, such as 1.2.")
    return Accepted(reason=str(reason), until=str(until), up_to=math.inf if up_to is None else float(up_to))


def _verdict(expect: Any) -> Verdict | None:
    """The verdict that a call or a marker expects: the verdict itself, or its word."""
    if expect is None:
        return None
    try:
        return alike(getattr(expect, "name", str(expect).upper().replace(" ", "_")))
    except KeyError:
        known = ", ".join(repr(verdict.value) for verdict in Verdict)
        raise OptionError(f"expect={shorten(expect)} is not a verdict; use {known}.", expect=expect) from None


def _instead_of(expected: Verdict | None) -> str:
    return "" if expected is None else f"expected: {expected.value}, and the audit came out otherwise\n"


def _seed(root: int, label: str) -> int:
    """A seed from the session's seed and the audit's name, so that a new test changes no other."""
    digest = hashlib.sha256(f"{root}\n{label}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
