"""Search for neighbours between which a query changes by more than its stated sensitivity."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..clock import now
from ..datasets.adjacency import Adjacency, as_adjacency
from ..datasets.contents import Kept
from ..datasets.description import difference
from ..datasets.domains import Domain
from ..errors import MechanismError, described
from ..known_options import with_known_options
from ..options import checked_seed
from ..random_streams import Stream, seed_of
from ..search.candidates import Candidate, Pool, may_show_data, shown, text_of_error
from ..search.climb import KEPT, ROUNDING, Climb, Comparisons, Sized
from ..search.not_finite import with_special_numbers
from ..search.pairs_for_domain import pairs_of
from .query_answer import Answer, Change, Norm, answer_of, answer_text, change_between, norm_of
from .sensitivity_result import ChangedPair, SearchEnd, SensitivityResult, exceeds

# Pairs compared by the query's answers: every dataset is evaluated once, and the first ones twice.

_REPEATED = 8  # datasets that are evaluated twice at once
_MOST_KEPT = 2**23  # numbers in the answers that are kept


@dataclass(frozen=True, slots=True)
class Compared(Sized):
    """A pair with the query's answers on it, and their change."""

    x: Answer
    y: Answer
    change: Change

    def rounding(self, norm: Norm) -> float:
        """Return how much of the change may be due to rounding in the query; none between whole numbers."""
        if (self.x.is_whole and self.y.is_whole) or math.isinf(self.change.size):
            return 0.0
        return ROUNDING * max(norm_of(side, norm) for side in (self.x, self.y))


@dataclass(slots=True)
class Evaluations(Comparisons[Compared]):
    """Pairs compared by the query's answers, as many as a number of evaluations and a time limit allow."""

    query: Callable[[Any], Any]
    norm: Norm
    bound: float  # stated sensitivity
    deadline: float = math.inf  # time of `clock.now` at which no other pair is compared
    shows_data: bool = True  # whether errors and notes may have the contents of datasets
    evaluations: int = 0
    not_finite: int = 0  # evaluations that had NaN or infinite numbers
    unsteady: str = ""  # what differed between two evaluations on one dataset, or what the query changed
    _answers: dict[Hashable, Answer | None] = field(default_factory=dict)  # None where the query failed
    _kept: int = 0  # numbers in these
    _repeated: int = 0

    @property
    def used(self) -> int:
        return max(self.evaluations, self.tried)

    def has_room(self, share: float) -> bool:
        """As in any search, but only until the deadline, and while the query repeats its answers."""
        return Comparisons.has_room(self, share) and not self.unsteady and not self.is_late

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        return now() >= self.deadline

    def compare(self, candidate: Candidate) -> Compared | None:
        ends = candidate.ends or (None, None)
        x = self._answer(candidate.x, ends[0])
        y = None if x is None else self._answer(candidate.y, ends[1])
        if x is None or y is None:
            self.failed += 1
            return None
        self.pairs += 1
        change = change_between(x, y, self.norm)
        return Compared(candidate, change.size, x, y, change)

    def again(self, dataset: Any, before: Answer) -> Any:
        """Return a copy of the query's output, evaluated again; note whether it differs, or the dataset changes."""
        kept, copied = Kept(dataset), None
        try:
            output = self._evaluated(dataset)
            answer = answer_of(output)
            copied = _copied(output, answer)
            size = change_between(before, answer, self.norm).size
            if size > ROUNDING * max(norm_of(before, self.norm), self.bound):
                self._note_difference(before, answer_text(answer), dataset)
        except Exception as error:  # a query may raise anything
            self._note_difference(before, described(error, shows_data=self.shows_data), dataset)
        self._note_change(dataset, kept)
        return copied

    def _answer(self, dataset: Any, end: Hashable) -> Answer | None:
        if end is not None and end in self._answers:
            return self._answers[end]
        kept = Kept(dataset) if self._repeated < _REPEATED else None
        try:
            answer = answer_of(self._evaluated(dataset))
            self.not_finite += not answer.is_finite
        except Exception as error:  # a query may raise anything
            answer = None
            self.first_error = self.first_error or text_of_error(error, dataset, shows_data=self.shows_data)
        if kept is not None and answer is not None:
            self._repeated += 1
            self._note_change(dataset, kept)
            self.again(dataset, answer)
        if end is not None:
            self._kept += 1 if answer is None else answer.size
            if self._kept > _MOST_KEPT:
                self._answers, self._kept = {}, 0
            self._answers[end] = answer
        return answer

    def _evaluated(self, dataset: Any) -> Any:
        self.evaluations += 1
        return self.query(dataset)

    def _note_difference(self, before: Answer, after: str, dataset: Any) -> None:
        self.unsteady = self.unsteady or (
            f"the query is not deterministic: {answer_text(before)}, then {after} on {self._shown(dataset)}"
        )

    def _note_change(self, dataset: Any, kept: Kept) -> None:
        if kept.has_changed():
            self.unsteady = self.unsteady or (
                f"the query changes its dataset, which is now {self._shown(dataset)}; copy it in the query"
            )

    def _shown(self, dataset: Any) -> str:
        return shown(dataset, shows_data=self.shows_data)


