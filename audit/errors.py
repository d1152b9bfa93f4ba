"""The hierarchy of errors that the library raises on purpose.

A message names the value, the rule that it breaks and the remedy, on one line. `facts` keeps the values, also when the
exception comes from a worker process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .printing import shorten

# A message that quotes a value of a megabyte keeps the name of the value at one end, rule and remedy at the other.
_LONGEST, _BEGINNING, _END = 4000, 120, 300


class AuditError(Exception):
    """Base class of the library's errors; `facts` holds the values that the message names.

    Parameters
    ----------
    message : str
        What is wrong, the rule, and the remedy.
    **facts : Any
        Values that the message names, by name.

    See Also
    --------
    errors.OptionError : An option outside its range.
    RefutedError : A refuted claim.

    Examples
    --------
    >>> from dpaudit import AuditError, PureDP
    >>> try:
    ...     PureDP(-1.0)
    ... except AuditError as error:
    ...     print(type(error).__name__, error.facts)
    ClaimError {'name': 'epsilon', 'value': -1.0}
    """

    def __init__(self, message: str, **facts: Any) -> None:
        message = message if isinstance(message, str) else shorten(message)
        super().__init__(message if len(message) <= _LONGEST else f"{message[:_BEGINNING]} … {message[-_END:]}")
        self.facts = facts

    def __reduce__(self) -> tuple[Callable[..., AuditError], tuple[Any, ...]]:
        return _rebuild, (type(self), self.args[0], self.facts)


def _rebuild(kind: type[AuditError], message: str, facts: dict[str, Any]) -> AuditError:
    return kind(message, **facts)


class ClaimError(AuditError, ValueError):
    """A claim, or a parameter of a claim, that does not state a privacy guarantee."""


class AdjacencyError(AuditError, ValueError):
    """A pair of datasets that is not at the stated distance, or has no distance under the adjacency."""


class DatasetError(AuditError, ValueError):
    """A dataset that cannot be read or used."""


class MechanismError(AuditError, RuntimeError):
    """A mechanism that cannot be run, or whose outputs break the protocol."""


class OptionError(AuditError, ValueError):
    """A setting of the audit (runs, alpha, seed, …) outside its range."""


class UnknownOptionError(OptionError, TypeError):
    """An option that does not exist, or is not given by its name."""


class RefutedError(AuditError, AssertionError):
    """A refuted claim, for callers who want an exception (`raise_if_refuted`).

    See Also
    --------
    errors.InconclusiveError : An audit without a verdict.
    results.Result.raise_if_refuted : The method that raises both.

    Examples
    --------
    >>> from dpaudit import RefutedError, check_outputs
    >>> result = check_outputs([0] * 500, [1] * 500, claim=1.0)
    >>> try:
    ...     result.raise_if_refuted()
    ... except RefutedError:
    ...     print(result.verdict.value)
    refuted
    """


class InconclusiveError(AuditError, AssertionError):
    """An audit without a verdict, for callers who want an exception (`raise_if_refuted`)."""


class ExcessError(AuditError, AssertionError):
    """A replay with an excess, for callers who want an exception (`raise_if_excess`)."""


class RecordError(AuditError, ValueError):
    """A results file that cannot be read or is inconsistent."""


class WriteError(AuditError, OSError):
    """A file of results or a report that cannot be written."""


class StoreError(AuditError, RuntimeError):
    """A store that cannot be used: it belongs to another audit, or is in use, damaged or full."""


class MissingExtraError(AuditError, ImportError):
    """A library that only a part of dpaudit needs and that is not installed; the message names its extra."""


class UnknownNameError(AuditError, LookupError):
    """The name of an experiment, or an import path, that does not exist."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a call that draws: the message says what is known so far, and how to go on.

    A second Ctrl-C, while the result is computed, raises `KeyboardInterrupt`.

    Parameters
    ----------
    known : str
        What is known so far.
    way_on : str
        How to go on; the message has both.

    Attributes
    ----------
    known : str
        What is known so far.
    runs : int
        Runs of the whole call, on all datasets together: of worker processes those in finished chunks, and with a store
        also those that it recalled.
    result : AuditResult or None
        Valid verdict of a sequential audit at its last interim analysis, or of a search's audit that had refuted the
        claim before simpler pairs were tried. None of an unfinished audit of fixed size: it has a verdict only after
        all runs, since those finished by a certain time may be unlike the others.
    leading : tuple of TriedPair
        The leading pair of a search that was interrupted, with its estimated bound.
    pair : tuple or None
        The two datasets of that pair.

    See Also
    --------
    settings : The option `store`, with which the same call continues.

    Examples
    --------
    >>> from dpaudit.errors import Interrupted
    >>> issubclass(Interrupted, KeyboardInterrupt), Interrupted("stopped").result
    (True, None)
    """

    def __init__(
        self,
        known: str = "",
        way_on: str = "",
        *,
        runs: int = 0,
        result: Any = None,
        leading: tuple[Any, ...] = (),
        pair: tuple[Any, Any] | None = None,
    ) -> None:
        super().__init__("; ".join(filter(None, (known, way_on))))
        self.known, self.runs, self.result, self.leading, self.pair = known, runs, result, leading, pair


def described(error: BaseException, *, shows_data: bool = True) -> str:
    """Return an exception's type and, if it is this library's or rows may be shown, its message in one line.

    Without a message if `str` fails.
    """
    kind = type(error).__qualname__
    if not (shows_data or isinstance(error, AuditError)):
        return f"{kind} [message hidden, as it may hold rows]"
    try:
        text = str(error)
        return f"{kind}: {' '.join(text.split()) if chr(10) in text else text}"
    except Exception:  # a user's __str__ may raise anything
        return kind
