"""The Markov chain of a mechanism's states at its draws, kept apart because its proof and tests know no claims.

It is explored by executing the code, and solved with bounded error. A state is the digest of all that can influence the
rest of the execution. States without one are merged with none.

Proof: docs/proofs/exact.md
"""

from __future__ import annotations

import contextvars
import functools
import inspect
import itertools
import math
import pickle
import random
import sys
import types
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import localcontext
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from time import monotonic
from typing import Any, Final

import numpy as np
from scipy.sparse import csc_matrix, identity
from scipy.sparse.linalg import splu

from ..options import Budget
from ..progress import Meter
from .exact_result import INTERRUPTED, ExactDistribution, rounded_outward
from .fingerprint import Fingerprint, World
from .frames import READER, Unreadable
from .sources import NOW, ForkingRandom, Source, Stop, active, drawing_from, is_executing, is_tool, refuse_now
from .uniform import LIMITS, Refusal, Uniform


class Chain:
    """States, each with the edges of its draw. State 0 is the call, and edge 0 leads from it to the first draw."""

    OPEN = -1  # the target of an edge that is not explored; that of an edge to the outcome o is −2 − o
    ONE = 2**160  # the unit of visits: rounding to it adds less than 10⁻⁴⁰ to the error, even for 10⁸ edges

    def __init__(self) -> None:
        self.weights: list[Sequence[Fraction]] = []
        self.first, self.parents = array("q"), array("q")  # of each state: its first edge, and the edge that found it
        self.sources, self.targets, self.shares = array("q"), array("q"), array("d")  # of each edge; in doubles
        self.add((Fraction(1),), 0)

    def add(self, weights: Sequence[Fraction], parent: int) -> int:
        """Add the state that an edge leads to; return its first edge."""
        first = len(self.targets)
        self.sources.extend([len(self.weights)] * len(weights))
        self.targets.extend([self.OPEN] * len(weights))
        self.shares.extend(map(float, weights))
        self.first.append(first)
        self.parents.append(parent)
        self.weights.append(weights)
        if first:
            self.targets[parent] = len(self.weights) - 1
        return first

    def path_to(self, edge: int) -> tuple[list[int], list[Any]]:
        """Return the draws that lead along an edge, and their probabilities."""
        prefix, weights = [], []
        while edge:
            state = self.sources[edge]
            prefix.append(edge - self.first[state])
            weights.append(self.weights[state])
            edge = self.parents[state]
        return prefix[::-1], weights[::-1]

    def edges(self) -> Iterator[tuple[int, int, Fraction]]:
        """Iterate over the sources, targets and exact probabilities of all edges."""
        return zip(self.sources, self.targets, itertools.chain.from_iterable(self.weights), strict=True)

    def _solved(self, b: Sequence[float]) -> Any:
        """Solve v = b + Qᵀv in doubles, where Q has the probabilities from state to state."""
        targets, n = np.array(self.targets), len(b)
        inner = targets >= 0
        places, shares = (targets[inner], np.array(self.sources)[inner]), np.array(self.shares)[inner]
        try:
            if n <= 64:  # the sparse solver is slower here, and takes more of the nearly closed chains for closed
                matrix = np.identity(n)
                np.subtract.at(matrix, places, shares)
                found = np.linalg.solve(matrix, b)
            else:
                matrix = identity(n, format="csc") - csc_matrix((shares, places), shape=(n, n))
                found = splu(matrix.tocsc()).solve(np.array(b))
        except (np.linalg.LinAlgError, RuntimeError):  # it is singular
            found = np.array([math.nan])
        if not np.isfinite(found).all():
            raise Refusal("draws for ever in some executions")
        return found

    def open_edges(self) -> tuple[list[int], list[float]]:
        """Return the edges that are not explored, and about how often an execution takes each, in falling order."""
        edges = np.flatnonzero(np.array(self.targets) == self.OPEN)
        visits = np.maximum(self._solved([1.0] + [0.0] * (len(self.weights) - 1)), 0.0)
        masses = visits[np.array(self.sources)[edges]] * np.array(self.shares)[edges]
        order = np.argsort(-masses, kind="stable")
        return edges[order].tolist(), masses[order].tolist()

    def visits(self) -> tuple[list[Fraction], Fraction]:
        """Return the expected visits of each state, and a bound of the sum of the absolute values of their residual."""
        entering: dict[int, list[int]] = {0: []}
        for source, target, _ in self.edges():
            if target >= 0:
                entering.setdefault(target, []).append(source)
        try:
            order = list(TopologicalSorter(entering).static_order())
        except CycleError:  # a state is reached from itself
            return self._close_visits()
        visits = [Fraction(1)] + [Fraction(0)] * (len(self.weights) - 1)
        for state in order:
            for edge, weight in enumerate(self.weights[state], self.first[state]):
                if self.targets[edge] >= 0:
                    visits[self.targets[edge]] += visits[state] * weight
        return visits, Fraction(0)

    def _close_visits(self) -> tuple[list[Fraction], Fraction]:
        """Return the same in units of 1 / `ONE`, whose residual is found in integers."""
        edges = [(source, target, *weight.as_integer_ratio()) for source, target, weight in self.edges() if target >= 0]
        visits, residual = [0] * len(self.weights), [self.ONE] + [0] * (len(self.weights) - 1)
        for _ in range(4):  # each gains about 50 bits, less those of the largest number of visits
            step = self._solved([each / self.ONE for each in residual]).tolist()
            visits = [before + int(each * self.ONE) for before, each in zip(visits, step, strict=True)]
            residual = [-each for each in visits]
            residual[0] += self.ONE
            for source, target, above, below in edges:
                residual[target] += visits[source] * above // below  # rounded by less than 1
        error = sum(map(abs, residual)) + len(edges)
        return [Fraction(each, self.ONE) for each in visits], Fraction(error, self.ONE)


