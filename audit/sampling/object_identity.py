"""Hash an object by its content and code, never by its address, alike in every process.

A store continues with blocks that were drawn before. It must therefore recognise a mechanism, with the parameters,
attributes, closures, variables and helpers that determine its outputs, and a dataset to the last digit.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import struct
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Any, Final

import numpy as np
import scipy

from ..datasets.contents import without_padding
from ..events.kinds import Opened, kind_of, opened, shows_all
from ..extras import installed

# The provenance of the audited code: its location, the version of its package, and a fingerprint.


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The code of a mechanism, as visible from outside.

    Attributes
    ----------
    where : str
        Module and name, such as "mylib.counts:noisy_count".
    package : str
        Name and version of the distribution with the module's top-level name, such as "mylib 1.2.0"; empty if there is
        none.
    fingerprint : str
        First 16 hexadecimal digits of a SHA-256 of the loaded code of the function, or of all functions in the class of
        an object. It excludes comments, parameters and called functions, and depends on the minor version of Python.
        Of a `Program` it covers the command and the files that the command names, and of another adapter what it calls.
        Empty if no code is visible, as for a builtin.
    """

    where: str
    package: str = ""
    fingerprint: str = ""

    def __str__(self) -> str:
        known = (self.where, self.package, self.fingerprint and f"fingerprint {self.fingerprint}")
        return ", ".join(part for part in known if part)


ELSEWHERE = Provenance(where="outputs made elsewhere")
"""The provenance if no mechanism was run."""


def provenance_of(mechanism: Any) -> Provenance:
    """Return the provenance of a function, method, `functools.partial` or object; a wrapper counts as its own code."""
    module, name, codes = loaded_code(mechanism)
    if f"{module}.".startswith(ADAPTERS) and hasattr(type(mechanism), "__audit_identity__"):
        return Provenance(where=f"{module}:{name}", fingerprint=identity(mechanism).hash[:16])
    words = "\n".join(map(words_of, codes)).encode("utf-8", "surrogatepass")
    fingerprint = hashlib.sha256(words).hexdigest()[:16] if codes else ""
    return Provenance(where=f"{module}:{name}", package=package_of(module), fingerprint=fingerprint)


def loaded_code(mechanism: Any) -> tuple[str, str, list[CodeType]]:
    """Return the module and name of a mechanism's code, and the code of the function or of its class's functions."""
    while isinstance(mechanism, functools.partial):
        mechanism = mechanism.func
    if inspect.ismethod(mechanism):
        mechanism = mechanism.__self__
    if isinstance(mechanism, FunctionType):  # the code that runs, not the function named by `functools.wraps`
        module = str(mechanism.__globals__.get("__name__", ""))
        return module, mechanism.__code__.co_qualname, [mechanism.__code__]
    kind = mechanism if inspect.isclass(mechanism) or inspect.isbuiltin(mechanism) else type(mechanism)
    codes = list(_codes_of(kind)) if inspect.isclass(kind) else []
    return str(getattr(kind, "__module__", None) or "builtins"), str(kind.__qualname__), codes


