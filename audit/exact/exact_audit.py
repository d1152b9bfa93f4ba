"""Exact audits: the distribution of discrete code on a dataset, and verdicts on pairs that are certain.

Proof: docs/proofs/exact.md
"""

from __future__ import annotations

import gc
import inspect
import math
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from ..claims.claim import claim_at
from ..clock import now
from ..errors import DatasetError, MechanismError, OptionError, described
from ..events.outputs import Raised, as_outputs
from ..events.plain_outputs import canonical, plain_output
from ..floating_point_errors import own_arithmetic
from ..options import DEFAULTS, EXACT_OPTIONS, Budget, Options, Progress
from ..progress import Meter, told
from ..replay.tape import Place
from ..results.claim_pair_and_alpha import pair_of, stated
from ..sampling.object_identity import versions
from ..sampling.output_hashes import digest
from ..sampling.sampler import OutputPart, Sampler, as_sampler, pick_from_block, pick_from_run, picked
from ..settings import setting
from .chain import Explorer, Helpers
from .exact_result import INTERRUPTED, ExactDistribution, ExactResult, excess_of
from .fingerprint import World, is_stateless
from .sources import ForkingGenerator, Source, StandIns, active, is_executing, is_tool
from .uniform import LIMITS, Lazy, Refusal

_UNKNOWN: Final = ExactDistribution.unknown(INTERRUPTED)
_WAY_ON: Final = "the same call begins anew; a Budget with fewer seconds ends it sooner"


def distribution(
    mechanism: Any,
    dataset: Any,
    *,
    output: OutputPart | None = None,
    budget: Budget | None = None,
    progress: Progress = None,
) -> ExactDistribution:
    """Return the distribution of a mechanism's output on a dataset, found by executing it down every branch.

    Parameters
    ----------
    mechanism : callable or object
        As for `check`; its only randomness must be discrete, or comparisons with uniform numbers.
    dataset : Any
        As the mechanism takes it.
    output : str, int or callable, optional
        The part of the output, as for `check`.
    budget : Budget, optional
        What ends the exploration; what is left is in the remainder.
    progress : bool or callable, optional
        As for `check`, with executions in place of runs.

    Returns
    -------
    ExactDistribution
        Probabilities as fractions, with the remainder.

    Raises
    ------
    MechanismError
        If the code draws or computes what an exact audit cannot follow, with the line.
    Interrupted
        After Ctrl-C, with the result so far.

    See Also
    --------
    check : With ``exact=True``, the same for a pair, with a claim.

    Notes
    -----
    The code is assumed to be a function of its draws and its arguments, and its coins to be ideal.

    References
    ----------
    Proof: docs/proofs/exact.md.

    Examples
    --------
    >>> from dpaudit.exact import distribution
    >>> def respond(bit, rng):
    ...     return bit if rng.random() < 0.75 else 1 - bit
    >>> print(distribution(respond, 1))
    1  0.75
    0  0.25
    remainder  0
    """
    sampler = picked(mechanism, output)
    with told(progress, sampler.name) as meter:
        meter.way_on = _WAY_ON
        found = _explored(sampler, dataset, budget or Budget(), meter)
        if found.ended_by == INTERRUPTED:
            meter.best, meter.was_drawing = (lambda: found), True
            raise KeyboardInterrupt
        return found


