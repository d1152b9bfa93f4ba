"""Search for neighbours between which a query changes by more than its stated sensitivity."""

from __future__ import annotations

import copy
import math
import numbers
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from ..clock import now
from ..datasets.adjacency import Adjacency, Local, RowAdjacency, as_adjacency
from ..datasets.contents import Kept, distance_of
from ..datasets.description import difference
from ..datasets.domains import Domain
from ..datasets.rows import row_list, tables_of
from ..datasets.tables import as_domain
from ..errors import AuditError, DatasetError, MechanismError, OptionError, described
from ..events.kinds import is_foreign_array, is_table, numpy_of
from ..events.named_parts import EXACT, columns_of_table, distinct_keys, label_text, parts_of
from ..events.outputs import outcome_key
from ..events.plain_outputs import DEEPEST
from ..inference.binomial_tails import ROUNDING
from ..known_options import with_known_options
from ..options import Progress, as_number, checked_seed
from ..printing import shorten
from ..progress import told
from ..random_streams import Stream, seed_of
from ..sampling.object_identity import versions
from ..search.candidates import Candidate, Pool, may_show_data, shown, text_of_error
from ..search.climb import KEPT, Climb, Sized
from ..search.not_finite import with_special_numbers
from ..search.pairs_for_domain import pairs_of, relation_in
from .sensitivity_result import ChangedPair, Norm, SearchEnd, SensitivityResult, exceeds

# What a query returned, as numbers by the names of its parts, and how far two answers are apart.
#
# Whole numbers are subtracted exactly for every type: neither does an int8 overflow here, nor does a double lose
# digits of numbers beyond 2⁵³.

Path: TypeAlias = tuple[Hashable, ...]
Numbers: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """The numbers that a query returned, by the labels that lead to them; or the dataset of a transformation."""

    parts: dict[Path, Numbers]  # doubles, or Python's whole numbers where these are larger than a double holds
    lengths: dict[Path, int]  # of lists and tuples of parts
    is_whole: bool  # whether all numbers are whole numbers by type, which have no rounding errors
    dataset: Any = None  # rows in lists, with rounded floats

    @property
    def is_finite(self) -> bool:
        """Whether no number is NaN or infinite."""
        return all(part.dtype == object or bool(np.isfinite(part).all()) for part in self.parts.values())

    @property
    def size(self) -> int:
        """Number of numbers."""
        return sum(part.size for part in self.parts.values())


@dataclass(frozen=True, slots=True)
class Change:
    """How far two answers are apart."""

    size: float  # norm of the difference; infinite if nothing bounds it
    reason: str = ""  # why the change is infinite
    only_x: tuple[str, ...] = ()  # names of parts that only one answer has
    only_y: tuple[str, ...] = ()


def answer_of(output: Any, relation: Adjacency | None = None) -> Answer:
    """Return the numbers of what a query returned, or its dataset, if a relation compares these.

    Anything else raises a `DatasetError`.
    """
    if relation is not None:
        return Answer({}, {}, True, _dataset_of(output, relation))
    parts: dict[Path, Numbers] = {}
    lengths: dict[Path, int] = {}
    are_whole = [_read(leaf, path, parts, output) for path, leaf in _leaves(output, (), lengths, 0)]
    return Answer(parts, lengths, all(are_whole))


def change_between(x: Answer, y: Answer, norm: Norm, relation: Adjacency | None = None) -> Change:
    """Return how far two answers are apart in a norm, or two datasets under a relation.

    A part that only one answer has counts as 0 in the other. Equal numbers do not change, NaN and infinite ones
    included; any other change to or from such a number is infinite, and so is a change of the shape of an array.
    """
    if relation is not None:
        size = relation.distance(x.dataset, y.dataset)
        return Change(size, relation.difference(x.dataset, y.dataset) if math.isinf(size) else "")
    steps = list[Numbers]()
    only_x, only_y = (
        () if x.parts.keys() == y.parts.keys() else tuple(path_text(path) for path in a.parts if path not in b.parts)
        for a, b in ((x, y), (y, x))
    )
    for path, length in x.lengths.items():
        if y.lengths.get(path, length) != length:
            return Change(math.inf, reason=f"{length} parts on x, {y.lengths[path]} on y{_of(path)}")
    for path in x.parts.keys() | y.parts.keys():
        a, b = (side.parts.get(path) for side in (x, y))
        a, b = np.zeros_like(b) if a is None else a, np.zeros_like(a) if b is None else b
        if a.shape != b.shape:
            return Change(math.inf, reason=f"shape {a.shape} on x, {b.shape} on y{_of(path)}")
        moved = cast(Numbers, distance_of(a, b))
        if not np.isfinite(moved).all() and (odd := _odd(a, b, moved)):
            return Change(math.inf, reason=f"{odd}{_of(path)}", only_x=only_x, only_y=only_y)
        steps.append(moved.ravel())
    return Change(_norm(np.concatenate([np.empty(0), *steps]), norm), "", only_x, only_y)