@functools.cache
def package_of(module: str) -> str:
    """Return the distribution with the module's top-level name and its version, or else the module's own version."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        return ""
    if (version := installed(top)) is not None:
        return f"{top} {version}"
    try:
        stated = getattr(sys.modules.get(top), "__version__", None)
    except Exception:  # a module that looks its version up may raise anything
        return ""
    return f"{top} {stated}" if isinstance(stated, str) else ""


def _codes_of(kind: type) -> Iterator[CodeType]:
    """Yield the code of the functions that a class itself defines, in order of their names."""
    for _, value in sorted(vars(kind).items()):
        for part in (value, *(getattr(value, name, None) for name in ("fget", "fset", "__func__"))):
            if isinstance(part, FunctionType):
                yield part.__code__


def words_of(code: CodeType) -> str:
    """Return a text that determines what code does, the same in every process."""
    constants = [words_of(each) if isinstance(each, CodeType) else _constant(each) for each in code.co_consts]
    return repr((code.co_qualname, code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants))


def _constant(value: Any) -> str:
    if isinstance(value, frozenset):  # its order varies between processes
        return f"frozenset({sorted(map(_constant, value))})"
    if isinstance(value, tuple):
        return f"({', '.join(map(_constant, value))})"
    return repr(value)


@functools.cache
def versions() -> tuple[tuple[str, str], ...]:
    """Return the versions of this library, Python, numpy and scipy, as results record them."""
    own = installed("dpaudit") or "not installed"  # a source tree
    python = ".".join(map(str, sys.version_info[:3]))
    return (("dpaudit", own), ("python", python), ("numpy", np.__version__), ("scipy", scipy.__version__))


@functools.cache
def own_sources() -> str:
    """Return a hash of this library's source files that draw and count; a version number does not show local edits."""
    package = Path(__file__).resolve().parents[2]
    hashed = hashlib.blake2b(digest_size=8)
    for path in sorted(path for folder in ("audit", "mechanisms") for path in (package / folder).rglob("*.py")):
        hashed.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return hashed.hexdigest()


def drawn_by() -> tuple[tuple[str, str], ...]:
    """Return the versions and the sources' hash that, with the mechanism, determine the numbers drawn from a seed."""
    return (*versions(), ("dpaudit's sources", own_sources()))


# The place of a mechanism's source, as it was when the audit ran: file, line, and SHA-256 of the file.

ADAPTERS: Final = f"{__name__.partition('.')[0]}.mechanisms.adapters."
"""Modules whose objects call a mechanism that is defined elsewhere."""


def source_of(mechanism: Any) -> dict[str, dict[str, str | int]]:
    """Return the place of a mechanism's source as an entry ``source`` of a result's environment, or no entry.

    The path is relative to the working directory, or to the folder of installed packages, and has forward slashes.
    There is none for code without a file (a prompt, a notebook, a builtin), for a file elsewhere, whose path would
    reveal the layout of a machine, and for adapters, which do not hold the mechanism's code.
    """
    module, _, codes = loaded_code(mechanism)
    if not codes or f"{module}.".startswith(ADAPTERS):
        return {}
    file = codes[0].co_filename
    line = min(code.co_firstlineno for code in codes if code.co_filename == file)
    below, path = "installed packages", below_packages(Path(file))
    try:
        if path is None:
            below, path = "working directory", Path(file).resolve().relative_to(Path.cwd().resolve()).as_posix()
        digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except (ValueError, OSError):  # the code came from elsewhere, or its file is gone
        return {}
    return {"source": {"file": path, "line": line, "sha256": digest, "below": below}}


def below_packages(path: Path) -> str | None:
    """Return the path from the folder of installed packages; None for a file elsewhere."""
    for marker in ("site-packages", "dist-packages"):
        if marker in path.parts:
            at = len(path.parts) - 1 - path.parts[::-1].index(marker)
            return "/".join(path.parts[at + 1 :])
    return None


