"""What an audit has drawn, kept in an SQLite file, so that it goes on where it was stopped.

An audit with a store runs from its beginning each time; blocks that the store has are recalled instead of drawn.
Without a time limit the result is that of an audit that was never stopped. With one, the batches of a sequential audit
keep the sizes that they were begun with (`batches`), so nothing kept is lost. The store keeps the outputs that
events are learned from and the counts of all other blocks, as numbers and text: a file is data, and nothing in one is
ever executed or imported.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from ..errors import StoreError
from ..printing import shorten
from .block_codec import checksum, packed, unpacked

FILE = "audit.sqlite"
SCHEMA = 4
"""Version of the file; another one is refused. 2 added the place of a value to its checksum, 3 the sizes of batches."""

_TABLES = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE sections (number INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, settings TEXT NOT NULL)",
    "CREATE TABLE blocks (section INTEGER NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (section, key))"
    " WITHOUT ROWID",
)
_CODE = "the code of {name}, or a value that it uses, has changed"
_WORDS = {"code": _CODE, "code or parameters": _CODE, "x": "x is another dataset", "y": "y is another dataset"}
_PATIENCE, _SHARE = 0.5, 0.02  # seconds of work that a crash may cost, unless writing takes less of the time than this
_LARGEST = 1 << 31  # bytes of a value: more is no block


class Store:
    """An SQLite file in a folder, open for this process alone; use it in a ``with`` statement.

    Parameters
    ----------
    folder : path
        Made where there is none.

    Raises
    ------
    StoreError
        If the file cannot be written, is no such store, is of another schema, or is in use by another process.
    """

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder) / FILE
        self.is_open = True
        self._pending: list[tuple[int, str, bytes]] = []
        self._opened = self._saved = time.monotonic()
        self._spent = 0.0  # seconds of writing
        with self._in_words():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(self.path, timeout=0, isolation_level=None)
            try:
                self._open()
            except BaseException:
                self._file.close()
                raise

    def _open(self) -> None:
        self._file.execute("PRAGMA trusted_schema = OFF")
        self._file.execute("PRAGMA locking_mode = EXCLUSIVE")  # until it is closed, or the process has died
        self._file.execute("BEGIN EXCLUSIVE")
        found = [
            sql for (sql,) in self._file.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL ORDER BY rowid")
        ]
        if not found:
            for table in _TABLES:
                self._file.execute(table)
        elif not any(str(sql).split()[:3] == ["CREATE", "TABLE", "about"] for sql in found):
            raise StoreError(f"{self.path} is no store of an audit; use another folder.", path=str(self.path))
        else:
            schema = self._file.execute("SELECT value FROM about WHERE name = 'schema'").fetchone()
            if schema != (str(SCHEMA),):
                raise StoreError(
                    f"{self.path} has schema {None if schema is None else schema[0]}, and this version keeps schema "
                    f"{SCHEMA}; continue it with the version that began it, or delete it.",
                    path=str(self.path),
                )
            if tuple(found) != _TABLES:
                others = [shorten(sql) for sql in found if sql not in _TABLES] or ["a table is missing"]
                raise StoreError(
                    f"{self.path} has other tables or triggers than a store of schema {SCHEMA} ({'; '.join(others)}); "
                    "something else has changed it, so delete it.",
                    path=str(self.path),
                )
        # Written also where nothing is new: a folder that can only be read is seen before anything is drawn.
        self._file.execute("INSERT OR REPLACE INTO about VALUES ('schema', ?)", (str(SCHEMA),))
        self._file.execute("COMMIT")

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        """Errors of the database, in words."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if "locked" in str(error):
                text = f"{self.path} is in use by another process; wait for it, or use another folder."
            elif "is full" in str(error):
                text = (
                    f"{self.path} cannot grow, as the disk is full; what was saved before is whole, so make room and "
                    "resume, or use another folder."
                )
            else:
                text = (
                    f"{self.path} cannot be used ({error}); what was saved before is still there, so make room or "
                    "permit writing and resume, or use another folder."
                )
            raise StoreError(text, path=str(self.path)) from error
        except UnicodeDecodeError as error:  # text of the file in a message, or in place of a table's name
            raise StoreError(f"{self.path} is damaged ({error}); delete it.", path=str(self.path)) from error

    def section(self, name: str, settings: Mapping[str, Any]) -> Section:
        """The part of one audit.

        Raises
        ------
        StoreError
            If it was begun with other settings, with the difference.
        """
        wanted = {key: str(value) for key, value in settings.items()}
        self.save()  # what a section is about may follow from what was drawn before
        with self._in_words():
            row = self._file.execute("SELECT number, settings FROM sections WHERE name = ?", (name,)).fetchone()
            if row is None:
                text = json.dumps(wanted, sort_keys=True)
                self._file.execute("INSERT INTO sections (name, settings) VALUES (?, ?)", (name, text))
                row = self._file.execute("SELECT number, settings FROM sections WHERE name = ?", (name,)).fetchone()
        number, text = row
        try:
            was = {str(key): str(value) for key, value in json.loads(text).items()}
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            raise StoreError(f"{self.path} is damaged: {error}; delete it.", path=str(self.path)) from error
        changed = [
            _WORDS.get(key, "").format(name=name)
            or f"{key}: {was.get(key, 'nothing')} there, {wanted.get(key, 'nothing')} here"
            for key in sorted({*was, *wanted})
            if was.get(key) != wanted.get(key)
        ]
        if changed:
            raise StoreError(
                f"{self.path} keeps {name}, which was begun otherwise ({'; '.join(dict.fromkeys(changed))}); "
                f"restore that, or delete {FILE}.",
                path=str(self.path),
                changed=changed,
            )
        return Section(self, int(number), f"{name}\n{json.dumps(wanted, sort_keys=True)}")

    def part(self, name: str) -> StorePart:
        """For audits whose names may be those of others."""
        return StorePart(self, name)

    def told(self, name: str) -> str | None:
        """What was noted under a name."""
        with self._in_words():
            row = self._file.execute("SELECT value FROM about WHERE name = ?", (f"note {name}",)).fetchone()
        if row is None:
            return None
        known, _, value = str(row[0]).partition(" ")
        if known != checksum(value.encode("utf-8", "surrogatepass"), name).hex():
            raise StoreError(f"{self.path} is damaged: the note {name!r} is another; delete it.", path=str(self.path))
        return value

    def tell(self, name: str, value: str) -> None:
        """Notes a text, such as the command that began it all."""
        known = checksum(value.encode("utf-8", "surrogatepass"), name).hex()
        with self._in_words():
            self._file.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (f"note {name}", f"{known} {value}"))

    def recall(self, section: int, key: str, place: str) -> Any:
        """What was kept under a key, for a place; None where there is nothing."""
        with self._in_words():
            row = self._file.execute(
                "SELECT value, length(value) FROM blocks WHERE section = ? AND key = ?", (section, key)
            ).fetchone()
        if row is None:
            return None
        if not isinstance(row[0], bytes) or row[1] > _LARGEST:
            raise StoreError(f"{self.path} is damaged: {key} is no value; delete it.", path=str(self.path))
        return unpacked(row[0], f"{self.path}, {key}", place)

    def keep(self, section: int, key: str, value: Any, place: str) -> Any:
        """Keeps a value and gives it as it will be recalled.

        It is on disk at once, if writing then takes little of the time that drawing takes; of blocks of minutes none is
        lost. Otherwise it is there with the next value after half a second.
        """
        content = packed(value, place)
        self._pending.append((section, key, content))
        now = time.monotonic()
        if now - self._saved >= _PATIENCE or self._spent < _SHARE * (now - self._opened):
            self.save()
        return unpacked(content, key, place)

    def save(self) -> None:
        """Writes all that is kept, in one transaction."""
        started = time.monotonic()
        if self._pending:
            with self._in_words():
                self._file.execute("BEGIN")
                try:
                    self._file.executemany("INSERT OR REPLACE INTO blocks VALUES (?, ?, ?)", self._pending)
                    self._file.execute("COMMIT")
                except BaseException:
                    if self._file.in_transaction:
                        self._file.execute("ROLLBACK")
                    raise
            self._pending.clear()
        self._saved = time.monotonic()
        self._spent += self._saved - started

    @property
    def is_empty(self) -> bool:
        """Whether nothing was drawn yet."""
        with self._in_words():
            return not self._pending and self._file.execute("SELECT 1 FROM blocks LIMIT 1").fetchone() is None

    def close(self) -> None:
        """Saves, and lets others have the file."""
        try:
            if self.is_open:
                self.save()
        finally:
            self.is_open = False
            self._file.close()

    def discard(self) -> None:
        """Closes and deletes the file: the audit is finished."""
        self.is_open = False
        self._pending.clear()
        self._file.close()
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def opened(store: str | Path | Store | StorePart | None) -> Iterator[Store | StorePart | None]:
    """The store of a folder, which is closed in the end, or one that the caller has open."""
    if not isinstance(store, (str, Path)):
        yield store
        return
    is_new = not (Path(store) / FILE).exists()
    with Store(store) as own:
        try:
            yield own
        except BaseException:
            if is_new and own.is_empty:  # refused before anything was drawn
                own.discard()
            raise


@dataclass(frozen=True, slots=True)
class StorePart:
    """A store whose sections have names of their own."""

    store: Store
    name: str

    def section(self, name: str, settings: Mapping[str, Any]) -> Section:
        """As of `Store`."""
        return self.store.section(f"{self.name} ({name})", settings)


class Section:
    """What one audit keeps: a `sampling.Memory`."""

    def __init__(self, store: Store, number: int, settings: str) -> None:
        self._store, self._number, self._settings = store, number, settings

    def recall(self, key: str) -> Any:
        return self._store.recall(self._number, key, self.place(key))

    def keep(self, key: str, value: Any) -> Any:
        return self._store.keep(self._number, key, value, self.place(key))

    def save(self) -> None:
        self._store.save()

    def place(self, key: str) -> str:
        """Which value of which audit: a damaged key or index may lead to one of another, such as of the other side."""
        return f"{self._settings}\n{key}"
