"""What a suspended Python frame will still read: its live locals and its operand stack, from the bytecode and memory.

CPython gives out the locals of a frame but not its operand stack, so the stack is read from the frame's memory. Its
depth, and which locals are live, follow from the bytecode. A layout of frames is used only after it has read known
frames correctly; with an unknown layout, every frame is `Unreadable`, and no states are merged.

Proof: docs/proofs/exact.md
"""

from __future__ import annotations

import bisect
import ctypes
import dis
import functools
import math
import sys
import types
from typing import Any, Final, NamedTuple

import numpy as np


class Unreadable(Exception):  # noqa: N818
    """A state that cannot be read completely, so that it is merged with no other; the text is the reason."""


class _Null:
    __slots__ = ()


_AUDIT: Final = __package__.rpartition(".")[0] + "."
NULL: Final = _Null()
"""What stands for an empty slot, an unset cell or an absent name."""


def is_own(kind: type) -> bool:
    """Whether a class is one of this package that gives out its own state."""
    return hasattr(kind, "exact_state") and kind.__module__.startswith(_AUDIT)


class Layout(NamedTuple):
    """Offsets in bytes within the interpreter's frame, whose address is at byte 24 of a frame object."""

    slots: int
    previous: int
    is_entry: int | None = None  # 3.11; later versions push a frame of their own instead
    top: int | None = None  # from 3.14 on: the address after the operand stack, whose entries have tags


_LAYOUTS: Final = {
    (3, 11): Layout(72, 48, is_entry=68),
    (3, 12): Layout(72, 8),
    (3, 13): Layout(72, 8),
    (3, 14): Layout(80, 8, top=64),
    (3, 15): Layout(80, 8, top=64),
}


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


def _address(frame: types.FrameType) -> int:
    return _word(id(frame) + 24)


def _slots(frame: types.FrameType, layout: Layout, count: int) -> list[Any]:
    """Return the first raw entries of a frame's fast locals and operand stack.

    From 3.14 on, bit 0 says that an entry owns no reference, and both low bits that it is a number, of a place in the
    code or in a list (pycore_stackref.h).
    """
    words = (ctypes.c_size_t * count).from_address(_address(frame) + layout.slots)[:]
    found: list[Any] = []
    for word in words:
        if word & 3 == 2:
            raise Unreadable(f"the stack of {frame.f_code.co_qualname} holds an entry that is not an object")
        if word & ~1 == 0:
            found.append(NULL)
        else:
            found.append(word if word & 2 else ctypes.cast(word & ~1, ctypes.py_object).value)
    return found


def _is_below_c(frame: types.FrameType, callee: types.FrameType, layout: Layout) -> bool:
    """Whether C called `callee`, or a frame of the interpreter's own did, whose state is hidden.

    Such a frame holds the new object while `__init__` runs.
    """
    is_entry = layout.is_entry is not None and ctypes.c_bool.from_address(_address(callee) + layout.is_entry).value
    return is_entry or _word(_address(callee) + layout.previous) != _address(frame)


# Static analysis of a code object.

_NO_NEXT: Final = {
    "RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD",
    "JUMP_BACKWARD_NO_INTERRUPT", "INTERPRETER_EXIT",
}  # fmt: skip
_HIDDEN_READS: Final = {"locals", "vars", "dir", "eval", "exec"}
"""Builtins that read locals which no instruction names."""


class Analysis(NamedTuple):
    """Of every instruction: the depth of the stack before it, and the locals that are live after it."""

    instructions: list[dis.Instruction]
    depths: dict[int, int]
    live: list[set[str]]
    names: list[str]  # of the slots