def cell_of(file: str) -> str | None:
    """Return the cell of a notebook or of IPython that code is from, such as ``In[3]``; None for other code."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    # Where IPython's own tracebacks look: a kernel's name of the file has the number of the process.
    cells = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return f"In[{cells[file]}]" if file in cells else None


_OWN_NAME = __name__.partition(".")[0]
_PLACES = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_PLAIN = (bool, int, float, complex, str, bytes)
_DEPTH = 3  # nesting of collections up to which one repr is hashed, which is faster
_SLOTS = (GetSetDescriptorType, MemberDescriptorType)
_BEHAVIOUR = (FunctionType, staticmethod, classmethod, property)


@dataclass(frozen=True, slots=True)
class Identity:
    """Hash of an object, with the types of the parts that it could not cover."""

    hash: str
    opaque: tuple[str, ...]  # types without visible contents, such as objects of a C library; only their type is hashed
    failed: tuple[str, ...]  # types of objects that raised an exception


def identity(value: Any, package: str = "") -> Identity:
    """Hash an object by its contents, or by its own method `__audit_identity__`.

    The user's functions and classes are hashed by their code and everything it names; installed libraries, except
    `package`, by name and version.
    """
    walk = _Walk(package)
    walk.add(value)
    return Identity(walk.hash.hexdigest(), tuple(sorted(walk.opaque)), tuple(sorted(walk.failed)))


def identity_of_mechanism(function: Any) -> Identity:
    """Hash a mechanism like `identity`, including the code of its package, installed or not."""
    return identity(function, provenance_of(function).where.partition(":")[0].partition(".")[0])


def is_library(module: ModuleType) -> bool:
    """Whether a module belongs to Python, this library or an installed package, rather than to the user."""
    name = module.__name__.partition(".")[0]
    if name in (_OWN_NAME, "builtins") or name in sys.stdlib_module_names:
        return True
    file = getattr(module, "__file__", None)
    if file is None:
        return name != "__main__"
    return _is_inside(file, _PLACES)


@functools.cache
def _is_inside(file: str, places: tuple[Path, ...]) -> bool:
    """Whether a file is in one of the folders; resolving links takes most of the time of hashing a function."""
    path = Path(file).resolve()
    return any(path.is_relative_to(place) for place in places)


class _Walk:
    """Walks an object; each part is hashed separately, so that one part used twice equals two equal parts."""

    def __init__(self, own: str) -> None:
        self.own = own  # name of a package whose code is hashed although it is installed
        self.hash = _hasher()
        self.opaque: set[str] = set()
        self.failed: set[str] = set()
        self._known: dict[int, tuple[bytes, Any]] = {}  # holds the objects, so that no other object reuses their id
        self._above: dict[int, int] = {}  # enclosing objects, with their depth

    def put(self, *words: str | bytes | memoryview) -> None:
        for word in words:
            content = word.encode("utf-8", "surrogatepass") if isinstance(word, str) else word
            self.hash.update(struct.pack("<Q", len(content)))
            self.hash.update(content)

    def each(self, name: str, values: Iterable[Any]) -> None:
        found = list(values)
        self.put(name, str(len(found)))
        for value in found:
            self.add(value)

    def add(self, value: Any) -> None:
        if value is None or type(value) in _PLAIN:
            self.put(type(value).__name__, value if isinstance(value, (str, bytes)) else repr(value))
        elif id(value) in self._above:
            self.put("above", str(len(self._above) - self._above[id(value)]))
        else:
            if id(value) not in self._known:
                self._known[id(value)] = (self._part(value), value)
            self.put(self._known[id(value)][0])

    def _part(self, value: Any) -> bytes:
        outer, self.hash = self.hash, _hasher()
        self._above[id(value)] = len(self._above)
        try:
            said = getattr(type(value), "__audit_identity__", None)
            if said is not None:
                self.each("said", [type(value), said(value)])
            else:
                self.content(value)
        except Exception:  # objects may raise anything when inspected; nesting may be too deep
            self.put("failed", _name_of(type(value)))
            self.failed.add(_name_of(type(value)))
        finally:
            del self._above[id(value)]
            inner, self.hash = self.hash, outer
        return inner.digest()

    def content(self, value: Any) -> None:
        match value:
            case list() | tuple() | dict() if _is_plain(value, _DEPTH):
                self.put("plain", repr(value))
            case ModuleType():
                self.module(value)
            case FunctionType():
                self.function(value)
            case BuiltinFunctionType():
                self.put("builtin", str(value.__module__), value.__qualname__)
                if not isinstance(value.__self__, ModuleType):
                    self.add(value.__self__)
            case type():
                self.kind(value)
            case CodeType():
                self.put("code", words_of(value))
            case _ if shows_all(type(value), kind_of(value)):
                self.put(type(value).__name__)
                self.add_opened(opened(value))
            case _ if kind_of(value) in ("set", "wrapper"):  # derived; a pickle lacks the parts, or their order varies
                attributes = getattr(value, "__dict__", {})
                self.each("derived", [type(value), {k: v for k, v in attributes.items() if k != "lock"}])
                self.add_opened(opened(value))
            case _:
                self.object(value)

    def add_opened(self, found: Opened) -> None:
        """Add what is in a value that holds nothing else."""
        self.put(found.kind, repr(found.label))
        if found.kind == "array":
            for part in without_padding(found.parts):
                self.put(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
        elif found.kind == "set":
            self.put(*sorted(self._part((member,)) for member in found.parts))
        else:
            self.each("names", found.names)
            self.each("parts", found.parts)

    def object(self, value: Any) -> None:
        """Add any other object, by the parts from which pickle would rebuild it."""
        self.each("wrapped", [type(value), getattr(value, "__wrapped__", None)])
        try:
            made = value.__reduce_ex__(4)
        except Exception:  # objects may raise anything when copied
            self.opaque.add(_name_of(type(value)))
            return
        if isinstance(made, str):
            self.put(made)
            return
        function, arguments, *rest = made
        state, items, pairs = (*rest, None, None, None)[:3]
        if isinstance(state, dict):  # without cached properties
            cached = functools.cached_property
            state = {k: v for k, v in state.items() if not isinstance(getattr(type(value), str(k), None), cached)}
        self.each("made", [function, arguments, state])
        self.each("items", [] if items is None else items)
        self.each("pairs", [] if pairs is None else [part for pair in pairs for part in pair])

    def is_foreign(self, name: str | None) -> bool:
        """Whether the contents of the module are identified by name and version alone."""
        module = sys.modules.get(name or "")
        if module is None or not is_library(module):
            return False
        top = module.__name__.partition(".")[0]
        return top != self.own or top in (_OWN_NAME, *sys.stdlib_module_names)

    def module(self, module: ModuleType) -> None:
        """Add a module; the user's modules by their source, because the names that code takes from it are unknown."""
        self.put("module", module.__name__)
        file = getattr(module, "__file__", None)
        if self.is_foreign(module.__name__):
            self.put(package_of(module.__name__))
        elif file is not None and Path(file).is_file():
            self.put(Path(file).read_bytes())

    def function(self, function: FunctionType) -> None:
        self.put("function", function.__qualname__)
        if self.is_foreign(function.__module__):
            self.put(str(function.__module__), package_of(str(function.__module__)))
            return
        self.each("with", [function.__defaults__, function.__kwdefaults__, *(function.__closure__ or ())])
        self.put("code", words_of(function.__code__))
        for name in sorted(_names_in(function.__code__)):
            if name in function.__globals__:
                self.put("variable", name)
                self.add(function.__globals__[name])

    def kind(self, kind: type) -> None:
        self.put("class", kind.__qualname__)
        if self.is_foreign(kind.__module__):
            self.put(kind.__module__, package_of(kind.__module__))
            return
        self.each("bases", kind.__bases__)
        for name, part in sorted(vars(kind).items()):
            # Python and its libraries cache under names like __slotnames__, which come and go.
            is_kept = name.startswith("__") or name == "_abc_impl"
            is_behaviour = isinstance(part, _BEHAVIOUR) and name != "__annotate_func__"  # annotations, from 3.14 on
            if is_behaviour or not (is_kept or isinstance(part, _SLOTS)):
                self.put("part", name)
                self.add(part)


def _is_plain(value: Any, depth: int) -> bool:
    """Whether `repr` covers the value completely: numbers, texts, and lists, tuples and dictionaries of these."""
    kind = type(value)
    if kind is dict:
        return depth > 0 and all(_is_plain(each, depth - 1) for item in value.items() for each in item)
    if kind is list or kind is tuple:
        return depth > 0 and all(_is_plain(each, depth - 1) for each in value)
    return value is None or kind in _PLAIN


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _hasher() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=16)


def _names_in(code: CodeType) -> set[str]:
    """Return the names that code, and functions defined in it, may take from their module."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names_in(constant)
    return names
