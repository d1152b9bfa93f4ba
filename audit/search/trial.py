"""A pair on trial: its pilot, which grows while the pair is among the best, and its score."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..claims.claim import Claim
from ..errors import AuditError, StoreError
from ..events.outputs import Outputs, merge
from ..procedures.pilot import EarlierDraws, are_same, check_blocks, refuse_if_all_raised
from ..random_streams import Stream, seed_of
from ..sampling.block_plan import Plan
from ..sampling.draw import draw_pilot, plan_blocks
from ..sampling.sampler import Sampler
from ..store.sqlite_store import Store, StorePart
from ..store.store_settings import claim_in_words, sources, terms
from .candidates import Candidate
from .coupled_difference import coupled_difference
from .coupled_draws import CoupledDraws, Ends
from .pair_score import PairScore, score_pair

LEAST_SCORED = 100
"""Fewest runs on each dataset that score one of many pairs by its best event; fewer say how far outputs are apart."""


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
    what: str = "pair"  # for the store
    draws: CoupledDraws = field(default_factory=CoupledDraws)  # of all pairs
    _seen: dict[str, Any] = field(default_factory=dict)  # whether a run changed the mechanism's state, and its sampler

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
        sampler = self._seen.get("sampler", self.sampler)  # one form of outputs for all pairs, which share runs
        plan = plan_blocks(sampler, x, y, seed, self.jobs, is_stateful=self._seen.get("state"))
        plan = replace(plan, is_coupled=is_coupled)
        self._seen["state"], self._seen["sampler"] = plan.is_stateful, plan.sampler
        if self.store is None:
            return plan
        name = f"{self.sampler.name}, {self.what} {number + 1} of the search{'' if is_coupled else ', alone'}"
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
    difference: float = 0.0  # how far its coupled outputs are apart, for pairs that show nothing
    varies: bool = True  # whether the outputs vary
    error: str | None = None  # why it was skipped
    plan: Plan | None = None
    blocks_x: list[Outputs] = field(default_factory=list)
    blocks_y: list[Outputs] = field(default_factory=list)

    @property
    def ends(self) -> Ends:
        """The datasets x and y; unknown ones are different from all others."""
        return self.candidate.ends or ((self.number, "x"), (self.number, "y"))

    def extend(self, pilots: Sequence[int], judge: Judge, *, is_coupled: bool, is_scored: bool = True) -> None:
        """Extend the pilot to the last of these runs on each dataset, step by step, and update difference and score."""
        before = judge.draws.executions
        try:
            self._draw(pilots, judge, is_coupled=is_coupled)
        except StoreError:  # the pair is not to blame
            raise
        except AuditError as error:
            self.error = str(error)
            self.forget()
            return
        finally:
            if judge.progress is not None:
                judge.progress(judge.draws.executions - before)
        x, y = merge(self.blocks_x, self.blocks_y)
        self.difference = coupled_difference(x, y)
        if is_scored:
            self.score = score_pair(x, y, judge.claim, judge.runs, judge.alpha, bits=judge.bits)
        self.varies = not (are_same(x) and are_same(y))

    def _draw(self, pilots: Sequence[int], judge: Judge, *, is_coupled: bool) -> None:
        """Draw the missing runs; refuse blocks of different shapes, and a mechanism that always raises."""
        if self.plan is None:
            self.plan = judge.plan(self.candidate, self.number, is_coupled=is_coupled)
        for step, runs in enumerate(pilots):
            if runs > self.runs:
                blocks = judge.draws.step(self.plan, self.ends, step, runs - self.runs, len(self.blocks_x))
                self.runs = runs
                self.blocks_x += blocks[0]
                self.blocks_y += blocks[1]
        check_blocks(self.blocks_x, self.blocks_y, judge.sampler.is_block, judge.sampler.name)
        refuse_if_all_raised(self.plan, *merge(self.blocks_x, self.blocks_y))

    @property
    def bold(self) -> float:
        """The bold score; −∞ before the first runs."""
        return -math.inf if self.score is None else self.score.bold

    def rank(self, deviations: float = 0.0) -> tuple[int, float, float, float, float, float]:
        """Smallest for the best pair, by the merit plus some deviations; of equal pairs for the smallest datasets.

        A pair that shows nothing, or was not scored, comes after all that show something, that of which a replay shows
        most first, or else the one whose outputs differ most; it comes last if its outputs show nothing and do not even
        vary.
        """
        if self.score is not None and not self.score.is_empty:
            shows = 0
        else:
            shows = 1 if self.varies or self.score is None else 2
        upper = self.merit + deviations * self.deviation
        promise, difference = (self.candidate.promise, self.difference) if shows else (0.0, 0.0)
        of_differences = -float(f"{promise:.2g}"), -float(f"{difference:.2g}")
        return shows, -float(f"{upper:.3g}"), *of_differences, self.candidate.size, -self.bold

    def independent(self, judge: Judge, most: int) -> EarlierDraws | None:
        """Return outputs for the audit of this pair that are independent of its choice; None if it was skipped.

        Half as many as chose the pair, or `most`, are drawn with a seed of their own. The others, which are coupled,
        may help to choose the event. A pair that was not chosen among others keeps its runs.
        """
        if self.plan is None or not self.blocks_x:
            return None
        if not self.plan.is_coupled:
            return EarlierDraws(self.plan, self.blocks_x, self.blocks_y)
        coupled, more = (self.blocks_x, self.blocks_y), max(min(self.runs // 2, most), 1)
        self.plan = judge.plan(self.candidate, self.number, is_coupled=False)
        self.blocks_x, self.blocks_y = draw_pilot(self.plan.for_pilot(more), more)
        self.alone = more
        if judge.progress is not None:
            judge.progress(2 * more)
        return EarlierDraws(
            self.plan, self.blocks_x, self.blocks_y, *coupled, None if self.score is None else self.score.choice
        )

    def forget(self) -> None:
        """Discard the outputs."""
        self.blocks_x, self.blocks_y = [], []
