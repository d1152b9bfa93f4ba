"""Search for the worst pair of neighbouring datasets, and audit it.

All pairs are run with the same random numbers, so that they differ only because of their datasets. The chosen one gets
independent runs, which are the beginning of the audit's pilot. Only the test of fresh runs spends alpha.

Proof: docs/proofs/choices.md
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count, islice, zip_longest
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from ..claims.claim import Claim, ClaimAtDistance, claim_at
from ..datasets.adjacency import Adjacency
from ..datasets.domains import Domain
from ..datasets.tables import as_domain
from ..errors import AuditError, DatasetError, MechanismError, OptionError
from ..events.named_parts import printed
from ..events.outputs import Outputs
from ..floating_point_errors import with_own_arithmetic
from ..health.findings import checks_to_ignore
from ..inference.binomial_tails import ROUNDING
from ..inference.event_test import check_test_alpha
from ..known_options import with_known_options
from ..options import DEFAULTS, LEAST_RUNS, LEAST_SEARCH, USUAL_RUNS, Budget, Options, check_sequential, checked_seed
from ..printing import counted
from ..procedures.check import audit_pair, continues, runs_or_setting, sampler_of
from ..progress import Meter, told
from ..random_streams import Stream, seed_of, sequence_of
from ..replay.recorded_run import RecordedRun, Runner
from ..replay.replay_findings import visible_loss
from ..replay.replay_result import paired_calls
from ..replay.reruns import Reruns
from ..replay.tape import only_recording
from ..results.audit_result import AuditResult
from ..results.claim_pair_and_alpha import stated
from ..results.worst_pair import SimplePair, TriedPair, WorstPair
from ..sampling.output_hashes import digest
from ..sampling.sampler import OutputPart, Sampler
from ..sampling.tasks import raised_in
from ..settings import or_setting
from ..store.sqlite_store import StorePart, check_store, opened
from ..store.store_settings import claim_in_words, code_of
from .candidates import LEAST_SCORED, Candidate, Pool, complexity, may_show_data, text_of_error
from .climb import Climb, Sized
from .not_finite import Enlarged, with_special_numbers
from .pairs_for_domain import every_pair, pairs_of, relation_in
from .row_pairs import Split
from .successive_halving import SURE, CoupledDraws, Judge, Trial, coupled_difference, halve

if TYPE_CHECKING:
    from ..exact.exact_result import ExactResult

# Pairs ranked by replays: one run on each dataset shows what the noise is given. Hundreds of pairs are ranked in the
# runs that a few take in a statistical search. The best then go on trial.

# Share of a search's runs for replays (docs/decisions/0019-record-and-replay.md), and their largest number.
_SHARE, _MOST = 0.4, 4_000
# Runs for each pair that goes on trial, and the number of these: docs/decisions/0025-limits.md.
_EACH, _MOST_LEADERS = 150, 8
# One of so many is a usual pattern, because one path may show little of what noise decides:
# docs/decisions/0025-limits.md.
_PATTERNS = 3
_LOOKED_AT = 5  # pairs on which it is tried whether the output shows the value of a line


@dataclass(slots=True)
class Replays(Climb[Sized]):
    """Replays of pairs, at most a number of runs."""

    runner: Runner
    meter: Meter | None = None
    has_calls: bool = False
    on_one_path: list[Sized] = field(default_factory=list)  # with the same calls: what another path costs is a guess
    _last: tuple[Hashable, RecordedRun] | None = None  # the dataset x of the last pair, and the run on it
    _shows: dict[Hashable, bool] = field(default_factory=dict)
    _hidden: Counter[Hashable] = field(default_factory=Counter)

    @property
    def used(self) -> int:
        return self.runner.runs

    def compare(self, candidate: Candidate) -> Sized | None:
        before = self.runner.runs
        on_x = self._recorded(candidate)
        on_y = self.runner.run(candidate.y, on_x.tape.calls)
        reruns = Reruns(self.runner, paired_calls(on_x.tape, on_y.tape), (candidate.x, on_x), (candidate.y, on_y))
        is_tried = on_y.is_on_path_of(on_x)
        size = visible_loss(on_x, on_y, lambda number: self._hides(number, reruns, is_tried=is_tried))
        if self.meter is not None:
            self.meter(self.runner.runs - before)
        if on_x.error is not None and on_y.error is not None:
            self.failed += 1
            self.first_error = self.first_error or text_of_error(
                on_x.error, candidate.x, shows_data=self.runner.sampler.shows_data
            )
            return None
        self.pairs += 1
        self.has_calls = self.has_calls or bool(on_x.tape.calls)
        if is_tried:
            self.on_one_path.append(Sized(candidate, visible_loss(on_x, on_y, otherwise=0.0)))
        return Sized(candidate, size)

    def _hides(self, number: int, reruns: Reruns, *, is_tried: bool) -> bool:
        """Whether the outputs hide the values of a line, such as a draw that is not used; tried on a few pairs.

        If the paths of x and y differ, nothing can be tried.
        """
        call = reruns.calls[number]
        line = call.line
        if is_tried and not self._shows.get(line) and self._hidden[line] < _LOOKED_AT:
            self._shows[line] = bool(reruns.shown(number).any())
            self._hidden[line] += not self._shows[line]
        return not self._shows.get(line)

    def _recorded(self, candidate: Candidate) -> RecordedRun:
        """Return a run on x, which is made once for pairs in a row with this x."""
        end = None if candidate.ends is None else candidate.ends[0]
        if self._last is None or end is None or self._last[0] != end:
            self._last = end, self.runner.run(candidate.x)
        return self._last[1]


@dataclass(frozen=True, slots=True)
class Guide:
    """What the replays of a search found."""

    leaders: tuple[Candidate, ...] | None = None  # None without replays
    pairs: int = 0  # that were replayed
    executions: int = 0  # that this took
    remark: str = ""  # why the ranking says little


def _in_turn(*leaders: Iterable[Sized]) -> list[Sized]:
    """Return pairs by decreasing size and then the smaller ones, from each of some lists in turn, each once.

    Of two pairs with the same loss, the smaller one hides it less.
    """

    def order(pair: Sized) -> tuple[float, int]:
        datasets = pair.candidate.x, pair.candidate.y
        return -round(pair.size, 6), sum(len(dataset) for dataset in datasets if isinstance(dataset, Collection))

    turns = zip_longest(*(sorted(pairs, key=order) for pairs in leaders))
    found = (pair for turn in turns for pair in turn if pair is not None)
    return list({pair.candidate.key or id(pair.candidate): pair for pair in found}.values())


def guided_by_replays(pool: Pool, sampler: Sampler, seed: int, budget: int, meter: Meter | None = None) -> Guide:
    """Return the pairs that replays rank first, out of a pool, within a share of the runs of a search.

    They are those of the largest visible loss, one of each group of similar pairs, as simple as that loss allows; and a
    few usual patterns.
    """
    remedy = "the one that runs this search; search without guide=, or in another process."
    with only_recording(sampler.name, remedy):
        runner = Runner(sampler, seed, follows=False)
        replays = Replays(runner, meter, pool=pool, most=min(int(_SHARE * budget), _MOST))
        with runner.patching():
            replays.run()
            if replays.failed and not replays.pairs:
                raise MechanismError(
                    f"{sampler.name} failed on all of {replays.failed:,} replayed pairs; the first error: "
                    f"{replays.first_error}",
                    mechanism=sampler.name,
                )
            order = _in_turn(replays.leaders.values(), replays.on_one_path)
            count = min(max((budget - runner.runs) // _EACH, 2), _MOST_LEADERS)
            leaders: dict[Hashable, Candidate] = {}
            for pair in order[: count - count // _PATTERNS]:
                simple = replays.simpler(pair, pair.size * (1.0 - ROUNDING)).candidate
                chosen = pair.candidate if simple.key in leaders else simple  # different pairs on trial are worth more
                leaders[chosen.key or id(chosen)] = replace(chosen, promise=pair.size)
    usual = filter(pool.is_possible, islice(pool.source.patterns(), _MOST_LEADERS))
    leaders |= {pattern.key or id(pattern): pattern for pattern in islice(usual, count // _PATTERNS)}
    remark = "" if replays.has_calls else "the replays recorded no noise, so they ranked pairs only by their outputs"
    return Guide(tuple(leaders.values()), replays.pairs, runner.runs, remark)


# A simpler pair that refutes the claim too: fewer rows, fewer different values, a smaller difference, rounder numbers
# (MacIver & Donaldson 2020, Test-case reduction via test-case generation: insights from the Hypothesis reducer).
#
# The audit is that of the found pair, so that simplicity costs no power and no refutation. If it refutes, simpler pairs
# go on trial with common random numbers, and the simplest one that an audit should refute is audited with fresh runs.

_TRIES = 12  # trials of the largest length that the runs allow (docs/decisions/0025-limits.md)


@dataclass(slots=True)
class Simplification:
    """Trials of pairs that are simpler than one on which a claim was refuted."""

    pool: Pool
    judge: Judge
    most: int  # runs of the trials together
    numbers: Iterator[int]
    shown: list[Candidate] = field(default_factory=list)  # each simpler than those before, and likely to be refuted
    _pilot: int = LEAST_SCORED  # runs of the shortest one that shows the found pair
    tried: int = 0  # pairs on trial, without the found one
    _raised: set[str] | None = None  # exceptions on the found pair
    _ends: tuple[Hashable, ...] = ()  # datasets of the simplest pair so far

    def run(self, found: Candidate, others: Iterable[Candidate]) -> None:
        """Try simpler ones of the other pairs, and then ever simpler pairs."""
        pilot = self._shows(found, self.most // 4)
        if pilot is None:  # so few runs show too little
            return

        def shape(pair: Candidate) -> tuple[Any, ...]:  # a pair with other digits alone is not simpler
            return complexity(pair.x, pair.y)[:3]

        def has_room() -> bool:
            with self.judge.sampler.watched.drawing():  # Ctrl-C ends the call here, as if it were drawing
                return self.judge.draws.executions + pilot <= self.most

        self._pilot = pilot
        smaller = sorted((pair for pair in others if shape(pair) < shape(found)), key=shape)
        next((pair for pair in smaller if has_room() and self._accept(pair)), None)
        self.pool.simplest(self.shown[-1] if self.shown else found, self._accept, has_room, self.most)

    def _accept(self, candidate: Candidate) -> Candidate | None:
        self.tried += 1
        is_shown = self._shows(candidate, max(self._pilot, self.most // (2 * _TRIES))) is not None
        self.judge.draws.keep({*self._ends})
        if not is_shown:
            return None
        self.shown.append(candidate)
        return candidate

    def _shows(self, candidate: Candidate, longest: int) -> int | None:
        """Return the runs of the shortest pilot after which an audit should refute the claim on a pair; None if none.

        A pilot is doubled while the audit that it foresees exceeds the claim, but not surely; that of the found pair in
        any case. Exceptions that the found pair does not raise are another bug.
        """
        trial, draws, pilots = Trial(candidate, next(self.numbers)), self.judge.draws, [LEAST_SCORED]
        while pilots[-1] < self._pilot:
            pilots.append(2 * pilots[-1])
        while pilots[-1] <= longest and draws.executions + 2 * (pilots[-1] - trial.runs) <= self.most:
            trial.extend(pilots, self.judge, is_coupled=True)
            raised = {name for block in (*trial.blocks_x, *trial.blocks_y) for name in raised_in(block)}
            known = raised if self._raised is None else self._raised
            excess = trial.excess(self.judge.claim.parameter)
            if trial.error is not None or not raised <= known or (excess < 0.0 and self._raised is not None):
                return None
            if excess >= SURE:
                self._raised, self._ends = known, trial.ends
                return trial.runs
            pilots.append(2 * pilots[-1])
        return None


def simplified(
    pool: Pool, judge: Judge, trials: list[Trial], most: int, audit: Callable[[Candidate, float, int, int], AuditResult]
) -> tuple[SimplePair | None, int, int]:
    """Return a simpler pair on which an audit refutes the claim too, the runs that it took, and how many were tried.

    At most `most` runs are spent, half of them on trials. The `audit` of a pair has a share of alpha, runs on each
    dataset and a number, from which its seed follows. The simplest pair has half of alpha; if it is not refuted, the
    pair in the middle between the found one and it has a quarter, and so on.
    """
    parameter = judge.claim.parameter
    judge = replace(judge, draws=CoupledDraws(), runs=most // 8)  # on each dataset of the first audit, or more
    search = Simplification(pool, judge, most // 2, count(len(trials)))
    search.run(trials[0].candidate, (one.candidate for one in trials[1:] if one.excess(parameter) >= SURE))
    spent, shown = judge.draws.executions, search.shown
    for number in count(1):
        runs = (most - spent) // 4
        if not shown or runs < LEAST_RUNS:
            break
        pair = shown[-1]
        try:
            result = audit(pair, judge.alpha / 2**number, runs, number)
        except (MechanismError, DatasetError):  # a pair that cannot be audited shows nothing
            result = None
        spent += 2 * (runs if result is None else result.runs)
        if result is not None and result.is_refuted:
            may_show = judge.sampler.shows_data
            words = pair.in_words(shows_data=may_show)
            simple = SimplePair(x=pair.x, y=pair.y, summary=words, shows_data=may_show, alpha=judge.alpha, audit=result)
            return simple, spent, search.tried
        del shown[len(shown) // 2 :]
    return None, spent, search.tried


# Runs on each of up to twelve datasets that show whether a mechanism clamps. With the same random numbers the
# difference of the outputs is then 0; with others the mean of 16 runs is 0.35 spreads off by chance, which is below 1.
_CLAMP_RUNS = 16


@overload
def find_worst_pair(
    mechanism: Any, domain: Any, *,
    claim: Claim | ClaimAtDistance | float | tuple[float, float] | None = ..., adjacency: Adjacency | str | None = ...,
    runs: int | None = ..., search_runs: int | None = ..., alpha: float = ..., seed: int | None = ...,
    sequential: bool = ..., output: OutputPart | None = ..., distance: float = ..., exact: Literal[False] = ...,
    guide: Literal["replay"] | None = ..., on_round: Callable[[TriedPair], None] | None = ..., **options: Any,
) -> WorstPair: ...  # fmt: skip
@overload
def find_worst_pair(
    mechanism: Any, domain: Any, *,
    claim: Claim | ClaimAtDistance | float | tuple[float, float] | None = ..., adjacency: Adjacency | str | None = ...,
    output: OutputPart | None = ..., distance: float = ..., exact: Literal[True] | Budget, **options: Any,
) -> ExactResult: ...  # fmt: skip
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
    output: OutputPart | None = None,
    distance: float = 1,
    exact: bool | Budget = False,
    guide: Literal["replay"] | None = None,
    on_round: Callable[[TriedPair], None] | None = None,
    **options: Any,
) -> Any:
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
        Runs of the search, over all pairs and both datasets, at least 400; up to 192 more show whether the
        mechanism clamps numbers, so that NaN is tried. The default is that of
        `dpaudit.settings`, or `runs` (or a million), half the runs of the audit. After a refutation,
        more runs look for a simpler pair that refutes too: at most `search_runs`, half the planned runs of the audit,
        and half the runs made so far; none if that is fewer than 800, or with `seconds`.
    alpha : float
        Allowed probability of refuting a correct mechanism.
    seed : int or None
        Random seed, which fixes every number for any number of workers. ``check(mechanism, found.x, found.y, …)``
        audits the pair again with its own pilot. Give it another seed: with the same seed it draws the same main runs.
    sequential, output, distance : optional
        As in `check`, for the audit of the chosen pair.
    exact : bool or Budget
        As in `check`, on all pairs of a finite domain: `Values`, `Rows` of listed values, `Answers` of integers, or an
        iterable of pairs. With ``seconds=``, pairs are left out when the time is over; the result says how many.
    guide : {"replay"}, optional
        For a slow mechanism whose noise `replay` records: replays rank the pairs, at one or two runs each, out
        of 40% of the runs of the search (at most 4,000), and only the first few pairs are run by themselves.
    on_round : callable, optional
        Called with the leading pair, a `TriedPair`, after each round of the search.
    **options
        The other options of `check`, such as ``progress=True``, which `settings` explains. With
        ``floating_point="test"`` the search also looks for these leaks, and a ``store`` also keeps the draws of the
        search.

    Returns
    -------
    WorstPair
        The pair found, the ranking of all pairs tried, and the `audit` of the pair on fresh runs. After a refutation,
        `simple` is a simpler pair on which a separate audit refutes the claim too, if there is one. An `ExactResult`
        for the whole domain if the audit was exact.

    Raises
    ------
    ClaimError, AdjacencyError, DatasetError, OptionError
        If an argument is outside its range, or the domain has no such neighbours.
    MechanismError
        If the mechanism fails on every pair.

    See Also
    --------
    check : Audit of a given pair.
    check_sensitivity : The same search for a query without noise.
    replay : The line of code that exceeds the claim on the pair.

    Notes
    -----
    The runs of the search choose the pair and only help to choose the event; the audit counts independent runs. So its
    error probability is at most `alpha`, regardless of how many pairs were tried. With probability at most `alpha` the
    claim holds on a pair, the found or the simple one, on which it is refuted. A claim that is not refuted may break on
    a pair that the search did not try.

    References
    ----------
    Ding, Wang, Wang, Zhang & Kifer (2018), Detecting violations of differential privacy, Section 5.2 (patterns of
    pairs). Proof: docs/proofs/choices.md.

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
    given: dict[str, Any] = {
        "claim": claim, "adjacency": adjacency, "runs": runs, "alpha": alpha, "seed": checked_seed(seed),
        "sequential": sequential, "output": output, "distance": distance, "exact": exact,
    }  # fmt: skip
    chosen, domain = Options(**given, **options), as_domain(domain)
    if exact:
        if others := [name for name, value in (("guide", guide), ("on_round", on_round)) if value is not None]:
            raise OptionError(f"{others[0]}= is for a search, and an exact audit takes all pairs; leave it out.")
        from ..exact.exact_audit import audit_pairs  # only where an audit needs it

        relation = stated(mechanism, claim, adjacency, chosen.claim_source).adjacency
        chosen = replace(chosen, keep_datasets=may_show_data(domain, keep_datasets=chosen.keep_datasets))
        return audit_pairs(mechanism, every_pair(domain, relation, distance), chosen)
    may_show = may_show_data(domain, keep_datasets=chosen.keep_datasets)
    sampler = replace(sampler_of(mechanism, chosen), shows_data=may_show)
    seed = chosen.seed
    check_sequential(chosen, sequential or chosen.seconds is not None, runs)
    checks_to_ignore(chosen.ignore)  # before the search spends runs
    check_store(chosen.store)
    runs = runs_or_setting(chosen)
    size, search_runs = USUAL_RUNS if runs is None else runs, or_setting("search_runs", search_runs)
    budget = max(size, LEAST_SEARCH) if search_runs is None else search_runs
    said = stated(mechanism, claim, adjacency, chosen.claim_source)
    if chosen.seconds is not None and search_runs is None:
        raise OptionError(
            f"seconds={chosen.seconds:g} limits the audit of the chosen pair, not the search; set the runs of "
            "the search with search_runs= (--search-runs).",
            seconds=chosen.seconds,
        )
    with opened(chosen.store) as kept, told(chosen.progress, sampler.name) as meter:
        sampler, is_limited = meter.watch(sampler), chosen.seconds is not None
        # A recorded run takes longer than others, and a guided search fewer, so their time says little about its own.
        most = budget + 2 * size * (not is_limited)
        meter.expect(most if guide is None else None, is_most=True)
        may_guide = guide is None and meter.is_replayable
        meter.ways = ("fewer search_runs= and runs=", *(['guide="replay"'] if may_guide else []))
        # Runs that do not come again may lead to other pairs, which the store refuses under the same numbers.
        meter.way_on = f"{continues(seed, is_kept=kept is not None)} if all noise comes from rng"
        if sampler.call.rng_name is None:
            meter.way_on = f"the search begins anew{', with another store' if kept else ''}: its noise is not from rng"
        larger = _enlarged(domain, sampler, seed)
        said = replace(said, adjacency=relation_in(domain, said.adjacency))
        source = pairs_of(larger.domain, said.adjacency, distance, seed_of(seed, Stream.EXAMPLES))
        pool = Pool(source, said.adjacency, distance, seed, sampler.check_pair)
        judge = Judge(
            sampler=sampler,
            claim=claim_at(said.claim, distance),
            runs=size,
            alpha=check_test_alpha(alpha),
            seed=seed,
            jobs=chosen.jobs,
            progress=meter,
            bits=chosen.floating_point == "test",
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
                "claim": claim_in_words(judge.claim),
                "runs": size,
                "alpha": alpha,
                "floating_point": chosen.floating_point,
                "seed": seed,
            }
            kept.section(f"{sampler.name}, the search", about)
        guided = Guide()
        if guide is not None:
            guided = guided_by_replays(pool, sampler, seed, budget, meter)
            meter.expect(most - guided.executions, is_most=True)
        search_budget, budget = budget, budget - guided.executions

        def tell(leader: Trial) -> None:
            pair = _tried(leader, may_show=may_show)
            meter.lead(pair)
            meter.leading, meter.pair = (pair,), (leader.candidate.x, leader.candidate.y)
            if on_round is not None:
                on_round(pair)

        trials, untried, executions = halve(pool, judge, budget, tell, guided.leaders)
        if not trials:
            raise pool.no_pair()
        if trials[0].error is not None:
            raise MechanismError(
                f"{sampler.name} failed on all of {counted(len(trials), 'pair')}; error on the first: "
                f"{trials[0].error}",
                mechanism=sampler.name,
            )
        x, y = trials[0].candidate.x, trials[0].candidate.y
        audited = replace(
            chosen,
            claim=said.claim,
            adjacency=said.adjacency,
            runs=runs,
            claim_source=said.source,
            progress=meter,
            store=kept,
        )
        audit = audit_pair(mechanism, x, y, audited, trials[0].independent(judge, (budget - executions) // 2))
        alone = replace(audited, sequential=True, detect=None, seconds=None, bins=0, on_interim=None)

        def audit_simpler(pair: Candidate, share: float, most: int, number: int) -> AuditResult:
            fresh = seed_of(seed, Stream.SIMPLER, number)
            part = None if kept is None else StorePart(kept, f"simpler pair {number}")
            return audit_pair(mechanism, pair.x, pair.y, replace(alone, alpha=share, runs=most, seed=fresh, store=part))

        so_far = guided.executions + executions + 2 * trials[0].alone
        simple, spent, simpler = None, 0, 0
        if audit.is_refuted and audit.stopped != "request":
            # Half the runs of the audit, as planned, and half of those so far.
            most = 0 if is_limited else min(search_budget, size, so_far // 2 + audit.runs)
            meter.expect(most, is_most=True)
            try:
                simple, spent, simpler = simplified(pool, judge, trials, most, audit_simpler)
            except KeyboardInterrupt:  # the pair is refuted all the same
                meter.best = lambda: audit
                raise
    failed = [trial for trial in trials if trial.error is not None]
    if failed:
        audit = replace(audit, notes=(*audit.notes, _of_failures(failed, len(trials), may_show=may_show)))
    tried = [end for trial in trials for end in (trial.candidate.x, trial.candidate.y)]
    special = larger.remarks(x, y, tried, is_refuted=audit.is_refuted)
    audit = replace(audit, notes=(*special, *audit.notes, *filter(None, [guided.remark])))
    found = WorstPair(
        x=x,
        y=y,
        ranking=(
            *(_tried(trial, may_show=may_show) for trial in trials),
            *(_tried(Trial(pair, 0, error=why), may_show=may_show) for pair, why in pool.strangers),
        ),
        runs=so_far,
        alpha=audit.alpha,
        seed=audit.seed,
        notes=audit.notes,
        versions=audit.versions,
        replayed=guided.pairs,
        untried=untried,
        simple=simple,
        simplifying_runs=spent,
        simpler_tried=simpler,
        audit=audit,
    )
    audit.environment["search"] = found.search_in_words  # which reports show
    return found


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
        return math.inf if any(raised_in(each) for each in outputs) else coupled_difference(*outputs)

    def run(dataset: Any) -> BaseException | str | None:
        try:
            raised = raised_in(drawn(dataset))
        except AuditError as error:
            return error if isinstance(error, DatasetError) or error.__cause__ is None else error.__cause__
        return next(iter(raised), None) if raised.total() == _CLAMP_RUNS else None

    def differ(one: Any, other: Any) -> bool:
        return digest(drawn(one)) != digest(drawn(other))

    return with_special_numbers(domain, apart, run, differ)


def _of_failures(failed: list[Trial], number: int, *, may_show: bool) -> str:
    """The note on pairs that could not be run; labels of pairs and errors quote rows, which it may not show."""
    note = (
        f"the mechanism failed on {len(failed):,} of the {counted(number, 'pair')} of the search, about which nothing "
        "is said; a failure on one of two neighbours distinguishes them"
    )
    first = failed[0]
    error = " ".join(str(first.error).split())
    return f"{note}. The first, {first.candidate.summary}: {error}" if may_show else note


def _quotes_rows(parts: Any) -> bool:
    """Whether the label of a pair of these parts may name its rows: a split, splits of tables, a query with these."""
    of_query = isinstance(parts, tuple) and isinstance(parts[-1], Candidate) and _quotes_rows(parts[-1].parts)
    return of_query or isinstance(parts, (Split, dict))


def _tried(trial: Trial, *, may_show: bool) -> TriedPair:
    return TriedPair(
        label=trial.candidate.label if may_show or not _quotes_rows(trial.candidate.parts) else "pair of listed rows",
        summary=trial.candidate.in_words(shows_data=may_show),
        runs=2 * trial.runs,
        bound=max(trial.value, 0.0),
        error=trial.error,
    )
