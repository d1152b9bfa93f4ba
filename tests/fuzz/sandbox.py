"""Watching a fuzzed example: what it writes and where, what it starts, and how long it takes."""

import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

OUT = "out"
"""The only folder of a `Yard` that an example may write to."""
_STARTING = ("os.exec", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen")
_CONNECTING = ("socket.", "urllib.", "http.", "ftplib.", "smtplib.")
_CHANGING = ("os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "sqlite3.connect")
_TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class TooSlow(BaseException):
    """An example has taken longer than it may; nothing that is fuzzed catches this."""


class MisstepError(Exception):
    """An example that did what none may do; its text says what."""


@dataclass(slots=True)
class Yard:
    """A folder with files that must stay as they are, and a folder ``out`` that examples write to.

    Attributes
    ----------
    root : Path
    kept : dict of str to bytes
        The files by their path from the root, as they are before every example.
    """

    root: Path
    kept: dict[str, bytes] = field(default_factory=dict)

    @property
    def out(self) -> Path:
        return self.root / OUT

    def plant(self, name: str, content: str | bytes) -> None:
        """A file that must stay as it is."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.kept[name] = path.read_bytes()

    def found(self) -> dict[str, bytes]:
        """All files but those under ``out``, and empty folders."""
        files: dict[str, bytes] = {}
        for folder, inner, names in os.walk(self.root):
            if folder == str(self.root):
                inner[:] = [name for name in inner if name not in (OUT, "__pycache__")]
            if not inner and not names and folder != str(self.root):
                files[os.path.relpath(folder, self.root)] = b""
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    files[os.path.relpath(path, self.root)] = file.read()
        return files

    def clear(self) -> None:
        """Empties ``out``."""
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir(exist_ok=True)

    def _restore(self) -> None:
        """As it was, with nothing in ``out``."""
        for path in self.root.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
        self.clear()
        for name, content in self.kept.items():
            self.plant(name, content)

    @contextmanager
    def watched(self, seconds: float, *, may_start: bool = False) -> Iterator[None]:
        """An example inside may take so long, and write to ``out`` alone.

        Raises
        ------
        MisstepError
            If it has written elsewhere, loaded a pickle, opened a connection, imported a module named ``trap``, or
            started a program though it may not.
        TooSlow
            Where the time is over; of systems without POSIX signals, never.
        """
        missteps: list[str] = []
        _WATCHERS[threading.get_ident()] = lambda event, values: self._see(event, values, missteps, may_start=may_start)
        try:
            with _limited(seconds):
                yield
        finally:
            del _WATCHERS[threading.get_ident()]
        if self.found() != self.kept:
            missteps.append("a file outside of the output was changed")
            self._restore()
        if missteps:
            raise MisstepError("; ".join(dict.fromkeys(missteps)))

    def _see(self, event: str, values: tuple[Any, ...], missteps: list[str], *, may_start: bool) -> None:
        if (event == "import" and values[0] == "trap") or event == "pickle.find_class":
            missteps.append(f"{event} of {values[0]}")
        elif (event in _STARTING and not may_start) or event.startswith(_CONNECTING):
            missteps.append(event)
        elif (event == "open" and isinstance(values[2], int) and values[2] & _TO_WRITE) or event in _CHANGING:
            self._see_written(event, values[0], missteps)

    def _see_written(self, event: str, path: Any, missteps: list[str]) -> None:
        if isinstance(path, (str, bytes, os.PathLike)):
            whole = os.path.realpath(os.path.join(self.root, os.fsdecode(path)))
            is_ours = whole.startswith(os.path.realpath(self.out))
            if not (is_ours or whole == os.devnull or "__pycache__" in whole):
                missteps.append(f"{event} {whole}")


_WATCHERS: dict[int, Callable[[str, tuple[Any, ...]], None]] = {}
_hooked: list[bool] = []


def hook() -> None:
    """Has the interpreter tell what it opens, imports and starts, from now on: a hook cannot be taken away."""
    if not _hooked:
        _hooked.append(True)
        sys.addaudithook(_tell)


def _tell(event: str, values: tuple[Any, ...]) -> None:
    if _WATCHERS and (watcher := _WATCHERS.get(threading.get_ident())) is not None:
        watcher(event, values)


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"more than {seconds:g} seconds")

    former = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, former)
