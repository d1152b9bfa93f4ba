"""Record a run on x, put its random values back on y, and compare what each noise primitive was given.

Most defects of private libraries are mistakes of sensitivity: a primitive is given a number that moves further between
neighbours than its noise is for. That shows in two runs, without statistics.

Proof: docs/proofs/replay.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..claims.claim import Claim, claim_at
from ..errors import MechanismError, OptionError, described
from ..floating_point_errors import with_own_arithmetic
from ..known_options import with_known_options
from ..options import checked_seed, names_in
from ..printing import did_you_mean, shorten
from ..procedures.check import stated
from ..sampling.sampler import OutputPart, as_sampler, picked
from .added_noise import explained
from .excess import judged
from .output_values import output_distance
from .recorded_run import DatasetChangedError, Runner, other_seed
from .registered import registered_names
from .replay_findings import path_findings
from .replay_result import ReplayResult, is_kept, is_larger, loss_words, paired_calls, total_loss
from .reruns import Calls, Reruns, has_its_distributions
from .tape import only_recording


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
) -> ReplayResult:
    """Compare what each noise primitive is given on x and on y, where y is given the random values of x.

    The loss of each call is exact where both distributions are known. The sum over the calls bounds the loss of the
    output on this path where every random value is recorded and nothing but those values carries the data to the
    output. Both are tested, by runs with other values. An excess is a finding at a line of code, not a refutation:
    `check` tests it.

    Parameters
    ----------
    mechanism : callable or object
        As in `check`; a block sampler draws a block of one run. The generator that it is given records. So do functions
        of `numpy.random` and `random`, generators that the mechanism creates by `numpy.random.default_rng`, `rvs` of
        scipy.stats, functions with `noise_primitive`, mechanisms of diffprivlib, measurements of OpenDP and
        `add_noise` of PyDP, wherever they are called.
    x, y : dataset
        Two neighbouring datasets.
    claim : Claim, float, (float, float) or callable, optional
        As in `check`; by default the mechanism's own, if it has one. Without a claim, the only excesses are moves
        beyond declared sensitivities and infinite losses.
    adjacency : Adjacency or str, optional
        As in `check`: the pair is checked.
    distance : float
        Distance between x and y, as in `check`.
    output : str, int or callable, optional
        Part of the output to compare, as in `check`; such as ``lambda model: model.coef_``.
    primitives : iterable of str, optional
        The families to record: "numpy", "random", "scipy", "diffprivlib", "opendp", "pydp"; all by default. The
        generator that is handed to the mechanism and functions with `noise_primitive` are always recorded.
    seed : int or None
        Fixes the path: the values drawn on x. None draws a seed.

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
        If the mechanism cannot be run, raises on both datasets, or another replay is recording in this process.

    See Also
    --------
    check : Statistical test of an excess.
    noise_primitive : Declaration of another function that draws noise.

    Notes
    -----
    A call draws t from a distribution of density p_x on x and p_y on y. Its loss is sup |ln p_x(t)/p_y(t)|:
    |move|/scale for Laplace noise; Gaussian noise has μ = ‖move/σ‖₂ instead. The losses add up. They hold for this path
    only; another `seed` takes another path.

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
    names = _checked_names(primitives)
    seed = checked_seed(seed)
    sampler = picked(as_sampler(mechanism), output)
    held, claim_or_none = _claim(mechanism, claim, adjacency, distance)
    if held is not None:
        held.check(x, y, distance)
    if sampler.check_pair is not None:
        sampler.check_pair(x, y, distance)
    remedy = (
        "the one that runs this mechanism; replays cannot be nested or run at the same time: wait for its end, or use "
        "another process."
    )
    with only_recording(sampler.name, remedy):
        runner = Runner(sampler, names, seed)
        try:
            with runner.patching():
                return _compared(runner, x, y, claim_or_none, distance)
        except DatasetChangedError as error:  # the next run would not see the datasets that were passed
            return _result(runner, claim_or_none, (), [f"unrecorded: {error}"], unrecorded=True)


def _checked_names(primitives: Iterable[str] | None) -> tuple[str, ...]:
    known = registered_names()
    given = known if primitives is None else primitives
    names = names_in(given)
    for name in names:
        if not isinstance(name, str) or name not in known:
            meant = did_you_mean(shorten(name), known, otherwise=".")
            raise OptionError(
                f"primitives={shorten(name)} is not a family of noise primitives{meant} Use some of "
                f"{', '.join(known)}.",
                primitives=name,
            )
    return names