def audit_pairs(mechanism: Any, pairs: Iterable[tuple[Any, Any]], options: Options) -> ExactResult:
    """Audit the claim exactly on each pair, as `check` and `find_worst_pair` do; return the result.

    A dataset that is in several pairs is explored once. When the `seconds` of the options are over, pairs are left out.
    After Ctrl-C, `Interrupted` is raised with the result so far.
    """
    for name, default in DEFAULTS.items():
        if name not in EXACT_OPTIONS and (value := getattr(options, name)) != default and value != setting(name):
            raise OptionError(f"{name}={value!r} is for audits that sample, which an exact one does not; leave it out.")
    budget = options.exact if isinstance(options.exact, Budget) else Budget()
    end = math.inf if options.seconds is None else now() + options.seconds
    sampler = picked(as_sampler(mechanism, options.name), options.output)
    said = stated(mechanism, options.claim, options.adjacency, options.claim_source)
    claim, known = claim_at(said.claim, options.distance), dict[tuple[int, str], tuple[Any, ExactDistribution]]()
    worst: ExactResult | None = None
    nothing: set[str] = set()  # why pairs were not worth a verdict
    is_interrupted = False
    with told(options.progress, sampler.name) as meter:
        meter.best, meter.way_on = (lambda: worst), _WAY_ON

        def explored(dataset: Any) -> ExactDistribution:
            nonlocal is_interrupted
            name = id(dataset), digest(dataset)  # the object may be changed between two pairs
            if name not in known:
                left = replace(budget, seconds=max(min(budget.seconds, end - now()), sys.float_info.min))
                found = _UNKNOWN if is_interrupted else _explored(sampler, dataset, left, meter)
                is_interrupted = found.ended_by == INTERRUPTED
                known[name] = dataset, found
            return known[name][1]

        for x, y in pairs:
            if worst is not None and (is_interrupted or now() > end):
                worst = replace(worst, untried=worst.untried + 1)
                continue
            pair, on_x, on_y = pair_of(sampler, x, y, said.adjacency, options), explored(x), explored(y)
            nothing.add(_why_nothing(on_x, on_y))
            one = ExactResult(
                mechanism=sampler.name, claim=claim, claim_source=said.source, pair=pair, x=x, y=y, on_x=on_x,
                on_y=on_y, excess=excess_of(claim, on_x, on_y), tolerance=budget.tolerance, versions=versions(),
            )  # fmt: skip
            worst = one if worst is None else worst.with_another(one)
        if worst is None:
            raise DatasetError("there is no pair of neighbours to audit; pass another domain or adjacency.")
        if is_interrupted:
            meter.was_drawing = True
            raise KeyboardInterrupt
        if "" not in nothing:
            why = f"{sampler.name} {min(nothing)}; use check without exact=True, which samples."
            raise MechanismError(why, mechanism=sampler.name)
        return worst


def _why_nothing(x: ExactDistribution, y: ExactDistribution) -> str:
    """Return why a verdict on a pair would be about no randomness, or about exceptions alone; empty if it is not."""
    outputs = {**x.probabilities, **y.probabilities}
    if all(isinstance(each, Raised) for each in outputs) and x.remainder < 0.5 > y.remainder:
        return f"{' or '.join(map(str, outputs))} in every execution, so there is no output to audit"
    if x.n_draws == y.n_draws == 0 and not (x.ended_by or y.ended_by):
        return "makes no draw that an exact audit sees: it is deterministic, or native code draws"
    return ""


def _explored(sampler: Sampler, dataset: Any, budget: Budget, meter: Meter) -> ExactDistribution:
    start, collects = now(), gc.isenabled()
    function, call = sampler.call.mechanism, sampler.call
    named: dict[str, Any] = {} if call.rng_name is None else {call.rng_name: ForkingGenerator()}
    if call.size_name is not None:
        named[call.size_name] = 1
    stand_ins, world, helpers = StandIns(), None, None

    def outcome_of(result: Any, error: BaseException | None) -> Any:
        if error is not None:
            _refuse_own(error)
            if call.size_name is not None:
                raise MechanismError(f"{sampler.name} raised {described(error)}.", mechanism=sampler.name) from error
            return Raised(type(error).__qualname__)
        _refuse_lazy(result)
        return _key(result, sampler)

    gc.disable()  # what a collection destroys must not act in the middle of an execution
    try:
        world = World([function, dataset], stand_ins.of)
        plain = replace(budget, executions=min(budget.executions, LIMITS.plain))
        explorer = Explorer(function, [dataset], named, world, outcome_of, plain, meter)
        hides = bool(world.problems)
        with _ending(1.1 * budget.seconds), stand_ins.in_place(explorer, hides=hides):
            found = explorer.explore()
            is_cut = found.ended_by not in ("", INTERRUPTED) and LIMITS.plain <= explorer.executions
            if is_cut and explorer.executions < budget.executions:  # without helpers where the world is hidden
                helpers = Helpers(world, () if world.problems else explorer.often_called())
                explorer = Explorer(function, [dataset], named, world, outcome_of, budget, meter, helpers=helpers)
        if helpers is not None:
            with _ending(1.1 * budget.seconds), stand_ins.in_place(explorer, hides=hides):
                found = explorer.explore()
        is_late = explorer.is_late
        with _ending(budget.seconds / 10), stand_ins.in_place(explorer, hides=hides):  # checks take far less
            world.restore()  # or refuse
            explorer.check_merges()
            explorer.check_values()
        why = "an execution neither drew nor ended before the time was over" if is_late else found.ended_by
        return replace(found, ended_by=why, seconds=now() - start)
    except Refusal as refusal:
        raise _explained(refusal, sampler) from None
    finally:
        if helpers is not None:
            helpers.uninstall()
        if world is not None:
            world.undo()
        if collects:
            gc.enable()


