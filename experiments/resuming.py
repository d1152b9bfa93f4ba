"""Going on with what was stopped: the store in the output folder, and the command that began it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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

    names: list[str]
    document: list[str]
    runs: int | None
    alpha: float
    budget: float | None
    seed: int

    def or_as_noted(self, store: Store) -> Begun:
        """What the store says, if it is resumed; else this, which is noted there.

        Raises
        ------
        OptionError
            If this asks for something else than what was begun.
        StoreError
            If the note cannot be read.
        """
        note = store.told(_NOTE)
        if note is None:
            store.tell(_NOTE, json.dumps(dataclasses.asdict(self)))
            return self
        try:
            begun = Begun(**json.loads(note))
        except (ValueError, TypeError) as error:
            raise StoreError(f"{store.path} is damaged ({error}); delete it.", path=str(store.path)) from error
        for each in dataclasses.fields(self):
            asked, was = getattr(self, each.name), getattr(begun, each.name)
            if asked not in (was, _UNASKED[each.name]):
                raise OptionError(f"{each.name} was {was!r}, and {asked!r} is asked for; --resume goes on as it was.")
        return begun


_UNASKED: dict[str, object] = {"names": [], "document": [], "runs": None, "alpha": 1e-5, "budget": None, "seed": 0}
