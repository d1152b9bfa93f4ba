"""Audit one target: a search by values, low bits where the pilot shows them, and fresh runs for every refutation."""

from __future__ import annotations

import re
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...audit.datasets.adjacency import Adjacency
from ...audit.datasets.domains import Answers, Domain, Rows, Values
from ...audit.datasets.tables import Tables
from ...audit.errors import AuditError, OptionError, described
from ...audit.options import LEAST_SEARCH
from ...audit.procedures.check import check
from ...audit.records.suite import Entry
from ...audit.results.audit_result import AuditResult, Verdict
from ...audit.results.worst_pair import WorstPair
from ...audit.sampling.sampler import as_sampler
from ...audit.search.find_worst_pair import find_worst_pair
from .audited_library import Target
from .plan import seed_of_target

BITS = " [low bits]"
"""Ending of the name of an audit that includes low bits."""
_SIZES = (400, 500, 1_000, 1_500, 2_000, 3_000, 5_000, 7_000, 10_000, 20_000, 50_000)
_TIMED = 0.03  # seconds of runs from which the time of a run is estimated
_MOST_TIMED, _BLOCK, _PATIENCE = 2_000, 256, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a target: the audit by values, and the one with low bits where they were audited.

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
        said = [f"{'low bits: ' if entry.name.endswith(BITS) else ''}{entry.result.sentence}" for entry in self.entries]
        return "; ".join([*said, *doubts])

    @property
    def is_refuted_by_values(self) -> bool:
        """Whether the claim is refuted by values, and fresh runs confirmed it."""
        return any(entry.result.is_refuted and not entry.name.endswith(BITS) for entry in self.entries)

    @property
    def is_refuted_by_bits_only(self) -> bool:
        """Whether low bits refute a claim that values do not refute."""
        by_bits = any(entry.result.is_refuted and entry.name.endswith(BITS) for entry in self.entries)
        return by_bits and not self.is_refuted_by_values

    @property
    def is_inconclusive(self) -> bool:
        """Whether an audit is inconclusive."""
        return any(entry.result.verdict is Verdict.INCONCLUSIVE for entry in self.entries)


def run_target(target: Target, *, alpha: float, seed: int, seconds: float, with_bits: bool) -> Outcome:
    """Return the audits of a target; an error of the library, or of the form, is a failure with its words.

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
    found = _least_refuted(target, mechanism, search_runs, {**options, "bits": "warn" if with_bits else False}, seed)
    adjacency, worst = found
    entry, unconfirmed = _confirmed(target, mechanism, adjacency, worst, worst.audit, options, seed)
    entries, doubts = [entry], [unconfirmed]
    if with_bits and worst.audit.low_bits is not None and not entry.result.is_refuted:
        bit_seed = seed_of_target(seed, target.name, "bits")
        bit_options = {**options, "name": target.name + BITS, "bits": True}
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
            seed=seed_of_target(seed, str(audit.mechanism) + str(options.get("bits", "")), "confirmation"),
            **{"bits": False, **options},
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
    """Return the runs of the audit and of the search that fit into the time.

    Raises
    ------
    OptionError
        If the smallest audit does not fit.
    """
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
        case Domain():
            raise OptionError(f"{type(domain).__name__} has no example; give pairs.", domain=domain)
    return domain[0][0]