@contextmanager
def _ending(seconds: float) -> Iterator[None]:
    """End an execution that computes without a draw when the time is over, where an alarm can interrupt it."""
    is_main = threading.current_thread() is threading.main_thread()
    if not (is_main and hasattr(signal, "setitimer") and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL):
        yield
        return

    def late(_: int, frame: Any) -> None:
        is_own = str(frame.f_globals.get("__name__", "")).startswith(f"{__package__}.")
        if is_executing() and not is_tool(frame) and not is_own:
            active().is_late = True
            active().stop()

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, min(max(seconds, 1e-3), threading.TIMEOUT_MAX), 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _refuse_lazy(value: Any, depth: int = 0) -> None:
    if type(value) is Lazy:
        raise Refusal("returns a uniform number, which has too many values to list")
    if depth < 100 and isinstance(value, (list, tuple, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            _refuse_lazy(each, depth + 1)
    elif type(value).__name__ == "ndarray" and value.dtype == object:
        for each in value.ravel().tolist():
            _refuse_lazy(each, depth + 1)


def _key(result: Any, sampler: Sampler) -> Any:
    """Return the output in the form in which the sampling audit compares it, where NaN equals NaN."""
    call = sampler.call
    with own_arithmetic():
        if call.size_name is None:
            one = result if call.part is None else pick_from_run(result, call.part, call.label)
        else:
            block = result if call.part is None else pick_from_block(result, call.part, call.label)
            row = as_outputs(block, 1, sampler.name)[0]
            one = row.tolist() if hasattr(row, "tolist") else row
        return canonical(plain_output(one, sampler.name))


def _refuse_own(error: BaseException) -> None:
    """Raise a `Refusal` for an exception of the audit itself; what a real generator raises has no frame of a source."""
    trace, own = error.__traceback__, None
    while trace is not None:
        code, module = trace.tb_frame.f_code, trace.tb_frame.f_globals.get("__name__")
        if code in _OF_SOURCES:
            own = trace
        elif not is_stateless(module) and not is_tool(trace.tb_frame):
            own = None  # such as what states the distribution of a noise primitive
        trace = trace.tb_next
    if own is not None:
        raise Refusal(f"draws in a way that is not followed ({described(error)})").with_traceback(error.__traceback__)


_OF_SOURCES: Final = {each.__code__ for each in vars(Source).values() if inspect.isfunction(each)}


def _guard(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse audited code that asks the system for what is not its arguments."""
    if event in _OUTSIDE and is_executing():
        where = str(arguments[0])
        if event != "open" or where.startswith("/dev/"):
            raise Refusal(f"asks the system for more than its arguments ({event} {where})")


_OUTSIDE: Final = {"open", "os.exec", "os.fork", "os.posix_spawn", "os.system", "socket.connect", "subprocess.Popen"}
sys.addaudithook(_guard)  # which cannot be taken back


def _explained(refusal: Refusal, sampler: Sampler) -> MechanismError:
    place, trace = "", refusal.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if not is_tool(frame) and not is_stateless(frame.f_globals.get("__name__")):
            place = f", at {Place(frame.f_code.co_filename, trace.tb_lineno, frame.f_code.co_name)}"
        trace = trace.tb_next
    return MechanismError(
        f"{sampler.name} {refusal}{place}; no exact audit applies, so use check without exact=True, which samples.",
        mechanism=sampler.name,
    )
