"""Watching a fuzzed example: what it writes and where, what it starts, and how long it takes."""

import os
import shutil
import signal
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

OUT = "out"
"""The only folder of a `Yard` that an example may write to."""
_FORBIDDEN = (
    "os.exec", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen", "pickle.find_class",
    "socket.", "urllib.", "http.", "ftplib.", "smtplib.",
)  # fmt: skip
"""Beginnings of the events of starting programs, loading pickles and connecting."""
_CHANGING = ("os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "sqlite3.connect")
_TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class TooSlow(BaseException):
    """An example has taken longer than it may; nothing that is fuzzed catches this."""


class MisstepError(Exception):
    """An example that did what none may do; its text says what."""


@dataclass(slots=True)
class Yard:
    """A folder with files that must stay as they are (`kept`), and a folder ``out`` that examples write to."""

    root: Path
    kept: dict[str, bytes] = field(default_factory=dict)

    @property
    def out(self):
        return self.root / OUT

    def plant(self, name, content):
        """Write a file that must stay as it is."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.kept[name] = path.read_bytes()

    def found(self):
        """All files but those under ``out``, and empty folders."""
        files = {}
        for folder, inner, names in os.walk(self.root):
            if folder == str(self.root):
                inner[:] = [name for name in inner if name not in (OUT, "__pycache__")]
            elif not inner and not names:
                files[os.path.relpath(folder, self.root)] = b""
            for name in names:
                path = Path(folder, name)
                files[os.path.relpath(path, self.root)] = path.read_bytes()
        return files

    def clear(self):
        """Empty ``out``."""
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir(exist_ok=True)

    def _restore(self):
        for path in self.root.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
        self.clear()
        for name, content in self.kept.items():
            self.plant(name, content)

    @contextmanager
    def watched(self, seconds):
        """Let an example run inside for so long, and write to ``out`` alone.

        A `MisstepError` says that it has written elsewhere, loaded a pickle, opened a connection, imported a module
        named ``trap`` or started a program, and `TooSlow` that the time is over (never without POSIX signals).
        """
        missteps = []
        _WATCHERS[threading.get_ident()] = lambda event, values: self._see(event, values, missteps)
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

    def _see(self, event, values, missteps):
        if event.startswith(_FORBIDDEN) or (event == "import" and values[0] == "trap"):
            missteps.append(f"{event} of {values[0]}")
        is_written = event == "open" and isinstance(values[2], int) and values[2] & _TO_WRITE
        if (is_written or event in _CHANGING) and isinstance(values[0], str | bytes | os.PathLike):
            whole = os.path.realpath(os.path.join(self.root, os.fsdecode(values[0])))
            is_ours = whole.startswith(os.path.realpath(self.out))
            if not (is_ours or whole == os.devnull or "__pycache__" in whole):
                missteps.append(f"{event} {whole}")


_WATCHERS = {}
_hooked = []


def hook():
    """Have the interpreter tell what it opens, imports and starts, from now on: a hook cannot be taken away."""
    if not _hooked:
        _hooked.append(True)
        sys.addaudithook(_tell)


def _tell(event, values):
    if _WATCHERS and (watcher := _WATCHERS.get(threading.get_ident())) is not None:
        watcher(event, values)


@contextmanager
def _limited(seconds):
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(number, frame):
        raise TooSlow(f"more than {seconds:g} seconds")

    former = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, former)
