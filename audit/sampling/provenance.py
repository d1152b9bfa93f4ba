"""The provenance of the audited code: its location, the version of its package, and a fingerprint."""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import scipy


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
    """Return the provenance of a function, method, `functools.partial` or object; a wrapper counts as its own code.

    Examples
    --------
    >>> import statistics
    >>> provenance_of(statistics.fmean).where
    'statistics:fmean'
    >>> len(provenance_of(statistics.fmean).fingerprint), provenance_of(len).fingerprint
    (16, '')
    """
    module, name, codes = loaded_code(mechanism)
    return Provenance(where=f"{module}:{name}", package=package_of(module), fingerprint=_fingerprint(codes))


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
    try:
        return f"{top} {version(top)}"
    except (PackageNotFoundError, ValueError):  # not installed, or not the name of a distribution
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


def _fingerprint(codes: list[CodeType]) -> str:
    if not codes:
        return ""
    return hashlib.sha256("\n".join(map(words_of, codes)).encode("utf-8", "surrogatepass")).hexdigest()[:16]


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
    try:
        own = version("dpaudit")
    except PackageNotFoundError:  # run from a source tree that is not installed
        own = "not installed"
    python = ".".join(map(str, sys.version_info[:3]))
    return (("dpaudit", own), ("python", python), ("numpy", np.__version__), ("scipy", scipy.__version__))


@functools.cache
def own_sources() -> str:
    """Return a hash of this library's source files that draw and count; a version number does not show local edits."""
    package = Path(__file__).resolve().parents[2]
    hashed = hashlib.blake2b(digest_size=8)
    for path in sorted(path for room in ("audit", "mechanisms") for path in (package / room).rglob("*.py")):
        hashed.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return hashed.hexdigest()


def drawn_by() -> tuple[tuple[str, str], ...]:
    """Return the versions and the sources' hash that, with the mechanism, determine the numbers drawn from a seed."""
    return (*versions(), ("dpaudit's sources", own_sources()))
