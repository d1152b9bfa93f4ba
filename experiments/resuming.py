"""Going on with what was stopped: the store in the output folder, and the command that began it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..audit.errors import OptionError, StoreError
from ..audit.store import FILE, Store

_NOTE = "run"


@contextmanager
def store_for(folder: Path, *, is_resumed: bool) -> Iterator[Store]:
    """The store in a folder: one that is there where the work is resumed, else a new one.

    Raises
    ------
    OptionError
        If there is nothing to resume, or something that a new beginning would lose.
    StoreError
        From opening it.
    """
    path = folder / FILE
    if is_resumed and not path.exists():
        raise OptionError(
            f"there is nothing to resume in {folder}: it has no {FILE}, which goes away when the work is finished; "
            "leave --resume out."
        )
    if not is_resumed and path.exists():
        raise OptionError(
            f"{path} is of work that was not finished; go on with --resume, or delete it to begin anew.", path=str(path)
        )
    with Store(folder) as store:
        try:
            yield store
        finally:
            if store.is_open and store.is_empty:  # the command was refused before it began
                store.discard()


@contextmanager
def telling_what_is_kept(store: Store | None, way_on: str) -> Iterator[None]:
    """Files that cannot be written inside are an error that says what is kept, and how to go on.

    Raises
    ------
    StoreError
        In place of the error of the system, such as of a full disk.
    """
    try:
        yield
    except OSError as error:
        if store is None:
            raise
        raise StoreError(
            f"the results cannot be written ({error}); all that was drawn is kept in {store.path}, so make room or "
            f"permit writing, and {way_on} goes on without drawing it again.",
            path=str(store.path),
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What a run of experiments was begun with."""

    names: list[str] = field(default_factory=list)
    document: list[str] = field(default_factory=list)
    runs: int | None = None
    alpha: float = 1e-5
    budget: float | None = None
    seed: int = 0

    @classmethod
    def noted(cls, store: Store, **options: Any) -> Begun:
        """What the store says, if it is resumed; else what is asked for, which is noted there.

        Parameters
        ----------
        **options
            The attributes; None is not asked for.

        Raises
        ------
        OptionError
            If something else is asked for than what was begun.
        StoreError
            If the note cannot be read.
        """
        asked = {name: value for name, value in options.items() if value is not None}
        note = store.told(_NOTE)
        if note is None:
            begun = cls(**asked)
            store.tell(_NOTE, json.dumps(dataclasses.asdict(begun)))
            return begun
        try:
            begun = cls(**json.loads(note))
        except (ValueError, TypeError) as error:
            raise StoreError(f"{store.path} is damaged ({error}); delete it.", path=str(store.path)) from error
        for name, value in asked.items():
            was = getattr(begun, name)
            if value != was:
                raise OptionError(f"{name} was {was!r}, and {value!r} is asked for; --resume goes on as it was.")
        return begun
