"""Check whether a batch sampler draws the batches that the accountant assumes, and what a difference costs.

Proof: docs/proofs/batches.md
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import itemgetter
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.special import betaincinv, log_ndtr, rel_entr
from scipy.stats import binom

from ..claims.claim import Array, check_number
from ..clock import now
from ..errors import MechanismError, OptionError
from ..extras import require
from ..floating_point_errors import own_arithmetic
from ..inference.binomial_tails import limits
from ..known_options import with_known_options
from ..options import DEFAULTS, MOST_RUNS, Progress, checked_seed
from ..printing import counted, rounded_down, rounded_up, shorten
from ..progress import told
from ..random_streams import Stream, sequence_of
from ..results.verdict import Verdict
from ..sampling.object_identity import versions
from .seeded_step import parameters_by_place
from .step_result import RowsResult

Sampling: TypeAlias = Literal["poisson", "fixed", "shuffled", "with replacement"]
Ints: TypeAlias = npt.NDArray[np.int64]

_ROWS: Final = ("inclusion", "size", "duplicates", "examples", "rounds")  # each with an equal share of alpha
_NAMES_OF_N = ("n", "num_examples", "n_examples", "num_samples", "n_samples", "size", "length")


# What the accountant assumes.


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """Batches of `n` examples as an accountant assumes them: how they are sampled, at which rate, and their size."""

    sampling: Sampling
    n: int
    q: float
    batch_size: int | None  # None of Poisson batches

    def __str__(self) -> str:
        if self.batch_size is None:
            return f"Poisson sampling with q = {self.q:.6g}"
        how = {"fixed": "without replacement", "shuffled": "from a shuffled epoch"}.get(self.sampling, self.sampling)
        return f"batches of {self.batch_size:,} of {self.n:,} examples {how}"

    def of_batches(self, sizes: Ints) -> tuple[Array, Array]:
        """Return the probabilities that a batch contains an example, and that it contains two, for batches' sizes."""
        if self.sampling == "poisson":
            return np.full(len(sizes), self.q), np.full(len(sizes), self.q**2)
        if self.sampling == "with replacement":
            without_one, without_two = ((1 - taken / self.n) ** sizes.astype(np.float64) for taken in (1, 2))
            return 1 - without_one, 1 - 2 * without_one + without_two
        return sizes / self.n, sizes * (sizes - 1) / (self.n * (self.n - 1))

    def sizes(self, run: list[Ints]) -> Ints:
        """Return the sizes of the batches of a run, or of its first epoch, of which drop_last may omit the last."""
        n, size = self.n, self.batch_size or 0
        if self.sampling != "shuffled" or len(run) < n // size:
            return np.full(len(run), size)
        is_last_full = len(run) == n // size or len(run[n // size]) == size
        return np.array([size] * (n // size) + [n % size] * (not is_last_full and n % size > 0))


def _assumption(n: int, q: float | None, batch_size: int | None, sampling: Sampling) -> Assumption:
    if (q is None) == (batch_size is None):
        given = "neither is" if q is None else "both are"
        raise OptionError(f"q={q} and batch_size={batch_size}: {given} given; use one of them.")
    size = batch_size or round((q or 0.0) * n)
    if size > n or (sampling == "poisson" and batch_size == n):
        raise OptionError(f"batch_size={size:,} is too large for n={n:,} examples; use less.", batch_size=size)
    if sampling == "poisson":
        return Assumption(sampling=sampling, n=n, q=size / n if q is None else q, batch_size=None)
    if q is not None and abs(size - q * n) > 1e-6 * size:  # a rate that was written as size / n is off by rounding
        raise OptionError(f"q={q:g} of n={n:,} examples is not a whole number of them; use batch_size=.", q=q, n=n)
    return Assumption(sampling=sampling, n=n, q=size / n, batch_size=size)


# The result.


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchesRow:
    """A property of the batches: whether the runs contradict it, and what they would have contradicted.

    Attributes
    ----------
    name : str
        "inclusion", "size", "duplicates", "examples" (their dependence within a batch) or "rounds" (dependence between
        batches).
    verdict : Verdict
    observed : str
        The observation that contradicts the assumption most, with the number expected.
    pvalue : float
        Adjusted for the tests of the row; 0 for an observation that the assumption excludes.
    detectable : str
        A deviation that is detected with 95% power.
    """

    name: str
    verdict: Verdict
    observed: str
    pvalue: float
    detectable: str

    def __str__(self) -> str:
        return self.observed if self.verdict is Verdict.REFUTED else f"detects {self.detectable}"


class BatchesCost(NamedTuple):
    """An ε of the training, or a bound on it, and the batches for which it holds."""

    sign: Literal["=", ">=", "<="]
    epsilon: float
    batches: str

    def __str__(self) -> str:
        shown = (rounded_down if self.sign == ">=" else rounded_up)(self.epsilon)
        return f"epsilon {self.sign} {shown:g} {self.batches}"


@dataclass(frozen=True, kw_only=True, repr=False)
class BatchesResult(RowsResult):
    """Whether a batch sampler does what the accountant assumes.

    Attributes
    ----------
    sampler : str
        Name of the sampler.
    assumption : Assumption
        What the accountant assumes.
    rounds, runs : int
        Batches of a run that were compared, and runs; for shuffled batches a run is an epoch.
    rows : tuple of BatchesRow
    inclusion : tuple of (float, float)
        Limits of the inclusion probability per batch that hold for every example together with the verdict.
    costs : tuple of BatchesCost
        ε under the assumption, then what is known of it for batches such as those drawn. Empty without a noise
        multiplier.
    """

    kind: ClassVar = "batches"
    _subject_field: ClassVar = "sampler"
    _claim_field: ClassVar = "assumption"
    _dict_fields: ClassVar = (
        "sampler", "rounds", "runs", "alpha", "seed", "assumption.sampling", "assumption.n", "assumption.q",
        "assumption.batch_size",
    )  # fmt: skip
    sampler: str
    assumption: Assumption
    rounds: int
    rows: tuple[BatchesRow, ...]
    inclusion: tuple[float, float]
    costs: tuple[BatchesCost, ...] = ()

    @property
    def _limits(self) -> tuple[float, float]:
        return self.inclusion

    def to_dict(self) -> dict[str, Any]:
        names = {"=": "epsilon_accounted", ">=": "epsilon_lower", "<=": "epsilon_upper"}
        return RowsResult.to_dict(self) | {names[one.sign]: one.epsilon for one in self.costs}


# What was drawn: a matrix of batches and examples.


def _beginner(sampler: Any, n: int) -> Callable[[np.random.Generator], Any]:
    """Return a function that begins a run with a generator, whether or not the sampler takes n or the generator."""
    is_iterable = hasattr(sampler, "__iter__") and getattr(sampler, "ndim", 1) > 0
    if is_iterable and iter(sampler) is not sampler:
        return lambda rng: sampler
    if is_iterable or not callable(sampler):
        raise OptionError(
            f"sampler={shorten(sampler)} is not a sampler; pass a function that returns the batches of a run, such as "
            "sampler(n, rng), or an object that can be iterated again."
        )
    parameters = parameters_by_place(sampler) or []
    n_needed = sum(is_needed for _, is_needed in parameters)
    names = [name for name, is_needed in parameters[: n_needed + 1] if is_needed or name == "rng"][:2]
    others = [name for name in names if name not in _NAMES_OF_N]
    of_rng = "rng" if "rng" in names else others[-1] if others else ""

    def begin(rng: np.random.Generator) -> Any:
        returned = sampler(*(rng if name == of_rng else n for name in names))
        return [returned] if _is_one_batch(returned) else returned

    return begin


def _indices(batch: Any, n: int) -> Ints:
    """Return the indices of a batch without padding."""
    if isinstance(batch, (list, tuple)) and len(batch) == 1 and getattr(batch[0], "ndim", 0) == 1:
        batch = batch[0]  # of a loader over a TensorDataset
    try:
        found = np.asarray(sorted(batch) if isinstance(batch, (set, frozenset)) else batch)
    except (TypeError, ValueError):  # several tensors, or a ragged list
        found = np.empty((), dtype=object)
    if found.dtype == bool and found.ndim == 1 and found.size:
        if len(found) != n:
            raise OptionError(f"n={n:,} does not fit masks of {len(found):,} examples; use their number.", n=n)
        return np.flatnonzero(found)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise MechanismError(
            f"the batch {shorten(batch)} is not a list of indices, or a mask of the examples; pass a sampler of "
            "indices, or a loader over a data set of them, such as TensorDataset(torch.arange(n))."
        )
    return np.asarray(found[found != -1], dtype=np.int64)


def _is_index(item: Any) -> bool:
    return isinstance(item, (numbers.Integral, np.bool_)) or getattr(item, "ndim", 1) == 0


def _is_one_batch(returned: Any) -> bool:
    """Whether a function returned a batch, and not a list of them."""
    if getattr(returned, "ndim", None) == 1:
        return bool(returned.dtype != object)
    return isinstance(returned, (list, tuple)) and all(map(_is_index, returned[:1]))


def _run(
    begin: Callable[[np.random.Generator], Any], n: int, rounds: int | None, deadline: float, rng: np.random.Generator
) -> tuple[list[Ints], bool]:
    """Return the batches of a run, and whether the deadline cut it."""
    batches = begin(rng)
    if not hasattr(batches, "__iter__"):
        raise MechanismError(f"the sampler returned {shorten(batches)}, not batches; return a list of them.")
    found: list[Ints] = []
    for batch in batches:
        if _is_index(batch):
            raise MechanismError(
                f"the sampler yields {shorten(batch)}, not a batch; wrap a sampler of single indices in "
                "BatchSampler(sampler, batch_size, drop_last=False)."
            )
        if now() > deadline:
            return found, True
        found.append(_indices(batch, n))
        if len(found) == rounds:
            break
        if rounds is None and len(found) > 100_000:  # it may have no end: they are 390 epochs of 256 batches
            raise OptionError(f"a run has more than {len(found) - 1:,} batches; use rounds= to say how many.")
    return found, False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """Batches of runs as rows of a matrix with a column for each example; for shuffled batches, of epochs."""

    times: Any  # how often each example is in each batch, a csr_array
    is_in: Any  # 1 where it is
    runs: int
    outside: int | None  # an index that is not an example

    @classmethod
    def of(cls, runs: list[list[Ints]], rounds: int, n: int) -> _Drawn:
        """Take the first batches of each run, as many whole epochs of `rounds` batches as all runs have."""
        whole = min(map(len, runs)) // rounds * rounds
        batches = [batch for run in runs for batch in run[:whole]]
        columns = np.concatenate(batches)
        rows = np.repeat(np.arange(len(batches)), [len(batch) for batch in batches])
        inside = (columns >= 0) & (columns < n)
        outside = None if inside.all() else int(columns[~inside][0])
        entries = np.ones(int(inside.sum()), dtype=np.int64), (rows[inside], columns[inside])
        times = csr_array(entries, shape=(len(batches), n))
        times.sum_duplicates()
        return cls(times=times, is_in=times.minimum(1), runs=len(batches) // rounds, outside=outside)

    def in_runs(self, matrix: Any) -> Any:
        """Return the sums over the batches of each run."""
        batches = matrix.shape[0]
        places = np.arange(batches) * self.runs // batches, np.arange(batches)
        return csr_array((np.ones(batches, dtype=np.int64), places)) @ matrix


# Tests. Counts of an event in independent batches are binomial under the assumption. Other numbers are sums of
# negatively associated indicators, for which Chernoff's bound is that of independent ones.
#
# What an assumption says of pairs depends on its rate. A test of pairs takes the probability, between those at the
# assumed rate and at the observed one, that fits the pairs best: the test stays valid, and does not take a wrong rate
# for dependence.

Found: TypeAlias = tuple[float, str]
"""A valid p-value of an observation, and the observation."""


def _exact(counts: Any, trials: Any, *p: Any) -> Array:
    """Return two-sided p-values of binomial counts, the largest over the probabilities."""
    low = binom.cdf(counts, trials, reduce(np.minimum, p))
    high = binom.sf(np.asarray(counts) - 1, trials, reduce(np.maximum, p))
    found: Array = np.minimum(1.0, 2.0 * np.minimum(low, high))
    return found


def _chernoff(fraction: Any, trials: Any, *p: Any) -> Array:
    """Return two-sided p-values by exp(−trials · KL(fraction ‖ p)), the largest over the probabilities."""
    nearest = np.clip(fraction, reduce(np.minimum, p), reduce(np.maximum, p))
    divergence = rel_entr(fraction, nearest) + rel_entr(1.0 - np.asarray(fraction), 1.0 - nearest)
    found: Array = np.minimum(1.0, 2.0 * np.exp(-trials * divergence))
    return found


def _detectable(trials: float, p: float, alpha: float) -> float:
    """Return the smallest probability above p that `_chernoff` detects at alpha with 95% power; 1 if there is none."""
    if not 0.0 < p < 1.0 or _chernoff(1.0, trials, p) > alpha:
        return 1.0
    critical = brentq(lambda fraction: math.log(_chernoff(fraction, trials, p) + 1e-300) - math.log(alpha), p, 1.0)
    count = min(critical * trials, trials * (1.0 - 1e-9))
    return float(betaincinv(count, trials - count + 1.0, DEFAULTS["power"]))


def _lags(length: int) -> list[int]:
    """Distances at which copies are looked for: small ones, powers of two, and those of 2 to 8 equal parts."""
    lags = {*range(1, 17), *(1 << power for power in range(5, 40)), *(length // parts for parts in range(2, 9))}
    return sorted(lag for lag in lags if 1 <= lag < length)


def _matchings(length: int, lag: int) -> list[npt.NDArray[np.bool_]]:
    """Return masks over i of disjoint pairs (i, i + lag): one of the first half of all pairs, one of the others."""
    is_second = np.arange(length - lag) // lag % 2 == 1
    return [part for part in (~is_second, is_second) if part.any()]


def _all_pairs(rows: Any) -> tuple[Ints, Ints, Ints]:
    """Return all pairs of the first and last rows of a matrix, and how many members each pair shares."""
    length, half = rows.shape[0], 500  # the matrix of all pairs has 8 MB
    some = np.arange(length) if length <= 2 * half else np.r_[:half, length - half : length]
    i, j = np.triu_indices(len(some), 1)
    return some[i], some[j], (rows[some] @ rows[some].T).toarray()[i, j]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tests:
    """The tests of an assumption on a number of runs, each row at `alpha`."""

    assumed: Assumption
    sizes: Ints  # of the batches of a run, as assumed
    runs: int
    alpha: float

    @property
    def rounds(self) -> int:
        return len(self.sizes)

    @property
    def units(self) -> int:
        """Independent parts of the runs: batches, or whole epochs."""
        return self.runs * (1 if self.assumed.sampling == "shuffled" else self.rounds)

    def detectable(self) -> dict[str, tuple[bool, str]]:
        """Return for each row what it detects, and whether that is enough: twice the assumed odds, as of a claim."""
        n, found = self.assumed.n, {}
        one, both = self.assumed.of_batches(self.sizes)
        unlikely = 1.0 - DEFAULTS["power"]
        rare = 1.0 - unlikely ** (1 / (self.runs * self.rounds))  # share of the batches of which one is seen
        shown = f"{rounded_up(rare, 2):g} of the batches"
        found["size"] = rare <= unlikely, f"another size of {shown}"
        found["duplicates"] = rare <= unlikely, f"a duplicate in {shown}"

        def add(row: str, trials: float, p: float, tests: int, words: str) -> None:
            seen = _detectable(trials, p, self.alpha / tests)
            is_certain = not 0.0 < p < 1.0
            is_enough = is_certain or seen * (1.0 - p) <= 2.0 * p * (1.0 - seen)
            shown = f"{rounded_up(seen, 3):g} instead of" if seen < 1.0 else "no value beside"
            found[row] = is_enough, f"{words} = {'any value but' if is_certain else shown} {p:.3g}"

        where, p, tests = "batch", one[0], n if self.assumed.batch_size else 3 * n
        if self.assumed.sampling == "shuffled":
            where, p, tests = "the first quarter of an epoch", one[self._quarters() == 0].sum(), 4 * n
        add("inclusion", self.units, float(p), tests, f"Pr[example in {where}]")
        if self.assumed.batch_size is None:
            k, tests = int(binom.median(n, self.assumed.q)), len(self.size_events())
            add("size", self.units, float(binom.cdf(k, n, self.assumed.q)), tests, f"Pr[size <= {k:,}]")
        add("examples", self.units * (n // 2), float(both.mean()), 2 * len(_lags(n)) + 1, "Pr[neighbours in batch]")
        is_within = self.units > self.runs
        pairs = self.runs * (self.rounds // 2) if is_within else self.runs // 2 * (self.units // self.runs)
        tests = 2 * len(_lags(self.runs)) + 2 * len(_lags(self.rounds)) * is_within + 1
        words = "successive batches" if is_within else "equal batches of two runs"
        add("rounds", pairs * n, float((one**2).mean()), tests, f"Pr[example in {words}]")
        return found

    def _quarters(self) -> Ints:
        """The quarter of an epoch in which each batch is."""
        return np.arange(self.rounds) * min(4, self.rounds) // self.rounds

    def inclusions(self, is_in: Any) -> Iterator[tuple[Ints, int, Array, str]]:
        """Yield how many trials each example is in, with the trials, the probabilities of their batches, and words."""
        one, _ = self.assumed.of_batches(self.sizes)
        if self.assumed.sampling != "shuffled":
            yield is_in.sum(axis=0), self.units, one[:1], "batches"
            return
        for part in range(min(4, self.rounds)):
            here = self._quarters() == part
            words = f"epochs in quarter {part + 1}" if self.rounds >= 4 else f"batches {part} of an epoch"
            yield is_in[np.flatnonzero(np.tile(here, self.runs))].sum(axis=0), self.runs, one[here], words

    def limits_of_inclusion(self, is_in: Any) -> tuple[float, float]:
        """Return limits of the mean inclusion probability per batch that hold for all examples."""
        parts = [(counts.astype(float), trials, len(p)) for counts, trials, p, _ in self.inclusions(is_in)]
        each = self.alpha / (2 * self.assumed.n * len(parts))
        found = [np.array(limits(counts, trials, alpha=each)) / width for counts, trials, width in parts]
        return min(float(low.min()) for low, _ in found), min(1.0, max(float(high.max()) for _, high in found))

    def _certain(self, drawn: _Drawn) -> Iterator[Found]:
        n = self.assumed.n
        if drawn.outside is not None:
            yield 0.0, f"index {drawn.outside:,} was drawn, but n = {n:,} has the examples 0 to {n - 1:,}"
        if self.assumed.sampling == "shuffled":
            times = drawn.in_runs(drawn.is_in)
            if (most := int(times.data.max(initial=0))) > 1:
                yield 0.0, f"an example is in {most:,} batches of an epoch"
            missing = self.runs * n - times.nnz
            if missing and self.sizes.sum() > n - self.sizes[0]:
                yield 0.0, f"{missing / self.runs:,.4g} of {n:,} examples are in no batch of an epoch (drop_last?)"

    def _inclusion(self, is_in: Any) -> Iterator[Found]:
        n, q = self.assumed.n, self.assumed.q
        for counts, trials, one, words in self.inclusions(is_in):
            p, pvalues = float(one.sum()), _exact(counts, trials, one.sum())
            i = int(pvalues.argmin())
            text = f"example {i:,} is in {counts[i]:,} of {trials:,} {words}, expected {trials * p:,.5g}"
            yield n * float(pvalues[i]), text
        if self.assumed.sampling == "poisson":
            of_rounds = is_in.sum(axis=1).reshape(self.runs, self.rounds).sum(axis=0)
            rate = of_rounds.sum() / (n * self.units)
            yield float(_exact(of_rounds.sum(), n * self.units, q)), f"the mean rate is {rate:.5g}, not {q:.5g}"
            pvalues = _exact(of_rounds, n * self.runs, q)
            t = int(pvalues.argmin())
            rate = of_rounds[t] / (n * self.runs)
            yield self.rounds * float(pvalues[t]), f"batch {t:,} of a run has the rate {rate:.5g}, not {q:.5g}"

    def size_events(self) -> Ints:
        """Sizes k of the events "size at most k": 0, and quantiles at powers of 1/2 from both ends."""
        n, q, tails = self.assumed.n, self.assumed.q, 0.5 ** np.arange(1, 21)
        sizes = np.r_[0, binom.ppf(tails, n, q), binom.isf(tails, n, q)]
        return np.unique(sizes[sizes < n]).astype(np.int64)

    def pvalues_of_sizes(self, sizes: Ints) -> Array:
        """Return the p-values of `size_events`."""
        n, k = self.assumed.n, self.size_events()
        counts, rate = np.searchsorted(np.sort(sizes), k, "right"), min(1.0, sizes.mean() / n)
        return _exact(counts, len(sizes), binom.cdf(k, n, self.assumed.q), binom.cdf(k, n, rate))

    def _size(self, sizes: Ints) -> list[Found]:
        if self.assumed.batch_size is None:
            each = f"every batch has {sizes[0]:,} examples; " if (sizes == sizes[0]).all() else ""
            k, expected = self.size_events(), len(sizes) * binom.cdf(self.size_events(), self.assumed.n, self.assumed.q)
            return [
                (pvalue, f"{each}{(sizes <= k).sum():,} of {len(sizes):,} sizes are at most {k:,}, expected {p:,.5g}")
                for pvalue, k, p in zip(self.pvalues_of_sizes(sizes).tolist(), k, expected, strict=True)
            ]
        expected = np.tile(self.sizes, self.runs)
        others = np.flatnonzero(sizes != expected)
        if not len(others):
            return [(1.0, "all sizes are as assumed")]
        i = others[0]
        text = f"{len(others):,} of {len(sizes):,} batches have another size"
        return [(0.0, f"{text}, such as {sizes[i]:,} instead of {expected[i]:,}")]

    def _duplicates(self, data: Ints) -> list[Found]:
        if self.assumed.sampling != "with replacement":
            most = data.max(initial=0)
            return [(0.0 if most > 1 else 1.0, f"an example is {most:,} times in a batch")]
        p, trials = float(self.assumed.of_batches(self.sizes)[0][0]), self.assumed.n * self.units
        text = f"batches have {len(data) / self.units:,.5g} different examples, expected {self.assumed.n * p:,.5g}"
        return [(float(_chernoff(len(data) / trials, trials, p)), text)]

    def _at_distances(self, rows: Any, shape: tuple[int, int], axis: int, words: str, *p: float) -> Iterator[Found]:
        """Yield tests of how many members the rows of a matrix share with those at a distance.

        The rows have a `shape`; the distance is along the other axis, and `axis` is summed over. The first p is the
        assumed probability that a member is shared.
        """
        members, length = rows.shape[1], shape[1 - axis]
        shares = rows.sum(axis=1) / members
        for lag in _lags(length):
            step, shared = lag * shape[1] ** axis, np.zeros((2, rows.shape[0]))  # as observed, and as sizes let expect
            shared[0, :-step] = rows[:-step].multiply(rows[step:]).sum(axis=1)
            shared[1, :-step] = members * shares[:-step] * shares[step:]
            together, by_sizes = shared.reshape(2, *shape).sum(axis=1 + axis)[:, :-lag]
            for pairs in _matchings(length, lag):
                trials, count = int(pairs.sum()) * shape[axis] * members, int(together[pairs].sum())
                independent = trials * self.units / (self.runs * self.rounds)
                pvalue = _chernoff(count / trials, independent, *p, by_sizes[pairs].sum() / trials)
                yield float(pvalue), f"{words.format(lag, count)}, expected {trials * p[0]:,.5g}"

    def _examples(self, is_in: Any) -> Iterator[Found]:
        batches, rows = self.runs * self.rounds, is_in.T.tocsr()
        both = float(self.assumed.of_batches(self.sizes)[1].mean())
        words = "examples i and i + {:,} are together in a batch {:,} times"
        yield from self._at_distances(rows, (1, self.assumed.n), 0, words, both)
        i, j, counts = _all_pairs(rows)
        rates, scale = is_in.sum(axis=0) / batches, batches / self.units  # at most one batch of an epoch has both
        seen = np.minimum(1.0, scale * rates[i] * rates[j])
        pvalues = _chernoff(np.minimum(1.0, counts / self.units), self.units, scale * both, seen)
        k = int(pvalues.argmin())
        text = f"examples {i[k]:,} and {j[k]:,} are together in {counts[k]:,} batches, expected {batches * both:,.5g}"
        yield len(i) * float(pvalues[k]), text

    def _rounds(self, is_in: Any) -> Iterator[Found]:
        n, runs, rounds = self.assumed.n, self.runs, self.rounds
        one, _ = self.assumed.of_batches(self.sizes)
        expected = float((one**2).mean()), float(((is_in.sum(axis=0) / (runs * rounds)) ** 2).mean())
        if is_within := self.units > runs:  # batches of an epoch share nothing
            words = "batches t and t + {:,} of a run share {:,} examples"
            yield from self._at_distances(is_in, (runs, rounds), 0, words, *expected)
        words = "equal batches of runs r and r + {:,} share {:,} examples"
        yield from self._at_distances(is_in, (runs, rounds), 1, words, *expected)
        i, j, counts = _all_pairs(is_in)
        is_apart = is_within | (i // rounds != j // rounds)
        if is_apart.any():
            i, j, counts = i[is_apart], j[is_apart], counts[is_apart]
            p, by_sizes = (of[i] * of[j] for of in (np.tile(one, runs), is_in.sum(axis=1) / n))
            pvalues = _chernoff(counts / n, n, p, np.maximum(p, expected[1]), by_sizes)
            k = int(pvalues.argmin())
            first, second = (f"batch {at % rounds:,} of run {at // rounds:,}" for at in (i[k], j[k]))
            yield (
                len(i) * float(pvalues[k]),
                f"{first} and {second} share {counts[k]:,} examples, expected {n * p[k]:,.4g}",
            )

    def found(self, drawn: _Drawn) -> Iterator[tuple[str, float, str]]:
        """Yield for each row its p-value and observation; the tests of a row have equal parts of its alpha."""
        is_in = drawn.is_in
        for name, tests in (
            ("inclusion", [*self._certain(drawn), *self._inclusion(is_in)]),
            ("size", self._size(drawn.times.sum(axis=1))),
            ("duplicates", self._duplicates(drawn.times.data)),
            ("examples", list(self._examples(is_in))),
            ("rounds", list(self._rounds(is_in))),
        ):
            pvalue, observed = min(tests, key=itemgetter(0), default=(1.0, ""))
            yield name, min(1.0, pvalue * len(tests)), observed

    def rows(self, drawn: _Drawn) -> Iterator[BatchesRow]:
        """Yield the rows of the result."""
        detectable = self.detectable()
        for name, pvalue, observed in self.found(drawn):
            is_enough, words = detectable[name]
            verdict = Verdict.NOT_REFUTED if observed and is_enough else Verdict.INCONCLUSIVE
            verdict = Verdict.REFUTED if pvalue <= self.alpha else verdict
            yield BatchesRow(name=name, verdict=verdict, observed=observed, pvalue=pvalue, detectable=words)

    def planned(self) -> int:
        """Return about the fewest runs by which every row detects enough, at least two."""
        runs = 2
        while runs < MOST_RUNS and not all(enough for enough, _ in replace(self, runs=runs).detectable().values()):
            runs += 1 + runs // 16
        return runs


# What a difference costs.


def accountant_of(
    assumed: Assumption, sigma: float, rounds: int, *, neighbours: str = "add_or_remove_one", most: int | None = None
) -> Any:
    """Return the accountant of dp_accounting after DP-SGD with noise multiplier `sigma`; None if it has none.

    Poisson batches may be cut at `most` examples. The bound for batches of a fixed size is that of Wang, Balle &
    Kasiviswanathan (2019), Theorem 27, for replaced records.
    """
    require("accounting", "the accountant of DP-SGD needs", "dp_accounting")
    import dp_accounting as dp

    accountant: Any
    match assumed.sampling:
        case "poisson":
            # The losses of a step are in about 1/σ² + 20/σ; with little noise the usual grid would take gigabytes.
            width, relation = max(1e-4, (1 / sigma**2 + 20 / sigma) / 2**19), dp.NeighboringRelation[neighbours.upper()]
            accountant = dp.pld.PLDAccountant(relation, value_discretization_interval=width)
            event = dp.PoissonSampledDpEvent(assumed.q, dp.GaussianDpEvent(sigma))
            if most:
                event = dp.TruncatedSubsampledGaussianDpEvent(assumed.n, assumed.q, most, sigma)
        case "fixed":
            # A replaced gradient moves the sum by twice the clipping norm. For this event only, dp_accounting states
            # the noise relative to the sensitivity.
            accountant = dp.rdp.RdpAccountant(neighboring_relation=dp.NeighboringRelation.REPLACE_ONE)
            event = dp.SampledWithoutReplacementDpEvent(assumed.n, assumed.batch_size, dp.GaussianDpEvent(sigma / 2))
        case _:
            return None
    return accountant.compose(dp.SelfComposedDpEvent(event, rounds))


def shuffled_epsilon_at_least(sigma: float, batches: int, epochs: int, delta: float, share: float = 1.0) -> float:
    """Return a lower bound on ε of DP-SGD with shuffled batches, after Chua et al. (2024).

    The gradients of all examples but one are opposed to its gradient, which on the other dataset is 0. The event of an
    epoch is that a sum, less those of the others, exceeds a threshold; that of a training, that so many epochs have it.
    `share` is the probability that an epoch has the example.
    """
    threshold = np.linspace(0.0, 2.0 + 8.0 * sigma, 400)[:, None]  # above it both probabilities are below 1e-14
    one, others = log_ndtr(threshold / sigma), (batches - 1) * log_ndtr(threshold / sigma)
    with_it, without = (
        -share * np.expm1(log_ndtr((threshold - moved) / sigma) + others) - (1.0 - share) * np.expm1(one + others)
        for moved in (2.0, 1.0)
    )
    least = np.unique(np.geomspace(1, epochs, 200).astype(np.int64)) - 1
    p, q = binom.sf(least, epochs, with_it) - delta, binom.sf(least, epochs, without)
    is_seen = (p > 0.0) & (q > 1e-290)  # smaller numbers have fewer digits
    p, q = np.where(is_seen, p, 1.0), np.where(is_seen, q, 1.0)
    return float((np.log(p) - np.log(q)).max(initial=0.0))


def _costs(
    tests: _Tests, drawn: _Drawn, refuted: set[str], most: float, sigma: float, delta: float, rounds: int
) -> Iterator[BatchesCost]:
    """Yield ε as accounted, and what is known of it for batches such as those drawn, `rounds` of them."""
    from dp_accounting import get_epsilon_gaussian

    assumed, n, sizes = tests.assumed, tests.assumed.n, drawn.times.sum(axis=1)

    def accounted(assumed: Assumption, most: int | None = None) -> float | None:
        accountant = accountant_of(assumed, sigma, rounds, most=most)
        return None if accountant is None else float(accountant.get_epsilon(delta))

    if (as_assumed := accounted(assumed)) is not None:
        told = f"as accounted at delta {delta:g} for {counted(rounds, 'round')} of {assumed}"
        yield BatchesCost("=", as_assumed, told)
        if not refuted:
            return
        if refuted == {"inclusion"}:
            size = assumed.batch_size and math.ceil(most * n)
            at_most = accounted(replace(assumed, q=most, batch_size=size)) or as_assumed
            yield BatchesCost("<=", at_most, f"if only the rate differs, which is at most {rounded_up(most, 3):g}")
    if assumed.sampling == "poisson" and refuted <= {"inclusion", "size"}:
        largest, is_below = int(sizes.max()), tests.size_events() < sizes.max()
        pvalue = tests.pvalues_of_sizes(sizes)[is_below].min(initial=1.0) * len(is_below)
        if pvalue > tests.alpha and len(sizes) * binom.sf(largest, n, sizes.mean() / n) > 10:  # else seen by chance
            at_most = accounted(assumed, largest) or math.inf
            yield BatchesCost("<=", at_most, f"for Poisson batches cut at {largest:,}, if they are")
    # Given the batches, an example moves the sums by √(Σ m²) clipping norms, m its number in each. The loss is jointly
    # convex, so the largest of these bounds it.
    squares, parts = int(drawn.in_runs(drawn.times.power(2)).data.max(initial=1)), math.ceil(rounds / tests.rounds)
    of_run = sizes[: tests.rounds]
    if squares == 1 and (sizes == np.tile(of_run, tests.runs)).all() and n - of_run.sum() < of_run[0]:
        shuffled = Assumption(sampling="shuffled", n=n, q=of_run[0] / n, batch_size=int(of_run[0]))
        rows = replace(tests, assumed=shuffled, sizes=of_run).found(drawn)
        if all(pvalue > tests.alpha for name, pvalue, _ in rows if name != "inclusion"):  # drop_last is allowed for
            epochs = rounds // tests.rounds
            epsilon = shuffled_epsilon_at_least(sigma, tests.rounds, epochs, delta, of_run.sum() / n)
            yield BatchesCost(">=", epsilon, f"for {counted(epochs, 'shuffled epoch')} (Chua et al. 2024)")
    moved = math.sqrt(squares) * (2.0 if assumed.sampling == "fixed" else 1.0)
    epsilon = float(get_epsilon_gaussian(sigma / (moved * math.sqrt(parts)), delta))
    norms = counted(1, "clipping norm") if moved == 1.0 else f"{moved:.3g} clipping norms"
    yield BatchesCost("<=", epsilon, f"if an example moves {counted(tests.rounds, 'sum')} by at most {norms}, as seen")


@with_known_options()
def check_batches(
    sampler: Any,
    n: int,
    *,
    q: float | None = None,
    batch_size: int | None = None,
    sampling: Sampling = "poisson",
    rounds: int | None = None,
    seconds: float = 60.0,
    noise_multiplier: float | None = None,
    delta: float = 1e-5,
    alpha: float = 0.05,
    seed: int | None = 0,
    name: str | None = None,
    progress: Progress = None,
) -> BatchesResult:
    r"""Check whether a batch sampler draws the batches that the accountant assumes.

    A sampler that does is refuted with probability at most `alpha`. Tested are the inclusion probability of each
    example, the distribution of the batch size, duplicates in a batch, and the independence of examples and of batches.
    With a noise multiplier the result states what a difference costs.

    Parameters
    ----------
    sampler : callable or iterable
        A function ``sampler(n, rng)``, ``sampler(rng)`` or ``sampler()`` that returns the batches of one run, or one
        batch; or an object that yields the batches of a run whenever it is iterated, such as a `BatchSampler` or a
        `DPDataLoader`. A batch is an array of indices, in which -1 is padding, a mask of n examples, or what a loader
        over a data set of indices yields.
    n : int
        Number of examples, at least 2.
    q : float, optional
        Probability that a batch contains an example, as the accountant assumes it.
    batch_size : int, optional
        The same as a batch size, qn.
    sampling : {"poisson", "fixed", "shuffled", "with replacement"}
        What the accountant assumes. "poisson": each example is in each batch with probability q, independently.
        "fixed": each batch is a uniform sample without replacement, independent of the others. "shuffled": the batches
        of an epoch divide a random permutation of all examples. "with replacement": each batch is `batch_size`
        independent uniform draws.
    rounds : int, optional
        Batches of a training, after which a run without an end is cut; by default those of a run.
    seconds : float
        Time limit of the draws. The check makes as many runs as each row needs, at least two.
    noise_multiplier : float, optional
        Standard deviation of the noise on the sum of clipped gradients, over the clipping norm. Needs dp-accounting.
    delta : float
        The δ at which ε is stated.
    alpha : float
        Allowed probability of refuting a sampler that does what the accountant assumes.
    seed : int or None
        Random seed of the generators that functions receive. Other samplers have their own.
    name : str, optional
        Name of the sampler in the result.
    progress : bool or callable, optional
        As in `check`.

    Returns
    -------
    BatchesResult
        INCONCLUSIVE if a row does not detect twice the odds, or a fault in 5% of the batches. A sampler that is not
        refuted may still differ in a way that no row tests, such as a dependence of three examples.

    Raises
    ------
    OptionError, ClaimError
        If an argument is outside its range, n does not fit the batches, or a run has no end.
    MechanismError
        If the sampler returns anything but batches of indices, draws nothing, or a run is too long for the time limit.
    MissingExtraError
        If there is a noise multiplier and dp-accounting is not installed.

    See Also
    --------
    dpaudit.check_canaries : Audit of a whole training run.

    Notes
    -----
    Each of the five rows has alpha/5, divided equally among its tests (Bonferroni). Counts of examples and of sizes
    have exact binomial tests. Numbers of pairs that are together have Chernoff's bound
    :math:`2\exp(-N\,\mathrm{KL}(f \| p))`, which holds for negatively associated indicators. The batches must not
    depend on the values of the examples.

    References
    ----------
    Joag-Dev & Proschan (1983), Negative association of random variables, with applications.

    Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha & Zhang (2024), How private are DP-SGD implementations?

    Examples
    --------
    >>> from dpaudit.training import check_batches
    >>> def epoch(n, rng):
    ...     return rng.permutation(n).reshape(10, -1)
    >>> result = check_batches(epoch, 100, q=0.1)  # accounted as Poisson batches
    >>> [row.name for row in result.rows if row.verdict.value == "refuted"]
    ['size', 'rounds']
    >>> check_batches(epoch, 100, batch_size=10, sampling="shuffled").verdict.value
    'not refuted'
    """
    assumption = _assumption(n, q, batch_size, sampling)
    if noise_multiplier is not None:
        delta = check_number("delta", delta, 0, 1, "1e-5 is usual", closed=False)
        require("accounting", "the cost of a sampler needs", "dp_accounting")
    seed, who = checked_seed(seed), str(name or getattr(sampler, "__name__", type(sampler).__name__))
    with told(progress, who) as meter:
        meter.ways = ("a shorter seconds=",)
        draw = meter.timed(partial(_run, _beginner(sampler, n), n, rounds, now() + seconds))
        made, is_late, planned = list[list[Ints]](), False, 1
        while len(made) < planned and not is_late:
            batches, is_late = draw(np.random.default_rng(sequence_of(seed, Stream.BATCH_SAMPLER, len(made))))
            if is_late and made:
                break
            if is_late and (rounds is None or not batches):
                late = f"{who} yielded {len(batches):,} batches in seconds={seconds:g}, not a whole run"
                raise MechanismError(f"{late}; use a longer time, or rounds= if it has no end.")
            if not batches:
                raise MechanismError(f"a run of {who} has no batches; return at least one, which may be empty.")
            made.append(batches)
            if len(made) == 1:
                sizes = assumption.sizes(batches)
                tests = _Tests(assumed=assumption, sizes=sizes, runs=1, alpha=alpha / len(_ROWS))
                planned = max(2, math.ceil(tests.planned() * len(sizes) / len(batches)))
                meter.expect(planned, is_most=True)
    if not any(len(batch) for batches in made for batch in batches):
        raise MechanismError(f"{who} drew no example in {counted(len(made), 'run')}; return indices from 0 to n - 1.")
    fewest, most = min(map(len, made)), max(map(len, made))
    drawn = _Drawn.of(made, min(fewest, len(sizes)), n)
    tests = replace(tests, sizes=sizes[:fewest], runs=drawn.runs)
    with own_arithmetic():
        rows, inclusion = tuple(tests.rows(drawn)), tests.limits_of_inclusion(drawn.is_in)
        refuted = {row.name for row in rows if row.verdict is Verdict.REFUTED}
        costs: tuple[BatchesCost, ...] = ()
        if noise_multiplier is not None:
            costs = tuple(_costs(tests, drawn, refuted, inclusion[1], noise_multiplier, delta, rounds or fewest))
    notes = []
    if fewest < most:
        skipped = f"of which the first {fewest:,} are compared; does the sampler skip empty batches?"
        notes.append(f"runs have {fewest:,} to {most:,} batches, {skipped}")
    if len(refuted) > 1:
        notes.append("each row is a test of the whole assumption, so one fault may refute several")
    return BatchesResult(
        sampler=who, assumption=assumption, rounds=tests.rounds, runs=tests.runs, rows=rows, inclusion=inclusion,
        costs=costs, notes=tuple(notes), alpha=alpha, seed=seed, versions=versions(),
    )  # fmt: skip