def call_here(function: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Call the mechanism; frames above this one belong to the audit."""
    return function(*arguments, **named)


_OUTERMOST: Final = call_here.__code__
_PASSING: Final = {each.__code__ for each in (Source.pick, Source.one, Source.among, ForkingRandom.random)}
_NAMED_ELSEWHERE: Final = {"values", "weights", "found", "place", "signs", "parts", "answer"}  # locals of tools
_SUSPENDS: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def _frames() -> list[types.FrameType]:
    """Return the frames from the draw in progress to that of `call_here`."""
    frames: list[types.FrameType] = []
    frame: types.FrameType | None = sys._getframe(3)
    while frame is not None and (not frames or frames[-1].f_code is not _OUTERMOST):
        frames.append(frame)
        frame = frame.f_back
    return frames


class Explorer(Source):
    """Explores the draws of one function with fixed arguments.

    `outcome_of` makes a key of what a run returns or raises. `world` is put back before each execution, but not for a
    helper, which is explored for its `parent`: there `still` says that nothing has changed.
    """

    def __init__(
        self, function: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any], world: World,
        outcome_of: Callable[[Any, BaseException | None], Any], budget: Budget, meter: Meter, *,
        helpers: Helpers | None = None, parent: Explorer | None = None, still: Callable[[], bool] = lambda: True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.function, self.arguments, self.named = function, arguments, named
        self.world, self.outcome_of, self.budget, self.meter = world, outcome_of, budget, meter
        self.helpers, self.parent, self.still = helpers, parent, still
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.chain, self.names, self.outcomes = Chain(), {}, {}  # type: ignore[var-annotated]
        self.unread: Counter[str] = Counter()
        self.executions, self.most, self.start = 0, 0, 0.0
        self.n_calls = 0  # of helpers in one execution
        self.needed: Any = None  # the call of a helper to be explored next
        self.edge, self.mass, self.least_mass = 0, 1.0, 0.0  # where the execution is
        self.tail: tuple[list[int], list[Any]] | None = None  # the draws of a check after its prefix
        self.longest, self.random = 0, random.Random(0)  # the most of them, and what they are drawn with
        self.callers: set[types.FrameType] | None = None  # the frames below which they are drawn

    def _execute(self, prefix: Sequence[int], weights: Sequence[Any], concrete: Iterator[int] | None = None) -> Any:
        """Execute with these first draws; return the number of the outcome, or None if it was stopped."""
        if self.parent is None:
            self.world.restore()
        each: Explorer | None = self
        while each is not None:
            each.executions, each = each.executions + 1, each.parent
        self.begin(prefix, weights, concrete)
        self.n_calls, self.needed, Refusal.raised = 0, None, None
        result, error = None, None
        self.is_running, traced = True, sys.gettrace()
        is_watched = not NOW.isdisjoint(self.world.names) and sys.getprofile() is None  # a profiler stays where it is
        try:
            if is_watched:
                sys.setprofile(refuse_now)
            if self.parent is None:
                with localcontext():  # of decimals, which the copy of the context would share
                    result = contextvars.copy_context().run(call_here, self.function, self.arguments, self.named)
            else:  # so that `still` sees what a helper changes
                result = call_here(self.function, self.arguments, self.named)
        except Stop:
            pass
        except (Refusal, KeyboardInterrupt, MemoryError):
            raise
        except BaseException as raised:  # an adversary sees it
            error = raised
        finally:
            self.is_running = False
            sys.settrace(traced)
            if is_watched:
                sys.setprofile(None)
        if Refusal.raised is not None:
            raise Refusal.raised
        if not self.still():
            raise Unreadable("it changes what others can see")
        if self.place < len(prefix) and not self.is_stopped:
            raise Refusal("is not a function of its draws: executed again, it drew less")
        return None if self.is_stopped else self.outcomes.setdefault(self.outcome_of(result, error), len(self.outcomes))

    def decide(self, values: Sequence[Any], weights: Sequence[Fraction], state: Sequence[Any]) -> int:
        if self.tail is not None:
            return self._at_random(self.tail, weights)
        made, name = self.chain, None
        try:
            name = self._name(values, weights, state)
        except Unreadable as reason:
            self.unread[str(reason)] += 1
        if name in self.names:
            made.targets[self.edge] = self.names[name]
            self.stop()
        first = made.add(weights, self.edge)
        if name is not None:
            self.names[name] = len(made.weights) - 1
        largest = max(range(first, len(made.shares)), key=made.shares.__getitem__)
        self.mass *= made.shares[largest]
        is_over = len(made.weights) > self.budget.states or monotonic() - self.start > self.budget.seconds
        if self.mass < self.least_mass or is_over:
            self.stop()
        self.edge = largest
        return largest - first

    def _name(self, values: Sequence[Any], weights: Sequence[Fraction], state: Sequence[Any]) -> bytes:
        """Return the digest of all that the rest of the execution depends on; raise `Unreadable` if it is hidden."""
        if self.world.problems:
            raise Unreadable(self.world.problems[0])
        frames, world = _frames(), self.world
        if frames[-1].f_code is not _OUTERMOST:
            raise Unreadable("another thread draws")
        seen = Fingerprint(world.numbers, known=world.codes, by_identity=world.by_identity)
        seen.tokens.append(tuple(map(Fraction.as_integer_ratio, weights)))
        for each in (values, *state, sys.exc_info()[1]):
            seen.add(each)
        callee = frames[0]
        for frame in frames:
            if is_tool(frame) and frame.f_code not in _PASSING:  # what it still does with the outcome
                seen.tokens.append((frame.f_code.co_qualname, frame.f_lasti))
                for name, value in frame.f_locals.items():
                    if name not in _NAMED_ELSEWHERE:
                        seen.add(value)
            elif not is_tool(frame) and frame.f_code not in _OF_HELPERS:
                roots, rest = READER.read(frame, callee, is_tool=is_tool(callee))
                if frame.f_code is not _OUTERMOST:
                    for each in roots if seen.is_inert(rest) else [*roots, *rest]:  # what is destroyed later may act
                        seen.add(each)
            callee = frame
        world.add_changes(seen)
        return seen.digest()

    # Exploration.

    def explore(self) -> ExactDistribution:
        """Execute until the remainder is within the budget, or one of the others is spent.

        The meter only notes Ctrl-C: code that catches every exception would go on after it, and return something.
        """
        self.start, self.most = monotonic(), self.budget.executions
        ended_by, (visits, error) = self._explored(), self.chain.visits()
        keys, found = list(self.outcomes), dict.fromkeys(self.outcomes, Fraction(0))
        for source, target, weight in self.chain.edges():
            if target < Chain.OPEN:
                found[keys[-2 - target]] += visits[source] * weight
        found = {key: max(value, Fraction(0)) for key, value in found.items()}
        left = max(Fraction(0), 1 - sum(found.values(), Fraction(0)))
        draws = sum(float(n) * getattr(w, "draws", 1.0) for n, w in zip(visits, self.chain.weights, strict=True)) - 1.0
        return ExactDistribution(
            probabilities=found, remainder=rounded_outward(left), error=rounded_outward(error),
            n_draws=max(draws, float(self.has_drawn)), n_states=len(visits) - 1, n_executions=self.executions,
            seconds=monotonic() - self.start, ended_by=ended_by, not_merged=dict(self.unread),
        )  # fmt: skip

    def _explored(self) -> str:
        """Explore; return the budget that was spent before the remainder was small enough."""
        while True:
            edges, masses = self.chain.open_edges()
            left, done = sum(masses), 0.0
            try:
                if self.parent is None:
                    self.meter.left(left, self.executions, len(self.chain.weights) - 1)
            except KeyboardInterrupt:  # of a function that shows it
                return INTERRUPTED
            is_enough = left <= self.budget.remainder
            if is_enough:  # go on for a tenth, in case that nothing is left then
                more = LIMITS.more if self.parent is None else 0
                self.most = min(self.most, self.executions + self.executions // 10 + more)
            if self._spent() or (is_enough and left < LIMITS.useless):
                return "" if is_enough else self._spent()
            for edge, mass in zip(edges, masses, strict=True):
                if done > left / 2 or self._spent():
                    break
                if self.chain.targets[edge] == Chain.OPEN:
                    self._run(edge, mass)
                    done += mass

    def _spent(self) -> str:
        """Return which budget is spent, of this exploration or of the one that waits for it; empty if none is."""
        ends = {
            INTERRUPTED: self.meter.is_stopped,
            f"{self.budget.executions:,} executions were made": self.executions >= self.most,
            f"{self.budget.states:,} states were found": len(self.chain.weights) > self.budget.states,
            "the time was over": monotonic() - self.start > self.budget.seconds,
        }
        outer = "" if self.parent is None else self.parent._spent()
        return next((end for end, is_so in ends.items() if is_so), outer)

    def _run(self, edge: int, mass: float) -> None:
        """Execute along an edge, and again whenever a helper's distribution had to be found."""
        self.edge, self.mass, self.least_mass = edge, mass, mass / 4
        outcome = self._execute(*self.chain.path_to(self.edge))
        while self.needed is not None and self.helpers is not None and not self._spent():
            self.helpers.find(self, *self.needed)
            outcome = self._execute(*self.chain.path_to(self.edge))
        if outcome is not None and not self.meter.is_stopped:  # code may catch a second interrupt
            self.chain.targets[self.edge] = -2 - outcome

    # Checks by further executions.

    def _continued(self, edge: int) -> tuple[int | None, list[int], list[Any]]:
        """Execute along an edge and on at random, for 200 draws at most; return the outcome, and those draws."""
        self.tail, self.longest = ([], []), 200
        outcome = self._execute(*self.chain.path_to(edge))
        return outcome, *self.tail

    def _again(self, prefix: Sequence[int], weights: Sequence[Any], concrete: Iterator[int] | None = None) -> Any:
        """Execute once more, and stop where more is drawn; return `Chain.OPEN` if something else is drawn."""
        self.tail, self.longest = ([], []), 0
        try:
            return self._execute(prefix, weights, concrete)
        except Refusal:
            return Chain.OPEN

    def _at_random(self, tail: tuple[list[int], list[Any]], weights: Sequence[Fraction]) -> int:
        if len(tail[0]) >= self.longest:
            self.stop()
        if self.callers is not None:
            self.callers.update(_frames())
        tail[0].extend(self.random.choices(range(len(weights)), list(map(float, weights))))
        tail[1].append(weights)
        return tail[0][-1]

    def often_called(self, runs: int = 20) -> list[types.CodeType]:
        """Return the code that runs more than once in an execution, on average, and draws."""
        self.callers = set()
        for _ in range(runs):
            self._continued(0)
        counts = Counter(frame.f_code for frame in self.callers)
        self.callers = None  # so that what a frame holds is destroyed when it ends
        return [code for code, count in counts.items() if count > 1.2 * runs]

    def check_merges(self, tails: int = 3) -> None:
        """Check states that several edges lead to, and the edges that found others."""
        found = self.chain.parents[1:]
        merges = {edge for edge, target in enumerate(self.chain.targets) if target >= 0}.difference(found)
        for edges, most in ((sorted(merges), 64), (found, 16)):
            self._check(self.random.sample(edges, min(len(edges), most)) * tails)

    def check_values(self, most: int = 200) -> None:
        """Check a path to each outcome, and one execution often."""
        paths = {target: edge for edge, target in enumerate(self.chain.targets) if target < Chain.OPEN}
        self._check([*list(paths.values())[:most], *[0] * 16])

    def _check(self, edges: Iterable[int]) -> None:
        """Execute along edges, along those that found their targets, and with numbers; refuse if the ends differ."""
        self.is_late = False
        for edge in edges:
            target = self.chain.targets[edge]
            first, drawn, met = self._continued(edge)
            last: int | None = -2 - target
            if target >= 0:
                prefix, weights = self.chain.path_to(self.chain.parents[target])
                last = self._again(prefix + drawn, weights + met)
            if self.is_late:
                return
            if first != last and target != Chain.OPEN:
                what = "executed again, two executions differ"
                raise Refusal(f"is not a function of its draws and of the state that can be read: {what}")
            if self.roots and first is not None:
                numbers = [self.random.randrange(root.low, root.high) for root in self.roots]
                as_numbers = self._again(self.discrete, [None] * len(self.discrete), iter(numbers))
                if as_numbers != first and not self.is_late:
                    raise Refusal("treats a uniform number in a way that is not followed, for example by its type")


# Helpers: functions whose distribution is found once for each state that they start from, and then drawn from. A helper
# returns a plain value, and no execution of it, up to each of its draws, changes anything that others can see.

_BUDGET: Final = Budget(remainder=1e-17, executions=20_000, states=5_000, seconds=30.0)
"""Of one distribution. The remainder is that of a double, as it is added at every call."""


class _HelperWeights(tuple[Fraction, ...]):
    """The probabilities of a helper's values, at the call with this number in an execution."""

    def __new__(cls, weights: Iterable[Fraction], values: tuple[Any, ...], draws: float, call: int = 0) -> Any:
        made: Any = super().__new__(cls, weights)
        made.values, made.draws, made.call = values, draws, call  # draws: expected ones of the helper
        return made


def _stand_in(*args: Any, dpaudit_call: Any, **named: Any) -> Any:
    return dpaudit_call(args, named)


class Helpers:
    """The helpers of one exploration, whose code is replaced by a call of `_call`."""

    def __init__(self, world: World, codes: Iterable[types.CodeType]) -> None:
        self._world, self._codes = world, set(codes)
        self._found: dict[bytes, Any] = {}  # their weights; None for a call that is executed in full
        self._is_helper: dict[types.CodeType, bool] = {}  # whether the first distribution of this code was found
        self._replaced: list[tuple[types.FunctionType, types.CodeType, Any]] = []
        self._limit = sys.getrecursionlimit()
        sys.setrecursionlimit(
            4 * self._limit + 1000
        )  # three more frames at each call, and explorations in explorations
        for function in world.functions:
            code, named = function.__code__, function.__kwdefaults__
            if code in self._codes and not (code.co_flags & _SUSPENDS or code.co_freevars or world.by_identity):
                clone = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__)
                clone.__kwdefaults__ = named
                self._replaced.append((function, code, named))
                function.__code__ = _stand_in.__code__
                function.__kwdefaults__ = {"dpaudit_call": functools.partial(self._call, clone)}

    def uninstall(self) -> None:
        """Give every function its code back."""
        sys.setrecursionlimit(self._limit)
        for function, code, named in self._replaced:
            function.__code__, function.__kwdefaults__ = code, named

    def _call(self, clone: types.FunctionType, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if not is_executing():  # for example another thread, whose draws are refused
            return clone(*args, **named)
        source: Any = active()
        source.n_calls += 1
        known = source.expected[source.place] if source.place < len(source.prefix) else None
        if getattr(known, "call", 0) != source.n_calls:  # else its key, which takes long, was found before
            known = self._distribution(source, clone, args, named)
        return clone(*args, **named) if known is None else known.values[source.pick(known.values, known, always=True)]

    def _distribution(self, source: Any, clone: types.FunctionType, args: tuple[Any, ...], named: Any) -> Any:
        """Return that of a call, and stop if it has to be found; None if the call is executed in full."""
        if source.is_stopped or self._is_helper.get(clone.__code__) is False or sys.exc_info()[1] is not None:
            return None
        key = self._key(clone, args, named)
        if key is None or (source.concrete is not None and key not in self._found):  # the number was not looked at
            return None
        if key not in self._found:
            source.needed = clone, args, named, key
            source.stop()
        held = self._found[key]
        return None if held is None else _HelperWeights(held, held.values, held.draws, source.n_calls)

    def _key(self, clone: types.FunctionType, args: tuple[Any, ...], named: Mapping[str, Any]) -> bytes | None:
        """Return the digest of a call and of the world; None if they cannot be read, or hold a number not looked at."""
        print_ = Fingerprint(self._world.numbers, known=self._world.codes)
        try:
            for each in (clone.__code__, args, dict(named)):
                print_.add(each)
            self._world.add_changes(print_)
        except Unreadable:
            return None
        return None if (Uniform.__module__, Uniform.__qualname__) in print_.tokens else print_.digest()

    def find(self, parent: Explorer, clone: types.FunctionType, args: Any, named: Any, key: bytes) -> None:
        """Find the distribution of the call that an explorer was stopped at."""
        self._found[key] = None
        explorer = Explorer(
            clone, args, named, self._world, _plain, _BUDGET, parent.meter,
            helpers=self, parent=parent, still=lambda: self._key(clone, args, named) == key,
        )  # fmt: skip
        if explorer.depth > 20 or not explorer.still():  # code that ran when the execution ended has changed something
            return
        try:
            with drawing_from(explorer):
                table = explorer.explore()
            if table.ended_by or len(table.probabilities) > LIMITS.of_helper:
                raise Unreadable("its distribution is too large")
        except Unreadable:  # after a success the code stays a helper, as paths may have its draws
            self._is_helper.setdefault(clone.__code__, False)
            return
        self._is_helper.setdefault(clone.__code__, True)
        lower = [math.floor((p - Fraction(table.error)) * 2**80) for p in table.probabilities.values()]
        weights, values = [Fraction(max(each, 0), 2**80) for each in lower], map(pickle.loads, table.probabilities)
        self._found[key] = _HelperWeights(weights, tuple(values), table.n_draws)


_OF_HELPERS: Final = {_stand_in.__code__, Helpers._call.__code__}


def _is_plain(value: Any) -> bool:
    """Whether a value has no identity that matters. NaN has one, as containers compare identities first."""
    if type(value) is tuple:
        return all(map(_is_plain, value))
    kinds = (int, float, bool, str, type(None))
    return bool((type(value) in kinds or isinstance(value, (np.number, np.bool_))) and value == value)


def _plain(result: Any, error: BaseException | None) -> bytes:
    if error is not None or not _is_plain(result):
        raise Unreadable("it raises, or returns an object")
    return pickle.dumps(result)
