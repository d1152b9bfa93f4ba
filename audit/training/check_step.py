"""Check one step of private training: the same coins on neighbouring batches show the contribution of an example.

If the difference of two outputs with other coins is the same on all batches, the output is a(batch) + noise(coins). The
same coins on neighbours then leave a(x) − a(y), without any noise.

Proof: docs/proofs/training.md
"""

from __future__ import annotations

import enum
import math
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import compress, pairwise
from typing import Any, cast

import numpy as np
from scipy.special import gammaincinv, ndtri

from ..claims.claim import Claim, claim_at
from ..datasets.adjacency import AddRemove, Adjacency, Replace, ZeroOut, as_adjacency
from ..errors import AuditError, MechanismError, OptionError
from ..floating_point_errors import with_own_arithmetic
from ..known_options import with_known_options
from ..options import LEAST_RUNS, checked_seed, names_in
from ..printing import counted, shorten
from ..procedures.check_outputs import check_outputs
from ..replay.replay import replay
from ..results.claim_pair_and_alpha import stated
from ..results.verdict import Verdict, bound_beside_claim
from ..sampling.object_identity import versions
from .gaussian_noise import Measured, excess_of_mu, needed_for_mu, norm
from .seeded_step import Batch, Container, Doubles, Layout, Output, SeededStep, examples_of, is_made_up, times
from .step_result import ROWS, RowName, StepResult, StepRow, few


@with_known_options()
@with_own_arithmetic
def check_step(
    step: Any,
    batch: Any,
    *,
    claim: Any = None,
    adjacency: Adjacency | str = "add-remove",
    sensitivity: float | None = None,
    examples: Any = None,
    made_up: bool = True,
    derived: str | Iterable[str] = (),
    tolerance: float = 0.02,
    alpha: float = 0.05,
    seed: int | None = 0,
    ignore: str | Iterable[str] = (),
) -> StepResult:
    """Check that a step of private training clips, adds up and adds noise as its claim says.

    The step is run on neighbouring batches with the same coins, so that the contribution of an example shows without
    noise. A correct step is refuted with probability at most `alpha`: the privacy claim, and noise with other draws on
    each batch, are tested at that level, and other rows are certain, as their batches are a counterexample.

    Parameters
    ----------
    step : callable
        ``step(batch)`` or ``step(batch, rng)``, where `rng` is a generator of numpy or torch or a key of jax, as the
        arrays of the batch. Returns what the step releases, such as the noisy gradient: an array, named or nested
        arrays, or a module of torch. `torch_step` makes one of a model, its optimiser and its loss.
    batch : array, tensor, or tuple, list or dictionary of these
        Examples along the first axis, such as ``(X, y)``.
    claim : Claim, float or (float, float), optional
        Claim of one step, with this batch: without the amplification by the choice of the batch. By default that of the
        step, if it has one. `GaussianDP(1 / noise_multiplier)` for Gaussian noise of ``noise_multiplier * clip``.
    adjacency : Adjacency or str
        "add-remove", "replace", or "zero-out", in which an example of zeros, or the null record of a `ZeroOut`, takes
        the place of another one.
    sensitivity : float, optional
        Stated l2 norm of the largest contribution of an example, in units of the output.
    examples : batch, optional
        More examples to try, such as canaries.
    made_up : bool
        Whether examples are made up: scaled, with the other sign, zero, extreme, NaN and infinite. Whole numbers,
        flags, and floats that are all 0 or 1 are never made up. False tries the examples of the batch and `examples`.
    derived : str or iterable of str
        First names of outputs that are computed from others, such as parameters after a step of Adam. Of them only is
        tested whether they depend on the data without noise.
    tolerance : float
        Relative precision of the standard deviation of the noise, from which the number of runs follows.
    alpha : float
        Allowed probability of refuting a step that keeps its claim.
    seed : int or None
        Random seed.
    ignore : str or iterable of str
        Rows to leave out, by their names (see `StepRow`): "isolation" for microbatches that are clipped together.

    Returns
    -------
    StepResult
        INCONCLUSIVE if a row could not be tested, as of a step whose noise the coins do not determine.

    Raises
    ------
    OptionError, ClaimError, DatasetError
        For arguments outside their range, or a batch without a leading axis.
    MechanismError
        If the step fails on the batch, changes it, or returns anything but finite numbers.

    See Also
    --------
    torch_step : The step of a model, an optimiser and a loss.
    check : Statistical audit of any mechanism.
    replay : The line at which a claim breaks.

    Notes
    -----
    With the same coins, out(x) − out(y) is the contribution, and μ = ‖(a(x) − a(y))/σ‖ if the noise is normal. Its
    interval follows from the chi-square distribution of the squared noise. A refutation is confirmed along the
    direction of the contribution, where only the variance of one number counts. Noise whose scale differs between
    neighbours keeps no Gaussian claim.

    References
    ----------
    Abadi et al. (2016), Deep learning with differential privacy. Dong, Roth & Su (2022), Gaussian differential privacy,
    Theorem 2.7. Proof: docs/proofs/training.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import GaussianDP
    >>> from dpaudit.training import check_step
    >>> def step(gradients, rng):  # clips every gradient to norm 1, but divides by the size of the batch
    ...     norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    ...     clipped = gradients / np.maximum(norms, 1.0)
    ...     return (clipped.sum(axis=0) + rng.normal(size=clipped.shape[1])) / len(clipped)
    >>> gradients = np.random.default_rng(1).normal(size=(8, 100))
    >>> result = check_step(step, gradients, claim=GaussianDP(1.0), ignore=["empty-batch", "not-finite"])
    >>> result.is_refuted, result.rows[0].name
    (True, 'noise-scale')
    """
    if not tolerance > 0.0:
        raise OptionError("tolerance=0 would take endless runs; use 0 < tolerance < 1, such as 0.02.", tolerance=0.0)
    seed = checked_seed(seed)
    has_claim = claim is not None or hasattr(step, "claim")
    said = stated(step, claim if has_claim else 0.0, None, "")
    relation = as_adjacency(adjacency)
    if not isinstance(relation, (AddRemove, Replace)):
        told = f'adjacency={adjacency!r} is not one of batches; use "add-remove", "replace" or "zero-out".'
        raise OptionError(told, adjacency=adjacency)
    ignored = names_in(ignore)
    if unknown := [name for name in ignored if not isinstance(name, str) or name not in ROWS]:
        told = f"ignore={shorten(unknown[0])} is not a row of check_step; use one of {', '.join(ROWS)}."
        raise OptionError(told, name=unknown[0])
    if "isolation" in ignored:  # in another order, other examples are clipped together
        ignored = (*ignored, "order")
    tensors = names_in(derived)
    if wrong := [each for each in tensors if not isinstance(each, str)]:
        raise OptionError(f"derived={shorten(wrong[0])} is not a name; use names of tensors.", derived=wrong[0])
    container = Container(batch)
    more = None if examples is None else Container(examples, "examples").batch
    if more is not None and more.form != container.batch.form:
        raise OptionError("examples have another form than the batch; pass them in its containers and shapes.")
    check = _Check(
        step=SeededStep(step, container, seed),
        base=container.batch,
        more=more,
        claim=claim_at(said.claim, 1) if has_claim else None,
        adjacency=relation,
        bound=sensitivity,
        makes_up=made_up,
        derived=tensors,
        tolerance=tolerance,
        alpha=alpha,
        ignored=ignored,
    )
    with check.step.running():
        check.run()
    return check.result()


