"""An SQLite file that keeps the blocks of an audit, so that an interrupted audit resumes.

An audit with a store always runs from its beginning, and recalls stored blocks instead of drawing them. Without a time
limit the result equals that of an uninterrupted audit. With a time limit, the batches of a sequential audit keep their
original sizes (`batches`), so every stored block is used. The store keeps the outputs that events are learned from and
the counts of all other blocks, as numbers and text. The file is data: its contents are never executed or imported.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import sqlite3
import stat
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np

from ..clock import now
from ..errors import OptionError, StoreError, WriteError
from ..events.outputs import outcome_key
from ..files import check_target, create_empty, path_of
from ..printing import shorten
from ..records.json_codec import faults, plain_data, read_data

# Encode values as bytes and back: a checksum, a line of JSON that describes the values, and the data of arrays.

_KIND = re.compile(r"[<|][biuf][0-9]{1,2}")  # dtypes: booleans, integers, floats
_CHECKED = 8  # bytes of a checksum, which misses damage with probability 5e-20


def packed(value: Any, place: str = "") -> bytes:
    """Encode outputs, arrays, and lists of these with a checksum that covers `place`; refuses any other output."""
    arrays: list[bytes] = []
    body = json.dumps(_encode(value, arrays), allow_nan=False).encode()
    content = b"".join([body, b"\n", *arrays])
    return checksum(content, place) + content


def unpacked(content: bytes, where: str, place: str = "") -> Any:
    """Decode the value that was packed for this place, tuples as lists; refuses other content."""
    try:
        if checksum(content[_CHECKED:], place) != content[:_CHECKED]:
            raise ValueError("its checksum differs")
        head, _, rest = content[_CHECKED:].partition(b"\n")
        value, end = _decode(json.loads(head), memoryview(rest), 0)
        if end != len(rest):
            raise ValueError(f"{len(rest) - end} bytes too many")
        return value
    except StoreError:
        raise
    except (ExceptionGroup, ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        raise StoreError(f"{where} is damaged ({faults(error, '$')}); delete the store.") from error


def checksum(content: bytes, place: str) -> bytes:
    """Return a checksum of content and place against disk errors; it does not protect against deliberate changes."""
    key = hashlib.blake2b(place.encode("utf-8", "surrogatepass"), digest_size=32).digest()
    return hashlib.blake2b(content, digest_size=_CHECKED, key=key).digest()


def _encode(value: Any, arrays: list[bytes]) -> Any:
    if isinstance(value, np.ndarray) and value.dtype != object:
        plain = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        arrays.append(plain.tobytes())
        return {"array": plain.dtype.str, "shape": list(plain.shape)}
    if isinstance(value, np.ndarray):
        return {"objects": [_outcome(output) for output in value.tolist()]}
    if isinstance(value, (list, tuple)):
        return [_encode(each, arrays) for each in value]
    if isinstance(value, (int, str)):
        return value
    raise StoreError(f"a {type(value).__name__} cannot be kept.", type=type(value).__name__)


def _outcome(output: Any) -> Any:
    """Return an output as data; raise a `StoreError` if the restored output would count as another."""
    data = plain_data(output)
    if outcome_key(read_data(data)) != outcome_key(output):
        raise StoreError(
            f"an output of type {type(output).__name__} cannot be kept as data; return numbers, text or tuples of "
            "them, or audit without a store.",
            type=type(output).__name__,
        )
    return data


def _decode(value: Any, rest: memoryview, start: int) -> tuple[Any, int]:
    """Return the value, and the offset of the next array."""
    if isinstance(value, list):
        found = []
        for each in value:
            one, start = _decode(each, rest, start)
            found.append(one)
        return found, start
    if not isinstance(value, dict):
        if isinstance(value, (int, str)):
            return value, start
        raise TypeError(f"{type(value).__name__} where a value was expected")
    if "objects" in value:
        outputs = np.empty(len(value["objects"]), dtype=object)
        for place, each in enumerate(value["objects"]):
            outputs[place] = read_data(each)
        return outputs, start
    if not _KIND.fullmatch(value["array"]):  # numpy would parse other names, some as Python
        raise ValueError(f"an array of {value['array'][:20]!r}")
    kind, shape = np.dtype(value["array"]), [int(side) for side in value["shape"]]
    if len(shape) > 2 or min(shape, default=0) < 0:
        raise ValueError(f"an array with shape {shape}")
    end = start + kind.itemsize * math.prod(shape)
    if end > len(rest):
        raise ValueError(f"{end - len(rest)} bytes are missing")
    return np.frombuffer(rest[start:end], kind).reshape(shape).copy(), end


FILE = "audit.sqlite"
SCHEMA = 4
"""Schema version of the file; others are refused. 2 added the place of a value to its checksum, 3 batch sizes."""

_TABLES = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE sections (number INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, settings TEXT NOT NULL)",
    "CREATE TABLE blocks (section INTEGER NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (section, key))"
    " WITHOUT ROWID",
)
_CODE = "the code of {name}, or a value that it uses, has changed"
_WORDS = {
    "code": _CODE,
    "code or parameters": _CODE,
    "x": "x is another dataset",
    "y": "y is another dataset",
    "final test": "a final test is planned in one of the two audits only, so give both the same runs",
}
_PATIENCE, _SHARE = 0.5, 0.02  # seconds of work that a crash may cost, unless writing takes less than 2% of the time
_LARGEST = 1 << 31  # bytes; a longer value is not a block
_MAGIC = b"SQLite format 3\0"
_BY_JOURNAL = b"\1\1"  # bytes 18 and 19 of a file without a write-ahead log
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_WAYS_OUT: Final = dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "make room and resume, or") | (
    dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "permit writing and resume, or")
)
_open_stores: WeakValueDictionary[tuple[int, int], Store] = WeakValueDictionary()
"""Stores that this process has open, by device and number of their files. To read such a file and close it would end
SQLite's lock on it, as POSIX ties locks to the process (https://www.sqlite.org/howtocorrupt.html, section 2.2)."""
_opening = threading.Lock()


