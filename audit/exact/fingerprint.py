"""A deep fingerprint of objects with their identities, and of the world, which is put back after each execution.

Every kind of object is named with its contents; objects are numbered in the order in which they are reached, so that
aliases count. A kind that is not known raises `Unreadable`, and the state is then merged with none.

Proof: docs/proofs/exact.md
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import ctypes
import dis
import functools
import gc
import itertools
import marshal
import pickle
import sys
import sysconfig
import types
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from operator import is_, setitem
from typing import Any, Final, NamedTuple

import numpy as np

from ..events.kinds import WRAPPERS, opened
from .frames import NULL, Unreadable, is_own
from .uniform import Refusal

_NUMBERS_AND_TEXTS: Final = {int, float, str, bytes, complex}
_ATOMS: Final = {*_NUMBERS_AND_TEXTS, type(None), bool, type(...), type(NotImplemented)}
_STATELESS: Final = {
    "builtins", "math", "cmath", "operator", "_operator", "itertools", "functools", "_functools", "collections",
    "_collections", "_collections_abc", "fractions", "numbers", "heapq", "_heapq", "bisect", "_bisect", "statistics",
    "enum", "typing", "dataclasses", "string", "_string", "copy", "abc", "_abc", "types", "random", "_random",
    "secrets", "numpy", "scipy", "contextlib", "warnings", "__future__", "re", "textwrap", "time", "inspect", "ast",
    "struct", "_struct", "reprlib", "pandas",
}  # fmt: skip
"""Modules that keep no state on which a result depends, but for generators, clocks, and filters of warnings and answers
to errors, which are replaced, refused and watched."""
_REFLECTION: Final = {
    "globals", "eval", "exec", "compile", "__import__", "import_module", "_getframe", "currentframe", "modules",
    "get_objects", "get_referrers", "getrefcount", "f_locals", "f_back", "f_globals", "tb_frame", "__traceback__",
    "gi_frame", "is_", "is_not", "__globals__", "__code__", "__closure__", "__builtins__", "__subclasses__", "settrace",
    "setprofile", "simplefilter", "filterwarnings", "__weakref__", "__defaults__", "__kwdefaults__", "builtins",
    "getouterframes", "getinnerframes", "environ", "getenv", "putenv", "setrecursionlimit", "__annotations__",
    "__del__", "register", "set_printoptions", "printoptions", "__annotate__",
}  # fmt: skip
_ASSIGNED: Final = {"__dict__", "__class__", "__name__", "__qualname__", "__doc__", "__module__", "__bases__"}
_REFLECTING_BUILTINS: Final = {"id", "hash", "open", "breakpoint", "memoryview"}
"""Names with which code reaches state, addresses or files that no frame and no object in reach shows; those of
`_ASSIGNED` only where they are assigned."""
_NOT_STATE: Final = {
    "__dict__", "__weakref__", "__annotations__", "__dataclass_fields__", "_abc_impl", "__orig_bases__",
    "__parameters__", "__type_params__", "__annotate_func__", "__annotations_cache__",
}  # fmt: skip
"""Attributes of classes that only reflection reads, and that C code implements."""
_HIDING: Final = {"_contextvars", "_queue", "_hashlib"}
"""Modules whose objects hold a state that neither a pickle nor their references show."""
_EMPTY: Final[dict[Any, Any]] = {}
_VIEW_ITERATORS: Final = tuple(map(type, map(iter, (_EMPTY, _EMPTY.values(), _EMPTY.items(), set(_EMPTY)))))
_ITERATORS: Final = {
    *map(type, (iter([]), iter(()), iter(range(1)), iter(range(2**70)), iter(""), iter("é"), iter(b""), reversed([]))),
    enumerate, zip, map, filter, reversed,
}  # fmt: skip
_HOLDERS: Final = (staticmethod, classmethod, types.MappingProxyType)  # of one object, and of attributes
_STATIC: Final = (
    types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType,
    types.ClassMethodDescriptorType, type(np.any),
    type(vars(collections.namedtuple("_", "field"))["field"]),
)  # fmt: skip


@functools.lru_cache(maxsize=4096)
def is_stateless(module: str | None) -> bool:
    """Whether nothing in a module keeps a state that matters; a user's file with such a name does."""
    root = (module or "").partition(".")[0]
    origin = getattr(getattr(sys.modules.get(root), "__spec__", None), "origin", None) or "built-in"
    is_library = origin in ("built-in", "frozen") or origin.startswith(sysconfig.get_path("stdlib"))
    is_known = root in _STATELESS and (is_library or root in ("numpy", "scipy", "pandas"))
    return is_known or (module or "").startswith("dpaudit.audit.")