class _Coins(enum.IntEnum):
    """The first coins of each use; those below are of comparisons."""

    SPARE = 100
    MEASURED = 1_000
    CONFIRMED = 1_000_000
    COUNTED = 2_000_000


@dataclass(slots=True, eq=False)
class _Move:
    """The contribution of an example between two batches with the same noise."""

    x: Batch
    y: Batch
    move: Doubles
    size: float  # norm over the numbers with their own noise
    mu: float


def _beats(size: float, other: float) -> bool:
    """Whether a later pair is clearly beyond an earlier one: all that attain a clipping norm differ by rounding."""
    return size > 1.001 * other


@dataclass(slots=True, eq=False, kw_only=True)
class _Check:
    """The runs of a check, and what they refute."""

    step: SeededStep
    base: Batch
    more: Batch | None
    claim: Claim | None
    adjacency: Adjacency
    bound: float | None
    makes_up: bool
    derived: tuple[str, ...]
    tolerance: float
    alpha: float
    ignored: tuple[RowName, ...]
    refuted: dict[RowName, tuple[float, StepRow, tuple[Batch, Batch]]] = field(default_factory=dict)
    untested: dict[RowName, str] = field(default_factory=dict)
    seen: dict[RowName, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    pairs: int = 0
    worst: _Move | None = None
    mu: tuple[float, float, float] = (math.nan, math.nan, math.inf)
    sigma: tuple[tuple[str, float], ...] = ()
    coins: int = 2  # coins of each comparison
    layout: Layout = field(init=False)
    noisy: Any = field(init=False)  # flags of the numbers that get noise
    alone: Any = field(init=False)  # and of those whose noise no earlier number has
    moved: Any = field(init=False)  # flags of the numbers that an example moved
    scale: Doubles = field(init=False)  # first estimate of the standard deviation, by number
    twins: tuple[Any, Any, Doubles] = field(init=False)  # numbers with the noise of another, that one, and the factor
    _moves: list[tuple[Batch, Batch, Doubles]] = field(default_factory=list)  # with the norms by tensor
    _scales: list[tuple[float, Batch, Batch, slice]] = field(default_factory=list)
    _kept: dict[int, Output] = field(default_factory=dict)
    _best: Batch = field(init=False)  # the example that moved the output most

    def refute(self, row: RowName, size: float, found: str, x: Batch, y: Batch, at: int | None = None) -> None:
        """Keep a counterexample; of several for one row the largest."""
        if row not in self.refuted or _beats(size, self.refuted[row][0]):
            tensor = "" if at is None else self.layout.name_at(at)
            told = StepRow(name=row, verdict=Verdict.REFUTED, found=found, x=x.words, y=y.words, tensor=tensor)
            self.refuted[row] = size, told, (x, y)

    def run(self) -> None:
        """Run the step on all batches; the order is that of what later ones assume."""
        if not self._first_runs():
            return
        self._neighbours()
        self._judge_scales()
        self._successive_calls()
        # Outputs of batches with other noise do not compare, whether or not counts refute that noise.
        is_one_noise = not self._scales and "noise-scale" not in self.refuted
        can_go_on = self.worst is not None and self.noisy.any() and is_one_noise
        if can_go_on:
            self._companions()
        if self._change_since(self._kept[0]) is not None:
            self.refuted, self.pairs = {}, 0
            told = (
                "after other batches, the same batch and coins give another output: the step keeps state, perhaps of a "
                "batch on which it failed; restore it after each call"
            )
            self.untested = {"noise-scale": told}
        elif can_go_on:
            self._judge_noise()

    def _output(self, batch: Batch, coins: int) -> Output:
        """Return an output; those of the first coins on the batch that was passed are kept, since all pairs have it."""
        if batch is not self.base or coins >= _Coins.MEASURED:
            return self.step(batch, coins)
        if coins not in self._kept:
            self._kept[coins] = self.step(batch, coins)
        return self._kept[coins]

    def _vector(self, batch: Batch, coins: int) -> Doubles:
        return self.layout.vector(self._output(batch, coins))

    def _change_since(self, first: Output) -> str | None:
        """Return where the first coins give another output on the batch than at first; None if nowhere."""
        again = self.step(self.base, 0)
        if told := again.error or self.layout.misfit(again):
            return told
        apart = np.flatnonzero(self.layout.are_apart(*map(self.layout.vector, (first, again))))
        return self.layout.name_at(apart[0]) if apart.size else None

    # First runs: are the coins all that is random, and which numbers get noise?

    def _first_runs(self) -> bool:
        first, name = self._output(self.base, 0), self.step.name
        if first.error:
            raise MechanismError(f"{name} fails on the batch: {first.error}; pass a batch that it takes.")
        if first.not_finite:
            told = f"{name} returns numbers that are not finite on the batch ({first.not_finite})"
            raise MechanismError(f"{told}; start from finite parameters and examples.", mechanism=name)
        self.layout = layout = Layout(first, self.derived or getattr(self.step.function, "derived", ()))
        if unknown := [each for each in self.derived if not layout.has(each)]:
            names = ", ".join(filter(None, layout.shapes))
            told = f"derived={shorten(unknown[0])} is not a tensor that {name} returns"
            raise OptionError(f"{told}; use {f'one of {names}' if names else 'it for dictionaries of tensors'}.")
        outputs = [self._output(self.base, coins) for coins in range(self._needed_to_pair())]
        changed = next((told for each in outputs if (told := each.error or layout.misfit(each))), None)
        draws = np.stack([layout.vector(each) for each in outputs])
        if changed is None:
            layout.find_grid(draws)
            changed = self._change_since(first)
        if changed is not None:
            where = f" ({changed})" if changed else ""
            self.untested["noise-scale"] = (
                f"with the same coins the same batch gave another output{where}; the step keeps state between calls, "
                "or draws from a generator that it did not get: take the generator as a second parameter, and restore "
                "parameters and buffers (torch_step does)"
            )
            return False
        self.noisy = (np.ptp(draws, axis=0) > 0.0) & layout.is_primary
        self.moved, self.scale, unsure = np.zeros(layout.size, dtype=bool), np.ones(layout.size), layout.rounding(draws)
        for span in layout.spans.values():
            if (flags := self.noisy[span]).any():
                self.scale[span] = math.sqrt(float(draws[:, span][:, flags].var(axis=0, ddof=1).mean()))
        # A fit of eight numbers tells noise of another scale from other noise.
        self.coins = 2 + math.ceil(8 / max(int(self.noisy.sum()), 1)) if self.noisy.any() else 2
        self._find_twins(draws)
        for span in layout.spans.values():
            if self.noisy[span].any() and unsure[span].max() > self.scale[span.start]:
                told = "the output is rounded by more than its noise; return the numbers before they are rounded"
                self._set_aside(span.start, told, self.base, self.base)
        return True

    def _needed_to_pair(self) -> int:
        """Return the runs after which two numbers have proportional noise by chance with 1e-6 at most.

        Noise of d differences, as a direction, lies within τ of a given one with probability of at most (2τ)^(d − 1).
        """
        near = 2.0 * 16.0 * 8.0 * float(self.layout.epsilons.max(initial=1e-12))  # rounding beside 1/8 of a deviation
        if near > 0.1:
            return 4  # half-precision types need more than sixteen, and are not compared
        return 3 + math.ceil(math.log(1e6 * max(self.layout.size, 1) ** 2) / -math.log(near))

    def _find_twins(self, draws: Doubles) -> None:
        """Find numbers whose noise is that of another number, up to a factor: differences point the same way."""
        places = np.flatnonzero(self.noisy)
        differences = (draws[1:] - draws[0])[:, places]
        lengths = np.linalg.norm(differences, axis=0)
        near = 4.0 * self.layout.rounding(draws)[places] / lengths
        self.alone, none = self.noisy.copy(), np.empty(0, dtype=np.intp)
        self.twins = (none, none, np.empty(0))
        if len(places) < 2 or len(places) ** 2 * float(np.median(2.0 * near)) ** (len(differences) - 1) > 1e-6:
            return
        with np.errstate(invalid="ignore"):
            points = differences / (lengths * np.where(differences[0] < 0.0, -1.0, 1.0))
        order = np.argsort(points[0], kind="stable")
        leaders = np.arange(len(places))
        for step in range(1, min(9, len(order))):  # numbers between two twins, by chance
            one, other = order[:-step], order[step:]
            close = (np.abs(points[:, one] - points[:, other]) <= near[one] + near[other]).all(axis=0)
            first, second = np.minimum(one, other)[close], np.maximum(one, other)[close]
            leaders[second] = np.minimum(leaders[second], first)
        followers = np.flatnonzero(leaders != np.arange(len(places)))
        lead = leaders[followers]
        products = np.einsum("ij,ij->j", differences[:, followers], differences[:, lead])
        self.twins = places[followers], places[lead], products / lengths[lead] ** 2
        self.alone[self.twins[0]] = False

    # Neighbours.

    @property
    def _may_add(self) -> bool:
        return isinstance(self.adjacency, AddRemove)

    def _neighbours(self) -> None:
        base, n = self.base, len(self.base)
        examples = list(examples_of(base, self.more, makes_up=self.makes_up))
        null = self._null_example(self.adjacency.null) if isinstance(self.adjacency, ZeroOut) else None

        def before(place: int) -> Batch:
            """The batch whose example at a place is replaced by others: the null example, if neighbours have one."""
            return (
                base if null is None else base.with_at(place, null, f"{base.words}, example {place} the null example")
            )

        if self._may_add:
            self._refuse_one_size()
            for place in dict.fromkeys((0, n // 2, n - 1)):
                self._compare(base, base.take(np.delete(np.arange(n), place), f"the same without example {place}"))
            changed = [base.plus(each, f"{base.words} and {each.words}") for each in examples]
        else:
            changed = [base.with_at(n - 1, each, f"{base.words}, its last one {each.words}") for each in examples]
        kept = base if self._may_add else before(n - 1)
        reached = [self._compare(each, kept) for each in changed]
        best = next(place for place, mu in enumerate(reached) if not _beats(max(reached), mu))
        self._best = examples[best]
        if self._may_add:
            self._sizes()
            return
        for other in changed if null is None else ():
            self._compare(changed[best], other)
        for place in dict.fromkeys((0, n // 2)):
            words = f"{base.words}, example {place} now {self._best.words}"
            self._compare(base.with_at(place, self._best, words), before(place))

    def _null_example(self, null: Any) -> Batch:
        try:
            return Batch(tuple(np.full_like(leaf[:1], null) for leaf in self.base.leaves), "the null example")
        except (TypeError, ValueError) as error:
            told = f"null={shorten(null)} is not an example of this batch ({error}); use a number"
            raise OptionError(told, null=null) from error

    def _refuse_one_size(self) -> None:
        """Raise a `MechanismError` if the step takes batches of one size only."""
        n = len(self.base)
        sizes = [size for size in (n - 1, n + 1) if size]
        errors = [self.step(self._cycled(size), 0).error for size in sizes]
        if all(errors):
            told = f"{self.step.name} takes {n} examples, and fails on {' and '.join(map(str, sizes))}: {errors[0]}"
            raise MechanismError(f'{told}; let it take any number, or use adjacency="replace".')

    def _cycled(self, size: int) -> Batch:
        return self.base.take(np.arange(size) % len(self.base), counted(size, "example") if size else "the empty batch")

    def _sizes(self) -> None:
        """Compare batches of other sizes, and those between which the noise changes: parts may have their own."""

        @cache
        def noise(size: int) -> Doubles:
            one, other = (self._vector(self._cycled(size), coins) for coins in (0, 1))
            return np.stack([one - other, self.layout.rounding([one, other])])

        def is_same(low: int, high: int) -> bool:
            (one, unsure), (other, more) = noise(low), noise(high)
            return not (np.abs(one - other) > unsure + more)[self.noisy].any()  # nor without numbers, as on no example

        n = len(self.base)
        sizes = sorted({0, 1, 2, 3, n, *(2**power for power in range(2, 20) if 2**power < n)})
        for size in sizes:
            batch = self._cycled(size)
            self._compare(batch.plus(self._best, f"{batch.words} and {self._best.words}"), batch)
        for low, high in pairwise(sizes):
            if not is_same(low, high):
                while high - low > 1:
                    middle = (low + high) // 2
                    low, high = (middle, high) if is_same(low, middle) else (low, middle)
                self._compare(self._cycled(high), self._cycled(low))

    def _compare(self, x: Batch, y: Batch) -> float:
        """Run the step on two neighbours with the same coins, and keep what that refutes; return a first μ, or 0."""
        self.pairs += 1
        sides = [[self._output(batch, coins) for coins in range(self.coins)] for batch in (x, y)]
        bad = [next((each for each in side if each.not_finite), None) for side in sides]
        for word, (one, other) in {"x": bad, "y": bad[::-1]}.items():
            if one and not other:
                what = f"the step raises on {word} only: {one.error}"
                what = what if one.error else f"{one.not_finite} is not finite on {word} only"
                self.refute("not-finite" if len(x) and len(y) else "empty-batch", 1.0, what, x, y)
        if any(bad):
            return 0.0
        if misfit := next((found for side in sides for each in side if (found := self.layout.misfit(each))), ""):
            self.refute("without-noise", math.inf, f"the form of the output shows the batch: {misfit}", x, y)
            return 0.0
        on_x, on_y = (np.stack([self.layout.vector(each) for each in side]) for side in sides)
        rounding = self.layout.rounding([*on_x, *on_y])
        move = (on_x - on_y).mean(axis=0)
        self.moved |= np.abs(move) > rounding
        self._compare_noiseless(x, y, on_x, on_y, rounding)
        if not self._compare_noise(x, y, on_x[1:] - on_x[0], on_y[1:] - on_y[0], rounding):
            return 0.0
        self._compare_twins(x, y, move, rounding)
        own = move[self.alone]
        size, mu = norm(own), norm(own / self.scale[self.alone])
        self._moves.append((x, y, self._by_tensor(move)))
        if self.worst is None or _beats(mu, self.worst.mu):
            self.worst = _Move(x, y, move, size, mu)
        # A norm that is clipped has an error of some of the last digits of its type.
        slack = 1.0 + float(np.sqrt(self.layout.epsilons[self.alone]).max(initial=0.0))
        if self.bound is not None and size - float(np.linalg.norm(rounding[self.alone])) > self.bound * slack:
            told = f"an example moves the output by {size:.6g}, stated {self.bound:g}"
            self.refute("sensitivity", size, told, x, y)
        return mu

    def _by_tensor(self, move: Doubles) -> Doubles:
        """Return the norm in each tensor, over the numbers with their own noise."""
        return np.array([norm(move[span][self.alone[span]]) for span in self.layout.spans.values()])

    def _compare_twins(self, x: Batch, y: Batch, move: Doubles, rounding: Doubles) -> None:
        """Look for numbers with the noise of others that move otherwise: their difference shows the data."""
        follow, lead, factors = self.twins
        apart = np.abs(move[follow] - factors * move[lead])
        # The factor is known up to the rounding of the noise that it was fitted to.
        unsure = 2.0 * (rounding[follow] + np.abs(factors) * rounding[lead])
        unsure = unsure + 4.0 * np.abs(move[lead]) * rounding[follow] / self.scale[lead]
        if (beyond := np.flatnonzero(apart > unsure)).size:
            at = beyond[np.argmax(apart[beyond])]
            one, other = self.layout.name_at(lead[at]), self.layout.name_at(follow[at])
            where = "two of its numbers" if one == other else f"{one} and {other}"
            found = f"{where} have the same noise ({counted(len(follow), 'number')} in all): their difference has none"
            self.refute("repeated-noise", float(apart[at]), found, x, y, int(follow[at]))

    def _compare_noiseless(self, x: Batch, y: Batch, on_x: Doubles, on_y: Doubles, rounding: Doubles) -> None:
        """Look for numbers that the coins do not change, and the data does."""
        still = (np.ptp(on_x, axis=0) == 0.0) & (np.ptp(on_y, axis=0) == 0.0) & ~self.noisy
        moved = np.abs(on_x[0] - on_y[0]) * still
        # The sum over the examples may be in another order.
        moved[moved <= rounding * (1.0 + max(len(x), len(y)) / 16.0)] = 0.0
        if not moved.any():
            return
        at = int(np.argmax(moved))
        sides = ((x, on_x[0][at]), (y, on_y[0][at]))
        n_runs = self._still_runs(is_whole=all(float(value).is_integer() for _, value in sides))
        if n_runs == 0:
            told = "a whole number does not vary, and the claim allows that it depends on the data; use check"
            self.untested["without-noise"] = told
        elif all(self._vector(batch, _Coins.SPARE + k)[at] == value for batch, value in sides for k in range(n_runs)):
            what = "no noise" if self.noisy.any() else "no noise in any number, or noise of a fixed seed"
            found = f"{what}: {on_x[0][at]:.6g} on x, {on_y[0][at]:.6g} on y, with any coins"
            self.refute("without-noise", float(moved[at]), found, x, y, at)

    def _still_runs(self, *, is_whole: bool) -> int:
        """Return the runs on each side after which a number that never varied has no noise.

        Noise shows in the digits of a float. A whole number, such as the place of a largest one, may hide it: then the
        event of this number has p ≥ a and q ≤ 1 − a for a = (alpha/100)^(1/runs), which the claim must not allow.
        """
        if not is_whole or self.claim is None:
            return 8
        for n_runs in (8, 16, 32, 64, 128, 256):
            least_p = (self.alpha / 100.0) ** (1.0 / n_runs)
            if float(self.claim.parameter_of(least_p, 1.0 - least_p)) > self.claim.parameter:
                return n_runs
        return 0  # the claim allows such an event

    def _compare_noise(self, x: Batch, y: Batch, on_x: Doubles, on_y: Doubles, rounding: Doubles) -> bool:
        """Whether two batches have the same noise; else keep its factor, or that it is other noise."""
        apart = (np.abs(on_x - on_y) > 2.0 * rounding) & self.noisy
        on_one = (np.abs(on_x) > 2.0 * rounding).any(axis=0) != (np.abs(on_y) > 2.0 * rounding).any(axis=0)
        if (only := np.flatnonzero(on_one & ~self.noisy & self.layout.is_primary)).size:
            told = f"{counted(len(only), 'number')} of the output get noise on one of the two batches only"
            self._set_aside(int(only[0]), f"{told}; audit the two with check", x, y)
        is_same = True
        for span in self.layout.spans.values():
            if not apart[:, span].any():
                continue
            flags = self.noisy[span]
            one, other = on_x[:, span][:, flags], on_y[:, span][:, flags]
            with np.errstate(all="ignore"):  # NaN where these coins show no noise
                factor = float((one * other).sum() / (one * one).sum())
            near = 2.0 * (1.0 + abs(factor)) * rounding[span][flags]
            if (np.abs(other - factor * one) <= near).all() and one.size >= 2:
                self._scales.append((abs(factor), x, y, span))
                is_same = False
                continue
            if "noise-scale" not in self.untested and self.layout.epsilons[span.start]:
                pairs = [(x, y), (self._cycled(2), self._cycled(1))] if self._may_add else [(x, y)]  # sizes differ most
                for pair in pairs:
                    if "noise-scale" not in self.refuted and (shown := self._counted(*pair, span)):
                        told = f"the noise depends on the data: {shown}"
                        self.refute("noise-scale", 1.0, told, *pair, span.start)
            told = (
                "the same coins give other noise on neighbours: the draws depend on the batch (dropout, augmentation, "
                "shuffling, noise for each part), or the output is not the sum of noise and a function of the batch (a "
                "step of Adam, clipping after the noise); return the noisy gradient and name what is computed from it "
                "in derived=, or give the noise its own generator"
            )
            self._set_aside(span.start, told, x, y)
        return is_same

    def _set_aside(self, place: int, told: str, x: Batch, y: Batch) -> None:
        """Leave the tensor of a number out of all comparisons but that for numbers without noise, and say why."""
        name = self.layout.name_at(place)
        where = f" [{name}]" if name else ""
        pair = "" if x is y else f"; x = {x.words}; y = {y.words}"
        self.untested.setdefault("noise-scale", f"{told}{where}{pair}")
        for flags in (self.layout.is_primary, self.noisy, self.alone):
            flags[self.layout.spans[name]] = False
        follow, lead, factors = self.twins
        stay = self.noisy[follow] & self.noisy[lead]
        self.alone[follow[~stay]] = self.noisy[follow[~stay]]
        self.twins = follow[stay], lead[stay], factors[stay]

    def _counted(self, x: Batch, y: Batch, span: slice) -> str:
        """Return by how much counts of outputs on two batches exceed the claim; empty if they do not.

        The event is how far the output lies from a fixed point, the mean of other outputs.
        """
        # A thousand outputs on each side show noise of twice the scale in two numbers.
        flags, runs = self.noisy[span], int(min(1_000.0, self._most_runs / 4.0))
        if self.claim is None or runs < LEAST_RUNS:
            return ""

        def outputs(batch: Batch, first: int, n: int) -> Doubles:
            return np.stack([self._vector(batch, first + number)[span][flags] for number in range(n)])

        centre = np.concatenate([outputs(each, _Coins.SPARE, 8) for each in (x, y)]).mean(axis=0)
        firsts = zip((x, y), (_Coins.COUNTED, _Coins.COUNTED + runs), strict=True)
        scores = [np.linalg.norm(outputs(each, first, runs) - centre, axis=1) for each, first in firsts]
        if not np.isfinite(scores).all():
            return ""
        found = check_outputs(*scores, claim=self.claim, alpha=self.alpha / 16.0, floating_point="ignore", seed=0)
        return f"{2 * runs:,} outputs show {bound_beside_claim(self.claim, found.bound)}" if found.is_refuted else ""

    def _judge_scales(self) -> None:
        """Refute noise of different scales where nothing is claimed, or where counts of outputs break the claim."""
        if not self._scales:
            return

        def weight(scale: tuple[float, Batch, Batch, slice]) -> tuple[float, int]:
            return round(abs(math.log(max(scale[0], 5e-324))), 3), scale[3].stop - scale[3].start

        ratio, x, y, span = max(self._scales, key=weight)
        found = f"the noise on y is {ratio:.6g} times that on x" if ratio > 1e-6 else "there is noise on x only"
        found = f"{found}: its scale depends on the data"
        shown = self._counted(x, y, span)
        if shown or self.claim is None:
            self.refute("noise-scale", 1.0, f"{found}; {shown}" if shown else found, x, y, span.start)
        else:
            told = f"{found}, which counts of outputs do not show to break {self.claim}"
            told = f"{told}; audit the two batches with check; x = {x.words}, y = {y.words}"
            self.untested.setdefault("noise-scale", told)

    def _successive_calls(self) -> None:
        """Compare the noise of two calls with one generator; a key of jax gives the same noise twice by design."""
        if not self.noisy.any() or self.step.container.library == "jax":
            return
        outputs = self.step.outputs(self.base, 0, 2)
        if not self.layout.are_apart(*map(self.layout.vector, outputs))[self.noisy].any():
            found = "two successive steps with one generator have the same noise: their difference has none"
            self.refute("repeated-noise", math.inf, found, self.base, self.base)

    @property
    def _can_make_up(self) -> bool:
        return self.makes_up and any(map(is_made_up, self.base.leaves))

    # The same example beside other ones, in another order, and twice.

    def _companions(self) -> None:
        base, n, best, last = self.base, len(self.base), self._best, self.base.take([-1], "the last example")
        opposite = last.mapped(partial(times, -1.0), f"{last.words} times -1")  # that another expert may take
        others = [best, last, opposite] if self._can_make_up else [best, last]
        told = "what an example adds depends on the other examples"
        for size in dict.fromkeys((1, max(n - 1, 1))) if self._may_add else (n - 1,):
            sides = [
                base.take(np.arange(size), f"the first {counted(size, 'example')}"),
                base.take(np.arange(n - size, n), f"the last {counted(size, 'example')}"),
                *(each.take(np.zeros(size, int), f"{size} times {each.words}") for each in others),
            ]
            (x, own, unsure), *found = [self._contribution(last, side) for side in sides]
            for y, other, more in found:
                self._judge("isolation", own - other, unsure + more, size + 1, told, x, y)
        mixed = base.plus(best, f"{base.words} and {best.words}") if self._may_add else base
        here, unsure = self._rounded(mixed)
        places = np.arange(len(mixed))
        for order, words in ((places[::-1], "the same in reverse order"), (np.roll(places, 1), "its last one first")):
            turned = mixed.take(order, words)
            there, more = self._rounded(turned)
            told = "the order of the examples changes the output"
            self._judge("order", here - there, unsure + more, n + 1, told, mixed, turned)
        self.seen |= {
            "isolation": "what an example adds does not depend on the others", "order": "the order does not matter",
        }  # fmt: skip
        if self._may_add:
            self._doubled(base.plus(base, "the same, every example twice"))

    def _contribution(self, example: Batch, beside: Batch) -> tuple[Batch, Doubles, Doubles]:
        """Return a batch with an example, and what the example adds, or changes in the place of the first, there."""
        whole = beside.plus(example, f"{beside.words}, and {example.words}")
        less = beside if self._may_add else beside.plus(self.base.take([0], ""), "")
        (one, unsure), (other, more) = self._rounded(whole), self._rounded(less)
        return whole, one - other, unsure + more

    def _doubled(self, twice: Batch) -> None:
        (empty, unsure), (once, more), (double, most) = map(self._rounded, (self._cycled(0), self.base, twice))
        if np.isnan(empty).any():
            self.notes.append("the step gives no numbers for the empty batch, so that it is a sum was not tested")
            return
        self.seen["divisor"] = "every example twice gives twice the sum"
        grown, own = (double - empty) * self.noisy, (once - empty) * self.noisy
        with np.errstate(all="ignore"):
            factor = float((grown * own).sum() / (own * own).sum())
        told = f"every example twice gives {factor:.4g} times the sum, so a number that depends on the batch divides it"
        self._judge("divisor", grown - 2.0 * own, unsure + 2.0 * more + most, len(twice), told, self.base, twice)

    def _rounded(self, batch: Batch) -> tuple[Doubles, Doubles]:
        """Return an output with the first coins, NaN where there is none, and its rounding."""
        vector = self._vector(batch, 0)
        return vector, self.layout.rounding([np.nan_to_num(vector)])

    def _judge(self, row: RowName, apart: Doubles, unsure: Doubles, size: int, told: str, x: Batch, y: Batch) -> None:
        """Refute a row if two outputs are apart by more than rounding.

        Sums of `size` contributions in another order differ by size² roundings; a gradient that is computed beside
        other examples may lose half of the digits of the type. What is computed in float32 may be returned as a double.
        """
        assert self.worst is not None
        within = [float(np.finfo(leaf.dtype).eps) for leaf in self.base.leaves if leaf.dtype.kind == "f"]
        epsilons = np.maximum(self.layout.epsilons, max([float(np.finfo(np.float32).eps), *within]))
        unsure = unsure + self.layout.largest(self.worst.move) * (np.sqrt(epsilons) + size**2 * epsilons)
        if (beyond := np.flatnonzero((np.abs(apart) > unsure) & self.noisy)).size:
            by, at = float(np.linalg.norm(apart[beyond])), int(beyond[np.argmax(np.abs(apart[beyond]))])
            self.refute(row, by, f"{told}, by {by:.4g}", x, y, at)
        elif np.isnan(apart).any():
            self.untested.setdefault(row, f"the step fails, or is not finite, on {x.words} or {y.words}")

    # The noise, and μ.

    def _judge_noise(self) -> None:
        """Measure the noise on runs that nothing was chosen on, and compare it with the largest contribution."""
        worst = cast(_Move, self.worst)
        unsure = 0.5 * self.layout.rounding([self._vector(worst.x, 0), self._vector(worst.y, 0)])  # a mean over coins
        has_noise = [bool(self.alone[span].any()) for span in self.layout.spans.values()]
        spans = dict(compress(self.layout.spans.items(), has_noise))
        places = [span.start + np.flatnonzero(self.alone[span]) for span in spans.values()]
        measured = Measured(places, np.array([self.scale[span.start] for span in spans.values()]), self.alpha / 2.0)
        moves = self._by_tensor(worst.move)[has_noise]
        measured.add(self._outputs(_Coins.MEASURED, measured.runs_for(moves, self.tolerance)))
        # The first estimates of few numbers are rough: which contribution is the largest may show only now.
        sizes = [norm(norms[has_noise] / measured.sigmas) for _, _, norms in self._moves]
        if _beats(max(sizes), norm(moves / measured.sigmas)):
            x, y, norms = self._moves[int(np.argmax(sizes))]
            move = np.mean([self._vector(x, coins) - self._vector(y, coins) for coins in range(self.coins)], axis=0)
            self.worst = worst = _Move(x, y, move, norm(move[self.alone]), max(sizes))
            moves = norms[has_noise]
            more = measured.runs_for(moves, self.tolerance) - measured.runs
            measured.add(self._outputs(_Coins.MEASURED + measured.runs, more) if more > 0.0 else ())
        self.sigma = tuple(zip(spans, measured.sigmas.tolist(), strict=True))
        self.mu = measured.mu(moves, self._by_tensor(unsure)[has_noise])
        self.seen["privacy"] = "mu between {1:.4g} and {2:.4g}".format(*self.mu)
        if not_normal := measured.not_normal([*spans], unsure):
            self.untested["gaussian"] = not_normal
        if told := self._judge_claim(worst, unsure):
            self.untested["privacy"] = told

    def _judge_claim(self, worst: _Move, unsure: Doubles) -> str:
        """Refute the claim if it allows no such contribution; return why it cannot be tested, empty if it was."""
        claim, (middle, low, high), found = self.claim, self.mu, self.seen["privacy"]
        if not worst.mu > 0.0:
            return "no example moved the output; does the step use its batch?"
        if "gaussian" in self.untested and "gaussian" not in self.ignored:
            return "the interval of mu is for normal noise; audit other noise with check"
        if claim is None:
            return ""
        if claim.log_ratio is not None:
            told = "normal noise keeps no pure claim, and the tails of other noise do not show"
            return f"{told}; claim GaussianDP or (epsilon, delta), or use check"
        if needed_for_mu(claim, low) > claim.parameter:
            excess = excess_of_mu(claim, middle)
            # All but one in 30,000 such excesses are confirmed, and an estimate tells them from the claim.
            runs = 0.5 * ((ndtri(self.alpha / 2.0) - 4.0) / math.log(excess)) ** 2 + 16.0
            least_mu, estimate = self._confirmed(worst.move, unsure, runs)
            needed = needed_for_mu(claim, least_mu)
            told = f"{found}, if all numbers have independent noise, which runs along the contribution do not confirm"
            if needed > claim.parameter:
                self.refute("privacy", needed, f"{bound_beside_claim(claim, needed)}; {found}", worst.x, worst.y)
            elif runs >= self._most_runs:
                return f"{told}, as more than {self._most_runs:,.0f} take too long; check a smaller model"
            elif estimate > middle / math.sqrt(excess):
                return f"{told}; run it again with another seed, or a larger alpha"
            else:
                self.notes.append(told)
        elif high > (1.0 + 4.0 * self.tolerance) * low:
            told = f"{found}, too wide for tolerance={self.tolerance:g}"
            return f"{told}; return the noisy gradient instead of the parameters, or float64"
        return ""

    @property
    def _most_runs(self) -> float:
        """As many runs as take half a minute for the random numbers only."""
        return 5e8 / self.layout.size

    def _outputs(self, first: int, runs: float) -> Iterator[Doubles]:
        """Yield outputs with fresh coins."""
        for number in range(2 + math.ceil(min(runs, self._most_runs))):
            yield self._vector(self.base, first + number)

    def _confirmed(self, move: Doubles, unsure: Doubles, runs: float) -> tuple[float, float]:
        """Return a lower limit of μ along the direction of the contribution, and μ, for any noise that numbers share.

        The output times a vector is one normal number, whose variance has the interval of chi-square.
        """
        weights = np.where(self.alone, move / norm(move) / self.scale**2, 0.0)
        along = np.array([float(weights @ output) for output in self._outputs(_Coins.CONFIRMED, runs)])
        shift = float(weights @ move) - float(np.abs(weights) @ unsure)
        half = (len(along) - 1) / 2.0
        deviation = float(along.std(ddof=1))
        if not deviation > 0.0:
            return 0.0, 0.0
        return shift / deviation * math.sqrt(float(gammaincinv(half, self.alpha / 2.0)) / half), shift / deviation

    # The result.

    def result(self) -> StepResult:
        if not (rows := tuple(self._rows())):
            raise OptionError("ignore leaves no row of the check; ignore fewer.")
        mu, low, high = self.mu
        return StepResult(
            step=self.step.name, claim=self.claim, adjacency=str(self.adjacency), rows=rows, mu=mu,
            mu_lower=low, mu_upper=high, sigma=self.sigma, bound=self.bound, notes=tuple(self._all_notes()),
            sensitivity=math.nan if self.worst is None else self.worst.size, runs=self.step.steps,
            alpha=self.alpha, seed=self.step.seed, versions=versions(),
        )  # fmt: skip

    def _rows(self) -> Iterator[StepRow]:
        """Yield the rows of what was tested, and of what could not be."""
        held = self._held()
        for name in ROWS:
            if name in self.ignored:
                continue
            if name in self.refuted:
                _, row, pair = self.refuted[name]
                is_of_noise = name in ("noise-scale", "privacy", "sensitivity")  # a replay names calls that draw
                yield replace(row, place=self._place(*pair)) if is_of_noise else row
            elif name in self.untested:
                yield StepRow(name=name, verdict=Verdict.INCONCLUSIVE, found=self.untested[name])
            elif held.get(name):
                yield StepRow(name=name, verdict=Verdict.NOT_REFUTED, found=held[name])

    def _place(self, x: Batch, y: Batch) -> str:
        """Return the line of code that a replay blames for a pair; empty if it names none, or records no such step."""
        container, step = self.step.container, self.step.function
        if container.library == "jax":
            return ""

        def with_own_generator(batch: Any) -> Any:
            generator = sys.modules["torch"].Generator()
            generator.seed()  # recorded
            return step(batch, generator)

        if container.library == "torch" and self.step.takes_coins:
            with_own_generator.__name__ = self.step.name
            step = with_own_generator
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):  # as when the step was run
                pair = container.of(x), container.of(y)
                found = replay(step, *pair, claim=self.claim, seconds=10.0).findings
        except AuditError:  # of a step that replay cannot run, whose verdict does not depend on it
            return ""
        return next((str(each.place) for each in found if each.place is not None), "")

    def _held(self) -> dict[RowName, str]:
        """Return what was seen of the rows that were tested; empty texts of those that were not."""
        if self.pairs == 0:
            return {}
        found: dict[RowName, str] = {
            "without-noise": "nothing that moves is without noise",
            "not-finite": "numbers that are not finite show no more than others" * self._can_make_up,
            "empty-batch": "the empty batch is like others" * self._may_add,
        }
        if "noise-scale" in self.untested or self.worst is None or not self.noisy.any():
            return found
        of_noise: dict[RowName, str] = {
            "noise-scale": f"the same noise on {counted(self.pairs, 'pair')} of batches",
            "sensitivity": f"at most {self.worst.size:.6g}, stated {self.bound:g}" if self.bound else "",
            "repeated-noise": "no two numbers have the same noise",
            "gaussian": "normal, with one scale in each tensor",
        }
        return found | of_noise | self.seen

    def _all_notes(self) -> Iterator[str]:
        """Yield what a reader should know beside the rows."""
        yield from self.notes
        if not self.pairs:
            return
        if "noise-scale" not in self.untested:
            still = [
                (name or "the output", self.noisy[span].any())
                for name, span in self.layout.spans.items()
                if self.layout.is_primary[span].all() and not self.moved[span].any()
            ]
            for has_noise, words in ((False, "has no noise"), (True, "has noise")):
                if names := [name for name, has in still if has == has_noise]:
                    yield f"no example moves {few(names)}, which {words}; is it trained?"
        if not self._can_make_up and self.more is None:
            yield "no example was made up, so the clipping of large gradients was not tested; pass some as examples="
        if len(self.twins[0]) and "repeated-noise" not in self.refuted:
            one, other = (self.layout.name_at(int(each[0])) for each in self.twins[:2])
            yield f"{one} has the noise of {other} and moves with it, and is counted once"
        if self.layout.epsilons.max(initial=0.0) > 1e-4:
            yield "numbers of half precision: rounding hides small differences"
