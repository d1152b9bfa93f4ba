"""Record a run on x, put its random values back on y, and compare what each noise primitive was given.

In ``answer + rng.laplace(scale=s)`` the primitive is not given the answer. With the same noise put back, the outputs on
x and y differ by the move of the answer, if they are affine in the noise at all values tried.

Proof: docs/proofs/replay.md
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import repeat
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..claims.claim import Array, Claim, claim_at
from ..datasets.contents import difference, numbers_of, output_distance, same_form, same_output
from ..errors import MechanismError, OptionError, described
from ..floating_point_errors import with_own_arithmetic
from ..known_options import with_known_options
from ..options import checked, checked_seed, names_in
from ..printing import counted, did_you_mean, shorten
from ..results.claim_pair_and_alpha import stated
from ..results.verdict import ReplayVerdict
from ..sampling.object_identity import versions
from ..sampling.sampler import OutputPart, as_sampler, picked
from .distributions import INITIAL_WEIGHTS, SLACK, Distribution, matched_rows
from .recorded_run import REPEATS, DatasetChangedError, NoiseLostError, RecordedRun, Runner, other_seed
from .registered import registered_names
from .replay_findings import NOT_NOISE, call_findings, judged, path_findings, public_findings
from .replay_result import (
    Finding,
    FindingKind,
    ReplayedCall,
    ReplayResult,
    is_kept,
    is_larger,
    named,
    paired_calls,
    total_loss,
)
from .reruns import (
    DRAWS,
    MOST_NUMBERS,
    SIDES,
    Calls,
    Changes,
    Reruns,
    UntriedError,
    at_its_middle,
    form_of,
    has_its_distributions,
    in_units,
    moved_by,
    one_of,
    outcomes_of,
)
from .tape import Line, only_recording


@with_known_options()
@with_own_arithmetic
def replay(
    mechanism: Any,
    x: Any,
    y: Any,
    *,
    claim: Any = None,
    adjacency: Any = None,
    distance: float = 1.0,
    output: OutputPart | None = None,
    primitives: Iterable[str] | None = None,
    seed: int | None = 0,
    seconds: float | None = None,
) -> ReplayResult:
    """Compare what each noise primitive is given on x and on y, where y is given the random values of x.

    The loss of each call is exact where both distributions are known. The sum over the calls bounds the loss of the
    output on this path where every random value is recorded and nothing but those values carries the data to the
    output. Both are tested, by runs with other values. An excess is a finding at a line of code, not a refutation:
    `check` tests it.

    Parameters
    ----------
    mechanism : callable or object
        As in `check`; a vectorised mechanism draws one run per call.
    x, y : dataset
        Two neighbouring datasets.
    claim : Claim, float, (float, float) or callable, optional
        As in `check`; by default the mechanism's own, if it has one. Without a claim, the only excesses are moves
        beyond declared sensitivities and infinite losses.
    adjacency : Adjacency or str, optional
        As in `check`: the pair is checked.
    distance : float
        Distance between x and y.
    output : str, int or callable, optional
        Part of the output to compare, as in `check`; such as ``lambda model: model.coef_``.
    primitives : iterable of str, optional
        The families to record: "numpy", "random", "scipy", "torch", "diffprivlib", "opendp", "pydp"; all by default.
        The generator that is handed to the mechanism and functions with `noise_primitive` are always recorded.
    seed : int or None
        Fixes the path: the values drawn on x. None draws a seed.
    seconds : float, optional
        Time limit.

    Returns
    -------
    ReplayResult
        Findings by line of code, the calls with their losses, and a verdict about this path.

    Raises
    ------
    ClaimError, AdjacencyError
        For a claim that is none, or a pair that is not adjacent.
    OptionError
        For unknown primitives or an invalid seed.
    MechanismError
        If the mechanism cannot be run, raises on both datasets, takes longer than the time limit, or another replay is
        recording in this process.

    See Also
    --------
    check : Statistical test of an excess.
    noise_primitive : Declaration of another function that draws noise.

    Notes
    -----
    A call that draws t from density p_x on x and p_y on y loses sup |ln p_x(t)/p_y(t)|: |move|/scale for Laplace noise;
    Gaussian noise has μ = ‖move/σ‖₂ instead. The losses add up. They hold for this path; another `seed` takes another.

    References
    ----------
    Dwork & Roth (2014), The algorithmic foundations of differential privacy, Theorem 3.16 (sums of losses). Dong, Roth
    & Su (2022), Gaussian differential privacy, Corollary 3.3. Proof: docs/proofs/replay.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import replay
    >>> def clipped_sum(rows, rng):            # clips to [0, 2]; the noise is for [0, 1]
    ...     return rng.laplace(np.clip(rows, 0, 2).sum(), 1.0)
    >>> result = replay(clipped_sum, [1.0, 5.0], [1.0], claim=1.0, adjacency="add-remove")
    >>> result.calls[0].moved, result.calls[0].worst_loss, result.has_excess
    (2.0, 2.0, True)
    """
    but = _not_recorded(primitives)
    seed = checked_seed(seed)
    sampler = picked(as_sampler(mechanism), output)
    has_claim = claim is not None or hasattr(mechanism, "claim")
    said = stated(mechanism, claim if has_claim else 0.0, adjacency, "")
    claim_or_none = claim_at(said.claim, distance) if has_claim else None
    if said.adjacency is not None:
        said.adjacency.check(x, y, distance)
    if sampler.check_pair is not None:
        sampler.check_pair(x, y, distance)
    remedy = "the one that runs this mechanism; wait for its end, or use another process."
    limit = checked("seconds", seconds, or_none=True)
    with only_recording(sampler.name, remedy):
        first: ReplayResult | None = None
        unfollowed: frozenset[Line] | None = frozenset()
        while True:
            rows = matched_rows(x, y)
            runner = Runner(sampler, seed, unfollowed=unfollowed, seconds=limit, rows=rows, y=y, but=but)
            try:
                with runner.patching():
                    found = _compared(runner, x, y, claim_or_none, distance)
            except NoiseLostError as lost:
                unfollowed = unfollowed | lost.lines if unfollowed is not None and lost.lines - unfollowed else None
                continue
            except DatasetChangedError as error:  # the next run would not see the datasets that were passed
                return ReplayResult(
                    mechanism=sampler.name, claim=claim_or_none, calls=(), unrecorded=True, seed=runner.seed,
                    open_reasons=(f"unrecorded: {error}",), runs=runner.runs, versions=versions(),
                )  # fmt: skip
            is_open = found.verdict is ReplayVerdict.UNDETERMINED
            if not is_open or unfollowed is None or not (unfollowed or any(call.is_added for call in found.calls)):
                return found if first is None or not is_open else first
            first, unfollowed = found, None  # factors of the noise may explain outputs that differ with the same sums


def _not_recorded(primitives: Iterable[str] | None) -> set[str]:
    """Return the families that an option for those to record leaves out."""
    known = registered_names()
    names = names_in(known if primitives is None else primitives)
    for name in names:
        if not isinstance(name, str) or name not in known:
            meant = did_you_mean(shorten(name), known, otherwise=".")
            told = (
                f"primitives={shorten(name)} is not a family of noise primitives{meant} Use some of {', '.join(known)}."
            )
            raise OptionError(told, primitives=name)
    return set(known).difference(names)


def _compared(runner: Runner, x: Any, y: Any, claim: Claim | None, distance: float) -> ReplayResult:
    """Return the result of a run on x and one on y with the values of x put back."""
    on_x = runner.run(x)
    on_y = runner.run(y, on_x.tape.calls, seed=other_seed(runner.seed, -1))
    name = runner.sampler.name
    if on_x.error is not None and on_y.error is not None:
        if isinstance(on_x.error, OptionError):
            raise on_x.error
        told = f"{name} raises on both datasets: {described(on_x.error)}. Pass datasets on which it runs."
        raise MechanismError(told, mechanism=name) from on_x.error
    calls = paired_calls(on_x.tape, on_y.tape)
    reruns = Reruns(runner, calls, (x, on_x), (y, on_y))
    # The run on y had values put back as well: of many steps, one rerun on x looks at as many as on both otherwise.
    repeats = (1, 0) if reruns.is_seen_often else (REPEATS, REPEATS)
    varies = [runner.unrecorded(x, on_x, repeats[0], looks_around=True), runner.unrecorded(y, on_y, repeats[1])]
    unrecorded = varies[0].reason or varies[1].reason
    if unrecorded and any(call.is_added for call in calls):
        raise NoiseLostError  # what noise is used for beside the sum would look like this
    repeated, raised = reruns.freely()
    unknown = "" if runner.streams.repeated else runner.streams.unknown
    findings = [*raised, *path_findings(on_x.tape, on_y.tape, on_x.end, on_y.end)]
    reasons: tuple[str, ...]
    if findings:
        reasons = ("the runs on x and y do not take the same path, so their outputs are not compared",)
    elif unrecorded or repeated or unknown:
        reasons = ()  # outputs that differ may differ by what is not recorded, or noise by what was drawn before
    else:
        calls, free, reasons = explained(reruns, on_x, on_y, claim)
        if not free and not reasons:
            reasons = tuple(filter(None, [_worse_elsewhere(calls, reruns, claim)]))
        findings += free
    is_recorded = not (unrecorded or repeated or (unknown and not on_x.tape.seeds))
    is_determined, tapes = not any(each.is_in_calls for each in varies), (on_x.tape, on_y.tape)
    findings += public_findings(on_x.tape, on_y.tape, is_recorded=is_recorded)
    findings += judged(calls, claim, distance, reruns, tapes, is_recorded=is_recorded, is_determined=is_determined)
    same = "if that does not change, its noise is the same in every run"
    fixed = [f"a generator is seeded with {seed} at {place}; {same}" for place, seed in on_x.tape.seeds[:1]]
    open_reasons = filter(None, (unrecorded, *reasons, *fixed, unknown, repeated, *_doubts(calls, reruns.elsewhere)))
    return ReplayResult(
        mechanism=name,
        claim=claim,
        calls=calls,
        open_reasons=tuple(open_reasons),
        unrecorded=bool(unrecorded),
        seed=runner.seed,
        runs=runner.runs,
        versions=versions(),
        findings=tuple(sorted(findings, key=lambda found: not found.is_excess)),
        notes=tuple(_remarks(runner, reruns)),
        output_on_x=on_x.output,
        output_on_y=on_y.output,
    )


def _remarks(runner: Runner, reruns: Reruns) -> Iterator[str]:
    """Yield what leaves nothing open, and what was not looked at."""
    if runner.changes_datasets:
        yield "the mechanism changes its dataset; each run was given a copy"
    if any(call.is_shared and call.distribution_on_x.name != INITIAL_WEIGHTS for call in reruns.calls):
        yield "rows are drawn alike on x and on y, so the loss is that with these batches, without amplification"
    if reruns.not_kept:
        seen = len(reruns.elsewhere)
        yield (
            f"there are so many calls that their losses were compared at {seen:,} of {seen + reruns.not_kept:,} other "
            "values of the draws"
        )


def _doubts(calls: Calls, elsewhere: list[Calls]) -> Iterator[str]:
    """Yield why draws leave the result open: no batch shows the row, or their loss is not known or only stated."""
    batches = [call for call in calls if call.is_shared and call.distribution_on_x.name in NOT_NOISE]
    is_lost = any(call.worst_loss != 0.0 for calls_there in (calls, *elsewhere) for call in calls_there)
    if batches and not is_lost and outcomes_of(batches[0]) is None:
        yield f"no batch that {batches[0].words} drew shows the row that differs; try another seed"
    declared = ((call, call.declared_on_x, call.declared_on_y) for call in calls)
    if others := [call.words for call, x, y in declared if x is not None and y is not None and x.made is not y.made]:
        yield (
            f"not the same measurement: {others[0]} is another object on x and on y, and what it does with its result "
            "cannot be compared; make it once, outside of the mechanism"
        )
    if promises := [call.words for call in calls if call.is_promise]:
        yield (
            f"the loss of {promises[0]} is the one that it states for itself, which is not tested here; confirm it "
            "with check"
        )


def _worse_elsewhere(calls: Calls, reruns: Reruns, claim: Claim | None) -> str:
    """Return which calls lose more than the claim allows at other values of the draws than those recorded."""
    recorded, is_inferred = total_loss(calls), any(call.is_inferred for call in calls)
    for others in reruns.elsewhere:
        if not is_inferred and [*map(form_of, others)] != [*map(form_of, calls)]:
            if claim is not None and not is_kept(claim, others):
                lost = total_loss(others)
                return f"with other values of the draws, other calls are made, which are not within the claim: {lost}"
            continue
        is_same = True
        for before, call, other in zip(reruns.calls, calls, others, strict=True):
            has_its_own = has_its_distributions(before, other)
            if call.is_inferred and ((before.is_unmoved and not other.is_unmoved) or not has_its_own):
                return f"the noise of {call.words} is another one at other values of the draws"
            is_same &= call.is_inferred or has_its_own
        if claim is None or is_same:
            continue
        together = tuple(call if call.is_inferred else other for call, other in zip(calls, others, strict=True))
        loss = total_loss(together)
        if is_larger(loss, recorded) and is_kept(claim, calls) and not is_kept(claim, together):
            return f"at other values of the draws, the calls lose more than the claim allows: {loss}"
    return ""


# Noise that is added outside of its primitive: how far the outputs moved under it.

Flags = npt.NDArray[np.bool_]

MOST_EXPLAINED: Final = 500
"""Most numbers of an output, or of noise, that are explained; the work grows with their third power."""
_STEPS: Final = (3.0, -2.0, -0.5, 0.7)  # scales; the first determines the factors, as the largest
_WHOLE_STEPS: Final = (3, -2, -1, 1)
_FAR_STEPS: Final = (40, -40, 1000, -1000)  # beyond the reach of what clips the output or decides something
_TURNS: Final = len(_STEPS) + len(_FAR_STEPS) + 1  # the last moves the noise to its middle
_JOINT: Final = (0.05, 0.5, 2.0, 20.0)  # scales of joint changes
_INFINITE: Final = math.log(sys.float_info.max)
"""A move of so many scales costs more than any double can say, so what noise remains does not count."""


class Explained(NamedTuple):
    """The calls with the locations that the outputs imply, what moved without noise, and what stays open."""

    calls: Calls
    findings: list[Finding]
    reasons: tuple[str, ...] = ()


def explained(reruns: Reruns, x: RecordedRun, y: RecordedRun, claim: Claim | None) -> Explained:
    """Return what the outputs on x and on y show about noise whose location was not handed over."""
    calls, is_same = reruns.calls, same_output(x.output, y.output)
    if not calls and is_same is False:
        is_certain = reruns.is_fixed()
        vary = () if is_certain else ("unrecorded: the outputs vary, and no random call was recorded",)
        words = "the outputs differ, and no random call was recorded"
        return Explained(calls, [_without_noise(words, is_certain=is_certain)], vary)
    if not calls or (is_same and not any(call.is_bare_noise for call in calls)):
        elsewhere = "no random call was recorded; what is random elsewhere shows at some values only"
        why = reruns.disagreement() if calls else elsewhere
        return Explained(calls, [], (why,) if why else ())
    found, untried = None, ""
    a, b = numbers_of(x.output), numbers_of(y.output)
    if a is not None and b is not None and len(a) and same_form(x.output, y.output):
        outputs = _Outputs(calls, a, b, reruns)
        try:
            found = outputs.inferred(claim)
        except UntriedError as error:
            untried = str(error)
        found = found or outputs.sharing_noise()
    if found is None:
        found = Explained(calls, [], (untried,) if untried else ())
    elif found.calls is not calls or found.findings[0].kind is FindingKind.WITHOUT_NOISE:
        return found
    return found._replace(reasons=found.reasons + _unexplained(calls, x, y))


def _without_noise(text: str, remedy: str = "", *, is_certain: bool) -> Finding:
    """Return what moved as an excess if no values of the draws hide it; else no change that was tried did."""
    loss, text = (math.inf, f"{text}; loss infinite") if is_certain else (None, f"{text} at the values tried")
    kind = FindingKind.WITHOUT_NOISE
    return Finding(kind=kind, place=None, seen=f"{text}{remedy}", loss=loss, is_excess=is_certain)


def _nearby(calls: Calls, claim: Claim | None) -> Iterator[Finding]:
    """Yield losses that hold near the recorded values: the output is clipped, say, farther away."""
    for found in (finding for call in calls for finding in call_findings(call, claim, 1.0) if finding.is_excess):
        text = f"{found.message}, near the recorded values, where the output is a number plus the noise"
        kind = FindingKind.NEAR_THE_VALUES
        yield replace(found, kind=kind, seen=text, cost="", remedy="", is_excess=False)


def _unexplained(calls: Calls, x: RecordedRun, y: RecordedRun) -> tuple[str, ...]:
    """Return why the outputs may depend on the data other than through the recorded values."""
    reasons = []
    bare = [call for call in calls if call.is_bare or call.is_bare_noise]
    if bare:
        number = f"{counted(len(bare), 'call')} {'were' if len(bare) > 1 else 'was'}"
        reasons.append(
            f"{number} not handed what the noise is for ({bare[0].distribution_on_x}: {named(bare)}), and the output "
            "is not a number plus the noise; put noise_primitive on the function that adds the noise, or return the "
            "noisy number too"
        )
    if not same_output(x.output, y.output):
        by = output_distance(x.output, y.output)
        reasons.append(
            f"the outputs differ{'' if by is None else f' by {by:.6g}'} with the same values put back, so they depend "
            "on the data by more than the calls were given; public(value, name) shows whether a divisor does"
        )
    return tuple(reasons) or ("what the draws do to the output is not explained",)


class _Response:
    """What the noise of some calls does to outputs of `n` numbers: the factors of each drawn number, on x and on y."""

    def __init__(self, noise: dict[int, ReplayedCall], n: int, reruns: Reruns) -> None:
        self.noise, self._reruns, self._n = noise, reruns, n
        self.others = np.zeros(n, dtype=bool)  # coordinates that a number changes in another way
        self.is_local = False  # whether the factors hold near the recorded values only
        self.factors: dict[int, Array] = {}
        """By call, of shape (2, outputs, drawn numbers)."""
        sizes = {number: math.prod(call.distribution_on_x.shape) for number, call in noise.items()}
        untried = "so none was changed to see what it does"
        if any(size > MOST_EXPLAINED for size in sizes.values()):
            raise UntriedError(f"more than {MOST_EXPLAINED} numbers are drawn in one call, {untried}")
        tried = sum(size for size in sizes.values() if not size == n > 1)  # the others may be added number by number
        for number, size in sizes.items():
            if tried <= MOST_NUMBERS and size == n > 1:
                if (diagonals := self._diagonals(number)) is not None:
                    self.factors[number] = diagonals
                    continue
                tried += size
            if tried > MOST_NUMBERS:
                raise UntriedError(f"more than {MOST_NUMBERS} numbers are drawn, {untried}")
            self.factors[number] = np.zeros((2, n, size))
            for place in range(size):
                self.factors[number][:, :, place] = self._columns(number, place)

    @cached_property
    def matrix(self) -> Array:
        """The factors of all numbers, on x and on y."""
        return np.concatenate([np.zeros((2, self._n, 0)), *self.factors.values()], axis=2)

    @cached_property
    def scales(self) -> Array:
        """The scales of all numbers."""
        return np.concatenate([np.empty(0), *(np.ravel(_scale(call)) for call in self.noise.values())])

    def is_affine(self) -> bool:
        """Whether joint changes of all numbers, small and large, do to the outputs what the factors say."""
        # Factors that are local are said to hold for small changes of single numbers only.
        return self.is_local or all(map(self._is_affine_on, SIDES, self.matrix))

    def _is_affine_on(self, side: str, matrix: Array) -> bool:
        rng = np.random.default_rng(29)
        for turn in range(DRAWS):
            size = _JOINT[turn % len(_JOINT)]
            units = {i: in_units(c, size * rng.normal(size=c.distribution_on_x.shape)) for i, c in self.noise.items()}
            moves = self._reruns.moves(side, {i: moved_by(self.noise[i], each) for i, each in units.items()})
            if moves is None:
                return False
            by = np.concatenate([np.ravel(each) for each in units.values()])
            allowed = SLACK * np.abs(matrix) @ np.maximum(np.abs(by), self.scales) + 4.0 * moves[1]
            if not np.all(np.abs(moves[0] - matrix @ by) <= allowed):
                return False
        return True

    def _probe(self, number: int, side: str, directions: Iterable[Array]) -> tuple[Array, list[bool], Flags] | None:
        """Return the change of outputs per unit, the steps at which it is that, and which change; or None."""
        call, factor, is_affine, affected = self.noise[number], np.zeros(self._n), [], np.zeros(self._n, dtype=bool)
        for turn, direction in enumerate(directions):
            units = _step(call, direction, turn)
            moves = self._reruns.moves(side, {number: moved_by(call, units)})
            if moves is None:
                return None
            (change, slack), by, scale = moves, units[direction != 0.0], _scale(call)[direction != 0.0]
            affected |= np.abs(change) > slack
            if turn == 0:
                factor = np.where(affected, change / by, 0.0)
            error = np.abs(change - factor * by)
            is_affine.append(bool(np.all(error <= SLACK * np.abs(factor) * np.maximum(np.abs(by), scale) + slack)))
        return factor, is_affine, affected

    def _columns(self, number: int, place: int) -> Array:
        """Return the factors of one number on x and y; zeros if the output is not affine in it nearby."""
        direction, none = one_of(self.noise[number], place), np.zeros((2, self._n))
        found = [self._probe(number, side, repeat(direction, _TURNS)) for side in SIDES]
        if found[0] is None or found[1] is None:
            self.others[:] = True
            return none
        factors, affected = np.array([found[0][0], found[1][0]]), found[0][2] | found[1][2]
        is_near = [all(is_affine[: len(_STEPS)]) for _, is_affine, _ in found]  # type: ignore[misc]
        if all(is_near):
            self.is_local |= not all(found[0][1] + found[1][1])
            if not np.any(affected & np.any(factors == 0.0, axis=0)):  # no change only far away, or on one side only
                return factors
        self.others |= affected
        return none

    def _diagonals(self, number: int) -> Array | None:
        """Return the factors of a vector of noise that is added number by number; None if it is not."""
        found = []
        for side in SIDES:
            rng, shape = np.random.default_rng((number, 29)), self.noise[number].distribution_on_x.shape
            directions = (rng.choice([-1.0, 1.0], shape) * rng.uniform(0.5, 1.0, shape) for _ in range(_TURNS))
            probed = self._probe(number, side, directions)
            if probed is None or not all(probed[1]):
                return None
            found.append(np.diag(probed[0]))
        return np.array(found)


def _scale(call: ReplayedCall) -> Array:
    return np.asarray(call.distribution_on_x.scale)


def _step(call: ReplayedCall, direction: Array, turn: int) -> Array:
    """Return a change of the value, in its units: near ones, far ones, and at last that to the middle of the noise."""
    near = _WHOLE_STEPS if call.distribution_on_x.is_integer_valued else _STEPS
    if turn < len(near) + len(_FAR_STEPS):
        return in_units(call, (*near, *_FAR_STEPS)[turn] * direction)
    middle = (np.asarray(at_its_middle(call), float) - np.asarray(call.value)).reshape(direction.shape)
    return np.where(direction != 0.0, middle, 0.0)


class _Outputs:
    """The outputs of the runs on x and y, of which the moves are explained."""

    def __init__(self, calls: Calls, x: Array, y: Array, reruns: Reruns) -> None:
        self.calls, self.x, self.y, self._reruns = calls, x, y, reruns
        self.distance, self.slack = difference(y, x), reruns.rounding(x, y)

    def inferred(self, claim: Claim | None) -> Explained | None:
        """Return the calls with the locations or scales that the outputs imply, or what moved without noise."""
        if len(self.x) > MOST_EXPLAINED:
            raise UntriedError(f"the output has more than {MOST_EXPLAINED} numbers, so none was explained")
        added = {i: call for i, call in enumerate(self.calls) if call.is_bare_noise or _has_another_scale(call)}
        found = _Response(added, len(self.x), self._reruns)
        noisy, is_moved = np.any(found.matrix != 0.0, axis=(0, 2)), self.distance != 0.0
        others = found.others | self._reruns.touched(set(added), len(self.x))
        free = np.flatnonzero(is_moved & ~others & ~noisy)
        if len(free):
            far, is_certain = float(np.abs(self.distance[free]).sum()), self._differ_always(free, found)
            where = f"coordinate {_listed(free)} of the output" if len(self.x) > 1 else "the output"
            return self._moved(f"{where} moved by {far:.6g}, and no recorded draw changes it", is_certain=is_certain)
        if not added or np.any(others & (noisy | is_moved)) or not found.is_affine():
            return None
        on_x, on_y = found.matrix
        # A factor is the change of the output over a step of about its size, so both ends of it are rounded.
        close = max(SLACK, 8.0 * self._reruns.relative_rounding)
        is_same = bool(np.all(np.abs(on_x - on_y) <= close * np.maximum(np.abs(on_x), np.abs(on_y))))
        if is_same and all(call.is_bare_noise for call in added.values()):
            shifts = _shifts({i: part[0] for i, part in found.factors.items()}, self.distance, self.slack)
            inferred = None if shifts is None else {i: _shifted(self.calls[i], each) for i, each in shifts.items()}
            slopes = np.zeros_like(on_x)
        else:
            inferred, slopes = self._scaled(found), on_y - on_x
        if inferred is None:
            return None
        calls = tuple(inferred.get(i, call) for i, call in enumerate(self.calls))
        if found.is_local:
            near = list(_nearby(calls, claim))
            return Explained(self.calls, near) if near else None

        def apart(changed: Changes) -> Array:
            values = ((np.asarray(changed.get(i, c.value), float), np.asarray(c.value)) for i, c in added.items())
            return np.asarray(self.distance + slopes @ np.concatenate([np.ravel(a - b) for a, b in values]))

        if why := self._reruns.disagreement(apart, np.abs(on_x) @ found.scales):
            raise UntriedError(why)
        return Explained(calls, [])

    def _moved(self, text: str, remedy: str = "", *, is_certain: bool) -> Explained:
        reasons = () if is_certain else ("whether a draw decides about what moved is not known",)
        return Explained(self.calls, [_without_noise(text, remedy, is_certain=is_certain)], reasons)

    def _scaled(self, found: _Response) -> dict[int, ReplayedCall] | None:
        """Return the calls with the distributions of the outputs, if no output has two draws, and no draw two."""
        shows = np.any(found.matrix != 0.0, axis=0)
        if not np.all(shows.sum(axis=0) == 1) or not np.all(shows.sum(axis=1) <= 1):
            return None
        inferred = {}
        for number, sides in found.factors.items():
            call, distributions = self.calls[number], []
            if call.distribution_on_x.is_integer_valued:
                return None
            rows = np.argmax(np.any(sides != 0.0, axis=0), axis=0)
            for part, output, distribution in zip(sides, (self.x, self.y), call.both, strict=True):
                factor = part[rows, np.arange(part.shape[1])]
                location = output[rows] - factor * np.ravel(np.asarray(call.value) - distribution.location)
                scale = np.abs(factor) * np.ravel(distribution.scale)  # type: ignore[arg-type]
                held = {"location": location.reshape(distribution.shape), "scale": scale.reshape(distribution.shape)}
                distributions.append(Distribution(distribution.name, held, distribution.shape))
            value = self.x[rows].reshape(call.distribution_on_x.shape)
            inferred[number] = call.given(*distributions, value=value, is_inferred=True)
        return inferred

    def _differ_always(self, free: npt.NDArray[np.intp], found: _Response) -> bool:
        """Whether no values on y give the output of x: the other coordinates allow one, at which these differ still."""
        if not all(call.is_shifted for call in self.calls) or found.others.any() or found.is_local:
            return False
        more = self._affine({i: call for i, call in enumerate(self.calls) if i not in found.noise})
        if more is None:
            return False
        rest = np.setdiff1d(np.arange(len(self.x)), free)
        factors = {i: part[1, rest] for i, part in {**found.factors, **more.factors}.items()}
        shifts = _shifts(factors, -self.distance[rest], self._reruns.rounding(self.x, self.x)[rest])
        if shifts is None:
            return False
        rng = np.random.default_rng(29)
        for size in (0.0, 1e-3, 1e-3):
            changed = {}
            for i, shift in shifts.items():
                call, near = self.calls[i], size * rng.normal(size=shift.shape)
                changed[i] = moved_by(call, shift + in_units(call, near))
            out = self._reruns.numbers("y", changed)
            if out is None or not np.all(difference(out, self.x)[free] != 0.0):
                return False
        return True

    def _affine(self, noise: dict[int, ReplayedCall]) -> _Response | None:
        """Return what noise does to the outputs; None if they are not affine in it as far away as is tried."""
        try:
            found = _Response(noise, len(self.x), self._reruns)
        except UntriedError:
            return None
        return None if found.others.any() or found.is_local else found

    def sharing_noise(self) -> Explained | None:
        """Return coordinates of which a combination differs although no fresh draws change it, or None."""
        distance, drawn = self.distance, sum(int(np.size(call.value)) for call in self.calls)
        most = min(len(self.x), drawn)
        if len(self.x) < 2 or most > MOST_NUMBERS or not (np.any(distance != 0.0) and np.isfinite(distance).all()):
            return None
        found: list[Array] = []
        for changed in (self._reruns.anew() for _ in range(most + 2 * DRAWS)):
            for side, base in zip(SIDES, (self.x, self.y), strict=True):
                out = self._reruns.numbers(side, changed)
                if out is None or not np.isfinite(out).all():
                    return None
                found.append(difference(out, base))
        moves = np.array(found).T
        learned = (moves / np.maximum(np.abs(moves).max(axis=0), np.finfo(float).tiny))[:, : -2 * DRAWS]
        # Singular values below the root of the precision are those of rounding.
        rest = distance - learned @ np.linalg.lstsq(learned, distance, rcond=1e-8)[0]
        if not np.abs(rest).max() > SLACK * np.abs(distance).max() + 4.0 * self.slack.max():
            return None
        rest = np.where(np.abs(rest) > 1e-6 * np.abs(rest).max(), rest / np.abs(rest).max(), 0.0)
        far, held = abs(float(rest @ distance)), rest != 0.0
        if not far > _INFINITE * max(float(np.abs(rest @ moves).max()), float(np.abs(rest) @ self.slack)):
            return None
        every, sharing = set(range(len(self.calls))), []
        for number in every:
            alone = self._reruns.moves("x", self._reruns.anew(every - {number}))
            if alone is not None and np.count_nonzero(alone[0][held]) > 1:
                sharing.append(number)
        if not sharing:
            return None
        names = ", ".join(dict.fromkeys(self.calls[number].words for number in sharing))
        text = (
            f"coordinates {_listed(np.flatnonzero(held))} of the output contain the same noise ({names}), and a "
            f"combination of them without noise moved by {far:.6g}"
        )
        is_noise = all(call.is_shifted for call in self.calls)
        response = self._affine(dict(enumerate(self.calls))) if is_noise else None
        is_certain = response is not None and response.is_affine()
        return self._moved(text, "; draw noise for each coordinate", is_certain=is_certain)


def _listed(places: npt.NDArray[np.intp]) -> str:
    return ", ".join(map(str, places[:4])) + ", …" * (len(places) > 4)


def _has_another_scale(call: ReplayedCall) -> bool:
    """Whether a call is noise about 0 on x and on y whose scale differs, such as that of a mean of so many rows."""
    x, y = call.distribution_on_x, call.distribution_on_y
    is_same = call.differing == frozenset({"scale"}) and x.shape == y.shape
    return is_same and call.is_shifted and not call.is_inferred and not np.any(x.location) and not np.any(y.location)


def _shifts(factors: dict[int, Array], distance: Array, slack: Array) -> dict[int, Array] | None:
    """Return by how much each noise must shift for the outputs to agree, if there is exactly one way; else None."""
    matrix = np.concatenate(list(factors.values()), axis=1)
    if not np.any(matrix != 0.0, axis=0).all() or not np.isfinite(distance).all():
        return None  # a draw that does not show in the output may decide something
    size = np.abs(matrix).max(axis=0)
    shift, _, rank, _ = np.linalg.lstsq(matrix / size, distance, rcond=None)
    if rank < matrix.shape[1]:
        return None
    shift = shift / size
    if not np.all(np.abs(matrix @ shift - distance) <= 1e-9 * np.abs(distance) + 2.0 * slack):
        return None
    ends = np.cumsum([part.shape[1] for part in factors.values()])[:-1]
    return dict(zip(factors, np.split(shift, ends), strict=True))


def _shifted(call: ReplayedCall, shift: Array) -> ReplayedCall:
    """Return the call with its location on x, and shifted on y; by a whole number if that is one up to rounding."""
    distribution, location = call.distribution_on_x, np.array(call.distribution_on_x.location, dtype=np.float64)
    if distribution.is_integer_valued:
        near = np.round(shift)
        shift = np.where(np.abs(shift - near) <= 1e-9 * np.abs(near), near, shift)
    parameters = (
        {**distribution.parameters, "location": location + by} for by in (0.0, shift.reshape(distribution.shape))
    )
    return call.given(
        *(Distribution(distribution.name, held, distribution.shape) for held in parameters), is_inferred=True
    )
