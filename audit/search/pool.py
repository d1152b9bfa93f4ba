"""The candidates of a search: neighbours in the domain, each pair once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

import numpy as np

from ..datasets.adjacency import Adjacency
from ..errors import AuditError
from ..random_streams import Stream, seed_of
from .candidates import Candidate, PairSource, reason_against
from .rounds import MANY, initial_pairs

PairCheck = Callable[[Any, Any, float], Any]

_FEWEST, _MOST_PATTERNS = 8, 1_000  # random pairs at least, and patterns
_TRIES, _FEWEST_TRIES = 40, 5  # attempts for each new pair; half as many after each request that they did not fill


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
    _unfilled: int = 0  # requests in a row for which the source had too few new pairs

    def first(
        self, budget: int, strength: float = 1.0, places: Sequence[Candidate] = ()
    ) -> tuple[list[Candidate], list[Candidate]]:
        """Return the initial pairs (places of sweeps, patterns, random ones), and the patterns left out.

        Without the places at least a quarter are random.
        """
        patterns = list(self.patterns(_MOST_PATTERNS))
        wanted = max(_FEWEST, len(patterns) // 4, MANY - len(patterns)) if patterns else 2 * MANY
        if self.source.has_many:
            wanted = max(wanted, initial_pairs(_MOST_PATTERNS, budget, strength) - len(patterns))
        most = initial_pairs(len(patterns) + wanted, budget, strength)
        drawn = list(self._some(self.source.random(self.rng), min(wanted, max(most // 4, most - len(patterns)))))
        kept = patterns[: most - len(drawn)]
        return [*self._new(places), *kept, *drawn], patterns[len(kept) :]

    def patterns(self, most: int, *, has_staircases: bool = False) -> Iterator[Candidate]:
        """Yield the new pairs among the first `most` patterns, which may end in staircases."""
        staircases = self.source.staircases() if has_staircases else ()
        for pattern in self._new(islice(chain(self.source.patterns(), staircases), most)):
            yield replace(pattern, is_pattern=True)

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
            if simpler.key in seen or not self.is_possible(simpler):
                continue
            seen.add(simpler.key)
            yield simpler

    def is_possible(self, candidate: Candidate) -> bool:
        """Whether a pair consists of neighbours in the domain."""
        return self.source.is_allowed(candidate) and self._reason_against(candidate) is None

    def _some(self, candidates: Iterator[Candidate], count: int) -> Iterator[Candidate]:
        """Yield up to `count` new candidates, within a limited number of attempts."""
        tries, found = max(_TRIES >> self._unfilled, _FEWEST_TRIES), 0
        for candidate in islice(self._new(islice(candidates, tries * count)), count):
            found += 1
            yield candidate
        self._unfilled = 0 if found == count else self._unfilled + 1

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
