"""Call any mechanism: a callable or object that maps a dataset and a random generator to outputs.

A *block sampler* draws many runs in one call: a callable with a parameter named ``size``, or an object with a method
``sample(dataset, size, rng)``. A plain function ``f(dataset, rng)`` or ``f(dataset)`` performs a single run and is
looped. If it raises an exception, that is an output like any other, because an adversary sees it.
"""

from __future__ import annotations

import dis
import inspect
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from types import FrameType, TracebackType
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from ..clock import within
from ..errors import AuditError, MechanismError, described
from ..events.foreign_arrays import can_change, is_one_memory
from ..events.outputs import Outputs, Raised, as_outputs, packed
from ..events.records import PLAIN, Form, are_plain, form_of, form_of_block, plain_output
from ..floating_point_errors import Answers, own_arithmetic, under, users_answers
from ..options import checked
from ..printing import shorten
from ..settings import or_setting

R = TypeVar("R")

_SIZE = "size"
_ENDING = (MemoryError, SystemExit, GeneratorExit)
_RAISE = dis.opmap["RAISE_VARARGS"]
_GENERATORS = ("rng", "generator", "random_state", "gen", "prng", "random")


@runtime_checkable
class Mechanism(Protocol):
    """An object that draws blocks of runs; `sample` returns `size` independent outputs on `dataset`."""

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any: ...


