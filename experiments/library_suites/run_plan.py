"""Run a plan within its time; each finished target is a file at once, so an ended suite resumes from the rest.

A target is a search by values, floating-point leaks where the pilot shows them, and fresh runs for every
refutation.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from joblib import cpu_count
from joblib.externals.loky.process_executor import ProcessPoolExecutor, TerminatedWorkerError

from ...audit.datasets.adjacency import Adjacency
from ...audit.datasets.domains import Answers, Domain, Rows, Values
from ...audit.datasets.tables import Queries, Tables
from ...audit.errors import AuditError, OptionError, StoreError, described
from ...audit.files import write_atomically
from ...audit.options import LEAST_SEARCH
from ...audit.procedures.check import check
from ...audit.records.json_codec import load, save
from ...audit.records.suite import Entry, Suite, Topic
from ...audit.results.audit_result import AuditResult
from ...audit.results.verdict import Verdict
from ...audit.results.worst_pair import WorstPair
from ...audit.sampling.pickling import Parcel, pack
from ...audit.sampling.sampler import as_sampler
from ...audit.sampling.workers import ctrl_c_waiting
from ...audit.search.find_worst_pair import find_worst_pair
from .audited_library import Library, Plan, Target, plan_of, seed_of_target

BITS = " [floating point]"
"""Ending of the name of an audit that includes floating-point leaks."""
_SIZES = (400, 500, 1_000, 1_500, 2_000, 3_000, 5_000, 7_000, 10_000, 20_000, 50_000)
_TIMED = 0.03  # seconds of runs from which the time of a run is estimated
_MOST_TIMED, _BLOCK, _PATIENCE = 2_000, 256, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a target: the audit by values, and the one with floating-point leaks where there was one.

    `failure` says why it could not be audited; then there are no entries. `unconfirmed` are refutations that fresh runs
    did not confirm; the entry holds the fresh runs.
    """

    name: str
    entries: tuple[Entry, ...] = ()
    seconds: float = 0.0
    failure: str = ""
    unconfirmed: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The verdicts, or why there are none."""
        if self.failure:
            return f"could not be audited: {self.failure}"
        doubts = ["a refutation was not confirmed"] if self.unconfirmed else []
        said = [
            f"{'floating point: ' if entry.name.endswith(BITS) else ''}{entry.result.sentence}"
            for entry in self.entries
        ]
        return "; ".join([*said, *doubts])

    @property
    def is_refuted_by_values(self) -> bool:
        """Whether the claim is refuted by values, and fresh runs confirmed it."""
        return any(entry.result.is_refuted and not entry.name.endswith(BITS) for entry in self.entries)

    @property
    def is_refuted_by_bits_only(self) -> bool:
        """Whether a floating-point leak refutes a claim that values do not refute."""
        by_bits = any(entry.result.is_refuted and entry.name.endswith(BITS) for entry in self.entries)
        return by_bits and not self.is_refuted_by_values

    @property
    def is_inconclusive(self) -> bool:
        """Whether an audit is inconclusive."""
        return any(entry.result.verdict is Verdict.INCONCLUSIVE for entry in self.entries)


def run_target(target: Target, *, alpha: float, seed: int, seconds: float, with_bits: bool) -> Outcome:
    """Return the audits of a target; an error of the library, or of the template, is a failure with its words.

    Each audit has the share `alpha`. The confirmation of a refutation needs none, because it can only withdraw it. The
    `seconds` are for the search and the audit by values, whose runs are reduced for a slow mechanism. Low bits are
    audited if the pilot warns of them.
    """
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the library, such as for bounds; each run would repeat them
            entries, unconfirmed = _audits(target, alpha, seed, seconds, with_bits)
    except AuditError as error:
        return Outcome(name=target.name, failure=_stable(str(error)), seconds=time.perf_counter() - start)
    except (Exception, SystemExit) as error:  # of the library, on arguments that its signature allows
        failure = f"it raised {_stable(described(error))}"
        return Outcome(name=target.name, failure=failure, seconds=time.perf_counter() - start)
    return Outcome(name=target.name, entries=entries, unconfirmed=unconfirmed, seconds=time.perf_counter() - start)


def _stable(message: str) -> str:
    """Return a message on one line, without addresses in memory."""
    return re.sub(r" at 0x[0-9a-f]+", "", " ".join(message.split()))


def _audits(
    target: Target, alpha: float, seed: int, seconds: float, with_bits: bool
) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    mechanism = target.make()
    runs, search_runs = _affordable(target, mechanism, seconds)
    options: dict[str, Any] = {"runs": runs, "alpha": alpha, "jobs": 1, "keep_datasets": True, "name": target.name}
    options["progress"] = False  # the suite says what is done
    found = _least_refuted(
        target, mechanism, search_runs, {**options, "floating_point": "warn" if with_bits else "ignore"}, seed
    )
    adjacency, worst = found
    entry, unconfirmed = _confirmed(target, mechanism, adjacency, worst, worst.audit, options, seed)
    entries, doubts = [entry], [unconfirmed]
    if with_bits and worst.audit.floating_point_leak is not None and not entry.result.is_refuted:
        bit_seed = seed_of_target(seed, target.name, "bits")
        bit_options = {**options, "name": target.name + BITS, "floating_point": "test"}
        audit = check(mechanism, worst.x, worst.y, adjacency=adjacency, seed=bit_seed, **bit_options)
        entry, unconfirmed = _confirmed(target, mechanism, adjacency, worst, audit, bit_options, seed)
        entries.append(entry)
        doubts.append(unconfirmed)
    return tuple(entries), tuple(filter(None, doubts))


def _least_refuted(
    target: Target, mechanism: Any, search_runs: int, options: dict[str, Any], seed: int
) -> tuple[Adjacency | None, WorstPair]:
    """Search under each relation until one does not refute the claim; return that one, otherwise the last.

    If the claim holds under one of the relations, it is refuted under all with probability at most alpha.
    """
    for adjacency in target.adjacencies:
        worst = find_worst_pair(
            mechanism,
            target.domain,
            adjacency=adjacency,
            search_runs=search_runs,
            guide=target.guide,
            seed=seed_of_target(seed, target.name),
            **options,
        )
        if not worst.is_refuted:
            break
    return adjacency, worst


def _confirmed(
    target: Target,
    mechanism: Any,
    adjacency: Adjacency | None,
    worst: WorstPair,
    audit: AuditResult,
    options: dict[str, Any],
    seed: int,
) -> tuple[Entry, str]:
    """Return the entry of an audit, and the doubt about its refutation; empty if there is none.

    A refutation is repeated on fresh runs with another seed and the pair swapped. If they do not refute the claim, the
    entry holds them instead.
    """
    notes, doubt = [target.note] if target.note else [], ""
    if audit.is_refuted:
        again = check(
            mechanism,
            worst.y,
            worst.x,
            adjacency=adjacency,
            seed=seed_of_target(seed, str(audit.mechanism) + str(options.get("floating_point", "")), "confirmation"),
            **{"floating_point": "ignore", **options},
        )
        if again.is_refuted:
            notes.insert(0, f"Confirmed on fresh runs with another seed and the pair swapped: {again.sentence}.")
            known = target.known_bits if str(options["name"]).endswith(BITS) else target.known
            if known:
                notes.insert(0, f"Known for this release: {known}.")
        else:
            doubt = f"{options['name']}: {audit.sentence}; fresh runs: {again.sentence}"
            notes.insert(0, f"A first audit refuted the claim ({audit.sentence}); fresh runs did not confirm this.")
            audit = again
    return Entry(name=str(options["name"]), result=audit, note=" ".join(notes), experiment=target.callable), doubt


def _affordable(target: Target, mechanism: Any, seconds: float) -> tuple[int, int]:
    """Return the runs of the audit and of the search that fit into the time, or raise an `OptionError`."""
    search_runs = target.runs if target.search_runs is None else target.search_runs
    each = _seconds_of_a_run(mechanism, example_of(target.domain), seconds)
    executions = search_runs + 2 * target.runs
    share = min(1.0, seconds / max(each * executions, 1e-9))
    if share == 1.0:
        return target.runs, search_runs
    runs, search_runs = (
        max((size for size in _SIZES if size <= share * wanted), default=0) for wanted in (target.runs, search_runs)
    )
    if runs < _SIZES[0]:
        raise OptionError(
            f"a run takes {each:.2g} s, so that {_SIZES[0]} runs on each dataset do not fit into {seconds:.3g} s; "
            "raise the minutes.",
            seconds=seconds,
        )
    return runs, max(search_runs, LEAST_SEARCH)


def _seconds_of_a_run(mechanism: Any, dataset: Any, limit: float) -> float:
    """Return the seconds of a run, from blocks that grow until they take long enough to be timed."""
    sampler, rng = as_sampler(mechanism, None), np.random.default_rng(0)
    sampler.drawn(dataset, 1, rng)  # the first run may prepare something
    size = 1
    while True:
        start = time.perf_counter()
        sampler.drawn(dataset, size, rng)
        spent = time.perf_counter() - start
        is_long = size >= _BLOCK or not sampler.is_block or spent >= _PATIENCE  # a block may begin with work of its own
        if (spent >= min(_TIMED, limit) and is_long) or size >= _MOST_TIMED:
            return spent / size
        size *= 4


def example_of(domain: Any) -> Any:
    """Return a dataset of a domain, or the first of given pairs."""
    match domain:
        case Answers():
            return domain.build(np.full(domain.n_answers or 1, domain.low))
        case Rows() | Tables():
            corners = domain.corners() if isinstance(domain, Rows) else domain.usual
            return domain.build([corners[place % len(corners)] for place in range(domain.most)])
        case Values():
            return domain.values[0]
        case Queries():
            return domain.queries[0], example_of(domain.data)
        case Domain():
            raise OptionError(f"{type(domain).__name__} has no example; give pairs.", domain=domain)
    return domain[0][0]


# Targets in worker processes: one that does not answer is ended with its process, and the others go on.
#
# A callable that hangs in compiled code cannot be interrupted in its own process. Each worker has a pool of one
# process, so that ending it touches no other target.

Call: TypeAlias = Callable[[Parcel, str], Any]
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class _Lane:
    """A worker process with the target that it has now; the process is started when a target needs it."""

    def __init__(self, call: Call, prepare: Callable[[Parcel], None], parcel: Parcel, threads: int | None) -> None:
        self.call, self.prepare, self.parcel = call, prepare, parcel
        self.env = None if threads is None else dict.fromkeys(_THREADS, str(threads))
        self.pool: ProcessPoolExecutor | None = None
        self.name = ""
        self.answer: Future[Any] | None = None
        self.begun = 0.0

    def give(self, name: str) -> None:
        """Begin a target, in a new process if there is none or it died; its preparation is not part of the time."""
        if self.pool is not None:
            try:
                self.answer = self.pool.submit(self.call, self.parcel, name)
            except TerminatedWorkerError:
                self.end()
        if self.pool is None:
            with ctrl_c_waiting():
                self.pool = ProcessPoolExecutor(max_workers=1, env=self.env)
                self.ready: Future[Any] = self.pool.submit(self.prepare, self.parcel)
            self.ready.add_done_callback(self._begin)
            self.answer = self.pool.submit(self.call, self.parcel, name)
        self.name = name
        self._begin()

    def _begin(self, _: object = None) -> None:
        self.begun = time.monotonic()

    def left(self, limit: float) -> float:
        """Return the seconds until the target must have answered; all of them while the process is prepared."""
        return limit - (time.monotonic() - self.begun) if self.ready.done() else limit

    def take(self, limit: float) -> tuple[str, Any] | None:
        """Return the target with its answer, or with why there is none; None if it may still answer."""
        if self.answer is None or not (self.answer.done() or self.left(limit) <= 0):
            return None
        answer, self.answer = self.answer, None
        if not answer.done():
            self.end()
            return self.name, f"it did not answer within its deadline of {limit:g} s, and its process was ended"
        try:
            self.ready.result()
            return self.name, answer.result()
        except TerminatedWorkerError:
            self.end()
            return self.name, "its process died, by a crash in compiled code or for want of memory"

    def end(self) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=True, kill_workers=True)
            self.pool = None


def _answers(job: _Job, names: Sequence[str], workers: int, limit: float) -> Iterator[tuple[str, Any]]:
    """Yield the name of each target with its answer, or with a text that says why there is none."""
    parcel = pack(job, [job.library.release, job.library.public, job.library.form_of], job.library.name)
    waiting, threads = deque(names), max(cpu_count() // workers, 1) if workers > 1 else None
    lanes = [_Lane(_run_by_name, _prepare, parcel, threads) for _ in range(min(workers, len(names)))]
    try:
        while True:
            for lane in lanes:
                if lane.answer is None and waiting and not job.is_over():
                    lane.give(waiting.popleft())
            busy = [lane for lane in lanes if lane.answer is not None]
            if not busy:
                return
            patience = max(min(lane.left(limit) for lane in busy), 0.0)
            wait([lane.answer for lane in busy if lane.answer is not None], patience, FIRST_COMPLETED)
            yield from filter(None, [lane.take(limit) for lane in busy])
    finally:
        for lane in lanes:
            lane.end()


PLAN_FILE, TARGETS = "suite.json", "targets"
"""File of the settings, and folder of the finished targets."""
_LEAST_SECONDS = 2.0  # of a target, in which 400 runs of a millisecond fit
_SHARE = 2.0  # times its equal share of the time that a target may take, as most take less
_DEADLINE, _LEAST_DEADLINE = 10.0, 60.0  # times its time, as low bits and fresh runs are not part of it; seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRun:
    """A plan with the outcomes of its targets, in its order; targets that were not reached are missing."""

    plan: Plan
    seed: int
    outcomes: tuple[Outcome, ...]

    @property
    def not_reached(self) -> tuple[Target, ...]:
        """Targets for which no time was left."""
        done = {outcome.name for outcome in self.outcomes}
        return tuple(target for target in self.plan.targets if target.name not in done)

    @property
    def status(self) -> int:
        """Exit status of the command line: 1 for a refutation, 3 for doubt or no audit, otherwise 0."""
        verdicts = {entry.result.verdict for outcome in self.outcomes for entry in outcome.entries}
        if Verdict.REFUTED in verdicts:
            return 1
        is_doubtful = any(outcome.unconfirmed for outcome in self.outcomes) or Verdict.INCONCLUSIVE in verdicts
        return 3 if is_doubtful or not verdicts else 0

    def suite(self, environment: dict[str, Any] | None = None) -> Suite:
        """Return the audits as a suite, the form of all reports."""
        entries = tuple(entry for outcome in self.outcomes for entry in outcome.entries)
        topics = tuple(
            Topic(id=name, statement=f"{name} keeps its privacy claim.", source=self.plan.release)
            for name in dict.fromkeys(entry.experiment for entry in entries)
        )
        title = f"Audits of {self.plan.release}"
        return Suite(title=title, entries=entries, topics=topics, environment=environment or {})


def run_plan(
    library: Library,
    plan: Plan,
    *,
    seed: int = 0,
    minutes: float = 30.0,
    workers: int = 1,
    out: Path | None = None,
    is_resumed: bool = False,
    only: str | None = None,
    deadline: float | None = None,
    in_process: bool = False,
    watch: Callable[[Outcome, int, int], None] | None = None,
) -> SuiteRun:
    """Audit the targets of a plan in its order until the time is over.

    A target that began is finished, and takes about twice its equal share of the time at most. Each of the `workers`
    processes audits one target at a time, and ends one that does not answer within `deadline` seconds, by default ten
    times its time and at least 60; `in_process` audits in this process, without a deadline, as for a debugger. The seed
    fixes every random number that the library draws from the audit, for any number of workers. Finished targets are
    files in the folder `out`, and are kept if the suite is resumed. `only` is the selection by which the plan was made.
    `watch` receives each outcome, and the numbers of finished and of all targets. An `OptionError` says which option is
    out of its range, that the folder holds another suite, or that there is nothing to resume.
    """
    if not minutes > 0:
        raise OptionError(f"minutes={minutes!r} is not a time; use a positive number.", minutes=minutes)
    if workers < 1:
        raise OptionError(f"workers={workers!r} is not a number of processes; use 1 or more.", workers=workers)
    if deadline is not None and not deadline > 0:
        raise OptionError(f"deadline={deadline!r} is not a time; use a positive number.", deadline=deadline)
    if in_process and (workers > 1 or deadline is not None):
        raise OptionError("in_process=True has one worker and no deadline; omit workers and deadline.")
    settings = {
        "library": plan.library,
        "release": plan.release,
        "alpha": plan.alpha,
        "seed": seed,
        "only": only,
        "bits": plan.with_bits,
        "targets": [target.name for target in plan.targets],
    }
    done = {} if out is None else _kept(out, settings, is_resumed=is_resumed)
    rest = [target for target in plan.targets if target.name not in done]
    total = 60.0 * minutes
    each = max(_SHARE * total * workers / max(len(rest), 1), _LEAST_SECONDS)
    job = _Job(library, plan.alpha, only, plan.share, seed, min(each, total), plan.with_bits, time.time() + total)
    limit = max(_DEADLINE * job.seconds, _LEAST_DEADLINE) if deadline is None else deadline
    with closing(_here(job, rest) if in_process else _in_processes(job, rest, workers, limit)) as outcomes:
        for outcome in outcomes:
            done[outcome.name] = outcome
            if out is not None and not outcome.failure:
                _keep(outcome, out)
            if watch is not None:
                watch(outcome, len(done), len(plan.targets))
    ordered = tuple(done[target.name] for target in plan.targets if target.name in done)
    return SuiteRun(plan=plan, seed=seed, outcomes=ordered)


@dataclass(frozen=True, slots=True)
class _Job:
    """What a worker needs for any target, which it finds by its name, as mechanisms of libraries cannot be sent."""

    library: Library
    alpha: float
    only: str | None
    share: float
    seed: int
    seconds: float
    with_bits: bool
    deadline: float

    def is_over(self) -> bool:
        return time.time() >= self.deadline

    def run(self, target: Target) -> Outcome:
        return run_target(target, alpha=self.share, seed=self.seed, seconds=self.seconds, with_bits=self.with_bits)


def _here(job: _Job, rest: Sequence[Target]) -> Generator[Outcome]:
    for target in rest:
        if job.is_over():
            return
        yield job.run(target)


def _in_processes(job: _Job, rest: Sequence[Target], workers: int, limit: float) -> Generator[Outcome]:
    for name, answer in _answers(job, [target.name for target in rest], workers, limit):
        yield Outcome(name=name, failure=answer, seconds=limit) if isinstance(answer, str) else answer


def _run_by_name(parcel: Parcel, name: str) -> Outcome:
    job: _Job = parcel.open_once()
    return job.run(_targets(job)[name])


def _prepare(parcel: Parcel) -> None:
    _targets(parcel.open_once())


@lru_cache(maxsize=1)
def _targets(job: _Job) -> dict[str, Target]:
    """Return the targets by their names, which a process finds once."""
    plan = plan_of(job.library, alpha=job.alpha, only=job.only, with_bits=job.with_bits)
    return {target.name: target for target in plan.targets}


def _kept(out: Path, settings: dict[str, Any], *, is_resumed: bool) -> dict[str, Outcome]:
    """Return the finished targets of a folder, and store the settings of a new suite in it."""
    path = out / PLAN_FILE
    if not is_resumed:
        if path.exists():
            raise OptionError(f"{path} exists; continue that suite with --resume, or use another folder.")
        write_atomically(path, json.dumps(settings, indent=1) + "\n")
        return {}
    if not path.exists():
        raise OptionError(f"there is nothing to resume in {out}: it has no {PLAN_FILE}; leave --resume out.")
    try:
        was = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StoreError(f"{path} is damaged ({error}); delete the folder.", path=str(path)) from error
    for name, value in settings.items():
        if was.get(name) != value:
            shown = "" if name == "targets" else f": {was.get(name)!r} then, {value!r} now"
            raise OptionError(f"the {name} of the suite in {out} differ{shown}; use the same, or another folder.")
    kept = (_read(file) for file in sorted((out / TARGETS).glob("*.json")))
    return {outcome.name: outcome for outcome in kept}


def _keep(outcome: Outcome, out: Path) -> None:
    """Write the audits of a target, completely or not at all."""
    environment = {"name": outcome.name, "seconds": outcome.seconds, "unconfirmed": list(outcome.unconfirmed)}
    suite = Suite(title=outcome.name, entries=outcome.entries, environment=environment)
    name = hashlib.sha256(outcome.name.encode()).hexdigest()[:16]
    save(suite, out / TARGETS / f"{name}.json")


def _read(path: Path) -> Outcome:
    suite = load(path)
    held = suite.environment
    return Outcome(
        name=str(held["name"]),
        entries=suite.entries,
        seconds=float(held["seconds"]),
        unconfirmed=tuple(held["unconfirmed"]),
    )