def _copied(output: Any, answer: Answer) -> Any:
    """Return a copy of an output, which the query may change later; its numbers if it cannot be copied."""
    try:
        return copy.deepcopy(output)
    except Exception:  # an object's own copying may raise anything
        return answer_text(answer)


@with_known_options()
def check_sensitivity(
    query: Callable[[Any], Any],
    domain: Any,
    *,
    adjacency: Adjacency | str | None = None,
    norm: Norm = "l1",
    bound: float,
    distance: float = 1,
    evaluations: int = 10_000,
    seconds: float | None = None,
    seed: int | None = 0,
    keep_datasets: bool = False,
) -> SensitivityResult:
    """Search for neighbours between which a deterministic query changes by more than `bound`.

    A refutation is certain: the result holds the two datasets, and the change between them is computed, not estimated.
    If no such pair is found, the bound may still be wrong.

    Parameters
    ----------
    query : callable
        Maps a dataset to a number, a vector, an array, named numbers (a dictionary, dataclass, named tuple, data frame
        or column) or a list of these, whose numbers form one vector. A key, column or row that is missing on one
        dataset counts as 0 there. Arrays of different shapes, and NaN or infinity on one dataset alone, are an
        infinite change.
    domain : Domain, callable, iterable or Hypothesis strategy
        Where to search, as in `find_worst_pair`.
    adjacency : Adjacency or str, optional
        Neighbour relation that every pair must satisfy. A domain needs one.
    norm : {"l1", "l2", "linf"}
        Norm of the change: "l1" for Laplace noise, "l2" for Gaussian noise.
    bound : float
        Stated sensitivity: the largest change between two datasets at this distance. At least 0 and finite.
    distance : float
        Distance of the pairs.
    evaluations : int
        Largest number of evaluations of the query, at least 40. Every dataset is evaluated once, a few twice.
    seconds : float, optional
        Time limit of the search, which makes its result depend on the machine.
    seed : int or None
        Random seed, which fixes the pairs.
    keep_datasets : bool
        Whether the texts of the result and of errors may show the datasets and the messages of the query's exceptions.
        They always do if the search makes them up, from a domain without listed values. The attributes `x` and `y` of
        the result hold the datasets in any case.

    Returns
    -------
    SensitivityResult
        INCONCLUSIVE if two evaluations on one dataset differ by more than rounding, or the query changes its dataset.
        A change is not a refutation if it exceeds the bound by less than 1e-9 of the bound or of the answers' own norm;
        for whole numbers, which are exact, by less than 1e-9 of the bound.

    Raises
    ------
    AdjacencyError, DatasetError, OptionError
        If an argument is outside its range, or the domain has no such neighbours.
    MechanismError
        If the query fails on every pair.

    See Also
    --------
    find_worst_pair : The same search for a mechanism with noise.
    noise_primitive : Declaration of a sensitivity, which `replay` compares with the move of an input.

    Notes
    -----
    The sensitivity is Δf = max ‖f(x) − f(y)‖ over all neighbours x and y. The largest change found is a lower bound on
    it. The query is assumed to be a function of its dataset; a few datasets are evaluated twice to check that.

    References
    ----------
    Dwork, McSherry, Nissim & Smith (2006), Calibrating noise to sensitivity in private data analysis.

    Examples
    --------
    >>> from dpaudit import Rows, check_sensitivity
    >>> def clipped_sum(rows):  # clips to [-1, 1]
    ...     return sum(min(max(row, -1.0), 1.0) for row in rows)
    >>> rows = Rows(low=-5.0, high=5.0, finite=True)  # NaN would pass the clip
    >>> print(check_sensitivity(clipped_sum, rows, adjacency="replace", bound=1.0).sentence)
    REFUTED: the l1 sensitivity is at least 2, stated 1; x = [-5.0], y = [5.0]
    """
    seed = checked_seed(seed)
    relation = None if adjacency is None else as_adjacency(adjacency)
    larger = with_special_numbers(domain, partial(_apart, query), partial(_error_of, query))
    source = pairs_of(larger.domain, relation, distance, seed_of(seed, Stream.EXAMPLES))
    pool = Pool(source, relation, distance, seed)
    deadline = math.inf if seconds is None else now() + seconds
    shows_data = may_show_data(domain, keep_datasets=keep_datasets)
    comparisons = Evaluations(query, norm, bound, deadline, shows_data, most=evaluations)
    search = Climb(pool, comparisons)
    search.run()
    name = getattr(query, "__name__", type(query).__name__)
    found = search.largest
    if found is None and comparisons.failed:
        raise MechanismError(
            f"{name} failed on all of {comparisons.failed:,} pairs; the first error: {comparisons.first_error}",
            query=name,
        )
    if found is None:
        raise pool.no_pair()
    end = SearchEnd.EXHAUSTED if search.is_exhausted else SearchEnd.EVALUATIONS
    if math.isinf(found.size):
        end = SearchEnd.UNBOUNDED
    elif comparisons.is_late:
        end = SearchEnd.TIME
    simple = search.simpler(found, found.change.size * (1.0 - ROUNDING))
    if simple is found:
        simple = search.simpler(found, _least_simple(found, bound, norm))
    pair = _confirmed(found, comparisons)
    return SensitivityResult(
        query=name,
        norm=norm,
        bound=bound,
        pair=pair,
        simple=None if simple is found else _confirmed(simple, comparisons),
        rounding=found.rounding(norm),
        reason=found.change.reason,
        only_x=found.change.only_x,
        only_y=found.change.only_y,
        found_by=found.candidate.label if shows_data or not isinstance(domain, Domain) else "listed values",
        evaluations=comparisons.evaluations,
        pairs=comparisons.pairs,
        errors=comparisons.failed,
        first_error=comparisons.first_error,
        not_finite=comparisons.not_finite,
        left_out=larger.left_out("the query"),
        unsteady=comparisons.unsteady,
        end=SearchEnd.UNSTEADY if comparisons.unsteady else end,
        distance=distance,
        adjacency="pairs as given" if relation is None else str(relation),
        seed=seed,
    )


