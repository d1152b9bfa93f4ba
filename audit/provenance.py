"""Which code was run: where it is defined, the version of its package, and a fingerprint of its source text."""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The code of a mechanism, as far as it can be told from outside.

    Attributes
    ----------
    where : str
        Module and name, such as "mylib.counts:noisy_count".
    package : str
        Name and version of the distribution that it belongs to, such as "mylib 1.2.0"; empty where there is none.
    fingerprint : str
        First 16 hexadecimal digits of the SHA-256 of its source text: of the function, or of the class of an object.
        What it calls is not part of it. Empty where there is no source, as of a builtin.
    """

    where: str
    package: str = ""
    fingerprint: str = ""

    def __str__(self) -> str:
        known = (self.where, self.package, self.fingerprint and f"source {self.fingerprint}")
        return ", ".join(part for part in known if part)


def provenance_of(mechanism: Any) -> Provenance:
    """The code of a function, a method, a `functools.partial` or an object.

    Examples
    --------
    >>> import statistics
    >>> provenance_of(statistics.fmean).where
    'statistics:fmean'
    >>> len(provenance_of(statistics.fmean).fingerprint), provenance_of(len).fingerprint
    (16, '')
    """
    while isinstance(mechanism, functools.partial):
        mechanism = mechanism.func
    owner = getattr(mechanism, "__self__", None)
    if inspect.ismethod(mechanism) and owner is not None:
        mechanism = owner
    code = mechanism if inspect.isroutine(mechanism) or inspect.isclass(mechanism) else type(mechanism)
    module = getattr(code, "__module__", None) or "builtins"
    name = getattr(code, "__qualname__", None) or type(code).__qualname__
    return Provenance(where=f"{module}:{name}", package=_package(module), fingerprint=_fingerprint(code))


@functools.cache
def _package(module: str) -> str:
    """The distribution of a module where it has the module's first name, or else the module's own version."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        return ""
    try:
        return f"{top} {version(top)}"
    except (PackageNotFoundError, ValueError):  # not installed, or a name such as that of `__main__`
        stated = getattr(sys.modules.get(top), "__version__", None)
        return f"{top} {stated}" if isinstance(stated, str) else ""


def _fingerprint(code: Any) -> str:
    try:
        text = inspect.getsource(code)
    except (OSError, TypeError):  # typed into an interpreter, or written in C
        return ""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