def _claim(mechanism: Any, claim: Any, adjacency: Any, distance: float) -> tuple[Any, Claim | None]:
    """Return the adjacency and the claim at the distance; None if no claim is given."""
    if claim is None and not hasattr(mechanism, "claim"):
        return stated(mechanism, 0.0, adjacency, "").adjacency, None
    said = stated(mechanism, claim, adjacency, "")
    return said.adjacency, claim_at(said.claim, distance)


def _compared(runner: Runner, x: Any, y: Any, claim: Claim | None, distance: float) -> ReplayResult:
    """Return the result of a run on x and one on y with the values of x put back."""
    on_x = runner.run(x)
    on_y = runner.run(y, on_x.tape.calls, seed=other_seed(runner.seed, -1))
    name = runner.sampler.name
    if on_x.error is not None and on_y.error is not None:
        if isinstance(on_x.error, OptionError):
            raise on_x.error
        raise MechanismError(
            f"{name} raises on both datasets: {described(on_x.error)}. There is nothing to compare; pass datasets on "
            "which it runs.",
            mechanism=name,
        ) from on_x.error
    calls = paired_calls(on_x.tape, on_y.tape)
    varies = [runner.unrecorded(x, on_x, looks_around=True), runner.unrecorded(y, on_y)]
    unrecorded = varies[0].reason or varies[1].reason
    reruns = Reruns(runner, calls, (x, on_x), (y, on_y))
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
    findings += judged(
        calls,
        claim,
        distance,
        reruns,
        (on_x.tape, on_y.tape),
        is_recorded=not (unrecorded or repeated or (unknown and not on_x.tape.seeds)),
        is_determined=not any(each.is_in_calls for each in varies),
    )
    fixed = [
        f"a generator is seeded with {seed} at {place}; if that does not change, its noise is the same in every run"
        for place, seed in on_x.tape.seeds[:1]
    ]
    open_reasons = filter(None, (unrecorded, *reasons, *fixed, unknown, repeated, *_doubts(calls)))
    return _result(
        runner,
        claim,
        calls,
        open_reasons,
        unrecorded=bool(unrecorded),
        findings=tuple(sorted(findings, key=lambda found: not found.is_excess)),
        remarks=tuple(_remarks(runner, reruns)),
        output_on_x=on_x.output,
        output_on_y=on_y.output,
        output_moved=output_distance(on_x.output, on_y.output),
    )


def _result(
    runner: Runner, claim: Claim | None, calls: Calls, open_reasons: Iterable[str], *, unrecorded: bool, **found: Any
) -> ReplayResult:
    return ReplayResult(
        mechanism=runner.sampler.name,
        claim=claim,
        calls=calls,
        open_reasons=tuple(open_reasons),
        unrecorded=unrecorded,
        seed=runner.seed,
        runs=runner.runs,
        **found,
    )


def _remarks(runner: Runner, reruns: Reruns) -> Iterator[str]:
    """Yield what leaves nothing open, and what was not looked at."""
    if runner.changes_datasets:
        yield "the mechanism changes its dataset; each run was given a copy"
    if reruns.not_kept:
        seen = len(reruns.elsewhere)
        yield (
            f"there are so many calls that their losses were compared at {seen:,} of {seen + reruns.not_kept:,} other "
            "values of the draws"
        )


def _doubts(calls: Calls) -> Iterator[str]:
    """Yield why primitives leave the result open: they cannot be compared, or their loss is what they state."""
    for call in calls:
        x, y = call.declared_on_x, call.declared_on_y
        if x is not None and y is not None and x.made is not y.made:
            yield (
                f"not the same measurement: {call.words} is another object on x and on y, and what it does with its "
                "result cannot be compared; make it once, outside of the mechanism"
            )
            break
    for call in calls:
        if call.is_promise:
            yield (
                f"the loss of {call.words} is the one that it states for itself, which is not tested here; confirm it "
                "with check"
            )
            break


def _worse_elsewhere(calls: Calls, reruns: Reruns, claim: Claim | None) -> str:
    """Return which calls lose more than the claim allows at other values of the draws than those recorded."""
    recorded = total_loss(calls)
    for others in reruns.elsewhere:
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
            return f"at other values of the draws, the calls lose more than the claim allows: {loss_words(loss)}"
    return ""
