"""Draws of unfinished audits, which the session's store keeps and the next session continues."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...audit.errors import AuditError, StoreError
from ...audit.store.sqlite_store import Store
from .session import AuditSession


def made(session: AuditSession, label: str, audit: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Make the audit, and keep its draws in the session's store until it is finished.

    Draws of former code are of no use, so the audit begins again. The session records either kind of earlier draws,
    and which audit an interruption ends.
    """
    __tracebackhide__ = True
    session.running = label
    try:
        result = _kept(session, label, audit, *arguments, **options)
    except Exception:
        session.running = ""
        raise
    session.running = ""
    return result


def _kept(session: AuditSession, label: str, audit: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    __tracebackhide__ = True
    if session.store is None or "store" in options:
        return audit(*arguments, **options)
    folder = session.store / file_name(label)
    try:
        result, has_continued = _in_store(folder, audit, *arguments, **options)
    except StoreError as error:
        if not error.facts.get("is_of_former_code"):
            raise
    else:
        if has_continued:
            session.notes[label] = "continued with the draws of an earlier session"
        return result
    session.notes[label] = "made anew, because the code has changed since the kept draws"
    return _in_store(folder, audit, *arguments, **options)[0]


def _in_store(folder: Path, audit: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, bool]:
    """Make the audit with a store in the folder, which is deleted unless there is something to continue.

    Also return whether the store had draws.
    """
    with Store(folder) as store:
        has_draws, is_over = not store.is_empty, False
        try:
            result = audit(*arguments, **options, store=store)
            is_over = True
        except AuditError as error:
            is_over = not isinstance(error, StoreError) or bool(error.facts.get("is_of_former_code"))
            raise
        finally:
            if is_over:
                store.discard()
                folder.rmdir()
    return result, has_draws


def file_name(label: str) -> str:
    """Return a file name for an audit's name, different for different names."""
    safe = "".join(char if char.isalnum() else "-" for char in label)[-80:].strip("-")
    return f"{safe}-{hashlib.sha256(label.encode()).hexdigest()[:6]}"