class Data(tuple[Any, ...]):
    """What an object holds apart from references: values that `marshal` writes, such as the bytes of an array."""


class Fingerprint:
    """Tokens of a state. Objects of the world have `numbers`, and `known` code; all others are numbered as reached."""

    def __init__(
        self, numbers: Mapping[int, int] = types.MappingProxyType({}), *,
        known: Mapping[types.CodeType, int] | None = None, by_identity: bool = False,
    ) -> None:  # fmt: skip
        self.numbers, self.known, self.by_identity = numbers, known, by_identity
        self.tokens: list[Any] = []
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no address is used twice

    def add(self, root: Any) -> None:
        """Append the tokens of an object and of all that it reaches."""
        waiting, tokens, seen = [root], self.tokens, self._seen
        while waiting:
            value = waiting.pop()
            kind: Any = type(value)
            if kind is Data:
                tokens.append(tuple(value))
                continue
            if kind in _ATOMS and not self._counts_identity(kind, value):
                tokens.append((value,) if kind not in (type(...), type(NotImplemented)) else kind.__name__)
                continue
            place = id(value)
            if place in seen:
                tokens.append(-1 - seen[place])
            elif place in self.numbers:
                tokens.append(("world", self.numbers[place]))
            else:
                seen[place] = len(seen)
                self._kept.append(value)
                tokens.append((kind.__module__, kind.__qualname__) if _is_heap(kind) else kind.__qualname__)
                parts = method_of(kind).read(self, value)
                tokens.append(len(parts))
                waiting.extend(reversed(parts))

    def _counts_identity(self, kind: type, value: Any) -> bool:
        if kind is float and value != value:
            return True  # `in` and == of containers compare identities first
        is_small = kind is int and -5 <= value <= 256  # of which CPython has one each
        return self.by_identity and kind in _NUMBERS_AND_TEXTS and not is_small

    def digest(self) -> bytes:
        """Return 16 bytes that name the state; two of 10⁵ states share them with probability below 10⁻²⁸."""
        return blake2b(marshal.dumps(self.tokens, 2), digest_size=16).digest()  # version 2 ignores identities

    def is_inert(self, values: Iterable[Any]) -> bool:
        """Whether nothing acts when the last reference to these values goes, as a generator's `finally` does."""
        trial = Fingerprint(self.numbers, known=self.known)
        try:
            for value in values:
                trial.add(value)
        except Unreadable:
            return False
        return True


# How each kind of object is read: what it refers to, in an order that does not depend on addresses, with its data; and
# how an object that can change is given what it held at first.


class Method(NamedTuple):
    """How a kind is read, and how it is put back; `put` is None if it cannot change."""

    read: Callable[[Fingerprint, Any], Sequence[Any]]
    put: Callable[[Any, Sequence[Any]], Any] | None = None


def _opened(print_: Fingerprint, value: Any) -> list[Any]:
    _, label, names, parts = opened(value)
    return [Data(label), *names, *parts]


def _dict(print_: Fingerprint, held: Any) -> list[Any]:
    if print_.known is not None and not all(map(_keeps_its_hash, dict.keys(held))):
        raise Unreadable("a dictionary remembers what a user's __hash__ returned")
    return [*dict.keys(held), *dict.values(held)]


def _keeps_its_hash(key: Any) -> bool:
    kind = type(key)
    if issubclass(kind, (tuple, frozenset)):
        return all(map(_keeps_its_hash, key))
    return type(kind.__hash__) is not types.FunctionType or is_stateless(kind.__hash__.__module__)