def norm_of(answer: Answer, norm: Norm) -> float:
    """Return the norm of the finite numbers of an answer."""
    numbers = [as_number(each) for part in answer.parts.values() if part.dtype == object for each in part.flat]
    doubles = [part.ravel() for part in answer.parts.values() if part.dtype != object]
    sizes = np.abs(np.concatenate([np.array(numbers, dtype=np.float64), *doubles]))
    return _norm(np.where(np.isfinite(sizes), sizes, 0.0), norm)


def path_text(path: Path) -> str:
    """Return the name of a part, such as "mean" or "counts.a"."""
    return ".".join(map(label_text, path))


def _dataset_of(output: Any, relation: Adjacency) -> Any:
    """Return a copy of a dataset, with its rows in lists if the relation compares rows."""
    if not isinstance(relation, RowAdjacency):
        return copy.deepcopy(output)
    try:
        tables = tables_of(output, output, relation.tables) or {}
        rows = {name: _rounded(row_list(table)) for name, (table, _) in tables.items()}
    except DatasetError as error:
        raise DatasetError(f"the query returned {shorten(output)}, which is not a dataset: {error}") from error
    return rows.get(None, rows)


def _rounded(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, float):  # vectorised code may round a row otherwise beside other rows
        # Ties, such as 2⁻¹³, are moved off; nine digits stay, as half a unit of the ninth is at least 5e-10.
        return float(f"{value * (1.0 + 3e-11):.9g}")
    if isinstance(value, (list, tuple)):
        return (list if isinstance(value, list) else tuple)(map(_rounded, value))
    return {name: _rounded(part) for name, part in value.items()} if isinstance(value, dict) else copy.deepcopy(value)


def answer_text(answer: Answer) -> str:
    """Return an answer on a short line."""
    if answer.dataset is not None:
        return shorten(answer.dataset)
    shown = {path_text(path): part.tolist() for path, part in answer.parts.items()}
    return shorten(shown[""] if list(shown) == [""] else shown)


def _of(path: Path) -> str:
    return f" ({path_text(path)})" if path else ""


def _leaves(value: Any, path: Path, lengths: dict[Path, int], depth: int) -> Iterator[tuple[Path, Any]]:
    """Yield the numbers and arrays in an output, with the labels that lead to them."""
    kind = type(value)
    if kind is float or kind is int or depth > DEEPEST or (kind is np.ndarray and value.dtype.names is None):
        yield path, value
        return
    parts: Iterable[tuple[Any, Any]]
    if is_table(value):
        parts = _cells(value)
    elif (named := parts_of(value)) is not None:
        parts = named
    elif kind in (list, tuple) and not all(isinstance(each, numbers.Real) for each in value) and _is_ragged(value):
        lengths[path] = len(value)
        parts = enumerate(value)
    else:
        yield path, value
        return
    for label, part in parts:
        yield from _leaves(part, (*path, outcome_key(label)), lengths, depth + 1)


def _is_ragged(values: Any) -> bool:
    """Whether a list does not convert into an array of numbers."""
    try:
        return np.asarray(values).dtype.kind not in "biuf"
    except ValueError:
        return True


