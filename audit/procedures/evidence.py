"""The evidence of an audit: its event, counts and kept outputs, before anything is concluded from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ..distinguishers.learned_partition import Bins
from ..events.partitions import Labels, PlainEvents
from ..inference.counts import Counts
from ..inference.divergence_test import DivergenceTest
from ..results.cell_result import CellCounts
from ..results.interim_look import Look, Stop
from ..results.other_direction import OtherDirection
from ..sampling.block_counts import BlockCounts, no_blocks
from .pilot import Pilot, run_notes


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSizeEvidence:
    """Evidence of an audit of fixed size: the pilot chose the event, the main runs were counted.

    Attributes
    ----------
    kept : Pilot
        The event, and the outputs of the pilot that chose it.
    counts : Counts
        Hits of the event in the main runs.
    other_counts : tuple of Counts
        Hits of the other events of the choice, in its order.
    runs : int
        Runs on each dataset, on average, the pilot's included.
    pilot_runs : int
        Runs on each dataset that chose the event, without those of a search.
    coins : int
        Seed of the coins of a test of both directions: fixed by the audit's seed as far as that fixes the outputs.
    main : tuple of BlockCounts
        The main runs' blocks on x and on y; empty for outputs drawn elsewhere.
    is_replayable : bool
        Whether redrawing the first block gave the same outputs.
    is_in_order : bool
        Whether the pilot runs came before the main runs. The pilot of outputs drawn elsewhere is a random part of them.
    net : PlainEvents, optional
        Plain events, each of which is tested.
    net_hits : tuple of ndarray
        Main runs on x and on y in each of them.
    cells : CellCounts, optional
    bins : Bins, optional
        The bins in which divergences are tested, for a claim on these.
    bin_hits : tuple of ndarray
        Main runs on x and on y in each of them.
    seconds : mapping of str to float
        Duration of each phase.
    """

    kept: Pilot
    counts: Counts
    runs: int
    pilot_runs: int
    coins: int
    main: tuple[BlockCounts, BlockCounts] = field(default_factory=lambda: (no_blocks(), no_blocks()))
    is_replayable: bool = True
    is_in_order: bool = True
    net: PlainEvents | None = None
    net_hits: tuple[Labels, Labels] = field(default_factory=lambda: (np.zeros(0, np.int64), np.zeros(0, np.int64)))
    cells: CellCounts | None = None
    bins: Bins | None = None
    bin_hits: tuple[Labels, Labels] = field(default_factory=lambda: (np.zeros(0, np.int64), np.zeros(0, np.int64)))
    seconds: Mapping[str, float] = field(default_factory=dict)
    other_counts: tuple[Counts, ...] = ()

    @property
    def fresh_counts(self) -> Counts:
        """Hits in runs that the event was not learned from."""
        return self.counts

    @property
    def searched(self) -> int:
        """Runs of a search on each dataset that chose the event too."""
        return self.kept.searched

    @property
    def uncounted_runs(self) -> int:
        """Runs on each dataset that `counts` leaves out."""
        return self.pilot_runs + self.searched

    @property
    def notes(self) -> tuple[str, ...]:
        return *run_notes(self.kept.x, self.kept.y, *self.main), *self.kept.notes

    @property
    def health_share(self) -> float:
        """Share of the health checks' error probability that this conclusion spends: all of it, being the only one."""
        return 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialEvidence:
    """Evidence of a sequential audit: each batch bets on events that were learned from the batches before it.

    Attributes
    ----------
    kept : Pilot
        The last event bet on, in the direction that won more, and the outputs that were kept.
    counts : Counts
        Hits of that event in all runs, including the runs it was learned from: for the reader, not for the test.
    pilot_runs : int
        Runs on each dataset before the first bet.
    searched : int
        Runs of a search on each dataset from which events were learned before the first batch.
    opposite : OtherDirection, optional
        The rare event of the other direction, if bets on rare events of both refuted the claim.
    main : tuple of BlockCounts
        The blocks on x and on y that were only counted.
    is_replayable : bool
        Whether redrawing the first block gave the same outputs.
    looks : tuple of Look
    stopped : {"refuted", "runs", "time", "request"}
        Because the claim was refuted, at the planned number of runs, at the end of the allowed time, or by the caller.
    final : FixedSizeEvidence, optional
        The evidence of the final test, if all planned runs were made and the bets did not refute the claim.
    has_final : bool
        Whether a final test was planned.
    divergence : DivergenceTest, optional
        What bets on a divergence showed, if they won more than those on events.
    is_complete : bool
        Whether all planned runs were made.
    """

    kept: Pilot
    counts: Counts
    pilot_runs: int
    main: tuple[BlockCounts, BlockCounts]
    is_replayable: bool
    looks: tuple[Look, ...]
    stopped: Stop
    final: FixedSizeEvidence | None
    has_final: bool
    is_complete: bool
    searched: int = 0
    divergence: DivergenceTest | None = None
    opposite: OtherDirection | None = None

    @property
    def fresh_counts(self) -> Counts:
        """Hits in runs that the event was not learned from."""
        return self.kept.choice.pilot_counts

    @property
    def runs(self) -> int:
        return self.looks[-1].runs

    @property
    def uncounted_runs(self) -> int:
        """Runs on each dataset that `counts` leaves out."""
        return 0

    @property
    def notes(self) -> tuple[str, ...]:
        return *run_notes(self.kept.x, self.kept.y, *self.main, runs="runs"), *self.kept.notes

    @property
    def health_share(self) -> float:
        """Share of the health checks' error probability that the last look spends.

        The audit may have stopped at any look because of what it saw. The last planned look has half of the error
        probability, the k-th look 3/(π k)² of it; these shares add up to the other half, however many looks there are.
        """
        return 0.5 if self.is_complete else 3.0 / (math.pi * len(self.looks)) ** 2


Evidence = FixedSizeEvidence | SequentialEvidence
