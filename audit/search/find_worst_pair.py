"""The search for the worst pair of neighbouring datasets, and what it found.

All choices are made on runs of their own. The pair that is left is audited on fresh ones; alpha is spent only there.

Proof: docs/proofs/choices.md
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Unpack

from ..claims.at_distance import ClaimAtDistance, claim_at
from ..claims.claim import Claim
from ..datasets.adjacency import Adjacency
from ..datasets.domains import Domain
from ..errors import AdjacencyError, AuditError, MechanismError, OptionError
from ..floating_point_errors import with_own_arithmetic
from ..health.findings import checks_to_ignore
from ..inference.joint_test import check_test_alpha
from ..options import (
    check_bits,
    check_cells,
    check_distance,
    check_jobs,
    check_power,
    check_resolution,
    check_runs,
    check_seconds,
    check_seed,
)
from ..procedures.check import CheckOptions, check
from ..procedures.mechanism_claim import stated
from ..random_streams import Stream, seed_of
from ..results.audit_result import AuditResult, Verdict
from ..sampling.output_hashes import digest
from ..sampling.sampler import as_sampler
from ..store.sqlite_store import opened
from ..store.store_settings import code_of
from .pairs_for_domain import pairs_of
from .successive_halving import LEAST_FIRST, Judge, Pool, Trial, halve, new_pool

LEAST_SEARCH = 4 * LEAST_FIRST
"""Executions that a search needs at least."""
_RUNS = 1_000_000  # of the audit where none are given
_SHOWN, _WIDTH = 5, 160  # pairs and characters of a line, in words


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedPair:
    """A pair that the search looked at.

    Attributes
    ----------
    label : str
        Its pattern, in words.
    summary : str
        The datasets.
    runs : int
        Executions spent on it, on x and y together.
    bound : float
        What the audit's bound can be expected to be, by this pair's pilots: on outputs that the event was not chosen
        on, and shrunk towards 0 the more the less certain it is. In the units of the claim's strength; 0 where nothing
        certain was seen.
    error : str, optional
        Why it was put aside.
    """

    label: str
    summary: str
    runs: int
    bound: float
    error: str | None = None

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.label}: {self.error}"
        return f"{self.bound:.3g} after {self.runs:,} executions: {self.label}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstPair:
    """The pair that a search found to be the worst, audited on fresh runs.

    Attributes
    ----------
    x, y : Any
        The datasets.
    ranking : tuple of TriedPair
        Every pair tried: the one that was chosen, then those with longer pilots before those with shorter ones, each by
        merit, then those that were put aside.
    runs : int
        Executions spent on the search, on all pairs together.
    untried : int
        Pairs given (or patterns) for which there were no runs.
    audit : AuditResult
        Of the chosen pair. What it says is valid however the pair was found: none of the search's runs are in it.
    """

    x: Any = field(repr=False, compare=False)
    y: Any = field(repr=False, compare=False)
    ranking: tuple[TriedPair, ...] = field(repr=False)
    runs: int
    untried: int = 0
    audit: AuditResult

    @property
    def is_refuted(self) -> bool:
        """Whether the audit of fresh runs refuted the claim."""
        return self.audit.is_refuted

    @property
    def verdict(self) -> Verdict:
        """That of the audit of fresh runs."""
        return self.audit.verdict

    def __str__(self) -> str:
        chosen = self.ranking[0]
        tried = [pair for pair in self.ranking if pair.error is None]
        aside = [pair for pair in self.ranking if pair.error is not None]
        lines = [
            f"  pair    {chosen.label} ({self.audit.pair.adjacency})",
            f"          {chosen.summary}",
            f"  event   {self.audit.event_in_words}",
            f"  search  {_count(len(tried))} in {self.runs:,} executions; the bound to be expected, with caution:",
            *(f"          {pair}" for pair in tried[:_SHOWN]),
        ]
        if aside:
            lines.append(f"  aside   {_count(len(aside))}, such as {aside[0]}")
        if self.untried:
            lines.append(f"  left    {_count(self.untried)}; more search_runs would reach them")
        if not self.is_refuted:
            lines.append("  note    other pairs may be worse than the worst that was found")
        short = (line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…" for line in lines)
        return "\n".join([str(self.audit), *short])


def _count(pairs: int) -> str:
    return f"{pairs:,} pair{'' if pairs == 1 else 's'}"


@with_own_arithmetic
def find_worst_pair(
    mechanism: Any,
    domain: Any,
    *,
    claim: Claim | ClaimAtDistance | None = None,
    adjacency: Adjacency | None = None,
    distance: float = 1,
    runs: int | None = None,
    search_runs: int | None = None,
    alpha: float = 0.05,
    seed: int | None = 0,
    jobs: int | None = None,
    name: str | None = None,
    claim_source: str = "",
    progress: Callable[[int], None] | None = None,
    **options: Unpack[CheckOptions],
) -> WorstPair:
    """Looks for the pair of neighbours on which a mechanism loses most, and audits its claim there.

    A mechanism that keeps its claim is refuted with probability at most `alpha`, whatever was tried.

    Parameters
    ----------
    mechanism : callable or object
        As of `check`.
    domain : Domain, callable, iterable or Hypothesis strategy
        Where to look: `Answers`, `Values`, `Rows` or `Graphs`; or a function that makes a pair (x, y) from a
        ``numpy.random.Generator``; or pairs; or a strategy of pairs (tuples of two) or of datasets.
    claim : Claim or callable, optional
        As of `check`.
    adjacency : Adjacency, optional
        Every pair is checked against it; by default the mechanism's attribute `adjacency`. A domain needs one.
    distance : float
        Of the pairs.
    runs : int, optional
        On each dataset in the audit of the pair that is found; by default as of `check`.
    search_runs : int, optional
        Executions that the search may take, over all pairs and both datasets, at least 400. By default as many as
        `runs` (or a million), which is half of what the audit takes.
    alpha : float
        Allowed probability of refuting a correct mechanism.
    seed : int or None
        Fixes every number, whatever the workers. ``check(mechanism, found.x, found.y, …)`` with the same seed repeats
        the audit.
    jobs : int, optional
        Workers, as of `check`.
    name : str, optional
        Of the mechanism, for the result.
    claim_source : str
        As of `check`.
    progress : callable, optional
        Called with the number of runs just finished.
    **options
        Of `check`, such as ``sequential=True`` or ``resolution=0.1``; with ``bits=True`` the search looks at bits too,
        and a ``store`` keeps what the search draws as well.

    Returns
    -------
    WorstPair

    Raises
    ------
    ClaimError, AdjacencyError, DatasetError, OptionError
        For arguments outside their range, and a domain without such neighbours.
    MechanismError
        If the mechanism fails on every pair.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import AddRemove, PureDP, Rows, find_worst_pair
    >>> def noisy_sum(rows, size, rng):  # with noise as if no row were above 1
    ...     return sum(rows) + rng.laplace(scale=1.0, size=size)
    >>> found = find_worst_pair(noisy_sum, Rows(high=3.0), claim=PureDP(1.0), adjacency=AddRemove(), runs=100_000)
    >>> found.is_refuted, abs(sum(found.x) - sum(found.y)) > 2.9
    (True, True)
    """
    sampler, distance, jobs = as_sampler(mechanism, name), check_distance(distance), check_jobs(jobs)
    seed = check_seed(seed)
    size = _RUNS if runs is None else check_runs(runs)
    budget = max(size, LEAST_SEARCH) if search_runs is None else _check_search_runs(search_runs)
    said = stated(mechanism, claim, adjacency, claim_source)
    adjacency = said.adjacency
    _check_options(options)
    seconds = options.get("seconds")
    if seconds is not None and search_runs is None:
        raise OptionError(
            f"seconds={seconds:g} limits the audit of the pair that is found, not the search; say with "
            "search_runs= (--search-runs) how many executions the search may take.",
            seconds=seconds,
        )
    source = pairs_of(domain, adjacency, distance, seed_of(seed, Stream.EXAMPLES))
    pool = new_pool(source, adjacency, distance, seed, sampler.check_pair)
    with opened(options.get("store")) as kept:
        judge = Judge(
            sampler=sampler,
            claim=claim_at(said.claim, distance),
            runs=size,
            alpha=check_test_alpha(alpha),
            seed=seed,
            jobs=jobs,
            progress=progress,
            bits=options.get("bits", "warn") is True,
            store=kept,
            code="" if kept is None else code_of(sampler),
        )
        if kept is not None:
            domain_in_words = digest(domain) if isinstance(domain, Domain) else "of the caller's own"
            about = {"search_runs": budget, "distance": distance, "adjacency": adjacency, "domain": domain_in_words}
            kept.section(f"{sampler.name}, the search", about | judge.in_words())
        trials, untried = halve(pool, judge, budget)
        if not trials or trials[0].error is not None:
            raise _nothing_left(trials, pool, sampler.name)
        x, y = trials[0].candidate.x, trials[0].candidate.y
        audit = check(
            mechanism,
            x,
            y,
            claim=said.claim,
            claim_source=said.source,
            adjacency=adjacency,
            distance=distance,
            runs=runs,
            alpha=alpha,
            seed=seed,
            jobs=jobs,
            name=name,
            progress=progress,
            **options | {"store": kept},
        )
    return WorstPair(
        x=x,
        y=y,
        ranking=(
            *(_tried(trial) for trial in trials),
            *(_tried(Trial(pair, 0, error=why)) for pair, why in pool.strangers),
        ),
        runs=sum(2 * trial.runs for trial in trials),
        untried=untried,
        audit=audit,
    )


def _tried(trial: Trial) -> TriedPair:
    return TriedPair(
        label=trial.candidate.label,
        summary=trial.candidate.summary,
        runs=2 * trial.runs,
        bound=trial.cautious,
        error=trial.error,
    )


def _nothing_left(trials: list[Trial], pool: Pool, name: str) -> AuditError:
    """Why there is no pair to audit."""
    if trials:
        return MechanismError(
            f"{name} failed on all of {_count(len(trials))}; on the first: {trials[0].error}", mechanism=name
        )
    if pool.strangers:
        return AdjacencyError(
            f"none of {_count(len(pool.strangers))} are neighbours; the first: {pool.strangers[0][1]}"
        )
    return AdjacencyError("no pair of neighbours was found at this distance; widen the domain, or give (more) pairs.")


def _check_options(options: CheckOptions) -> None:
    """An error for what `check` would refuse: now, and not after the search is paid for."""
    taken = CheckOptions.__annotations__
    unknown = [name for name in options if name not in taken]
    if unknown:
        raise OptionError(f"{unknown[0]} is no option of check; use one of {', '.join(taken)}.", options=unknown)
    sequential = options.get("sequential", False)
    check_bits(options.get("bits", "warn"))
    check_resolution(options.get("resolution"))
    check_power(options.get("power", 0.95))
    check_seconds(options.get("seconds"), None, sequential=sequential)
    check_cells(options.get("cells", 0), sequential)
    checks_to_ignore(options.get("ignore", ()))


def _check_search_runs(search_runs: Any) -> int:
    is_number = isinstance(search_runs, numbers.Real) and not isinstance(search_runs, bool)
    if not is_number or search_runs != round(search_runs) or search_runs < LEAST_SEARCH:
        raise OptionError(
            f"search_runs={search_runs!r} is no number of executions to search with; use a whole number >= "
            f"{LEAST_SEARCH}.",
            search_runs=search_runs,
        )
    return int(search_runs)