def _cells(table: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the columns' values of a data frame, each with its column and the label of its row."""
    index: Any = getattr(table, "index", None)
    rows = distinct_keys(index.tolist()) if hasattr(index, "tolist") else list(range(len(table)))
    for name, column in columns_of_table(table):
        for row, value in zip(rows, column.to_list(), strict=True):
            yield (name, row), value


def _read(value: Any, path: Path, parts: dict[Path, Numbers], output: Any) -> bool:
    """Keep a part as an array of numbers; return whether they are whole numbers by type."""
    value = None if isinstance(value, np.ma.MaskedArray) else value  # whose numbers below the mask are none
    try:
        array = numpy_of(value) if is_foreign_array(value) else np.asarray(value)
    except (TypeError, ValueError):
        array = np.array(None)
    if array.dtype.kind == "f":
        parts[path] = array.astype(np.float64)  # a copy, since the query may fill its array again
        return False
    if array.dtype.kind in "biu":
        is_large = array.dtype.itemsize == 8 and array.size and max(-int(array.min()), int(array.max())) > EXACT
        parts[path] = array.astype(object if is_large else np.float64)
        return True
    held = [_exact(each) for each in array.flat] if array.dtype == object else [None]
    if any(each is None for each in held):
        raise DatasetError(
            f"the query returned {shorten(output)}, which is not made of numbers; return a number, an array, or named "
            "numbers, for every dataset.",
            part=path_text(path),
        )
    are_whole = all(isinstance(each, int) for each in held)
    flat = np.empty(len(held), dtype=object if are_whole else np.float64)
    flat[:] = held if are_whole else [as_number(each) for each in held]
    parts[path] = flat.reshape(array.shape)
    return are_whole


def _exact(value: Any) -> int | float | None:
    """Return a number as a whole number of Python or a double; None for anything else."""
    if isinstance(value, (bool, np.bool_, numbers.Integral)):
        return int(value)
    if isinstance(value, (numbers.Real, Decimal)):
        return float(value)
    return None


def _odd(a: Numbers, b: Numbers, moved: Numbers) -> str:
    """Describe the first number that changes to or from NaN or infinity; empty if there is none."""
    for one, other, size in zip(a.flat, b.flat, moved.flat, strict=True):
        if math.isinf(size) and not all(isinstance(each, int) or math.isfinite(each) for each in (one, other)):
            return f"{shorten(one)} on x, {shorten(other)} on y"
    return ""


def _norm(sizes: Numbers, norm: Norm) -> float:
    """Return the norm of a flat array of sizes; infinite where a double cannot hold it."""
    largest = float(sizes.max(initial=0.0))
    if norm == "linf" or sizes.size == 1 or not largest:
        return largest
    with np.errstate(over="ignore", invalid="ignore"):
        found = sizes.sum() if norm == "l1" else largest * np.linalg.norm(sizes / largest)
    return float(found) if found == found else math.inf  # NaN where numbers are too large for a double


# Pairs compared by the query's answers: every dataset is evaluated once, and the first ones twice.

_REPEATED = 8  # datasets that are evaluated twice at once (docs/decisions/0025-limits.md)
_MOST_KEPT = 2**23  # numbers in the answers that are kept: 64 megabytes


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
class Evaluations(Climb[Compared]):
    """Pairs compared by the query's answers, as many as a number of evaluations and a time limit allow."""

    query: Callable[[Any], Any]
    norm: Norm
    bound: float  # stated sensitivity
    relation: Adjacency | None = None  # of the datasets that a transformation returns
    deadline: float = math.inf  # time of `clock.now` at which no other pair is compared
    shows_data: bool = True  # whether errors and notes may have the contents of datasets
    progress: Callable[[int], None] | None = None  # is told of every evaluation
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
        return Climb.has_room(self, share) and not self.unsteady and not self.is_late

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
        try:
            change = change_between(x, y, self.norm, self.relation)
        except AuditError as error:  # datasets that the relation does not compare
            self.failed += 1
            self.first_error = self.first_error or str(error)
            return None
        self.pairs += 1
        return Compared(candidate, change.size, x, y, change)

    def confirmed(self, pair: Compared) -> ChangedPair:
        """Return a pair with the query's outputs on it, which are evaluated again."""
        x, y = pair.candidate.x, pair.candidate.y
        summary = pair.candidate.summary if self.shows_data else difference(x, y)
        answer_x, answer_y = self.again(x, pair.x), self.again(y, pair.y)
        return ChangedPair(x=x, y=y, summary=summary, answer_x=answer_x, answer_y=answer_y, change=pair.size)

    def again(self, dataset: Any, before: Answer) -> Any:
        """Return a copy of the query's output, evaluated again; note whether it differs, or the dataset changes."""
        kept, copied = Kept(dataset), None
        try:
            output = self._evaluated(dataset)
            answer = answer_of(output, self.relation)
            copied = _copied(output, answer)
            size = change_between(before, answer, self.norm, self.relation).size
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
            answer = answer_of(self._evaluated(dataset), self.relation)
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
        if self.progress is not None:
            self.progress(1)
        return self.query(dataset)

    def _note_difference(self, before: Answer, after: str, dataset: Any) -> None:
        held = shown(dataset, shows_data=self.shows_data)
        self.unsteady = self.unsteady or (
            f"the query is not deterministic: {answer_text(before)}, then {after} on {held}"
        )

    def _note_change(self, dataset: Any, kept: Kept) -> None:
        if kept.has_changed() and not self.unsteady:
            held = shown(dataset, shows_data=self.shows_data)
            self.unsteady = f"the query changes its dataset, which is now {held}; copy it in the query"


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
    output_adjacency: Adjacency | str | None = None,
    bound: float,
    distance: float = 1,
    evaluations: int = 10_000,
    seconds: float | None = None,
    seed: int | None = 0,
    keep_datasets: bool = False,
    progress: Progress = None,
) -> SensitivityResult:
    """Search for neighbours between which a deterministic query changes by more than `bound`.

    With `output_adjacency`, the query is a transformation, whose outputs are datasets more than `bound` steps apart.
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
    output_adjacency : Adjacency or str, optional
        For a transformation, which returns datasets: the relation in whose distance they may be at most `bound` apart,
        such as "add-remove" (symmetric distance), "replace" (change-one distance) or ``AddRemove(ordered=True)``
        (insert-delete distance). Rows are compared exactly, floats by nine digits. `norm` has no meaning then.
    bound : float
        Stated sensitivity or stability: the largest change between two datasets at this distance. At least 0 and
        finite.
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
    progress : bool or callable, optional
        As in `check`; a function receives 1 for each evaluation.

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
    REFUTED: the l1 sensitivity is at least 2, stated 1; x = [-1.0], y = [1.0]
    """
    seed, domain = checked_seed(seed), as_domain(domain)
    relation = None if adjacency is None else as_adjacency(adjacency)
    outputs = None if output_adjacency is None else as_adjacency(output_adjacency, "output_adjacency")
    relation = relation_in(domain, relation)
    if isinstance(outputs, Local):
        raise OptionError(
            'output_adjacency=Local() puts any two outputs one step apart; use a relation of rows such as "add-remove".'
        )
    deadline = math.inf if seconds is None else now() + seconds
    shows_data = may_show_data(domain, keep_datasets=keep_datasets)
    name = getattr(query, "__name__", type(query).__name__)
    with told(progress, name) as meter:
        meter.expect(evaluations if seconds is None else None, is_most=True)
        meter.ways = ("fewer evaluations=", "seconds=")
        timed = meter.timed(query)
        larger = with_special_numbers(domain, partial(_apart, timed, relation=outputs), partial(_error_of, timed))
        source = pairs_of(larger.domain, relation, distance, seed_of(seed, Stream.EXAMPLES))
        pool = Pool(source, relation, distance, seed)
        search = Evaluations(timed, norm, bound, outputs, deadline, shows_data, meter, pool=pool, most=evaluations)
        search.run()
    found = search.largest
    if found is None and search.failed:
        raise MechanismError(
            f"{name} failed on all of {search.failed:,} pairs; the first error: {search.first_error}", query=name
        )
    if found is None:
        raise pool.no_pair()
    end = SearchEnd.EXHAUSTED if search.is_exhausted else SearchEnd.EVALUATIONS
    if math.isinf(found.size):
        end = SearchEnd.UNBOUNDED
    elif search.is_late:
        end = SearchEnd.TIME
    simple = search.simpler(found, found.size * (1.0 - ROUNDING))
    if simple is found:  # nearly the found change, and beyond the bound if that one is
        rounding = found.rounding(norm)
        beyond = bound * (1.0 + 2.0 * ROUNDING) + 2.0 * rounding if exceeds(found.size, bound, rounding) else 0.0
        simple = search.simpler(found, max(KEPT * found.size, beyond))
    pair = search.confirmed(found)
    return SensitivityResult(
        versions=versions(),
        query=name,
        norm=norm,
        output_adjacency="" if outputs is None else str(outputs),
        bound=bound,
        pair=pair,
        simple=None if simple is found else search.confirmed(simple),
        rounding=found.rounding(norm),
        reason=found.change.reason,
        only_x=found.change.only_x,
        only_y=found.change.only_y,
        found_by=found.candidate.label if shows_data or not isinstance(domain, Domain) else "listed values",
        evaluations=search.evaluations,
        pairs=search.pairs,
        errors=search.failed,
        first_error=search.first_error,
        not_finite=search.not_finite,
        left_out=larger.left_out("the query"),
        unsteady=search.unsteady,
        end=SearchEnd.UNSTEADY if search.unsteady else end,
        distance=distance,
        adjacency="pairs as given" if relation is None else str(relation),
        seed=seed,
    )


def _apart(query: Callable[[Any], Any], one: Any, other: Any, *, relation: Adjacency | None = None) -> float:
    """0 if the query's answers on two datasets are equal, else infinite, also if it fails on one."""
    try:
        x, y = (answer_of(query(dataset), relation) for dataset in (one, other))
        return 0.0 if change_between(x, y, "linf", relation).size == 0.0 else math.inf
    except Exception:  # a query may raise anything
        return math.inf


def _error_of(query: Callable[[Any], Any], dataset: Any) -> BaseException | None:
    try:
        query(dataset)
    except Exception as error:  # a query may raise anything
        return error
    return None
