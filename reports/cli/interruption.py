"""Interrupted work, and how it is resumed: the store in the output folder keeps all draws and the first options."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import typer

from ...audit.errors import Interrupted, OptionError, StoreError
from ...audit.files import check_target
from ...audit.progress import announced_by
from ...audit.store.sqlite_store import FILE, Store
from .shared_options import in_options, say

Command = Literal["run", "audit"]

_NOTE, _COMMAND = "run", "command"  # keys of notes in a store


@contextmanager
def store_for(folder: Path, command: Command, *, is_resumed: bool) -> Iterator[Store]:
    """Open the store in a folder: the existing store for resumed work, otherwise a new store."""
    path = folder / FILE
    is_empty = path.is_file() and not path.is_symlink() and path.stat().st_size == 0
    has_begun = os.path.lexists(path) and not is_empty
    if is_resumed and not has_begun:
        raise OptionError(f"there is nothing to resume in {folder}: {_why_nothing(folder)}; leave --resume out.")
    for name in ("results.json", "report.html", "report.md"):  # an audit of hours does not end at a link or a folder
        check_target(folder / name)
    if not is_resumed and has_begun:
        Store(folder).close()  # a file that is no store is named as such, not to be deleted
        raise OptionError(
            f"{path} holds unfinished work; continue with --resume, or delete it to start again.", path=str(path)
        )
    with Store(folder) as store:
        was = store.told(_COMMAND)
        is_unnamed = was is None and store.is_empty  # killed between the creation of the file and its first note
        if is_resumed and was != command and not is_unnamed:
            raise OptionError(
                f"{path} belongs to {f'dpaudit {was}' if was in get_args(Command) else 'another command'}; repeat that "
                "command with --resume, or use another folder.",
                path=str(path),
            )
        store.tell(_COMMAND, command)
        try:
            yield store
        except typer.Exit:  # an interrupted command continues, even if nothing is kept yet
            raise
        except BaseException:
            if store.is_open and store.is_empty and not is_resumed:  # the command failed before its first draw
                store.discard()
            raise


def _why_nothing(folder: Path) -> str:
    if not folder.exists():
        return "the folder does not exist"
    if (folder / "results.json").exists():
        return f"its work is finished, with the results in {folder / 'results.json'}"
    if (folder / FILE).exists():
        return f"its {FILE} is empty"
    return f"it has no {FILE}, which exists from the first draw until the work is finished"


@contextmanager
def telling_what_is_kept(store: Store | None, way_on: str) -> Iterator[None]:
    """Report an error of the system in the block, such as a full disk, together with the way to continue."""
    try:
        yield
    except OSError as error:
        if store is None:
            raise
        raise StoreError(
            f"the results cannot be written ({error}), but all draws are kept in {store.path}; free space or permit "
            f"writing, and continue with {way_on}.",
            path=str(store.path),
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """Options with which a run of experiments began."""

    names: list[str] = field(default_factory=list)
    runs: int | None = None
    alpha: float = 1e-5
    seed: int = 0

    @classmethod
    def noted(cls, store: Store, **options: Any) -> Begun:
        """Return the options in the store of a resumed run, or store those that a new run requests, not being None."""
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
                what = "the selection" if name == "names" else f"--{name}"
                raise OptionError(
                    f"{what} was {_in_words(was)} and is now {_in_words(value)}; leave it out, since --resume keeps "
                    "the first options."
                )
        return begun


def _in_words(value: object) -> str:
    if value in (None, []):
        return "the default"
    return " ".join(value) if isinstance(value, list) else str(value)


STATUS = 130
"""Exit status of an interrupted command."""


@contextmanager
def interruptible(way_on: str) -> Iterator[None]:
    """Let an interrupted command say what is known and how to continue, and exit with `STATUS`.

    How long the runs take is said with the options of the shell.
    """
    try:
        with announced_by(lambda fact, ways: say(f"{fact}\n  shorter with {in_options(ways)}")):
            yield
    except KeyboardInterrupt as stop:
        say(f"{stop.known if isinstance(stop, Interrupted) else 'interrupted'}; {way_on}")
        raise typer.Exit(STATUS) from None
