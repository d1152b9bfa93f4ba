"""A running program that answers requests for blocks through its pipes, with a limit on its silence."""

from __future__ import annotations

import math
import os
import secrets
import select
import signal
import subprocess
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from ...audit.clock import now
from ...audit.errors import MechanismError
from .program_protocol import AnswerError, read_array, read_header, shown, shown_words

MOST_BYTES = 1 << 28
"""Longest answer: 256 MiB, so that an endless line does not fill the memory."""

_CHUNK = 1 << 18
_TAIL = 1 << 12  # bytes kept of standard error
_PATIENCE = 0.2  # seconds for a program to end by itself after its input is closed
_DEATH_THROES = 0.5  # seconds to end after it closed a pipe, to obtain its exit status
_GLANCE = 0.1  # seconds of silence before checking whether it has ended: its child may hold the pipes open
_MARK, _SWEEPS = "DPAUDIT_PROGRAM", 20  # variable that marks what a program starts, and searches for it
_UNTIL_THE_END = "a program answers requests until the end of its standard input"


class RunningProgram:
    """A started program with its three pipes, for one thread at a time.

    One non-blocking loop serves all pipes, so a program that floods its standard error, or answers before it has read
    the whole request, does not block the audit. The program and its process group end when this object is deleted.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: str | None) -> None:
        mark = secrets.token_hex(16)
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=folder,
                env={**os.environ, **environment, _MARK: mark},
                start_new_session=True,  # so that its child processes can be ended with it
            )
        except (OSError, ValueError) as error:
            raise MechanismError(
                f"command={shown_words(command)} cannot be started ({error}); give the path of an executable program, "
                "and its folder if the path is relative.",
                command=list(command),
            ) from error
        self._owner, self._mark = os.getpid(), mark
        self._end = weakref.finalize(self, _end, self._process, self._owner, mark)
        self._stdin, self._stdout, self._stderr = _pipes(self._process)
        for pipe in _pipes(self._process):
            os.set_blocking(pipe.fileno(), False)
        self._unsent = memoryview(b"")
        self._answer = bytearray()
        self._said = bytearray()
        self._is_listening = True  # standard error is open
        self._seconds = self._deadline = 0.0

    @property
    def is_ours(self) -> bool:
        """Whether this process started the program, rather than a process that it was forked from."""
        return self._owner == os.getpid()

    @property
    def last_words(self) -> str:
        """The end of the program's standard error."""
        return bytes(self._said).decode("utf-8", "backslashreplace").strip()[-1000:]

    def ask(self, request: bytes, runs: int, seconds: float) -> Any:
        """Return the outputs for a request, a list or an array; `seconds` limits the time without a byte of answer.

        Any other behaviour of the program raises an `AnswerError`; the program cannot be used afterwards.
        """
        self._seconds, self._deadline = seconds, now() + seconds
        self._check_silence("before it was asked")
        self._unsent = memoryview(request)
        line = self._line()
        if line.startswith(b"{"):
            kind, shape = read_header(line, runs)
            content = self._exactly(math.prod(shape) * kind.itemsize)
            outputs: Any = np.frombuffer(content, kind).astype(kind.newbyteorder("="), copy=False).reshape(shape)
        else:
            outputs = read_array(line, runs)
        self._check_silence("after its answer")
        if self._unsent:
            raise AnswerError("answered before it had read the request", "read a line for each answer")
        return outputs

    def end(self, *, is_dying: bool = False) -> int | None:
        """End the program; return its exit status (negative for a signal), or None if it had to be killed."""
        self._end.detach()
        if is_dying:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_DEATH_THROES)
        status = _stop(self._process, self._owner, self._mark, 0.0)
        for _ in range(1 + 1_000_000 // _CHUNK):  # the rest of the pipe
            if self._is_listening:
                self._listen()
        _close(self._process)
        return status

    def _line(self) -> bytes:
        start = 0
        while (end := self._answer.find(b"\n", start)) < 0:
            start = len(self._answer)
            if start > MOST_BYTES:
                raise AnswerError(
                    f"wrote {start} bytes without the end of a line, which begin with {shown(self._answer)}"
                )
            self._serve()
        return bytes(self._take(end + 1)[:-1])

    def _exactly(self, size: int) -> bytearray:
        if size > MOST_BYTES:
            raise AnswerError(f"announced {size} bytes", f"the most in an answer is {MOST_BYTES}")
        while len(self._answer) < size:
            self._serve(size)
        return self._take(size)

    def _take(self, size: int) -> bytearray:
        taken = self._answer[:size]
        del self._answer[:size]
        return taken

    def _check_silence(self, when: str) -> None:
        """Raise an `AnswerError` for surplus output: here, or at the latest before the next request."""
        if not self._answer:
            self._answer += self._stdout.read(_CHUNK) or b""
        if self._answer:
            raise AnswerError(f"wrote {shown(self._answer)} {when}")

    def _serve(self, size: int | None = None) -> None:
        """Wait briefly until a pipe is ready, then read or write what is possible."""
        left = self._deadline - now()
        poll = select.poll()
        poll.register(self._stdout, select.POLLIN)
        if self._is_listening:
            poll.register(self._stderr, select.POLLIN)
        if self._unsent:
            poll.register(self._stdin, select.POLLOUT)
        ready = {number for number, _ in poll.poll(math.ceil(1000 * min(left, _GLANCE)))} if left > 0 else set()
        if not ready and self._process.poll() is not None:
            raise AnswerError("ended", _UNTIL_THE_END, when=self._when_incomplete(), has_ended=True)
        if left <= 0:
            came = f"{len(self._answer)} bytes" + (f" of {size}" if size is not None else "")
            unread = f", and {len(self._unsent)} bytes of the request were not read" if self._unsent else ""
            raise AnswerError(
                f"did not answer for {self._seconds:g} seconds ({came} came{unread})",
                f"raise seconds={self._seconds:g}, the longest time without a byte of an answer, including the start "
                "of the program, or let the program end its answer with a line break and flush it, also in parts",
            )
        if self._stderr.fileno() in ready:
            self._listen()
        if self._stdin.fileno() in ready:
            self._write()
        if self._stdout.fileno() in ready:
            chunk = self._stdout.read(_CHUNK)
            if chunk == b"":
                self._raise_closed("output")
            self._answer += chunk or b""
            self._deadline = now() + self._seconds

    def _write(self) -> None:
        try:
            self._unsent = self._unsent[self._stdin.write(self._unsent) or 0 :]
        except BrokenPipeError:
            self._raise_closed("input")

    def _raise_closed(self, which: str) -> None:
        when = self._when_incomplete()
        raise AnswerError(f"closed its standard {which}", _UNTIL_THE_END, when=when, has_ended=True)

    def _when_incomplete(self) -> str:
        came = f" ({len(self._answer)} bytes came: {shown(self._answer)})" if self._answer else ""
        return f" before its answer was complete{came}"

    def _listen(self) -> None:
        chunk = self._stderr.read(_CHUNK)
        self._is_listening = chunk != b""
        self._said += chunk or b""
        del self._said[:-_TAIL]


def _pipes(process: subprocess.Popen[bytes]) -> list[IO[bytes]]:
    return [pipe for pipe in (process.stdin, process.stdout, process.stderr) if pipe is not None]


def _end(process: subprocess.Popen[bytes], owner: int, mark: str) -> None:
    _stop(process, owner, mark, _PATIENCE)
    _close(process)


def _stop(process: subprocess.Popen[bytes], owner: int, mark: str, patience: float) -> int | None:
    """End a process and all that it started; return its exit status, or None if it had to be killed.

    Processes that left its group are known by the mark in their environment, where the system shows it (Linux).
    """
    if os.getpid() != owner:  # a forked process must not end its parent's programs
        process.returncode = 0
        return None
    _pipes(process)[0].close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(patience)
    status = process.poll()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for _ in range(_SWEEPS):  # a process may start another while it is being looked for
        if not (left := _marked(mark)):
            break
        for number in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
    return status


def _marked(mark: str) -> list[int]:
    """Return the processes that have this mark in their environment, but for those that have ended."""
    wanted, found = f"{_MARK}={mark}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is another user's
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in _pipes(process):
        pipe.close()
