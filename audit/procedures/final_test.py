"""The final test of a sequential audit: an event chosen early, tested once on all later runs.

Proof: docs/proofs/wealth.md
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..distinguishers.choice import Choice
from ..distinguishers.learned_partition import Bins, learn_bins, plain_events
from ..events.events import Event
from ..events.outputs import Outputs, merge
from ..events.partitions import Counted, Partition, PlainEvents
from ..inference.outcome_test import most_outcomes
from ..random_streams import seed_of_coins
from ..results.audit_settings import FINAL_SHARE, Settings
from ..sampling.block_counts import FinalCounts
from ..sampling.pilot_size import pilot_runs
from .earlier_draws import EarlierDraws
from .evidence import FixedSizeEvidence
from .pilot import Longer, Pilot, choose_on, longer_pilot, longest_pilot, width


@dataclass(frozen=True, slots=True)
class FinalTest:
    """What the final test tests, once it is chosen, and its counts so far.

    Attributes
    ----------
    settings : Settings
    runs : int
        Planned runs on each dataset.
    due : int
        Runs after which the event is chosen.
    earlier : EarlierDraws, optional
        Runs of a search that the event is chosen on too; none after the choice.
    longer : Longer, optional
        The longer pilot that the last choice called for, if it was put off.
    choice : Choice, optional
    net : PlainEvents, optional
        Plain events, each of which is tested.
    bins : Bins, optional
        The bins in which divergences are tested.
    counted : FinalCounts, optional
        Counts of the event and of the net in the runs after the choice.
    """

    settings: Settings
    runs: int
    due: int
    earlier: EarlierDraws | None = None
    longer: Longer | None = None
    choice: Choice | None = None
    net: PlainEvents | None = None
    bins: Bins | None = None
    counted: FinalCounts | None = None

    @classmethod
    def start(cls, settings: Settings, runs: int) -> FinalTest:
        """The final test of an audit that will make `runs` runs; the event is chosen when a pilot would end."""
        return cls(settings, runs, pilot_runs(runs))

    def begun_with(self, earlier: EarlierDraws, most: int) -> FinalTest:
        """The final test after the outputs of a search, which may suffice to choose the event before the first run."""
        begun = replace(self, earlier=earlier)
        blocks = earlier.blocks_x, earlier.blocks_y
        return begun.chosen_on(*merge(*blocks), 0, most) if begun.is_due(0, most) else begun

    @property
    def searched(self) -> int:
        """Independent runs of the search on each dataset."""
        return 0 if self.earlier is None else self.earlier.runs

    @property
    def events(self) -> tuple[Event, ...]:
        """The events to count; none before the choice."""
        return () if self.choice is None else tuple(each.event for each in (self.choice, *self.choice.others))

    @property
    def partitions(self) -> tuple[Counted, ...]:
        """The net and the bins, to be counted."""
        wanted: tuple[Counted | None, ...] = (self.net, self.bin_partition)
        return tuple(each for each in wanted if each is not None)

    @property
    def bin_partition(self) -> Partition | None:
        """The bins, the last of the partitions; None without a claim on divergences."""
        return None if self.bins is None else self.bins.partition

    def is_due(self, done: int, most: int) -> bool:
        """Whether to choose the event after `done` runs, of which at most `most` are kept."""
        return self.choice is None and done + self.searched >= min(self.due, most)

    def chosen_on(self, x: Outputs, y: Outputs, done: int, most: int) -> FinalTest:
        """The event chosen on the kept outputs, as the pilot of an audit of fixed size does; or a later due time."""
        settings = self.settings
        alpha, bits = FINAL_SHARE * settings.alpha, settings.bits is True
        main, longer = self.runs - done, self.longer
        is_last = min(longest_pilot(self.runs, width(x)), most) <= done + self.searched
        choice = choose_on(
            x, y, settings.claim, main, alpha, longer, self.earlier, bits=bits, both=True, is_last=is_last
        )
        if longer is None or choice.shows_nothing:
            longer = longer_pilot(choice, self.runs, width(x))
            due = min(longer.runs, most)
            if due > done + self.searched:
                return replace(self, due=due, longer=longer)
        return replace(
            self,
            choice=choice,
            earlier=None,
            net=plain_events(x, y, most_outcomes(settings.net_alpha(FINAL_SHARE))),
            bins=learn_bins(x, y, choice, settings.claim),
        )

    def after(self, x: Outputs, y: Outputs) -> FinalTest:
        """The counts after these outputs."""
        return self if self.choice is None else self.followed_by(FinalCounts.of(self.events, self.partitions, x, y))

    def followed_by(self, counted: FinalCounts) -> FinalTest:
        """The counts after a batch that was counted elsewhere."""
        if self.choice is None:
            return self
        return replace(self, counted=self.counted.followed_by(counted) if self.counted else counted)

    def evidence(self, kept: Pilot, coins: int) -> FixedSizeEvidence | None:
        """The evidence of the test; None if there were too few runs to choose an event and to count it.

        `coins` is the seed of the coins of all tests of the audit.
        """
        if self.choice is None or self.counted is None:
            return None
        (counts, *others), counted = self.counted.counts, self.counted
        bins = self.bin_partition
        hits_x, hits_y = counted.without(bins).cells
        return FixedSizeEvidence(
            kept=replace(kept, choice=self.choice),
            counts=counts,
            other_counts=tuple(others),
            runs=self.runs,
            pilot_runs=self.runs - self.counted.runs,
            coins=seed_of_coins(coins, self.counted.contents),
            is_in_order=False,
            net=self.net,
            net_hits=(hits_x, hits_y),
            bins=self.bins,
            bin_hits=counted.last(bins),
        )