class Call(Protocol):
    """How a sampler calls the mechanism, with the names of its parameters for the size and the generator."""

    @property
    def function(self) -> Callable[..., Any]: ...

    @property
    def size_name(self) -> str | None: ...

    @property
    def rng_name(self) -> str | None: ...

    def __call__(self, dataset: Any, *rest: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class Sampler:
    """A mechanism with a uniform way to call it.

    `check_pair(x, y, distance)` is the mechanism's own, and raises if its claim does not cover the pair. `answers` are
    the caller's numpy settings for floating-point errors, which apply while the mechanism runs. `form` names the
    columns of outputs; None before the first runs have shown it. `latest` has the latest block or output of each thread
    if several threads draw, and is None otherwise. `block_seconds` limits the time of a block.
    """

    call: Call  # takes (dataset, size, rng) for a block sampler, (dataset, rng) for a single run
    is_block: bool  # whether one call draws a block of runs, in threads, or a single run, in processes
    name: str  # in messages and results
    check_pair: Callable[[Any, Any, float], Any] | None = None
    answers: Answers = field(default_factory=users_answers, compare=False)
    form: Form | None = None
    is_picked: bool = False  # whether outputs are a part of the mechanism's, which may have a name
    latest: dict[int, Any] | None = field(default=None, compare=False, repr=False)
    block_seconds: float | None = field(default=None, compare=False)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns of the outputs; empty if they have none."""
        return () if self.form is None else self.form.names

    @property
    def function(self) -> Callable[..., Any]:
        """The mechanism, or its `sample` method."""
        return self.call.function

    def draw(self, dataset: Any, size: int, rng: np.random.Generator, *, is_kept: bool = True) -> Outputs:
        """Return `size` outputs on `dataset`, as an array.

        Later runs do not change outputs that are kept. An array that is not kept may be the mechanism's, and holds
        these outputs until the next call.

        Raise a `MechanismError` if a block sampler raises, or outputs have the wrong number or an unsupported type, or
        the block takes too long.
        """
        drawn = self._in_time(lambda: self.drawn(dataset, size, rng))
        if not self.is_block:
            return packed(drawn, self.form)
        outputs = as_outputs(drawn, size, self.name, self.form)
        is_own = outputs.dtype == object or isinstance(drawn, (list, tuple))  # made here from single outputs
        return outputs if is_own or not is_kept else outputs.copy()

    def _in_time(self, work: Callable[[], R]) -> R:
        """Do work that draws a block, unless it takes too long."""
        try:
            return within(self.block_seconds, work)
        except TimeoutError as error:
            raise MechanismError(
                f"{self.name} took longer than {self.block_seconds:g} seconds for a block; allow more with "
                "block_seconds=, or use jobs=1 to see where it hangs",
                mechanism=self.name,
                seconds=self.block_seconds,
            ) from error

    def form_on(self, dataset: Any, size: int, rng: np.random.Generator) -> Form | None:
        """Return the form that `size` outputs on `dataset` have, drawn for this; raise what `draw` raises.

        Exceptions and None have no form; None if there is nothing else. After a run without names no other is made.
        """
        if self.is_block:
            return form_of_block(self._in_time(lambda: self.drawn(dataset, size, rng)))

        def learned() -> Form | None:
            runs = (self._run(dataset, rng) for _ in range(size))
            with under(self.answers):
                seen = (output for output in runs if output is not None and not isinstance(output, Raised))
                first = next(seen, None)
                return None if first is None else form_of(chain([first], seen))  # each is read before the next run

        return self._in_time(learned)

    def drawn(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """Return `size` outputs: of a block sampler as it returns them, of a function of one run as plain outputs."""
        if not self.is_block:
            with under(self.answers):
                return [self._snapshot(self._run(dataset, rng)) for _ in range(size)]
        try:
            with under(self.answers):
                block = self.call(dataset, size, rng)
        except AuditError:  # one of this library's mechanisms refuses the dataset
            raise
        except _ENDING as error:
            raise self._refusal_of(error) from error
        except Exception as error:
            raise MechanismError(
                f"{self.name} raised {described(error)} while drawing a block of {size} runs. A block sampler must not "
                "raise; pass a dataset of the right kind, or a function of one run, whose exceptions count as outputs.",
                mechanism=self.name,
                size=size,
            ) from error
        except KeyboardInterrupt:  # `refusal_of_interrupt` decides later
            raise
        except BaseException as error:
            raise self._ended_by(error) from error
        self._refuse_shared(block)
        return block

    def _refuse_shared(self, drawn: Any) -> None:
        """Raise a `MechanismError` if a block or an output lies in the memory of another thread's latest one."""
        if self.latest is None or not can_change(drawn):
            return
        own = threading.get_ident()
        for thread, other in list(self.latest.items()):
            if thread != own and is_one_memory(drawn, other):
                raise MechanismError(
                    f"{self.name} returned the same {type(drawn).__name__} in two threads, so that one call may "
                    "change the outputs of the other; return a copy from every call, or use jobs=1.",
                    mechanism=self.name,
                )
        self.latest[own] = drawn

    def _snapshot(self, output: Any) -> Any:
        """Return an output in the form that no later run changes, before the next run is made."""
        kind: Any = type(output)
        if kind in PLAIN:
            return output
        self._refuse_shared(output)
        if (kind is tuple or kind is list) and are_plain(output):
            return tuple(output)
        with own_arithmetic():
            return plain_output(output, self.name)

    def _run(self, dataset: Any, rng: np.random.Generator) -> Any:
        try:
            return self.call(dataset, rng)
        except AuditError:  # an adapter refuses the dataset or the library: not an output of the mechanism
            raise
        except _ENDING as error:
            raise self._refusal_of(error) from error
        except Exception as error:
            return Raised(type(error).__qualname__)
        except KeyboardInterrupt:  # `refusal_of_interrupt` decides later
            raise
        except BaseException as error:
            raise self._ended_by(error) from error

    def _ended_by(self, error: BaseException) -> BaseException:
        """Return what to raise for an exception that is not an `Exception`: itself if a signal caused it."""
        return self._refusal_of(error) if _is_raised_by_code(error) else error

    def _refusal_of(self, error: BaseException) -> MechanismError:
        """Return the error for an exception of the mechanism that would end the audit."""
        if isinstance(error, MemoryError):
            reason = "ran out of memory, which is a fault of the machine and not an output; audit it on less data"
        elif isinstance(error, SystemExit):
            reason = f"called exit({error.code!r}) and would end the audit; raise another exception"
        else:
            reason = f"raised {type(error).__name__} and would end the audit; raise another exception"
        return MechanismError(f"{self.name} {reason}.", mechanism=self.name)

    def refusal_of_interrupt(self, error: KeyboardInterrupt, again: Callable[[], Any]) -> MechanismError | None:
        """Return what to raise for the mechanism's own interrupt: a statement raised it, and `again` raises it too."""
        if not _is_raised_by_code(error):
            return None
        try:
            again()
        except KeyboardInterrupt:
            return self._refusal_of(error)
        except Exception:  # a different exception
            return None
        return None


def _is_raised_by_code(error: BaseException) -> bool:
    """Whether a raise statement raised the exception, rather than a key press or a signal during another statement."""
    handlers = [getattr(signal.getsignal(each), "__code__", None) for each in signal.valid_signals()]
    places = [(frame.f_code, last) for frame, last in _places(error.__traceback__)]
    if not places or isinstance(error.__context__, KeyboardInterrupt) or any(code in handlers for code, _ in places):
        return False
    code, last = places[-1]
    return code.co_code[last] == _RAISE


def _places(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    """Yield the frames with their last instructions, the innermost last."""
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lasti
        traceback = traceback.tb_next


def as_sampler(mechanism: Any, name: str | None = None) -> Sampler:
    """Return the `Sampler` of a mechanism; a sampler is returned as it is.

    Raise an `OptionError` if the name is not a line of text, and a `MechanismError` if the mechanism cannot be called
    and has no `sample` method, or its parameters are unknown.
    """
    checked("name", name, or_none=True)
    if isinstance(mechanism, Sampler):
        return mechanism if name is None else replace(mechanism, name=name)
    limit = or_setting("block_seconds", None)
    method = getattr(mechanism, "sample", None)
    function = method if callable(method) and not inspect.isclass(mechanism) else mechanism
    label = name or mechanism_name(mechanism)
    own_check = getattr(mechanism, "check_pair", None)
    own_check = own_check if callable(own_check) else None
    if not callable(function) or inspect.isclass(mechanism):
        raise MechanismError(
            f"mechanism={shorten(mechanism)} cannot be run; use a function f(dataset, rng), a block sampler "
            "f(dataset, size, rng) or an object (an instance, not a class) with sample(dataset, size, rng).",
            mechanism=label,
        )
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature: only one argument is safe to pass
        return Sampler(_Call(function, None, None), False, label, own_check, block_seconds=limit)
    first, others = parameters[:1], parameters[1:]
    takes_dataset = any(p.kind is not p.KEYWORD_ONLY and p.name not in (_SIZE, *_GENERATORS) for p in first)
    names = {p.name for p in others if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = {p.name for p in others if p.default is p.empty and p.kind not in optional}
    generators = [name for name in _GENERATORS if name in names]
    known = {_SIZE, *generators[:1]} & names
    if not takes_dataset or needed - known:
        shown = ", ".join(map(str, parameters))
        raise MechanismError(
            f"{label} takes ({shown}); use the parameters (dataset), (dataset, rng) or (dataset, size, rng), the last "
            f"two under these names (or {', '.join(_GENERATORS[1:])} for rng); bind others with functools.partial.",
            mechanism=label,
            parameters=shown,
        )
    is_block = _SIZE in names
    call = _Call(function, _SIZE if is_block else None, generators[0] if generators else None)
    return Sampler(call, is_block, label, own_check, block_seconds=limit)


@dataclass(frozen=True, slots=True)
class _Call:
    """Passes the dataset first, then the number of runs and the generator under the function's parameter names."""

    function: Callable[..., Any]
    size_name: str | None
    rng_name: str | None

    def __call__(self, dataset: Any, *rest: Any) -> Any:
        named: dict[str, Any] = {}
        if self.size_name is not None:
            named[self.size_name] = rest[0]
        if self.rng_name is not None:
            named[self.rng_name] = rest[-1]
        return self.function(dataset, **named)


def mechanism_name(mechanism: Any) -> str:
    """Return a function's name, or the text of an object if it is a short line, more informative than its type."""
    name = getattr(mechanism, "__name__", None)
    if isinstance(name, str) and name.strip() and name.isprintable():
        return name
    function = getattr(mechanism, "func", None)  # functools.partial
    if callable(function):
        return mechanism_name(function)
    own = str(mechanism)
    is_telling = own.strip() and own.isprintable() and len(own) <= 80 and " at 0x" not in own
    return own if is_telling else type(mechanism).__name__
