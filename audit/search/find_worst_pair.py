"""Search for the worst pair of neighbouring datasets, and audit it.

All pairs are run with the same random numbers, so that they differ because of their datasets alone. The chosen one gets
independent runs, which are the beginning of the audit's pilot. Only the test of fresh runs spends alpha.

Proof: docs/proofs/choices.md
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
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
    LEAST_SEARCH,
    check_bits,
    check_cells,
    check_distance,
    check_flag,
    check_listener,
    check_power,
    check_resolution,
    check_seconds,
    check_seed,
)
from ..procedures.check import audit_pair, runs_or_setting
from ..procedures.check_options import CheckOptions, Options
from ..procedures.mechanism_claim import stated
from ..progress import Shown, told
from ..random_streams import Stream, seed_of
from ..results.audit_result import AuditResult, Verdict
from ..results.result import Result
from ..sampling.output_hashes import digest
from ..sampling.picked import picked
from ..sampling.sampler import as_sampler
from ..settings import or_setting
from ..store.sqlite_store import opened
from ..store.store_settings import code_of
from .pairs_for_domain import pairs_of
from .pool import Pool, new_pool
from .shrinking import SimplePair, for_simpler_pairs, simplest
from .successive_halving import halve
from .trial import Judge, Trial

_RUNS = 1_000_000  # default runs of the audit
_SHOWN, _WIDTH = 5, 160  # pairs, and characters of a line, in the printed result


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedPair:
    """A pair that the search tried.

    Attributes
    ----------
    label : str
        Description of the pair.
    summary : str
        The datasets.
    runs : int
        Executions from which the pair was judged, on x and y together; other pairs with these datasets share them.
    bound : float
        Expected bound of an audit, from pilot outputs that did not serve to choose the event, shrunk towards the bounds
        of similar pairs according to its uncertainty. In the units of the claim's strength; at least 0. It is 0 for a
        pair that was left after fewer than a hundred runs.
    error : str, optional
        Why the search skipped the pair.
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
class WorstPair(Result):
    """The worst pair that a search found, audited on fresh runs.

    Attributes
    ----------
    x, y : Any
        The datasets.
    ranking : tuple of TriedPair
        Every pair tried: the chosen pair, then the others in order of decreasing pilot size, then of the expected bound
        or, without one, of how far their outputs are apart, and finally the skipped pairs.
    runs : int
        Executions of the search: over all pairs, then on the chosen one alone, and on simpler pairs.
    untried : int
        Pairs (given or patterns) that had no runs.
    simple : SimplePair, optional
        A simpler pair that seems to lose as much, for the eye: fewer rows, equal rows, round values. In searches of a
        domain with 24,000 executions or more.
    audit : AuditResult
        Audit of the chosen pair. It is valid however the pair was found, because it counts no runs of the search; they
        only help to choose the event (`searched`).
    """

    x: Any = field(repr=False, compare=False)
    y: Any = field(repr=False, compare=False)
    ranking: tuple[TriedPair, ...] = field(repr=False)
    runs: int
    untried: int = 0
    simple: SimplePair | None = None
    audit: AuditResult

    @property
    def is_refuted(self) -> bool:
        """Whether the audit of fresh runs refuted the claim."""
        return self.audit.is_refuted

    @property
    def sentence(self) -> str:
        """The verdict of the audit in a sentence."""
        return self.audit.sentence

    @property
    def _limits(self) -> tuple[float, float]:
        return self.audit.confidence_interval()

    def to_dict(self) -> dict[str, Any]:
        """Return what the audit says, and the executions of the search."""
        return self.audit.to_dict() | {"search_runs": self.runs}

    def plot(self, kind: str | None = None, ax: Any = None) -> Any:
        """Draw the audit."""
        return self.audit.plot(kind, ax)

    @property
    def verdict(self) -> Verdict:
        """Verdict of the audit of fresh runs."""
        return self.audit.verdict

    @property
    def _pilot(self) -> list[str]:
        """The runs on the chosen pair that chose the event, on one line, if the search made some of them."""
        if not self.audit.searched:
            return []
        more = f" and {self.audit.pilot_runs:,} more" if self.audit.pilot_runs else ""
        return [f"  pilot   {self.audit.searched:,} runs of the search on each dataset{more}"]

    def __str__(self) -> str:
        chosen = self.ranking[0]
        tried = [pair for pair in self.ranking if pair.error is None]
        skipped = [pair for pair in self.ranking if pair.error is not None]
        lines = [
            f"  pair    {chosen.label} ({self.audit.pair.adjacency})",
            f"          {chosen.summary}",
            *([f"  simpler {self.simple}"] if self.simple else []),
            f"  event   {self.audit.event_in_words}",
            *([f"          {self.audit.opposite_in_words}"] if self.audit.opposite_in_words else []),
            *self._pilot,
            f"  search  {_count(len(tried))} in {self.runs:,} executions; rough estimates, the longest examined first:",
            *(f"          {pair}" for pair in tried[:_SHOWN]),
        ]
        if skipped:
            lines.append(f"  skipped {_count(len(skipped))}, such as {skipped[0].label}")
        if self.untried:
            lines.append(f"  untried {_count(self.untried)}; increase search_runs to reach them")
        if not self.is_refuted:
            lines.append("  note    other pairs may be worse than the worst pair found")
        short = [line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…" for line in lines]
        whole = [f"  error   {' '.join(str(skipped[0].error).split())}"] if skipped else []  # to be acted upon
        return "\n".join([str(self.audit), *short, *whole])


def _count(pairs: int) -> str:
    return f"{pairs:,} pair{'' if pairs == 1 else 's'}"


@with_own_arithmetic
def find_worst_pair(
    mechanism: Any,
    domain: Any,
    *,
    claim: Claim | ClaimAtDistance | float | tuple[float, float] | None = None,
    adjacency: Adjacency | str | None = None,
    runs: int | None = None,
    search_runs: int | None = None,
    alpha: float = 0.05,
    seed: int | None = 0,
    sequential: bool = False,
    resolution: float | None = None,
    on_round: Callable[[TriedPair], None] | None = None,
    **options: Unpack[CheckOptions],
) -> WorstPair:
    """Search for the pair of neighbours on which a mechanism leaks most, and audit the claim on that pair.

    A mechanism that satisfies its claim is refuted with probability at most `alpha`, for any search.

    Parameters
    ----------
    mechanism : callable or object
        As in `check`.
    domain : Domain, callable, iterable or Hypothesis strategy
        `Answers`, `Values`, `Rows` or `Graphs`; or a function that makes a pair (x, y) from a
        ``numpy.random.Generator``; or pairs; or a strategy of pairs (tuples of two) or of datasets.
    claim : Claim, float, (float, float) or callable, optional
        As in `check`.
    adjacency : Adjacency or str, optional
        Neighbour relation that every pair must satisfy; by default the mechanism's attribute `adjacency`. A domain
        needs one.
    runs : int, optional
        Runs on each dataset in the audit of the chosen pair; by default as in `check`. The search's independent runs on
        that pair are the first of its pilot, in addition to these.
    search_runs : int, optional
        Executions of the search, over all pairs and both datasets, at least 400. The default is that of
        `dpaudit.settings`, or `runs` (or a million), half the executions of the audit.
    alpha : float
        Allowed probability of refuting a correct mechanism.
    seed : int or None
        Random seed, which fixes every number for any number of workers. ``check(mechanism, found.x, found.y, …)``
        audits the pair again with its own pilot. Give it another seed: with the same seed it draws the same main runs.
    sequential, resolution
        As in `check`, for the audit of the chosen pair.
    on_round : callable, optional
        Called with the leading pair, a `TriedPair`, after each round of the search.
    **options
        Options of `check`, such as ``distance=2`` or ``progress=True``. With ``bits=True`` the search also tests low
        bits, and a ``store`` also keeps the draws of the search.

    Returns
    -------
    WorstPair

    Raises
    ------
    ClaimError, AdjacencyError, DatasetError, OptionError
        If an argument is outside its range, or the domain has no such neighbours.
    MechanismError
        If the mechanism fails on every pair.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import AddRemove, PureDP, Rows, find_worst_pair
    >>> def noisy_sum(rows, size, rng):  # noise for rows of at most 1
    ...     return sum(rows) + rng.laplace(scale=1.0, size=size)
    >>> found = find_worst_pair(noisy_sum, Rows(high=3.0), claim=PureDP(1.0), adjacency=AddRemove(), runs=30_000)
    >>> found.is_refuted, abs(sum(found.x) - sum(found.y)) > 2.9
    (True, True)
    """
    chosen = Options.of(options, "find_worst_pair", "search_runs", "on_round")
    check_listener(on_round, "on_round")
    sampler = picked(as_sampler(mechanism, chosen.name), chosen.output)
    distance, seed = check_distance(chosen.distance), check_seed(seed)
    _check_options(chosen, sequential, resolution)
    runs = runs_or_setting(runs, resolution, chosen.seconds)
    size, search_runs = _RUNS if runs is None else runs, or_setting("search_runs", search_runs)
    budget = max(size, LEAST_SEARCH) if search_runs is None else search_runs
    said = stated(mechanism, claim, adjacency, chosen.claim_source)
    if chosen.seconds is not None and search_runs is None:
        raise OptionError(
            f"seconds={chosen.seconds:g} limits the audit of the chosen pair, not the search; set the executions of "
            "the search with search_runs= (--search-runs).",
            seconds=chosen.seconds,
        )
    source = pairs_of(domain, said.adjacency, distance, seed_of(seed, Stream.EXAMPLES))
    pool = new_pool(source, said.adjacency, distance, seed, sampler.check_pair)
    with opened(chosen.store) as kept, told(chosen.progress, sampler.name, None) as (progress, shown):
        judge = Judge(
            sampler=sampler,
            claim=claim_at(said.claim, distance),
            runs=size,
            alpha=check_test_alpha(alpha),
            seed=seed,
            jobs=chosen.jobs,
            progress=progress,
            bits=chosen.bits is True,
            store=kept,
            code="" if kept is None else code_of(sampler),
        )
        if kept is not None:
            searched = digest(domain) if isinstance(domain, Domain) else "of the caller's own"
            about = {"search_runs": budget, "distance": distance, "adjacency": said.adjacency, "domain": searched}
            kept.section(f"{sampler.name}, the search", about | judge.settings())
        reserved = for_simpler_pairs(budget) if isinstance(domain, Domain) else 0
        trials, untried, executions = halve(pool, judge, budget - reserved, _told_of_rounds(on_round, shown))
        if not trials or trials[0].error is not None:
            raise _nothing_left(trials, pool, sampler.name)
        x, y = trials[0].candidate.x, trials[0].candidate.y
        simple, clearer, spent = simplest(pool, judge, trials[0], reserved, len(trials))
        if clearer is not None:  # simpler and worse
            trials, simple = [clearer, *trials], None
            x, y = clearer.candidate.x, clearer.candidate.y
        audit = audit_pair(
            mechanism,
            x,
            y,
            trials[0].independent(judge, (budget - reserved - executions) // 2),
            claim=said.claim,
            adjacency=said.adjacency,
            runs=runs,
            alpha=alpha,
            seed=seed,
            sequential=sequential,
            resolution=resolution,
            options=replace(chosen, claim_source=said.source, progress=progress, store=kept),
        )
    failed = [trial for trial in trials if trial.error is not None]
    if failed:
        audit = replace(audit, notes=(*audit.notes, _of_failures(failed, len(trials))))
    return WorstPair(
        x=x,
        y=y,
        ranking=(
            *(_tried(trial) for trial in trials),
            *(_tried(Trial(pair, 0, error=why)) for pair, why in pool.strangers),
        ),
        runs=executions + 2 * trials[0].alone + spent,
        untried=untried,
        simple=simple,
        audit=audit,
    )


def _of_failures(failed: list[Trial], number: int) -> str:
    """The note on pairs that could not be run, which a reader of the audit alone must not miss."""
    first = failed[0]
    return (
        f"the mechanism failed on {len(failed):,} of the {_count(number)} of the search, about which nothing is said; "
        f"a failure on one of two neighbours tells them apart. The first, {first.candidate.summary}: "
        f"{' '.join(str(first.error).split())}"
    )


def _tried(trial: Trial) -> TriedPair:
    return TriedPair(
        label=trial.candidate.label,
        summary=trial.candidate.summary,
        runs=2 * trial.runs,
        bound=max(trial.merit, 0.0),
        error=trial.error,
    )


def _nothing_left(trials: list[Trial], pool: Pool, name: str) -> AuditError:
    """Return the error that explains why there is no pair to audit."""
    if trials:
        return MechanismError(
            f"{name} failed on all of {_count(len(trials))}; error on the first: {trials[0].error}", mechanism=name
        )
    if pool.strangers:
        return AdjacencyError(
            f"none of {_count(len(pool.strangers))} are neighbours; the first: {pool.strangers[0][1]}"
        )
    return AdjacencyError("no pair of neighbours was found at this distance; widen the domain, or pass more pairs.")


def _check_options(options: Options, sequential: bool, resolution: float | None) -> None:
    """Raise the errors that `check` would raise for its options, before the search spends runs."""
    check_flag(sequential, "sequential")
    check_bits(options.bits)
    check_resolution(resolution)
    check_power(options.power)
    check_seconds(options.seconds, None, sequential=sequential)
    check_cells(options.cells, sequential)
    checks_to_ignore(options.ignore)


def _told_of_rounds(
    on_round: Callable[[TriedPair], None] | None, shown: Shown | None
) -> Callable[[Trial], None] | None:
    """The function that sees the leader of every round: the caller's, the display, or both."""
    if on_round is None and shown is None:
        return None

    def tell(leader: Trial) -> None:
        pair = _tried(leader)
        if shown is not None:
            shown.lead(pair)
        if on_round is not None:
            on_round(pair)

    return tell
