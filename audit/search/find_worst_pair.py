"""Search for the worst pair of neighbouring datasets, and audit it.

All pairs are run with the same random numbers, so that they differ because of their datasets alone. The chosen one gets
independent runs, which are the beginning of the audit's pilot. Only the test of fresh runs spends alpha.

Proof: docs/proofs/choices.md
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, Unpack

import numpy as np

from ..claims.claim import Claim, ClaimAtDistance, claim_at
from ..datasets.adjacency import Adjacency
from ..datasets.domains import Domain
from ..errors import AdjacencyError, AuditError, DatasetError, MechanismError, OptionError
from ..events.outcome_text import printed
from ..events.outputs import Outputs
from ..floating_point_errors import with_own_arithmetic
from ..health.findings import checks_to_ignore
from ..inference.boundary_test import check_test_alpha
from ..known_options import with_known_options
from ..options import LEAST_SEARCH, check_sequential, checked
from ..procedures.check import DEFAULTS, CheckOptions, Options, audit_pair, runs_or_setting, sampler_of, stated
from ..progress import Shown, told
from ..random_streams import Stream, seed_of, sequence_of
from ..results.worst_pair import TriedPair, WorstPair, pair_count
from ..sampling.output_hashes import digest
from ..sampling.sampler import Sampler
from ..sampling.tasks import raised_in
from ..settings import or_setting
from ..store.sqlite_store import check_store, opened
from ..store.store_settings import code_of
from .coupled_difference import coupled_difference
from .not_finite import Enlarged, with_special_numbers
from .pairs_for_domain import pairs_of
from .pool import Pool, new_pool
from .replayed_pairs import Guide, guided_by_replays
from .shrinking import for_simpler_pairs, simplest
from .successive_halving import halve
from .trial import Judge, Trial

_RUNS = 1_000_000  # default runs of the audit
# Runs on each of five datasets that show whether a mechanism clamps; largest difference of the outputs, in units of
# their spread. With the same random numbers it is 0; with others the mean of 16 runs is 0.35 off by chance.
_CLAMP_RUNS, _CLAMPED = 16, 1.0


@with_known_options(DEFAULTS)
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
    guide: Literal["replay"] | None = None,
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
        `Answers`, `Values`, `Rows`, `Tables` or `Graphs`; or a function that makes a pair (x, y) from a
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
        Executions of the search, over all pairs and both datasets, at least 400; up to 80 more show whether the
        mechanism clamps numbers, so that NaN is tried. The default is that of
        `dpaudit.settings`, or `runs` (or a million), half the executions of the audit.
    alpha : float
        Allowed probability of refuting a correct mechanism.
    seed : int or None
        Random seed, which fixes every number for any number of workers. ``check(mechanism, found.x, found.y, …)``
        audits the pair again with its own pilot. Give it another seed: with the same seed it draws the same main runs.
    sequential, resolution
        As in `check`, for the audit of the chosen pair.
    guide : {"replay"}, optional
        For a slow mechanism whose noise `replay` records: replays rank the pairs, at one or two executions each, out
        of 40% of the executions of the search (at most 4,000), and only the first few pairs are run by themselves.
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
    chosen = Options(**options)
    sampler = sampler_of(mechanism, chosen)
    distance, seed = chosen.distance, checked("seed", seed)
    check_sequential(sequential, chosen.on_look, chosen.seconds, search_runs, chosen.cells)
    checks_to_ignore(chosen.ignore)  # before the search spends runs
    check_store(chosen.store)
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
    larger = _enlarged(domain, sampler, seed)
    source = pairs_of(larger.domain, said.adjacency, distance, seed_of(seed, Stream.EXAMPLES))
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
            about = {
                "search_runs": budget,
                "guide": guide or "none",
                "distance": distance,
                "adjacency": said.adjacency,
                "domain": searched,
            }
            kept.section(f"{sampler.name}, the search", about | judge.settings())
        guided = Guide() if guide is None else guided_by_replays(pool, sampler, seed, budget, progress)
        budget -= guided.executions
        reserved = for_simpler_pairs(budget) if isinstance(domain, Domain) and guide is None else 0
        tell = _told_of_rounds(on_round, shown)
        trials, untried, executions = halve(pool, judge, budget - reserved, tell, guided.leaders)
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
        may_show = chosen.keep_datasets or (isinstance(domain, Domain) and not domain.lists_values)
        audit = replace(audit, notes=(*audit.notes, _of_failures(failed, len(trials), may_show=may_show)))
    tried = [end for trial in trials for end in (trial.candidate.x, trial.candidate.y)]
    special = larger.remarks(x, y, tried, is_refuted=audit.is_refuted)
    audit = replace(audit, notes=(*special, *audit.notes, *filter(None, [guided.remark])))
    return WorstPair(
        x=x,
        y=y,
        ranking=(
            *(_tried(trial) for trial in trials),
            *(_tried(Trial(pair, 0, error=why)) for pair, why in pool.strangers),
        ),
        runs=guided.executions + executions + 2 * trials[0].alone + spent,
        replayed=guided.pairs,
        untried=untried,
        simple=simple,
        audit=audit,
    )


def _enlarged(domain: Any, sampler: Sampler, seed: int) -> Enlarged:
    """Return the domain with the special numbers that matter to the mechanism; see `with_special_numbers`."""

    known: dict[str, Outputs] = {}  # datasets of equal numbers, which their beginning determines

    def drawn(dataset: Any) -> Outputs:
        text = printed(dataset)
        if text not in known:
            rng = np.random.default_rng(sequence_of(seed, Stream.CLAMPS))
            known[text] = sampler.draw(dataset, _CLAMP_RUNS, rng)
        return known[text]

    def apart(one: Any, other: Any) -> float:
        outputs = drawn(one), drawn(other)
        return math.inf if any(raised_in(each) for each in outputs) else coupled_difference(*outputs) / _CLAMPED

    def run(dataset: Any) -> BaseException | str | None:
        try:
            raised = raised_in(drawn(dataset))
        except AuditError as error:
            return error if isinstance(error, DatasetError) or error.__cause__ is None else error.__cause__
        return next(iter(raised), None) if raised.total() == _CLAMP_RUNS else None

    return with_special_numbers(domain, apart, run)


def _of_failures(failed: list[Trial], number: int, *, may_show: bool) -> str:
    """The note on pairs that could not be run, which a reader of the audit alone must not miss.

    Labels of pairs and errors quote rows, so the note has none of them unless the datasets may be shown.
    """
    note = (
        f"the mechanism failed on {len(failed):,} of the {pair_count(number)} of the search, about which nothing is "
        "said; a failure on one of two neighbours tells them apart"
    )
    first = failed[0]
    error = " ".join(str(first.error).split())
    return f"{note}. The first, {first.candidate.summary}: {error}" if may_show else note


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
            f"{name} failed on all of {pair_count(len(trials))}; error on the first: {trials[0].error}", mechanism=name
        )
    if pool.strangers:
        return AdjacencyError(
            f"none of {pair_count(len(pool.strangers))} are neighbours; the first: {pool.strangers[0][1]}"
        )
    return AdjacencyError("no pair of neighbours was found at this distance; widen the domain, or pass more pairs.")


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