def _apart(query: Callable[[Any], Any], one: Any, other: Any) -> float:
    """0 if the query's answers on two datasets are equal, else infinite, also if it fails on one."""
    try:
        return 0.0 if change_between(answer_of(query(one)), answer_of(query(other)), "linf").size == 0.0 else math.inf
    except Exception:  # a query may raise anything
        return math.inf


def _error_of(query: Callable[[Any], Any], dataset: Any) -> BaseException | None:
    try:
        query(dataset)
    except Exception as error:  # a query may raise anything
        return error
    return None


def _least_simple(found: Compared, bound: float, norm: Norm) -> float:
    """Return the least change of a simpler pair: nearly the found one, and beyond the bound if that one is."""
    size, rounding = found.change.size, found.rounding(norm)
    beyond = bound * (1.0 + 2.0 * ROUNDING) + 2.0 * rounding
    return max(KEPT * size, beyond) if exceeds(size, bound, rounding) else KEPT * size


def _confirmed(pair: Compared, comparisons: Evaluations) -> ChangedPair:
    """Return a pair with the query's outputs on it, which are evaluated again."""
    candidate = pair.candidate
    return ChangedPair(
        x=candidate.x,
        y=candidate.y,
        summary=candidate.summary if comparisons.shows_data else difference(candidate.x, candidate.y),
        answer_x=comparisons.again(candidate.x, pair.x),
        answer_y=comparisons.again(candidate.y, pair.y),
        change=pair.change.size,
    )