def _put_dict(held: Any, parts: Sequence[Any]) -> None:
    held.clear()
    held.update(zip(parts[: len(parts) // 2], parts[len(parts) // 2 :], strict=True))


def _set(print_: Fingerprint, held: Any) -> list[Any]:
    """The items and the table itself, as deleted entries and the finger decide later orders (setobject.h)."""
    items = list(held)
    if not all(map(_hashes_by_value, items)):
        raise Unreadable("a set of objects, whose order follows their addresses")
    word = ctypes.c_ssize_t.from_address
    fill, used, mask, table, finger = (word(id(held) + offset).value for offset in (16, 24, 32, 40, 56))
    if used != len(items):
        raise Unreadable("a set with an unknown layout")
    entries = (ctypes.c_ssize_t * (2 * mask + 2)).from_address(table)[:]
    shape = [int(bool(part)) if number % 2 == 0 else part for number, part in enumerate(entries)]
    return [Data((fill, mask, finger, *shape)), *items]


def _hashes_by_value(value: Any) -> bool:
    kind = type(value)
    return all(map(_hashes_by_value, value)) if kind in (tuple, frozenset) else kind in _ATOMS and value == value


def _array(print_: Fingerprint, array: Any) -> list[Any]:
    base = array.base
    if array.dtype.hasobject:
        raise Unreadable("an array of objects")
    if base is not None and type(base) is not np.ndarray:
        raise Unreadable("an array in memory of another object")
    offset = base is not None and array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return [Data((array.tobytes(), array.shape, array.strides, array.flags.num, offset)), array.dtype, base]


def _ufunc(print_: Fingerprint, function: np.ufunc) -> list[Any]:
    if function.__name__.endswith("(vectorized)"):
        raise Unreadable("a function of numpy.frompyfunc")
    return [Data((id(function),))]


def _function(print_: Fingerprint, function: Any) -> list[Any]:
    code: Any = function.__code__
    if is_stateless(function.__globals__.get("__name__")):
        code = Data((code.co_filename, code.co_firstlineno, code.co_qualname, code.co_code))
    cells, defaults = function.__closure__ or (), function.__defaults__ or ()
    return [code, function.__kwdefaults__, vars(function), *cells, *defaults]


def _put_function(function: Any, parts: Sequence[Any]) -> None:
    function.__defaults__ = tuple(parts[3 + len(function.__closure__ or ()) :]) or None


def _code(print_: Fingerprint, code: types.CodeType) -> list[Any]:
    if print_.known is not None and code not in print_.known:
        raise Unreadable(f"the code of {code.co_qualname} was made or found while the mechanism ran")
    return [Data((code.co_qualname if print_.known is None else print_.known[code],))]


def _module(print_: Fingerprint, module: types.ModuleType) -> list[Any]:
    if not is_stateless(module.__name__):
        raise Unreadable(f"the module {module.__name__}")
    return [Data((module.__name__,))]


def _builtin(print_: Fingerprint, function: Any) -> list[Any]:
    owner = function.__self__
    return [Data((function.__name__,)), *(_module(print_, owner) if isinstance(owner, types.ModuleType) else [owner])]


def _cache(print_: Fingerprint, cache: Any) -> list[Any]:
    hits, misses, _, size = cache.cache_info()
    if hits or misses or size:
        raise Unreadable("a cache of functools holds results")
    return [cache.__wrapped__, vars(cache)]


def _iterator(print_: Fingerprint, iterator: Any) -> list[Any]:
    if print_.known is None:
        raise Unreadable(f"a {type(iterator).__qualname__} that was made before")
    if type(iterator) not in _VIEW_ITERATORS:
        return [*iterator.__reduce__()]
    form = [ctypes.string_at(id(iterator) + 24, 16), iterator.__length_hint__()]  # with the expected size and position
    held = [each for each in gc.get_referents(iterator) if type(each) in (dict, set, frozenset)]
    for each in held:
        if type(each) is dict:  # when its table is compacted next (ma_keys; dk_usable and dk_nentries)
            form.append(ctypes.string_at(ctypes.c_size_t.from_address(id(each) + 32).value + 16, 16))
    return [Data(form), *held]


def _class(print_: Fingerprint, kind: type) -> list[Any]:
    if is_stateless(kind.__module__) or not _is_heap(kind):
        return [Data((id(kind),))]
    if print_.known is not None and id(kind) not in print_.numbers:
        raise Unreadable(f"the class {kind.__qualname__} was made or found while the mechanism ran")
    held = {name: value for name, value in vars(kind).items() if name not in _NOT_STATE}
    return [*held, *held.values(), type(kind), kind.__name__, kind.__qualname__, *kind.__bases__]


def _put_class(kind: type, parts: Sequence[Any]) -> None:
    count = (len(parts) - 3 - len(kind.__bases__)) // 2
    for name, each in zip(parts[:count], parts[count : 2 * count], strict=True):
        if vars(kind).get(name, NULL) is not each:
            setattr(kind, name, each)


def _is_heap(kind: type) -> bool:
    """Whether a class was made while Python ran, by a `class` statement or by a module (Py_TPFLAGS_HEAPTYPE)."""
    return bool(kind.__flags__ & 1 << 9)


@functools.lru_cache(maxsize=1024)
def _layout_of(kind: type) -> tuple[type, tuple[Any, ...], Any]:
    """Return the C type below a class, the descriptors of its slots, and the descriptor of its dictionary."""
    base = next(each for each in kind.__mro__ if not _is_heap(each))
    own = [member for each in kind.__mro__[: kind.__mro__.index(base)] for member in vars(each).values()]
    slots = tuple(member for member in own if type(member) is types.MemberDescriptorType)
    pointers = len(slots) + (kind.__dictoffset__ > 0 >= base.__dictoffset__)
    pointers += kind.__weakrefoffset__ > 0 >= base.__weakrefoffset__
    if kind.__basicsize__ - base.__basicsize__ > 8 * pointers or base not in _BASES:
        raise Unreadable(f"an object of {kind.__module__}.{kind.__qualname__}")
    return base, slots, next((vars(each)["__dict__"] for each in kind.__mro__ if "__dict__" in vars(each)), None)


def _instance(print_: Fingerprint, value: Any) -> list[Any]:
    kind: Any = type(value)
    base, slots, dictionary = _layout_of(kind)
    parts = [kind, None if dictionary is None else dictionary.__get__(value)]
    for slot in slots:
        try:
            parts.append(slot.__get__(value))
        except AttributeError:
            parts.append(NULL)
    return [*parts, *_METHODS[base].read(print_, value)]


def _keep(value: Any, parts: Sequence[Any]) -> None:
    """Leave what cannot be put back as it is, which is refused then."""


_METHODS: Final[dict[type, Method]] = {
    **dict.fromkeys(_ATOMS, Method(lambda print_, value: [Data((value,))])),
    **dict.fromkeys((object, type(NULL)), Method(lambda print_, value: [])),
    int: Method(lambda print_, value: [Data((int.__index__(value),))]),
    float: Method(lambda print_, value: [Data((float.__float__(value),))]),
    str: Method(lambda print_, value: [Data((str.__str__(value),))]),
    tuple: Method(lambda print_, value: [*tuple.__iter__(value)]),
    list: Method(
        lambda print_, value: [*list.__iter__(value)], lambda value, parts: setitem(value, slice(None), parts)
    ),
    dict: Method(_dict, _put_dict),
    set: Method(_set, _keep),
    frozenset: Method(_set),
    **dict.fromkeys((collections.deque, bytearray), Method(_opened, _keep)),
    np.ndarray: Method(
        _array, lambda value, parts: np.copyto(value, np.frombuffer(parts[0][0], value.dtype).reshape(value.shape))
    ),
    types.FunctionType: Method(_function, _put_function),
    functools._lru_cache_wrapper: Method(_cache, lambda value, parts: value.cache_clear()),
    types.CodeType: Method(_code),
    types.ModuleType: Method(_module),
    **dict.fromkeys((types.BuiltinFunctionType, types.MethodWrapperType), Method(_builtin)),
    **dict.fromkeys(WRAPPERS.keys() - {functools.cached_property}, Method(_opened)),
    types.CellType: Method(_opened, lambda value, parts: setattr(value, "cell_contents", *parts[1:])),
    **dict.fromkeys(_HOLDERS, Method(lambda print_, value: gc.get_referents(value))),
    np.ufunc: Method(_ufunc),
    **dict.fromkeys(_STATIC, Method(lambda print_, value: [Data((id(value),))])),
    **dict.fromkeys((*_ITERATORS, *_VIEW_ITERATORS), Method(_iterator)),
}
_BASES: Final = {object, int, float, str, tuple, list, dict}
"""C types of which classes may be made whose objects are read."""


_FAMILIES: Final = {
    type: Method(_class, _put_class),
    np.dtype: Method(lambda print_, value: [Data((pickle.dumps(value),)), value.metadata]),
    np.void: Method(_instance, _keep),
    np.generic: Method(lambda print_, value: [Data((str(value.dtype), value.tobytes()))]),
    object: Method(_instance, _keep),
}
"""The same for classes and all that are derived from them."""


_FUNCTION_OF_C: Final = type(ctypes.pythonapi.Py_IsInitialized).__mro__[1]


def _pickled(print_: Fingerprint, value: Any) -> list[Any]:
    """The contents of a table, which has much in C; whether it shares them with another one is not seen."""
    if print_.known is not None and id(value) not in print_.numbers:
        raise Unreadable(f"a {type(value).__qualname__} that was made while the mechanism ran")
    return [Data((pickle.dumps(value),))]


@functools.lru_cache(maxsize=4096)
def method_of(kind: type) -> Method:
    """Return how objects of a kind are read and put back."""
    if is_own(kind):
        return Method(lambda print_, value: value.exact_state())
    if kind.__module__.partition(".")[0] == "pandas":
        return Method(_pickled, _keep)
    if issubclass(kind, _FUNCTION_OF_C):
        raise Refusal("holds a function of a C library, whose draws cannot be seen")
    return _METHODS.get(kind) or next(method for family, method in _FAMILIES.items() if issubclass(kind, family))


# The world: all that the code can reach besides its frames, as it was before the first execution.


class _Watch(NamedTuple):
    """A part of the world, with what it referred to at first."""

    owner: Any
    method: Method
    first: Sequence[Any]


def _changed(watches: Iterable[_Watch], reader: Fingerprint) -> Iterable[tuple[int, _Watch]]:
    """Return those that are not as they were at first, with their numbers."""
    for number, watch in enumerate(watches):
        owner, (read, _), first = watch
        try:
            now = read(reader, owner)
        except Unreadable:
            yield number, watch
            continue
        if len(now) != len(first) or not (all(map(is_, now, first)) or all(map(_is_same, now, first))):
            yield number, watch


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) is Data and one == other)


class World:
    """Everything that the roots reach, numbered, watched for changes and put back before each execution."""

    def __init__(self, roots: Iterable[Any], stand_in: Callable[[Any], Any] = lambda value: value) -> None:
        self.numbers: dict[int, int] = {}
        self.codes: dict[types.CodeType, int] = {}
        self.problems: list[str] = []
        self.functions: list[types.FunctionType] = []
        self.by_identity = False
        self._stand_in = stand_in
        self._reader = Fingerprint()
        self._undo = contextlib.ExitStack()
        self._watches: list[_Watch] = []
        self._kept: list[Any] = []
        self._spaces: dict[int, dict[str, Any]] = {}  # the global names of modules
        self._others: list[str] = []  # modules that are not known to be stateless
        self.names: set[str] = set()  # that any code uses
        self._stored: set[str] = set()
        self._waiting: list[Any] = list(roots)
        known: dict[int, set[str]] = collections.defaultdict(set)
        with self._undo:  # so that what is raised here leaves no stand-ins in objects that outlive the audit
            while self._waiting:
                while self._waiting:
                    self._explore(self._waiting.pop())
                for place, space in self._spaces.items():
                    new = (self._names_in(space) & space.keys()) - known[place]
                    known[place] |= new
                    self._waiting += [stand_in(space[name]) for name in new]
            for space in self._spaces.values():
                self._watch(space, _of_names(sorted(self._names_in(space))))
            self._watches.append(_Watch(warnings, _of_libraries(), ()))
            self._watches = [each._replace(first=each.method.read(self._reader, each.owner)) for each in self._watches]
            self._undo = self._undo.pop_all()
        if self._others and self.names & {"getattr", "setattr", "vars", "__dict__", "attrgetter"}:
            self.problems.append(f"the module {self._others[0]} may be read by names that are not in the code")
        if reflection := (self.names & _REFLECTION) | (self._stored & _ASSIGNED):
            self.problems.append(f"the code uses {', '.join(sorted(reflection))}")

    def _names_in(self, space: dict[str, Any]) -> set[str]:
        """Return the names of a module that code may read or change: of a library, those that any code stores."""
        return self._stored | (set() if is_stateless(space.get("__name__")) else self.names & space.keys())

    def _is_known(self, value: Any) -> bool:
        return type(value) in _ATOMS or type(value) is Data or value is NULL or id(value) in self.numbers

    def _explore(self, value: Any) -> None:
        """Number an object, and go on to what it refers to."""
        if self._is_known(value):
            return
        self.numbers[id(value)] = len(self.numbers)
        self._kept.append(value)
        kind: Any = type(value)
        if isinstance(value, types.ModuleType):
            self._spaces[id(vars(value))] = vars(value)
            if not is_stateless(value.__name__):
                self._others.append(value.__name__)
        elif kind is types.FunctionType:
            module = value.__globals__.get("__name__")
            if not is_stateless(module):
                self.functions.append(value)
                self._note_code(value.__code__, value.__globals__)
            if not is_stateless(module) or module in ("contextlib", "functools"):  # wrappers lead to other functions
                self._watch(value, _METHODS[kind])
        elif is_own(kind):
            self._waiting.append(getattr(value, "__dict__", None))  # what the code keeps with a generator
        else:
            self._watch(value, method_of(kind))
            if issubclass(kind, type) and "__del__" in vars(value):
                self.problems.append(f"the class {value.__qualname__} has a destructor")
            if issubclass(kind, dict) and not all(map(_keeps_its_hash, dict.keys(value))):
                self.problems.append("a dictionary remembers what a user's __hash__ returned")

    def _watch(self, value: Any, method: Method) -> None:
        """Watch a part of the world, with stand-ins for the generators in it."""
        kind: Any = type(value)
        if kind is functools._lru_cache_wrapper:
            value.cache_clear()
        try:
            found = method.read(self._reader, value)
        except Unreadable as reason:
            self.problems.append(str(reason))
            method, found = Method(_opaque, _keep), _opaque(self._reader, value)
        instead = [self._stand_in(each) for each in found]
        replaced = [a for a, b in zip(found, instead, strict=True) if a is not b]
        if replaced and method.put not in (None, _keep):
            self._undo.callback(method.put, value, found)
            method.put(value, instead)
        elif any(getattr(each, "__module__", "") != "math" for each in replaced):
            raise Refusal(f"holds a generator in a {kind.__qualname__}, where it cannot be replaced")
        is_plain = method.read is _instance and _layout_of(kind)[:2] == (object, ())  # its dictionary is watched
        if method.put not in (None, _put_function) and not is_plain:  # a function changes by reflection only
            self._watches.append(_Watch(value, method, ()))
        self._waiting += instead

    def _note_code(self, code: types.CodeType, module: dict[str, Any]) -> None:
        """Note what names code uses, and what it does that no state shows."""
        if code in self.codes:
            return
        self.codes[code] = len(self.codes)
        self._spaces[id(module)] = module
        for each in code.co_consts:
            if isinstance(each, types.CodeType):
                self._note_code(each, module)
        self.names |= {*code.co_names, *(each for each in code.co_consts if each in _REFLECTION)}
        self._stored |= {each for each in code.co_consts if each in _ASSIGNED}  # for setattr
        instructions = list(dis.get_instructions(code))
        for number, each in enumerate(instructions):
            name = each.argval
            if each.opname in ("STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL"):
                self._stored.add(name)
            elif each.opname == "LOAD_GLOBAL" and name in _REFLECTING_BUILTINS and code.co_name != f"__{name}__":
                self.problems.append(f"the code uses {name}")
            elif each.opname == "IMPORT_NAME" and not is_stateless(name):
                parts = [name, name.partition(".")[0]]
                self._waiting += [sys.modules[part] for part in parts if part in sys.modules]
                if parts[1] not in sys.modules:
                    self.problems.append(f"the code imports {parts[1]} while it runs")
            elif each.opname == "IS_OP" and not _is_of_one_object(instructions[:number], module):
                self.by_identity = True  # numbers and texts of one value may be distinguished

    def restore(self) -> None:
        """Put the world back as it was before the first execution; raise a `Refusal` if that is not possible."""
        changed = [watch for _, watch in _changed(self._watches, self._reader)]
        for watch in changed:
            with contextlib.suppress(AttributeError, TypeError, ValueError):  # what no longer lets itself be changed
                (watch.method.put or _keep)(watch.owner, watch.first)
        for _, watch in _changed(changed, self._reader):
            what = f"a {type(watch.owner).__qualname__}"
            raise Refusal(f"changes {what} outside of itself, which cannot be put back")

    def undo(self) -> None:
        """Put everything back as it was, with the generators."""
        with self._undo, contextlib.suppress(Refusal):  # it ended the audit before
            self.restore()

    def add_changes(self, print_: Fingerprint) -> None:
        """Append the tokens of all parts of the world that are not as they were."""
        for number, watch in _changed(self._watches, self._reader):
            now = watch.method.read(print_, watch.owner)
            print_.tokens.append(("changed", number, len(now)))
            for each in now:
                print_.add(each)


def _of_names(names: Sequence[str]) -> Method:
    """Return how these global names of a module are read and put back."""

    def put(space: dict[str, Any], parts: Sequence[Any]) -> None:
        space.update(zip(names, parts, strict=True))
        for name in [name for name in names if space[name] is NULL]:
            del space[name]

    return Method(lambda print_, space: [space.get(name, NULL) for name in names], put)


def _of_libraries() -> Method:
    """Return how the filters of warnings and what numpy and scipy do after errors are read and put back."""
    special = sys.modules.get("scipy.special")

    def read(print_: Fingerprint, _: Any) -> list[Any]:
        of_scipy = special.geterr().values() if special else ()
        return [Data((np.getbufsize(), *np.geterr().values(), *of_scipy)), np.geterrcall(), *warnings.filters]

    def put(_: Any, parts: Sequence[Any]) -> None:
        (size, *answers), call, *filters = parts
        np.setbufsize(size)
        np.seterrcall(call)
        np.seterr(**dict(zip(np.geterr(), answers, strict=False)))
        if special:
            special.seterr(**dict(zip(special.geterr(), answers[len(np.geterr()) :], strict=True)))
        warnings.resetwarnings()  # so that what was warned of before is forgotten
        warnings.filters[:] = filters  # type: ignore[index]

    return Method(read, put)


def _opaque(print_: Fingerprint, value: Any) -> list[Any]:
    """Return what shows a change of an object of C code: pickle or memory, attributes, and what it contains."""
    kind, form = type(value), b""
    is_container = issubclass(kind, (list, tuple, dict, set, frozenset, collections.deque))
    try:
        with warnings.catch_warnings(action="ignore"):  # those of itertools
            form = pickle.dumps(value)
    except Exception as error:  # a user's class may raise anything
        is_iterator = hasattr(kind, "__next__") and kind.__module__ != "_io"
        if is_iterator or not _HIDING.isdisjoint(each.__module__ for each in kind.__mro__):
            raise Refusal(f"holds a {kind.__qualname__}, whose changes cannot be seen") from error
        with contextlib.suppress(TypeError):  # of what has no buffer
            form = bytes(memoryview(value))
    return [Data((form,)), getattr(value, "__dict__", None), *(gc.get_referents(value) if is_container else ())]


def _is_of_one_object(before: Sequence[dis.Instruction], module: Mapping[str, Any]) -> bool:
    """Whether the right operand of `is` is None, True, …, or a global object that is not a number or text."""
    names = [each.argval for each in itertools.takewhile(lambda each: each.opname == "LOAD_ATTR", reversed(before))]
    first = before[-1 - len(names)]
    if first.opname == "LOAD_COMMON_CONSTANT":
        return before[-2].opname == "COPY"  # from 3.14 on, `all(…)` of a generator asks whether `all` is the builtin
    if first.opname not in ("LOAD_CONST", "LOAD_GLOBAL"):
        return False
    is_constant, name = first.opname == "LOAD_CONST", first.argval
    value = name if is_constant else module.get(name, getattr(builtins, name, NULL))
    for name in reversed(names):
        value = getattr(value, name, NULL)
    return value is not NULL and type(value) not in (*_NUMBERS_AND_TEXTS, tuple)
