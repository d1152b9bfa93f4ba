"""An audit of fixed size: the pilot chooses what is tested, and the main runs are counted once.

Proof: docs/proofs/choices.md
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate, chain

import numpy as np

from ..claims.claim import Claim
from ..clock import now
from ..errors import MechanismError, described
from ..events.events import with_names
from ..events.outputs import Outputs, Raised, merge
from ..floating_point_errors import under
from ..portfolio.choice import Choice, directed_shares
from ..random_streams import seed_of_coins
from ..results.bin_result import BinCounts
from ..results.claim_pair_and_alpha import Settings
from ..sampling.block_plan import Plan, check_shape, note_of_cut
from ..sampling.draw import count_events, draw_pilot, shapes_of
from ..sampling.pilot_and_batch_sizes import pilot_runs
from ..sampling.tasks import MainCounts
from .audit import Audit, Blocks, PortfolioTest, longest_pilot

# The pilot: the first runs, which choose what is tested and do not enter the test.


def draw_checked(
    plan: Plan,
    runs: int,
    after: Blocks = ([], []),
    *,
    first_block: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Blocks:
    """Pilot blocks on x and on y, `after` those drawn before: of one shape per dataset, and not all runs raised."""
    more = draw_pilot(plan, runs, first_block=first_block, progress=progress) if runs > 0 else ([], [])
    blocks_x, blocks_y = after[0] + more[0], after[1] + more[1]
    check_blocks(blocks_x, blocks_y, plan.sampler.is_block, plan.sampler.name)
    refuse_if_all_raised(plan, blocks_x, blocks_y)
    return blocks_x, blocks_y


def refuse_if_all_raised(plan: Plan, blocks_x: list[Outputs], blocks_y: list[Outputs]) -> None:
    """Refuses a mechanism that raised in every pilot run on both datasets; one more run gives the exception."""
    if not all(isinstance(output, Raised) for block in chain(blocks_x, blocks_y) for output in block):
        return
    reason: Exception | None = None
    try:
        size = (1,) if plan.sampler.is_block else ()
        with under(plan.sampler.answers):
            plan.sampler.call(plan.x, *size, plan.generator("pilot", "x", 0))
    except Exception as error:
        reason = error
    # An exception caught by an adapter has no message.
    kind = str(blocks_x[0][0].exception) if reason is None else type(reason).__qualname__
    shown = kind if reason is None else described(reason, shows_data=plan.sampler.shows_data)
    raise MechanismError(
        f"{plan.sampler.name} raised in every one of {sum(map(len, blocks_x)):,} pilot runs on x and on y, "
        f"{shown}; run it once by hand.",
        mechanism=plan.sampler.name,
        type=kind,
    ) from reason


def check_blocks(blocks_x: list[Outputs], blocks_y: list[Outputs], is_block: bool, name: str) -> None:
    """Refuses blocks of different shapes on one dataset."""
    if is_block:
        for side, blocks in (("x", blocks_x), ("y", blocks_y)):
            numeric = [block for block in blocks if block.dtype != object]
            if len(numeric) < len(blocks):  # such as tuples of different lengths, which are a matrix if all agree
                continue
            for block in numeric:
                check_shape(block, numeric[0].shape[1:], f"{name} (in the pilot on {side})")


@dataclass(frozen=True, slots=True)
class EarlierDraws:
    """Outputs that a search drew on its pair after choosing it, equally many on x and on y; they never enter a test."""

    plan: Plan  # that drew them, with a seed other than the audit's
    blocks_x: list[Outputs]  # in the order drawn
    blocks_y: list[Outputs]
    suggested: Choice | None = None  # the event by which the search ranked the pair

    @property
    def runs(self) -> int:
        """Runs on each dataset."""
        return sum(map(len, self.blocks_x))

    def __str__(self) -> str:
        """What determines the outputs, apart from mechanism and datasets."""
        sizes = ", ".join(map(str, dict.fromkeys(map(len, self.blocks_x))))
        return f"{self.runs:,} in blocks of {sizes} by seed {self.plan.seed}"

    def at_most(self, runs: int) -> EarlierDraws | None:
        """The first whole blocks, of at most `runs` runs on each dataset together; None if the first one has more."""
        fitting = sum(total <= runs for total in accumulate(map(len, self.blocks_x)))
        if fitting == 0:
            return None
        return replace(self, blocks_x=self.blocks_x[:fitting], blocks_y=self.blocks_y[:fitting])


class FixedSizeAudit(Audit):
    """An audit of `runs` runs on each dataset; outputs drawn `earlier` replace as many of its pilot."""

    is_in_order = True

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        runs: int,
        *,
        n_bins: int = 0,
        earlier: EarlierDraws | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__(settings, runs)
        self.plan, self.names, self.progress = plan, plan.sampler.column_names, progress
        self.n_bins = n_bins
        self.earlier = None if earlier is None else earlier.at_most(plan.most_kept)
        if self.earlier is not None:
            self.blocks, self.searched = (self.earlier.blocks_x, self.earlier.blocks_y), self.earlier.runs
            self.suggested = self.earlier.suggested

    def pilot(self) -> None:
        """Draws the pilot, longer once where that is needed, and chooses what is tested."""
        started, plan, n_earlier = now(), self.plan, len(self.blocks[0])
        wanted = pilot_runs(self.runs)
        size = plan.may_keep(wanted)
        self.note_of_cut = note_of_cut(max(size, self.searched), wanted, plan.output_bytes)
        while self.portfolio is None:
            missing, first = size - sum(map(len, self.blocks[0])), len(self.blocks[0]) - n_earlier
            pilot_plan = plan.for_pilot(size)
            self.blocks = draw_checked(pilot_plan, missing, self.blocks, first_block=first, progress=self.progress)
            self.x, self.y = merge(*self.blocks)
            size = min(longest_pilot(self.runs, self.width), plan.most_kept)
            self.portfolio = self.choose(self.runs, size)
        if self.x.ndim == 2:  # vectors are large, so keep a single copy
            ends = np.cumsum([len(block) for block in self.blocks[0]])[:-1]
            self.blocks = np.split(self.x, ends), np.split(self.y, ends)
        self.pilot_runs = len(self.x) - self.searched
        self.seconds["seconds_pilot"] = round(now() - started, 3)

    def step(self) -> bool:
        """Counts all main runs."""
        assert self.portfolio is not None
        started, plan, portfolio = now(), self.plan, self.portfolio
        first_drawn_by = plan if self.earlier is None else self.earlier.plan
        self.is_reproducible = first_drawn_by.comes_again(*self.blocks)
        event, *others = portfolio.events
        runs_x, runs_y = divided(portfolio.choice, self.settings.claim, self.runs - self.pilot_runs)
        self.main = count_events(
            plan,
            event,
            shapes_of(plan, *self.blocks),
            runs_x,
            runs_y=runs_y,
            others=tuple(others),
            partitions=portfolio.partitions,
            progress=self.progress,
        )
        root = plan.seed_of_coins(is_reproducible=self.is_reproducible)
        coin_seed = seed_of_coins(root, *(side.contents for side in self.main))
        named, counted, bins = with_names(portfolio, self.names), MainCounts.of_blocks(*self.main), None
        if named.bins is not None:
            _, in_bins, _ = named.split(counted)
            bins = BinCounts.of(named.bins, *in_bins, self.settings.bin_alpha, asked=self.n_bins)
        self.test = PortfolioTest(self.settings, named, counted, coin_seed, bins=bins)
        if plan.memory is not None:
            plan.memory.save()  # no run is drawn again after its result was seen
        self.seconds["seconds_main"] = round(now() - started, 3)
        return False


# How many of the main runs are made on each dataset.
#
# The test of one event compares p̂ with B(q̂). The variance of the difference is a²/n_p + b²/n_q, with the standard
# deviations a of an event on the more likely dataset and b of an event on the other, times the slope of the boundary.
# For a given number of runs it is least if they are divided as a to b (Neyman 1934, On the two different aspects of the
# representative method). An event on the boundary with slope exp(ε) that is rare on both datasets has b/a = exp(ε/2).
#
# The pilot decides, and its runs are not tested, so any division is valid.

_LEAST_SAVED = 0.02  # share of the runs that the division has to save
_LARGEST_RATIO = 4.0  # of the runs on the two datasets, so that no other event is tested on far fewer runs
_STEPS = 401  # of the other dataset's probability, from 1e-12 to 1: steps of 7%


def divided(choice: Choice, claim: Claim, main: int) -> tuple[int, int]:
    """Main runs on x and on y, together 2·`main`; equal if both directions are tested or little can be saved."""
    p = directed_shares(choice)[0]
    if choice.opposite is not None or choice.shows_nothing or not 0.0 < p < 1.0:
        return main, main
    is_on_x = choice.more_likely_on == "x"
    ours, theirs = _deviations(claim if is_on_x else claim.reversed(), p)
    if not 0.0 < ours + theirs < math.inf:
        return main, main
    saved = 1.0 - (ours + theirs) ** 2 / (2.0 * (ours**2 + theirs**2))
    if saved < _LEAST_SAVED:
        return main, main
    least = 1.0 / (1.0 + _LARGEST_RATIO)
    likelier = round(2 * main * min(max(ours / (ours + theirs), least), 1.0 - least))
    return (likelier, 2 * main - likelier) if is_on_x else (2 * main - likelier, likelier)


def _deviations(claim: Claim, p: float) -> tuple[float, float]:
    """Standard deviations of an event on the more likely dataset, and on the other times the slope, where p = B(q)."""
    q = np.geomspace(1e-12, 1.0, _STEPS)
    boundary, _ = claim.max_power(q, 1.0 - q)
    place = int(np.searchsorted(boundary, p))
    if not 0 < place < _STEPS:  # allowed whatever q is
        return 0.0, 0.0
    slope = (boundary[place] - boundary[place - 1]) / (q[place] - q[place - 1])
    middle = 0.5 * (q[place] + q[place - 1])
    return math.sqrt(p * (1.0 - p)), float(slope) * math.sqrt(middle * (1.0 - middle))
