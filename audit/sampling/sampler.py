"""Call any mechanism: a callable or object that maps a dataset and a random generator to outputs.

A *vectorised mechanism* draws many runs in one call: a callable with a parameter named ``size``, or an object with a
method ``sample(dataset, size, rng)``. A plain function ``f(dataset, rng)`` or ``f(dataset)`` performs a single run and
is looped. If it raises an exception, that is an output like any other, because an adversary sees it.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import multiprocessing
import re
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np

from ..clock import within
from ..errors import AuditError, MechanismError, OptionError, described
from ..events.kinds import column_of, is_column, is_table
from ..events.named_parts import (
    Entries,
    Part,
    can_change,
    columns_of_table,
    distinct,
    is_one_memory,
    label_text,
    parts_of,
    shown,
)
from ..events.outputs import Outputs, Raised, as_outputs, outcome_list, packed
from ..events.plain_outputs import PLAIN, Form, form_of, form_of_block, of_plain_parts, plain_output
from ..floating_point_errors import Answers, own_arithmetic, under, users_answers
from ..options import LONGEST_NAME, checked
from ..printing import shorten
from ..progress import UNWATCHED, Runs
from ..settings import or_setting
from .object_identity import Provenance, cell_of, provenance_of

# A part of an output that the caller names: by a column, key, field or attribute, by a place, or by a function.

OutputPart: TypeAlias = str | int | Callable[[Any], Any]
"""A name, or names joined by dots; a place; or a function of the output."""

_PLACE = re.compile(r"coordinate (\d+)|(?:output)?\[(\d+)\]|(\d+)")  # of vectors, as events print it
_MISSING = (LookupError, AttributeError, TypeError, ValueError)  # what a part that is not there raises


def check_choice(choice: Any) -> OutputPart | None:
    """Return what picks a part of the output, or None; raise an `OptionError` for anything else."""
    is_place = isinstance(choice, int | np.integer) and not isinstance(choice, bool) and abs(int(choice)) <= sys.maxsize
    if choice is None or is_place or (isinstance(choice, str) and 0 < len(choice) <= LONGEST_NAME) or callable(choice):
        return int(choice) if is_place else choice
    raise OptionError(
        f'output={shorten(choice)} picks no part of an output; use a name such as "mean", a path such as "stats.mean", '
        "a place such as 0, or a function.",
        output=choice,
    )


def pick_from_run(output: Any, choice: OutputPart, name: str, *, is_block: bool = False) -> Any:
    """Return the part of one output, or of an output of many runs, with its name unless a function picked it."""
    if callable(choice):
        return _called(choice, output, name, " (it is given the outputs of all runs together)" if is_block else "")
    choice = _place_of_vector(output, choice)
    tries = [choice]
    if isinstance(choice, str):  # "output['a'][0]", as events print it
        tries.append(re.sub(r"\[(['\"]?)(.*?)\1\]", r".\2", choice).removeprefix("output."))
    for each in tries:
        try:
            if isinstance(each, int):
                return Part(*_at_place(output, each, is_block))
            return Part(str(choice), _at_path(output, each, is_block))
        except _MISSING:
            pass
    raise _absent(output, choice, name, is_block)


def pick_from_block(raw: Any, choice: OutputPart, name: str) -> Any:
    """Return the part of a block of runs as a vectorised mechanism returns it; a function is given the whole block."""
    if not callable(choice) and isinstance(raw, (list, tuple)):
        return [pick_from_run(output, choice, name) for output in raw]
    if not callable(choice) and is_column(raw) and choice in (0, raw.name):
        return Part(label_text(raw.name) or "output", raw)
    return pick_from_run(raw, choice, name, is_block=True)


def _place_of_vector(output: Any, choice: str | int) -> str | int:
    """Return the place that a text such as "coordinate 3", "output[3]" or "3" means in outputs without named parts."""
    if isinstance(choice, int) or (found := _PLACE.fullmatch(choice)) is None:
        return choice
    is_named = isinstance(output, Mapping) or _parts(output) is not None
    return choice if is_named or not hasattr(output, "__getitem__") else int(found[found.lastindex or 0])


def _called(choice: Callable[[Any], Any], output: Any, name: str, hint: str) -> Any:
    try:
        return choice(output)
    except AuditError:
        raise
    except Exception as error:
        raise MechanismError(
            f"the function given as output= raised {described(error)} for an output of {name}{hint}; let it return a "
            "value for every output.",
            mechanism=name,
        ) from error


def _at_path(value: Any, path: str, is_block: bool) -> Any:
    """Return the part with this name, or at this place, or else at the path of the names between its dots."""
    try:
        return _named(value, path, is_block)
    except _MISSING:
        first, dot, rest = path.partition(".")
        if dot:
            return _at_path(_at_path(value, first, is_block), rest, is_block)
        if isinstance(value, Mapping) or not path.isdigit():
            raise
        return value[:, int(path)] if is_block else value[int(path)]


def _named(value: Any, name: str, is_block: bool) -> Any:
    if is_table(value):  # of a single run, a row is its values
        column = dict(_columns_of_table(value))[name]
        return column if is_block or len(column) != 1 else column_of(column)[0]
    if isinstance(value, Mapping) or hasattr(value, "iloc") or getattr(value, "dtype", None) is not None:
        try:
            if not isinstance(value, Mapping) or name in value:
                return value[name]
        except (LookupError, TypeError, ValueError):
            pass
        return {label_text(label): part for label, part in parts_of(value) or []}[name]
    found = getattr(value, name)
    if callable(found):  # a method, such as that of a tuple called "count"
        raise AttributeError(name)
    return found


def _columns_of_table(table: Any) -> list[tuple[str, Any]]:
    keys, columns = zip(*columns_of_table(table), strict=True)
    return list(zip(distinct(map(label_text, keys)), columns, strict=True))


def _at_place(value: Any, place: int, is_block: bool) -> tuple[str, Any]:
    if isinstance(value, Mapping):
        if place not in value:
            raise KeyError(place)
        return str(place), value[place]
    if is_table(value):
        name, _ = _columns_of_table(value)[place]
        return name, _named(value, name, is_block)
    parts = parts_of(value)
    if parts is not None and not (is_block and is_column(value)):
        label, part = parts[place]
        return label_text(label), part
    if is_block:
        return f"output[{place}]", value[:, place]
    return f"output[{place}]", value.iloc[place] if hasattr(value, "iloc") else value[place]


def _parts(output: Any) -> Entries | None:
    """Return the named parts of an output, or of a block; None if it has none or cannot be read."""
    try:
        return _columns_of_table(output) if is_table(output) else parts_of(output)
    except Exception:  # the user's class may raise anything when it is read
        return None


def _absent(output: Any, choice: OutputPart, name: str, is_block: bool) -> MechanismError:
    parts, places = _parts(output), _n_places(output, is_block)
    if known := ", ".join(shown(label_text(label)) for label, _ in parts or []):
        is_place = isinstance(output, Mapping) and isinstance(choice, int)
        what = f" with the parts {known}"
        remedy = "name a key, as keys have no order" if is_place else "name another part"
    elif places:
        what = f", which has {places:,} coordinate{'s' * (places > 1)}"
        remedy = f"name a place from 0 to {places - 1}, such as output={places - 1}" if places > 1 else "use output=0"
    else:
        what = "" if is_block else f" of type {type(output).__name__}"
        what, remedy = f"{what}, which has no parts", "leave out output="
    return MechanismError(
        f"output={choice!r} is not a part of an output of {name}{what}; {remedy}, or pass a function that returns a "
        "value for every output.",
        mechanism=name,
        output=choice,
    )


def _n_places(output: Any, is_block: bool) -> int:
    """Return the number of coordinates of an output, or of each output of a block; 0 if it has none."""
    if is_block:
        shape: tuple[int, ...] = getattr(output, "shape", ())
        return int(shape[1]) if len(shape) == 2 else 0
    if isinstance(output, (str, bytes)) or not hasattr(output, "__getitem__"):
        return 0
    try:
        return len(output)
    except TypeError:
        return 0


R = TypeVar("R")

_SIZE = "size"
_ENDING = (MemoryError, SystemExit, GeneratorExit)
_GENERATORS = ("rng", "generator", "random_state", "gen", "prng", "random")


@runtime_checkable
class Mechanism(Protocol):
    """An object that draws blocks of runs; `sample` returns `size` independent outputs on `dataset`."""

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any: ...


@dataclass(frozen=True, slots=True)
class Call:
    """Calls a mechanism, naming the size and the generator as it does, and picks the audited part of its output."""

    mechanism: Callable[..., Any]
    size_name: str | None  # None for a function of one run
    rng_name: str | None
    part: OutputPart | None = None
    label: str = ""  # of the mechanism, for messages
    is_one_by_one: bool = False  # whether a vectorised mechanism is called for each run

    @property
    def function(self) -> Callable[..., Any]:
        """What identifies the mechanism and is sent to workers; with a part, never called."""
        return self.mechanism if self.part is None else functools.partial(self.mechanism, self.part)

    def __call__(self, dataset: Any, *rest: Any) -> Any:
        named: dict[str, Any] = {}
        if self.size_name is not None:
            named[self.size_name] = 1 if self.is_one_by_one else rest[0]
        if self.rng_name is not None:
            named[self.rng_name] = rest[-1]
        output = self.mechanism(dataset, **named)
        if self.part is not None:
            output = (pick_from_run if self.size_name is None else pick_from_block)(output, self.part, self.label)
        return outcome_list(as_outputs(output, 1, self.label))[0] if self.is_one_by_one else output


@dataclass(frozen=True, slots=True)
class Sampler:
    """A mechanism with a uniform way to call it.

    `check_pair(x, y, distance)` is the mechanism's own, and raises if its claim does not cover the pair. `answers` are
    the caller's numpy settings for floating-point errors, which apply while the mechanism runs. `form` names the
    columns of outputs; None before the first runs have shown it. `latest` has the latest block or output of each thread
    if several threads draw, and is None otherwise. `chunk_seconds` limits the time of a block.
    """

    call: Call  # takes (dataset, size, rng) for a vectorised mechanism, (dataset, rng) for a single run
    name: str  # in messages and results
    check_pair: Callable[[Any, Any, float], Any] | None = None
    answers: Answers = field(default_factory=users_answers, compare=False)
    form: Form | None = None
    latest: dict[int, Any] | None = field(default=None, compare=False, repr=False)
    chunk_seconds: float | None = field(default=None, compare=False)
    shows_data: bool = field(default=True, compare=False)  # whether messages may have rows of the datasets
    watched: Runs = field(default=UNWATCHED, compare=False, repr=False)  # counts and times the runs

    @property
    def is_block(self) -> bool:
        """Whether one call draws a block of runs, in threads, or a single run, in processes."""
        return self.call.size_name is not None and not self.call.is_one_by_one

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns of the outputs; empty if they have none."""
        return () if self.form is None else self.form.names

    @property
    def function(self) -> Callable[..., Any]:
        """The mechanism, or its `sample` method."""
        return self.call.function

    def draw(self, dataset: Any, size: int, rng: np.random.Generator) -> Outputs:
        """Return `size` outputs on `dataset`, as an array that no later run changes.

        Raise a `MechanismError` if a vectorised mechanism raises, or outputs have the wrong number or an unsupported
        type, or the block takes too long.
        """
        drawn = self._in_time(lambda: self.drawn(dataset, size, rng))
        if not self.is_block:
            return packed(drawn, self.form)
        outputs = as_outputs(drawn, size, self.name, self.form)
        is_own = outputs.dtype == object or isinstance(drawn, (list, tuple))  # made here from single outputs
        return outputs if is_own else outputs.copy()

    def _in_time(self, work: Callable[[], R]) -> R:
        """Do work that draws a block, unless it takes too long."""
        try:
            with self.watched.drawing():
                return within(self.chunk_seconds, work)
        except TimeoutError as error:
            raise MechanismError(
                f"{self.name} took longer than {self.chunk_seconds:g} seconds for a chunk; allow more with "
                "chunk_seconds=, or use jobs=1 to see where it hangs",
                mechanism=self.name,
                seconds=self.chunk_seconds,
            ) from error

    def form_on(self, dataset: Any, size: int, rng: np.random.Generator) -> Form | None:
        """Return the form that `size` outputs on `dataset` have, drawn for this; None if none has a form."""
        if self.is_block:
            return form_of_block(self._in_time(lambda: self.drawn(dataset, size, rng)))

        def learned() -> Form | None:
            runs = (self._called(dataset, rng) for part in self.watched.parts(size) for _ in range(part))
            with under(self.answers):
                seen = (output for output in runs if output is not None and not isinstance(output, Raised))
                first = next(seen, None)
                return None if first is None else form_of(chain([first], seen))  # each is read before the next run

        return self._in_time(learned)

    def drawn(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """Return `size` outputs: of a vectorised mechanism as it returns them, of a function of one run as plain
        outputs.
        """
        with under(self.answers):
            if not self.is_block:
                parts = self.watched.parts(size)
                return [self._snapshot(self._called(dataset, rng)) for part in parts for _ in range(part)]
            for _ in self.watched.parts(size, is_block=True):
                block = self._called(dataset, size, rng)
        self._refuse_shared(block)
        return block

    def _called(self, *arguments: Any) -> Any:
        """Call the mechanism; return an exception of a single run as its output, and explain any other."""
        try:
            return self.call(*arguments)
        except AuditError:  # a mechanism or adapter of this library refuses the dataset or the library
            raise
        except _ENDING as error:
            raise self._refusal_of(error) from error
        except Exception as error:
            if not self.is_block:
                return Raised(type(error).__qualname__)
            cause, size = described(error, shows_data=self.shows_data), arguments[1]
            raise MechanismError(
                f"{self.name} raised {cause} while drawing a chunk of {size} runs. A vectorised mechanism must not "
                "raise; pass a dataset of the right kind, or a function of one run, whose exceptions count as outputs.",
                mechanism=self.name,
                size=size,
            ) from error
        except BaseException as error:
            is_main = threading.current_thread() is threading.main_thread() and multiprocessing.parent_process() is None
            if is_main:  # a key press or a signal may have raised it, and not only the mechanism
                raise
            raise self._refusal_of(error) from error

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
        if type(output) in PLAIN:
            return output
        self._refuse_shared(output)
        if (simple := of_plain_parts(output)) is not None:
            return simple
        with own_arithmetic():
            return plain_output(output, self.name)

    def _refusal_of(self, error: BaseException) -> MechanismError:
        """Return the error for an exception of the mechanism that would end the audit."""
        if isinstance(error, MemoryError):
            reason = "ran out of memory, which is a fault of the machine and not an output; audit it on less data"
        elif isinstance(error, SystemExit):
            reason = f"called exit({error.code!r}) and would end the audit; raise another exception"
        else:
            reason = f"raised {type(error).__name__} and would end the audit; raise another exception"
        return MechanismError(f"{self.name} {reason}.", mechanism=self.name)


def as_sampler(mechanism: Any, name: str | None = None) -> Sampler:
    """Return the `Sampler` of a mechanism; a sampler is returned as it is.

    Raise a `MechanismError` if it cannot be called and has no `sample` method, or its parameters are unknown.
    """
    checked("name", name, or_none=True)
    if isinstance(mechanism, Sampler):
        return mechanism if name is None else replace(mechanism, name=name)
    limit = or_setting("chunk_seconds", None)
    method = getattr(mechanism, "sample", None)
    function = method if callable(method) and not inspect.isclass(mechanism) else mechanism
    label = name or mechanism_name(mechanism)
    own_check = getattr(mechanism, "check_pair", None)
    own_check = own_check if callable(own_check) else None
    if not callable(function) or inspect.isclass(mechanism):
        raise MechanismError(
            f"mechanism={shorten(mechanism)} cannot be run; use a function f(dataset, rng), a vectorised mechanism "
            "f(dataset, size, rng) or an object (an instance, not a class) with sample(dataset, size, rng).",
            mechanism=label,
        )
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature: only one argument is safe to pass
        return Sampler(Call(function, None, None), label, own_check, chunk_seconds=limit)
    first, others = parameters[:1], parameters[1:]
    takes_dataset = any(p.kind is not p.KEYWORD_ONLY and p.name not in (_SIZE, *_GENERATORS) for p in first)
    names = {p.name for p in others if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = {p.name for p in others if p.default is p.empty and p.kind not in optional}
    generators = [name for name in _GENERATORS if name in names]
    known = {_SIZE, *generators[:1]} & names
    if not takes_dataset or needed - known:
        shown = ", ".join(map(str, parameters))
        seeds = [each for each in sorted(needed - known) if "seed" in each]
        from_rng = f"; for a seed: lambda rows, rng: {label}(rows, {seeds[0]}=rng.integers(2**63))" if seeds else ""
        raise MechanismError(
            f"{label} takes ({shown}); use the parameters (dataset), (dataset, rng) or (dataset, size, rng), the last "
            f"two under these names (or {', '.join(_GENERATORS[1:])} for rng); bind others with functools.partial"
            f"{from_rng}.",
            mechanism=label,
            parameters=shown,
        )
    call = Call(function, _SIZE if _SIZE in names else None, generators[0] if generators else None)
    return Sampler(call, label, own_check, chunk_seconds=limit)


def mechanism_name(mechanism: Any) -> str:
    """Return a function's name, the place of a lambda, or the text of an object if it says more than its type."""
    name = getattr(mechanism, "__name__", None)
    code = getattr(mechanism, "__code__", None)
    if name == "<lambda>" and code is not None and not code.co_filename.startswith("<"):
        return f"lambda at {cell_of(code.co_filename) or Path(code.co_filename).name}:{code.co_firstlineno}"
    if isinstance(name, str) and name.strip() and name.isprintable():
        return name
    function = getattr(mechanism, "func", None)  # functools.partial
    if callable(function):
        return mechanism_name(function)
    try:
        own = str(mechanism)
    except Exception:  # a user's object may raise anything
        own = ""
    is_telling = own.strip() and own.isprintable() and len(own) <= 80 and " at 0x" not in own
    return own if is_telling else type(mechanism).__name__


# A mechanism of which a part of each output is audited.


def picked(mechanism: Any, output: OutputPart | None) -> Sampler:
    """Return the sampler of a mechanism whose outputs are a part of its outputs; all of them for None.

    A part keeps every claim that the whole output keeps. A function is given one output, or the whole block of a block
    sampler.
    """
    sampler, choice = as_sampler(mechanism), check_choice(output)
    if choice is None:
        return sampler
    call = replace(sampler.call, part=choice, label=sampler.name)
    return replace(sampler, call=call, name=name_of_part(sampler.name, choice))


def name_of_part(name: str, choice: OutputPart) -> str:
    """Return what a result calls this part of the outputs of a mechanism with this name."""
    if callable(choice):
        return f"{name}, output by {shown(mechanism_name(choice))}"
    return f'{name}, output "{shown(choice)}"' if isinstance(choice, str) else f"{name}, output {choice}"


def provenance_of_part(sampler: Sampler) -> Provenance:
    """Return the provenance of a sampler's mechanism; its fingerprint covers the part that is picked."""
    found = provenance_of(sampler.function)
    if (part := sampler.call.part) is None:
        return found
    picker = str(provenance_of(part)) if callable(part) else repr(part)
    return replace(found, fingerprint=hashlib.sha256(f"{found.fingerprint} {picker}".encode()).hexdigest()[:16])
