"""Successive halving of candidate pairs: each round keeps the better half and doubles its pilots."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

import numpy as np

from ..claims.claim import Claim
from ..datasets.adjacency import Adjacency
from ..errors import AuditError, StoreError
from ..events.outputs import Outputs, merge
from ..procedures.earlier_draws import EarlierDraws
from ..procedures.pilot import are_same, check_blocks, refuse_if_all_raised
from ..random_streams import Stream, seed_of
from ..sampling.block_plan import Plan
from ..sampling.draw import draw_pilot, plan_blocks
from ..sampling.sampler import Sampler
from ..store.sqlite_store import Store, StorePart
from ..store.store_settings import claim_in_words, sources, terms
from .candidates import Candidate, PairSource, reason_against
from .pair_score import PairScore, score_pair
from .pooled_scores import pooled

PairCheck = Callable[[Any, Any, float], Any]

# First pilots of a thousand runs distinguish large bugs, pilots of a hundred runs only the largest; a smaller budget
# shortens pilots and reduces the number of pairs. For few pairs the first pilots have at most 200,000 runs, and the
# last pilots at most 500,000, twice the pilot of an audit.
LEAST_FIRST, _ENOUGH_FIRST, _MOST_FIRST, _MOST_PILOT = 100, 1_000, 200_000, 500_000
# First pilots have 200 runs over the square of the claim's strength, if fewer pairs can pay for them.
_UNITS, _MOST_FOR_STRENGTH = 200, 20_000
_FEWEST, _MOST_PATTERNS = 8, 1_000
_UPPER = 0.5  # deviations by which an uncertain pair is favoured in all rounds but the last
_EQUAL = 0.95  # share of the leader's merit from which a pattern counts as equal
_TRIES = 40  # attempts for each new pair
_MOST_FAILED = 5  # pairs that may replace each initial pair on which the mechanism fails


@dataclass(frozen=True, slots=True)
class Judge:
    """Settings by which all candidates are judged."""

    sampler: Sampler
    claim: Claim  # at the distance of the pairs
    runs: int  # of the audit of the chosen pair, like alpha and bits
    alpha: float
    seed: int  # the caller's, from which the seeds of candidates derive
    jobs: int | None
    progress: Callable[[int], None] | None = None  # called with the number of runs just finished
    bits: bool = False  # whether the audit tests low bits
    store: Store | StorePart | None = None  # keeps the draws
    code: str = ""  # hash of the mechanism, for the store
    _seen: dict[str, bool] = field(default_factory=dict)  # whether the first run changed the mechanism's state

    def settings(self) -> dict[str, Any]:
        """Return the settings that determine the surviving pairs, for the store."""
        return {
            "claim": claim_in_words(self.claim),
            "runs": self.runs,
            "alpha": self.alpha,
            "bits": self.bits,
            "seed": self.seed,
        }

    def plan(self, candidate: Candidate, number: int, *, is_coupled: bool) -> Plan:
        """Return the plan of a candidate's runs: coupled with those of all others, or with a seed from its number."""
        seed = seed_of(self.seed, Stream.COUPLED) if is_coupled else seed_of(self.seed, Stream.TRIALS, number)
        x, y = candidate.x, candidate.y
        drawn_from = {} if self.store is None else sources(self.code, x, y)
        plan = plan_blocks(self.sampler, x, y, seed, self.jobs, is_stateful=self._seen.get("state"))
        plan = replace(plan, is_coupled=is_coupled)
        self._seen["state"] = plan.is_stateful
        if self.store is None:
            return plan
        name = f"{self.sampler.name}, pair {number + 1} of the search{'' if is_coupled else ', alone'}"
        return replace(plan, memory=self.store.section(name, drawn_from | terms(plan)))