class Store:
    """An SQLite file in a folder, open for this process alone; use it in a ``with`` statement.

    Parameters
    ----------
    folder : path
        Created if missing. A relative name means a folder below the present working folder, wherever the process goes.

    Attributes
    ----------
    path : Path
        The file, as an absolute path.

    Raises
    ------
    StoreError
        If the file cannot be written, is not a store, has another schema, is in use, or a link, or if a file that
        SQLite would read or delete has been put into the folder.
    """

    def __init__(self, folder: str | Path) -> None:
        self.path = path_of(folder) / FILE
        self.is_open = True
        self._pending: list[tuple[int, str, bytes]] = []
        self._opened = self._saved = now()
        self._spent = 0.0  # seconds of writing
        with self._explained(), _opening:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._check_neighbours()
            create_empty(self.path)
            self._number = self._checked()
            self._file = sqlite3.connect(self.path, timeout=0, isolation_level=None)  # an absolute path is no URI
            _open_stores[self._number] = self
            try:
                self._open()
            except BaseException:
                self._release()
                raise

    def _release(self) -> None:
        self._file.close()
        _open_stores.pop(self._number, None)

    def _checked(self) -> tuple[int, int]:
        """Return device and number of a file that SQLite may open."""
        try:
            found = check_target(self.path)
        except WriteError as error:
            if self.path.is_file() and not self.path.is_symlink():
                said = "is read-only; if it holds an audit, permit writing and resume, or use another folder."
                raise self._error(said) from error
            raise StoreError(str(error), path=str(self.path)) from error
        if found is None:
            raise self._error("was deleted while it was opened; try again.")
        number = (found.st_dev, found.st_ino)
        if number in _open_stores:
            raise self._error("is in use by another audit of this process; wait for it, or use another folder.")
        if found.st_nlink > 1:
            raise self._error("has another name in the file system (a hard link); copy it to a folder.")
        with open(self.path, "rb") as file:
            head = file.read(20)
        if head and (head[:16] != _MAGIC or head[18:] != _BY_JOURNAL):
            raise self._error("is not a store of an audit; use another folder.")
        return number

    def _check_neighbours(self) -> None:
        """Raise a `StoreError` for files that SQLite would obey, unless a killed audit can have left them.

        SQLite deletes a write-ahead log next to an empty file, writes through a link in place of a journal, and deletes
        the file that the end of a journal names (a "super-journal", which a store never has).
        """
        for ending in ("-wal", "-shm"):
            if os.path.lexists(f"{self.path}{ending}"):
                raise self._error(f"is next to {FILE}{ending}, which a store does not have; move that file away.")
        path = Path(f"{self.path}-journal")
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            return
        is_own = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
        if is_own:
            with open(path, "rb") as file:
                head = file.read(8)
                file.seek(max(found.st_size - 8, 0))
                end = file.read(8)
            # SQLite fills the first bytes with zeros when a transaction ends, and the file has an end of its own only
            # if it names a super-journal.
            is_own = (head == JOURNAL_MAGIC or not any(head)) and (end != JOURNAL_MAGIC or found.st_size == 8)
        if not is_own:
            raise self._error(
                f"is next to {path.name}, which dpaudit has not written and SQLite would obey; move that file away."
            )

    def _open(self) -> None:
        self._file.execute("PRAGMA trusted_schema = OFF")
        self._file.execute("PRAGMA locking_mode = EXCLUSIVE")  # until the file is closed or the process ends
        self._file.execute("BEGIN EXCLUSIVE")
        found = [
            sql for (sql,) in self._file.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL ORDER BY rowid")
        ]
        if not found:
            for table in _TABLES:
                self._file.execute(table)
        elif not any(str(sql).split()[:3] == ["CREATE", "TABLE", "about"] for sql in found):
            raise self._error("is not a store of an audit; use another folder.")
        else:
            schema = self._row("SELECT value FROM about WHERE name = 'schema'")
            if schema != (str(SCHEMA),):
                raise self._error(
                    f"has schema {None if schema is None else schema[0]}, and this version of dpaudit uses schema "
                    f"{SCHEMA}; resume with the version that began the store, or delete it."
                )
            if tuple(found) != _TABLES:
                others = [shorten(sql) for sql in found if sql not in _TABLES] or ["a table is missing"]
                raise self._error(
                    f"has other tables or triggers than a store of schema {SCHEMA} ({'; '.join(others)}), so another "
                    "program has changed it; delete the file."
                )
        # Always written, so that a read-only folder is detected before the first run.
        self._file.execute("INSERT OR REPLACE INTO about VALUES ('schema', ?)", (str(SCHEMA),))
        self._file.execute("COMMIT")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of the database into a `StoreError`."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise self._error(f"is damaged ({error}); delete it.") from error
            if "locked" in str(error):
                said = "is in use by another process; wait for it, or"
            elif "is full" in str(error):
                said = "cannot grow, because the disk is full, but earlier chunks are saved; make room and resume, or"
            elif isinstance(error, OSError):  # the folder and the file could not be made or read
                said = f"cannot be used ({error}); {_WAYS_OUT.get(error.errno or 0, '')}"
            else:
                said = f"cannot be used ({error}); what it holds is kept, so make room or permit writing and resume, or"
            raise self._error(f"{said.strip()} use another folder.") from error
        except UnicodeDecodeError as error:  # undecodable text of the file in a message or in a table's name
            raise self._error(f"is damaged ({error}); delete it.") from error

    def _error(self, said: str, **facts: Any) -> StoreError:
        return StoreError(f"{self.path} {said}", path=str(self.path), **facts)

    def section(self, name: str, settings: Mapping[str, Any]) -> Section:
        """Return the section of one audit; raise a `StoreError` that names the differences if the settings differ."""
        wanted = {key: str(value) for key, value in settings.items()}
        known = json.dumps(wanted, sort_keys=True)
        self.save()  # the settings of a section may follow from earlier draws
        with self._explained():
            row = self._row("SELECT number, settings FROM sections WHERE name = ?", name)
            if row is None:
                insert = "INSERT INTO sections (name, settings) VALUES (?, ?)"
                row = self._file.execute(insert, (name, known)).lastrowid, known
        number, text = row
        try:
            was = {str(key): str(value) for key, value in json.loads(text).items()}
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            raise self._error(f"is damaged: {error}; delete it.") from error
        changed = [
            _WORDS.get(key, "").format(name=name)
            or f"{key}: {was.get(key, 'nothing')} there, {wanted.get(key, 'nothing')} here"
            for key in sorted({*was, *wanted})
            if was.get(key) != wanted.get(key)
        ]
        if changed:
            differences = "; ".join(dict.fromkeys(changed))
            said = f"keeps {name}, which was begun with other settings ({differences}); restore them, or delete {FILE}."
            is_of_former_code = set(changed) == {_CODE.format(name=name)}
            raise self._error(said, changed=changed, is_of_former_code=is_of_former_code)
        return Section(self, int(number), f"{name}\n{known}")

    def part(self, name: str) -> StorePart:
        """Return a part of the store, whose sections may have the names of other sections."""
        return StorePart(self, name)

    def told(self, name: str) -> str | None:
        """Return the note with this name, if there is one."""
        with self._explained():
            row = self._row("SELECT value FROM about WHERE name = ?", f"note {name}")
        if row is None:
            return None
        known, _, value = str(row[0]).partition(" ")
        if known != checksum(value.encode("utf-8", "surrogatepass"), name).hex():
            raise self._error(f"is damaged: the checksum of the note {name!r} differs; delete it.")
        return value

    def tell(self, name: str, value: str) -> None:
        """Save a note, such as the command that began the audit."""
        known = checksum(value.encode("utf-8", "surrogatepass"), name).hex()
        with self._explained():
            self._file.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (f"note {name}", f"{known} {value}"))

    def _row(self, query: str, *values: Any) -> Any:
        return self._file.execute(query, values).fetchone()

    def keep(self, section: int, key: str, value: Any, place: str) -> Any:
        """Keep a value, and return it as `recall` will return it.

        The value is written to disk immediately as long as writing takes a small share of the time, so that no block
        of minutes is lost; otherwise with the next value after half a second.
        """
        content = packed(value, place)
        self._pending.append((section, key, content))
        moment = now()
        if moment - self._saved >= _PATIENCE or self._spent < _SHARE * (moment - self._opened):
            self.save()
        return unpacked(content, key, place)

    def save(self) -> None:
        """Write all pending values, in one transaction."""
        started = now()
        if self._pending:
            with self._explained():
                self._file.execute("BEGIN")
                try:
                    self._file.executemany("INSERT OR REPLACE INTO blocks VALUES (?, ?, ?)", self._pending)
                    self._file.execute("COMMIT")
                except BaseException:
                    if self._file.in_transaction:
                        self._file.execute("ROLLBACK")
                    raise
            self._pending.clear()
        self._saved = now()
        self._spent += self._saved - started

    @property
    def is_empty(self) -> bool:
        """Whether the store has no blocks yet."""
        with self._explained():
            return not self._pending and self._row("SELECT 1 FROM blocks LIMIT 1") is None

    def close(self) -> None:
        """Save all values and release the file."""
        try:
            if self.is_open:
                self.save()
        finally:
            self.is_open = False
            self._release()

    def discard(self) -> None:
        """Close and delete the file, unless another one has taken its place."""
        self.is_open = False
        self._pending.clear()
        self._release()
        with suppress(FileNotFoundError):
            found = os.lstat(self.path)
            if (found.st_dev, found.st_ino) == self._number:
                self.path.unlink()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def check_store(store: Any) -> None:
    """Raise an `OptionError` unless this is a folder, an open store, part of one, or None."""
    if store is None or isinstance(store, (Store, StorePart)):
        return
    if isinstance(store, (str, Path)):
        path_of(store, "store")
        return
    raise OptionError(f"store={shorten(store)} is not a store; name a folder, or pass an open Store.", store=store)


