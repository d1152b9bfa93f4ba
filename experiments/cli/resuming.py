"""Going on with what was stopped: the store in the output folder, and the command that began it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from ...audit.errors import OptionError, StoreError
from ...audit.store.sqlite_store import FILE, Store

Command = Literal["run", "audit"]

_NOTE, _COMMAND = "run", "command"  # what a store is told


@contextmanager
def store_for(folder: Path, command: Command, *, is_resumed: bool) -> Iterator[Store]:
    """The store in a folder: one that is there where the work is resumed, else a new one.

    Raises
    ------
    OptionError
        If there is nothing to resume, what is there is of another command, or a new beginning would lose it.
    StoreError
        From opening it.
    """
    path = folder / FILE
    if is_resumed and not path.exists():
        raise OptionError(f"there is nothing to resume in {folder}: {_why_nothing(folder)}; leave --resume out.")
    if not is_resumed and path.exists():
        raise OptionError(
            f"{path} is of work that was not finished; go on with --resume, or delete it to begin anew.", path=str(path)
        )
    with Store(folder) as store:
        was = store.told(_COMMAND)
        if is_resumed and was != command:
            raise OptionError(
                f"{path} is of {f'dpaudit {was}' if was in get_args(Command) else 'another command'}; repeat that one "
                "with --resume, or use another folder.",
                path=str(path),
            )
        store.tell(_COMMAND, command)
        try:
            yield store
        finally:
            if store.is_open and store.is_empty and not is_resumed:  # the command was refused before it began
                store.discard()


def _why_nothing(folder: Path) -> str:
    if not folder.exists():
        return "there is no such folder"
    if (folder / "results.json").exists():
        return f"its work is finished, and the results are in {folder / 'results.json'}"
    return f"it has no {FILE}, which is there from the first draw until the work is finished"


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
                what = "what to run" if name == "names" else f"--{name}"
                raise OptionError(
                    f"{what} was {_in_words(was)}, and {_in_words(value)} is asked for; --resume goes on as it was."
                )
        return begun


def _in_words(value: object) -> str:
    if value in (None, []):
        return "nothing in particular"
    return " ".join(value) if isinstance(value, list) else str(value)