@dataclass(slots=True, eq=False)
class Trial:
    """A candidate with its pilot so far."""

    candidate: Candidate
    number: int  # determines the seed of independent runs
    runs: int = 0  # on each dataset, in the pilot
    alone: int = 0  # independent runs on each dataset, after the pair was chosen
    score: PairScore | None = None
    merit: float = -math.inf  # the score pooled with those of similar pairs
    deviation: float = math.inf  # of the merit
    varies: bool = True  # whether the outputs vary
    error: str | None = None  # why it was skipped
    plan: Plan | None = None
    blocks_x: list[Outputs] = field(default_factory=list)
    blocks_y: list[Outputs] = field(default_factory=list)

    def extend(self, pilot: int, judge: Judge, *, is_coupled: bool) -> None:
        """Extend the pilot to `pilot` runs on each dataset, and update the score."""
        more = pilot - self.runs
        try:
            if self.plan is None:
                self.plan = judge.plan(self.candidate, self.number, is_coupled=is_coupled)
            blocks_x, blocks_y = draw_pilot(self.plan, more, first_block=len(self.blocks_x))
            self.runs = pilot
            self.blocks_x += blocks_x
            self.blocks_y += blocks_y
            check_blocks(self.blocks_x, self.blocks_y, judge.sampler.is_block, judge.sampler.name)
            x, y = merge(self.blocks_x, self.blocks_y)
            refuse_if_all_raised(self.plan, x, y)
        except StoreError:  # the pair is not to blame
            raise
        except AuditError as error:
            self.error = str(error)
            self.forget()
            return
        self.score = score_pair(x, y, judge.claim, judge.runs, judge.alpha, bits=judge.bits)
        self.varies = not (are_same(x) and are_same(y))
        if judge.progress is not None:
            judge.progress(2 * more)

    @property
    def bold(self) -> float:
        """The bold score; −∞ before the first runs."""
        return -math.inf if self.score is None else self.score.bold

    def rank(self, deviations: float = 0.0) -> tuple[int, float, float, float]:
        """Smallest for the best pair, by the merit plus some deviations; of equal pairs for the smallest datasets.

        A pair that shows nothing comes after all that show something, and last if its outputs do not even vary.
        """
        shows = 0 if self.score is not None and not self.score.is_empty else 1 if self.varies else 2
        upper = self.merit + deviations * self.deviation
        return shows, -float(f"{upper:.3g}"), self.candidate.size, -self.bold

    def draws(self, judge: Judge) -> EarlierDraws | None:
        """Return outputs for the audit of this pair that are independent of its choice; None if it was skipped.

        Half as many as chose the pair are drawn with a seed of their own. The others, which are coupled, may help to
        choose the event. A pair that was not chosen among others keeps its runs.
        """
        if self.plan is None or self.score is None or not self.blocks_x:
            return None
        if not self.plan.is_coupled:
            return EarlierDraws(self.plan, self.blocks_x, self.blocks_y)
        coupled, more = (self.blocks_x, self.blocks_y), max(self.runs // 2, 1)
        self.plan = judge.plan(self.candidate, self.number, is_coupled=False)
        self.blocks_x, self.blocks_y = draw_pilot(self.plan.for_pilot(more), more)
        self.alone = more
        if judge.progress is not None:
            judge.progress(2 * more)
        return EarlierDraws(self.plan, self.blocks_x, self.blocks_y, *coupled, self.score.choice)

    def forget(self) -> None:
        """Discard the outputs."""
        self.blocks_x, self.blocks_y = [], []


@dataclass(slots=True)
class Pool:
    """Candidates that are neighbours and in the domain, each once.

    `strangers` are the caller's pairs that are not neighbours, and the first pair that the mechanism refused, with
    reasons.
    """

    source: PairSource
    adjacency: Adjacency | None
    distance: float
    rng: np.random.Generator
    check_pair: PairCheck | None = None  # of the mechanism, which may refuse neighbours
    strangers: list[tuple[Candidate, str]] = field(default_factory=list)
    seen: set[Hashable] = field(default_factory=set)

    def first(self, budget: int, strength: float = 1.0) -> tuple[list[Candidate], list[Candidate]]:
        """Return the initial pairs, patterns and at least a quarter random, and the patterns left out."""
        patterns = [
            replace(pattern, is_pattern=True) for pattern in self._new(islice(self.source.patterns(), _MOST_PATTERNS))
        ]
        wanted = max(_FEWEST, len(patterns) // 4) if patterns else 8 * _FEWEST
        most, _ = schedule(len(patterns) + wanted, budget, strength)
        drawn = list(self._some(self.source.random(self.rng), min(wanted, max(most // 4, most - len(patterns)))))
        kept = patterns[: most - len(drawn)]
        return kept + drawn, patterns[len(kept) :]

    def drawn(self, count: int) -> Iterator[Candidate]:
        """Yield up to `count` new random pairs."""
        return self._some(self.source.random(self.rng), count)

    def moves(self, parents: list[Candidate], count: int) -> Iterator[Candidate]:
        """Yield up to `count` new variations of the parents, in turn."""
        lines = [self.source.moves(parent, self.rng) for parent in parents]
        for turn in range(count):
            yield from self._some(lines[turn % len(lines)], 1)

    def simpler(self, candidate: Candidate, seen: set[Hashable]) -> Iterator[Candidate]:
        """Yield the simplifications of a pair that are pairs of the domain and not `seen`, and add them to these."""
        for simpler in self.source.simpler(candidate):
            if simpler.key in seen or not self.source.is_allowed(simpler) or self._reason_against(simpler) is not None:
                continue
            seen.add(simpler.key)
            yield simpler

    def _some(self, candidates: Iterator[Candidate], count: int) -> Iterator[Candidate]:
        """Yield up to `count` new candidates, within a limited number of attempts."""
        return islice(self._new(islice(candidates, _TRIES * count)), count)

    def _new(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        for candidate in candidates:
            if candidate.key in self.seen or not self.source.is_allowed(candidate):
                continue
            reason = self._reason_against(candidate)
            if reason is None:
                if candidate.key is not None:
                    self.seen.add(candidate.key)
                yield candidate
            elif candidate.is_promised:
                self.strangers.append((candidate, reason))

    def _reason_against(self, candidate: Candidate) -> str | None:
        """Return why the pair cannot be tried, or None."""
        reason = reason_against(candidate, self.adjacency, self.distance)
        if reason is None and self.check_pair is not None:
            try:
                self.check_pair(candidate.x, candidate.y, self.distance)
            except AuditError as error:
                reason = str(error)
                if not self.strangers and not candidate.is_promised:
                    self.strangers.append((candidate, reason))
        return reason


def new_pool(
    source: PairSource, adjacency: Adjacency | None, distance: float, seed: int, check_pair: PairCheck | None = None
) -> Pool:
    """Return a pool with its own random generator."""
    return Pool(source, adjacency, distance, np.random.default_rng(seed_of(seed, Stream.PAIRS)), check_pair)


def halve(pool: Pool, judge: Judge, budget: int) -> tuple[list[Trial], int]:
    """Return all tried pairs, the best first (unless all were skipped), and the number of patterns left out.

    Only the best pair still has its outputs.

    Parameters
    ----------
    budget : int
        Total executions, on both datasets.

    References
    ----------
    Karnin, Koren & Somekh (2013), Almost optimal exploration in multi-armed bandits (sequential halving).
    """
    strength = judge.claim.strength
    first, left = pool.first(budget, strength)
    is_coupled = len(first) > 1
    kept, pilot = schedule(len(first), budget, strength)
    trials, untried = _begun(pool, judge, first, left, pilot, is_coupled=is_coupled)
    running, finalists = trials[:], trials[:]
    while running:
        for trial in running:
            if trial.runs < pilot and trial.error is None:
                trial.extend(pilot, judge, is_coupled=is_coupled)
        kept = max(1, (kept + 1) // 2)
        finalists = [trial for trial in running if trial.error is None]
        _pool_scores(finalists)
        running = _survivors(finalists, kept)
        if kept == 1:
            break
        for trial in finalists:
            if trial not in running:
                trial.forget()
        pilot = min(2 * pilot, _MOST_PILOT)
        moves = pool.moves([trial.candidate for trial in running[:2]], _n_moves(kept)) if running else ()
        new = [Trial(candidate, len(trials) + place) for place, candidate in enumerate(moves)]
        trials += new
        running += new
    order = sorted(trials, key=lambda t: (t not in running, t.error is not None, -t.runs, *t.rank()))
    # Among pairs of about equal merit a pattern is likelier to be the worst.
    leader = order[0] if order else None
    equals = [
        trial
        for trial in finalists
        if leader
        and trial.candidate.is_pattern
        and trial.runs == leader.runs
        and trial.rank()[0] == leader.rank()[0]
        and trial.merit >= _EQUAL * leader.merit
    ]
    plain = min(equals, key=Trial.rank, default=leader)
    for trial in trials:
        if trial is not plain:
            trial.forget()
    return sorted(order, key=lambda t: t is not plain), untried


def _begun(
    pool: Pool, judge: Judge, first: list[Candidate], left: list[Candidate], pilot: int, *, is_coupled: bool
) -> tuple[list[Trial], int]:
    """Return the trials of the first round, and the number of patterns left out.

    A pair on which the mechanism fails is replaced by a pattern that was left out, or else by a random pair: a domain
    of which the mechanism takes a part has pairs enough.
    """
    trials: list[Trial] = []
    most = _MOST_FAILED * len(first)
    spare = chain(left, pool.drawn(most))
    for candidate in chain(first, islice(spare, most)):
        if sum(trial.error is None for trial in trials) >= len(first):
            break
        trial = Trial(candidate, len(trials))
        trial.extend(pilot, judge, is_coupled=is_coupled)
        trials.append(trial)
    return trials, max(len(left) - max(len(trials) - len(first), 0), 0)


def _pool_scores(trials: list[Trial]) -> None:
    """Give every trial its merit: its score, shrunk towards those of similar pairs.

    A pair that shows nothing has merit 0. Pooled with a pair that leaks, it would look like one that may leak.
    """
    seen = [(trial, trial.score) for trial in trials if trial.score is not None and not trial.score.is_empty]
    for trial in trials:
        trial.merit, trial.deviation = 0.0, 0.0
    if seen:
        values, errors = [score.value for _, score in seen], [score.error for _, score in seen]
        merits, deviations = pooled(values, errors, [trial.candidate.group for trial, _ in seen])
        for (trial, _), merit, deviation in zip(seen, merits.tolist(), deviations.tolist(), strict=True):
            trial.merit, trial.deviation = merit, deviation


def _survivors(trials: list[Trial], count: int) -> list[Trial]:
    """Return the best trials: after every two by upper merit one by bold score, because rare events show late.

    The last one has the largest merit.
    """
    if count == 1:
        return sorted(trials, key=Trial.rank)[:1]
    by_merit = sorted(trials, key=lambda trial: trial.rank(_UPPER))
    by_boldness = sorted(trials, key=lambda trial: -trial.bold)
    turns = [part for place, bold in enumerate(by_boldness) for part in (*by_merit[2 * place : 2 * place + 2], bold)]
    return list(dict.fromkeys(turns))[:count]


def schedule(available: int, budget: int, strength: float = 1.0) -> tuple[int, int]:
    """Return the number of initial pairs, out of those available, and the runs of their first pilots on each dataset.

    Pilots double as pairs are halved, and earlier draws are kept; variations join the later rounds, except the last. A
    claim of small `strength` needs longer pilots, which detect differences of its size, and gets fewer pairs.

    Examples
    --------
    >>> schedule(60, 1_000_000), schedule(60, 1_000_000, 0.1), schedule(60, 20_000)
    ((60, 1225), (16, 5952), (8, 294))
    """
    wanted = min(max(_ENOUGH_FIRST, int(_UNITS / max(strength, 1e-9) ** 2)), _MOST_FOR_STRENGTH)
    affordable = int(budget / (2 * _cost(2 * _FEWEST)))
    count, enough = min(available, _FEWEST), max(min(wanted, max(math.isqrt(budget), affordable)), LEAST_FIRST)
    while count < available and 2 * enough * _cost(count + 1) <= budget:
        count += 1
    while count > 2 and 2 * LEAST_FIRST * _cost(count) > budget:
        count -= 1
    return count, max(min(int(budget / (2 * _cost(count))), _MOST_FIRST), 1) if count else 0


def _cost(count: int) -> float:
    """Return the runs of the whole search on each dataset, in units of a first pilot.

    The last term is for the independent runs on the chosen pair; a single pair has no others.
    """
    cost, kept, pilot = float(count), (count + 1) // 2, 2
    while kept > 1:
        cost += kept * pilot / 2 + _n_moves(kept) * pilot
        kept, pilot = (kept + 1) // 2, 2 * pilot
    return cost + (pilot / 4 if count > 1 else 0.0)


def _n_moves(kept: int) -> int:
    """Return the number of variations that join the kept pairs: none before few pairs are left, the best to vary."""
    return 0 if kept > 2 * _FEWEST else 4 if kept > 2 else 2