@functools.lru_cache(maxsize=4096)
def analysed(code: types.CodeType) -> Analysis:
    """Return the analysis of a code object; raise `Unreadable` if the depth of its stack is not unique."""
    instructions = list(dis.get_instructions(code))
    place = {each.offset: number for number, each in enumerate(instructions)}
    handlers = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    following: list[dict[int, int]] = [{} for _ in instructions]  # with the effect on the depth
    for number, each in enumerate(instructions):
        if each.opcode in dis.hasjrel or each.opcode in dis.hasjabs:
            following[number][place[each.argval]] = dis.stack_effect(each.opcode, each.arg, jump=True)
        if each.opname not in _NO_NEXT and number + 1 < len(instructions):
            following[number][number + 1] = dis.stack_effect(each.opcode, each.arg, jump=False)
    depths = {0: 0} | {place[entry.target]: entry.depth + entry.lasti + 1 for entry in handlers}
    waiting = list(depths)
    while waiting:
        number = waiting.pop()
        for target, effect in following[number].items():
            if target not in depths:
                waiting.append(target)
            if depths.setdefault(target, depths[number] + effect) != depths[number] + effect:
                raise Unreadable(f"the stack of {code.co_qualname} has no unique depth")
    if any(each.opname == "RETURN_VALUE" and depths.get(n, 1) != 1 for n, each in enumerate(instructions)):
        raise Unreadable(f"the stack of {code.co_qualname} has an unknown depth")
    caught = [[place[each.target] for each in handlers if each.start <= offset < each.end] for offset in place]
    names = [*code.co_varnames, *(name for name in code.co_cellvars if name not in code.co_varnames), *code.co_freevars]
    live = _live_after(list(map(_accesses, instructions)), following, caught)
    for variables in live:  # closures share the cells
        variables.update(names if _HIDDEN_READS & set(code.co_names) else (*code.co_cellvars, *code.co_freevars))
    return Analysis(instructions, depths, live, names)


def _live_after(
    accesses: list[tuple[set[str], set[str]]], following: list[dict[int, int]], caught: list[list[int]]
) -> list[set[str]]:
    """Return the locals that may be read after each instruction, whether it succeeds or raises."""
    before: list[set[str]] = [set() for _ in accesses]
    changed = True
    while changed:
        changed = False
        for number, (reads, writes) in reversed(list(enumerate(accesses))):
            handled = set().union(*(before[target] for target in caught[number]))
            held = set().union(*(before[target] for target in following[number])) - writes | reads | handled
            changed = changed or held != before[number]  # a handler may run before the instruction has stored anything
            before[number] = held
    return [set().union(*(before[each] for each in (*a, *b))) for a, b in zip(following, caught, strict=True)]


def _accesses(instruction: dis.Instruction) -> tuple[set[str], set[str]]:
    """Return the locals that an instruction reads, and those that it certainly overwrites."""
    name, used = instruction.opname, instruction.argval
    if "FAST" not in name and name != "LOAD_CLOSURE":
        return set(), set()
    used = used if isinstance(used, tuple) else (used,)
    if name == "STORE_FAST_LOAD_FAST":
        return {used[1]} - {used[0]}, {used[0]}
    return (set(), set(used)) if name.startswith("STORE_FAST") else (set(used), set())


# Reading a frame below which another one runs.

_CALLS: Final = {"CALL", "PRECALL", "CALL_KW", "CALL_FUNCTION_EX"}
_READABLE: Final = {*_CALLS, "BINARY_OP", "COMPARE_OP"}
"""Instructions that consume operands and push one object, a function of them and of what their callee returns."""
_CONVERSIONS: Final = (int, float, bool, round, abs, math.floor, math.ceil, math.trunc)
"""C functions of one number that call one method of it and keep no state."""


