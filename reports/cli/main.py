"""Entry point of the command line.

``dpaudit run | list | audit | replay | canaries | suite | plan | report | compare | schema | bench``

Imports are deferred: `--version` needs no other module, and a mistyped command or option is reported without the
library.
"""

from __future__ import annotations

import atexit
import errno
import io
import os
import select
import signal
import sys
from typing import Any, NoReturn

_INTERRUPTED = 130  # as shells report a process that Ctrl-C ended
_NO_VERDICT = 2
_HAS_LEFT = (errno.EPIPE, errno.EBADF)  # of a stream: its reader has left, or it was closed
_end = os._exit
_process = 0  # that the program runs in
_decided: int | None = None  # exit status of the program
_signal = 0  # that ended the program
_streams: Any = ()  # standard output and standard error, as the command had them at its start


class _Stream(io.FileIO):
    """A standard stream that takes no part in the exit status: what cannot be written is dropped."""

    failure: OSError | None = None  # the first failure to write

    def write(self, data: Any) -> int:
        if self.failure is None:
            try:
                while (written := super().write(data)) is None:  # a pipe that does not block is full
                    select.select([], [self], [])
                return written
            except OSError as error:
                self.failure = error
        return memoryview(data).nbytes

    def close(self) -> None:
        """Stay open, as the other parts of the stream do if the user's code closes or detaches them."""


class _Staying:
    _inner: str

    def close(self: Any) -> None:
        self.flush()

    def detach(self: Any) -> Any:
        self.flush()
        return getattr(self, self._inner)


class _Buffer(_Staying, io.BufferedWriter):
    _inner = "raw"


class _Text(_Staying, io.TextIOWrapper):
    _inner = "buffer"


def program() -> NoReturn:
    """Run the command line as the whole of a process, whose exit status is the verdict's, or 2 without a verdict.

    Neither a reader who leaves, nor a closed or replaced stream, nor code that ends the process decides the status.
    SIGTERM and SIGHUP end the command as Ctrl-C does, and with it the programs that it has started.
    """
    global _decided, _process, _streams
    for number in range(3):  # a closed standard stream would become the number of the next file that is opened
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    _process = os.getpid()
    for module in (os, sys.modules[os.name]):
        vars(module)["_exit"] = _exit
    shown = _dropping("stdout")
    _dropping("stderr")
    _streams = sys.stdout, sys.stderr
    atexit.register(_restore_streams)  # runs last, before Python flushes them
    for name in ("SIGTERM", "SIGHUP"):
        ending = getattr(signal, name, None)  # Windows has no SIGHUP
        if ending is not None and signal.getsignal(ending) is signal.SIG_DFL:  # nohup ignores it
            signal.signal(ending, _interrupted_by)
    try:
        main()
        status = 0
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else _NO_VERDICT
    if _signal:
        status = 128 + _signal
    _restore_streams()
    sys.stdout.flush()
    if shown is not None and shown.failure is not None and shown.failure.errno not in _HAS_LEFT:
        print(f"OSError: standard output cannot be written ({shown.failure.strerror}).", file=sys.stderr)
        status = _NO_VERDICT
    _decided = status
    raise SystemExit(status)


def _restore_streams() -> None:
    """Give the command its streams back, which code of the user may have replaced or deleted."""
    if _streams:  # not where a test calls `main`
        sys.stdout, sys.stderr = _streams


def _interrupted_by(number: int, frame: object) -> None:
    global _signal
    if os.getpid() != _process:  # a fork
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    _signal = number
    raise KeyboardInterrupt


def _exit(status: int) -> None:
    """End the process in place of `os._exit`: in this process with the decided status, or 2 before there is one."""
    if os.getpid() != _process:  # a worker
        _end(status)
    _restore_streams()
    if _decided is None:
        print(
            f"MechanismError: the audited code called os._exit({status!r}), so there is no verdict; remove that call.",
            file=sys.stderr,
        )
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    _end(_NO_VERDICT if _decided is None else _decided)


def _dropping(name: str) -> _Stream | None:
    """Replace a standard stream by one that drops what it cannot write, and return it if it writes to a file."""
    stream = getattr(sys, name)
    if stream is None:
        setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, open until the process ends
        return None
    raw = getattr(stream.buffer, "raw", stream.buffer)
    if not isinstance(raw, io.FileIO):  # a console of Windows
        return None
    file = _Stream(stream.fileno(), "w", closefd=False)
    text = _Text(
        _Buffer(file),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
    setattr(sys, name, text)
    return file


def main() -> None:
    """Run the command line; a deliberate error is one line on standard error and exit status 2; 1 means "refuted"."""
    for stream in (sys.stdout, sys.stderr):  # file names can hold characters that the terminal cannot show
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")
    try:
        _run([argument for argument in sys.argv[1:] if argument != "--debug"], debug="--debug" in sys.argv[1:])
    except KeyboardInterrupt:
        _restore_streams()
        print("interrupted", file=sys.stderr)
        raise SystemExit(_INTERRUPTED) from None


def _run(arguments: list[str], *, debug: bool) -> None:
    if arguments[:1] == ["--version"]:
        from importlib.metadata import version

        print(f"dpaudit {version('dpaudit')}")
        raise SystemExit(0)
    from ...audit.errors import AuditError, MissingExtraError
    from ...audit.extras import require

    try:
        require("cli", "the command line needs", "typer", "rich")
    except MissingExtraError as error:
        _fail(type(error).__name__, str(error), debug=debug)
    from .commands import UsageProblem, command_line, usage_sentence
    from .shared_options import in_options

    try:
        status = command_line().main(args=arguments or ["--help"], prog_name="dpaudit", standalone_mode=False)
    except UsageProblem as error:
        if not str(error):  # a group without a command, whose help typer has shown
            raise SystemExit(0) from None
        _fail("UsageError", usage_sentence(error), debug=debug)
    except (AuditError, OSError) as error:
        _fail(type(error).__name__, in_options(str(error)), debug=debug)
    except (KeyboardInterrupt, SystemExit):  # typer leaves so after it has completed a command line
        raise
    except BaseException:  # a bug in the code of the caller or in ours, for which Python's exit status is 1
        import traceback

        _restore_streams()
        traceback.print_exc()
        raise SystemExit(_NO_VERDICT) from None
    raise SystemExit(status if isinstance(status, int) else 0)


def _fail(kind: str, message: str, *, debug: bool) -> NoReturn:
    _restore_streams()
    if debug:
        import traceback

        traceback.print_exc()
    print(f"{kind}: {' '.join(message.split())}", file=sys.stderr)
    raise SystemExit(_NO_VERDICT)


if __name__ == "__main__":
    program()