@contextmanager
def opened(store: str | Path | Store | StorePart | None) -> Iterator[Store | StorePart | None]:
    """Open the store of a folder, and close it in the end; a store that is already open stays open."""
    check_store(store)
    if not isinstance(store, (str, Path)):
        yield store
        return
    is_new = not os.path.lexists(path_of(store) / FILE)
    with Store(store) as own:
        try:
            yield own
        except BaseException:
            if is_new and own.is_empty:  # the audit was refused before its first run
                own.discard()
            raise


@dataclass(frozen=True, slots=True)
class StorePart:
    """A store that prefixes the names of its sections."""

    store: Store | StorePart
    name: str

    def section(self, name: str, settings: Mapping[str, Any]) -> Section:
        """Return a section, as in `Store`."""
        return self.store.section(f"{self.name} ({name})", settings)


class Section:
    """The values of one audit: a `sampling.Memory`. A part of it holds runs that are not runs of the audit."""

    def __init__(self, store: Store, number: int, settings: str, prefix: str = "") -> None:
        self._store, self._number, self._settings, self._prefix = store, number, settings, prefix

    def part(self, name: str) -> Section:
        """Return the same section with a prefix for keys."""
        return Section(self._store, self._number, self._settings, f"{name}: ")

    def recall(self, key: str) -> Any:
        """Return the value kept under a key, or None."""
        store, key = self._store, self._prefix + key
        with store._explained():
            query = "SELECT value, length(value) FROM blocks WHERE section = ? AND key = ?"
            row = store._row(query, self._number, key)
        if row is None:
            return None
        if not isinstance(row[0], bytes) or row[1] > _LARGEST:
            raise store._error(f"is damaged: {key} is not a value; delete it.")
        return unpacked(row[0], f"{store.path}, {key}", self.place(key))

    def keep(self, key: str, value: Any) -> Any:
        key = self._prefix + key
        return self._store.keep(self._number, key, value, self.place(key))

    def save(self) -> None:
        self._store.save()

    def place(self, key: str) -> str:
        """Identify the value and its audit, because a damaged key or index may lead to another value."""
        return f"{self._settings}\n{key}"