class FrameReader:
    """Reads frames with a known layout; without one, every frame is `Unreadable`."""

    def __init__(self, layout: Layout | None) -> None:
        self.layout = layout

    def read(self, frame: types.FrameType, callee: types.FrameType, *, is_tool: bool) -> tuple[list[Any], list[Any]]:
        """Return what a frame will still read, and the values of its other locals, while `callee` runs below it.

        `is_tool` says that the callee belongs to a forking generator or a lazy number, whose own part of the state is
        read elsewhere. Raise `Unreadable` if C holds a state between the two.
        """
        code, layout = frame.f_code, self.layout
        if layout is None:
            raise Unreadable("the layout of frames of this Python is not known")
        if code.co_flags & 0x2A1 != 1:  # CO_OPTIMIZED, and neither a generator nor a coroutine
            raise Unreadable(f"{code.co_qualname} is a generator, or the body of a class or module")
        instructions, depths, live, names = analysed(code)
        number = bisect.bisect_right(instructions, frame.f_lasti, key=lambda each: each.offset) - 1
        name, argument, depth = instructions[number].opname, instructions[number].arg or 0, depths[number]
        if name not in _READABLE or instructions[number].argrepr == "[]":  # an operator since 3.14
            raise Unreadable(f"{code.co_qualname} draws below {name}")
        if name == "CALL" and sys.version_info < (3, 12):  # the PRECALL before it has counted its arguments
            depth += argument
        is_call = name in ("CALL", "PRECALL")
        keep = depth - (argument + 2 if is_call else 1 - dis.stack_effect(instructions[number].opcode, argument))
        is_below_c, address = _is_below_c(frame, callee, layout), _address(frame)
        height = 8 * (len(names) + (depth if is_below_c else keep))  # C leaves its operands on the stack
        is_known = layout.top is None or _word(address + layout.top) == address + layout.slots + height
        if not is_known or (name not in _CALLS and not is_below_c):
            raise Unreadable(f"{code.co_qualname} draws below {name} in an unknown way")
        slots = _slots(frame, layout, len(names) + keep)
        roots, rest = [code, number, *slots[len(names) :]], []
        for variable, value in zip(names, slots, strict=False):
            if variable in live[number]:
                roots += [variable, value]
            else:
                rest.append(value)
        if is_below_c:
            operands = _slots(frame, layout, len(names) + depth)[len(slots) :]
            return [*roots, *_through_c(name, operands, callee, is_tool)], [*rest, *operands]
        return roots, rest


def _is_numeric(value: Any) -> bool:
    kind = type(value)
    is_array = kind is np.ndarray and value.dtype != object
    return is_array or kind in (int, float, bool, type(NULL)) or isinstance(value, np.generic) or is_own(kind)


def _through_c(name: str, operands: list[Any], callee: types.FrameType, is_tool: bool) -> list[Any]:
    """Return what names the C function between two frames, if it keeps no state; else raise `Unreadable`."""
    called = next((each for each in operands if each is not NULL), NULL) if name in _CALLS else NULL
    if is_tool:  # one call of a method; an array or a list of objects would hold the state of a loop
        is_known = name not in _CALLS or isinstance(called, np.ufunc) or any(called is each for each in _CONVERSIONS)
        if is_known and all(_is_numeric(each) for each in operands if each is not called):
            return [called]
    else:
        while type(called) is functools.partial:
            called = called.func
        if isinstance(called, types.MethodType):
            called = called.__func__
        if not isinstance(called, types.FunctionType):
            called = getattr(type(called), "__call__", None)  # noqa: B004
        if isinstance(called, types.FunctionType) and called.__code__ is callee.f_code:
            return []
    raise Unreadable(f"{callee.f_code.co_qualname} draws below C code ({name})")


# The layout of this Python, if it reads known frames correctly.


def _reads_known_frames(layout: Layout) -> bool:
    """Whether the layout reads the stack of frames whose contents are known."""
    first, second = object(), object()

    def is_below_c(_: Any = None) -> bool:
        frame = sys._getframe()
        return _is_below_c(frame.f_back, frame, layout)  # type: ignore[arg-type]

    def inner(mark: object) -> tuple[list[Any], list[Any]]:
        frame = sys._getframe()
        return FrameReader(layout).read(frame.f_back, frame, is_tool=False)  # type: ignore[arg-type]

    def outer(mark: object) -> Any:
        gone = 17
        del gone
        return (first, 41, mark, [second, inner(mark)], mark)

    if is_below_c() or [*map(is_below_c, [1])] != [True]:  # before any address is taken for that of an object
        return False
    (_, _, one, number, other, *named), rest = outer(second)[3][1]
    held = dict(zip(named[1::2], named[2::2], strict=True))
    is_read = one is first and number == 41 and other is named[0] is held["mark"] is second and rest == [NULL]
    return is_read and held["first"].cell_contents is first


def _layout() -> Layout | None:
    is_known = sys.implementation.name == "cpython" and ctypes.sizeof(ctypes.c_void_p) == 8
    layout = _LAYOUTS.get(sys.version_info[:2]) if is_known else None
    if layout is None or getattr(sys, "_is_gil_enabled", lambda: True)() is False:
        return None
    try:
        return layout if _reads_known_frames(layout) else None
    except (Unreadable, LookupError, ValueError):
        return None


READER: Final = FrameReader(_layout())
