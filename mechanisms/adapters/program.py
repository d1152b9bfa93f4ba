"""Programs in any language."""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import select
import shlex
import shutil
import signal
import subprocess
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import Claim, ClaimAtDistance
from ...audit.clock import now
from ...audit.datasets.adjacency import Adjacency, as_adjacency
from ...audit.errors import DatasetError, MechanismError, OptionError
from ...audit.options import as_number, checked, is_whole
from ...audit.printing import shorten

# Protocol between audit and program: request lines, and answers as JSON or as raw numbers after a JSON header.

_FORMATS = {"float64": np.dtype("<f8"), "int64": np.dtype("<i8")}
_SHOWN = 60  # characters of an answer or of a command's word in a message
_MOST_WORDS = 8  # of a command in a message
_RULE = "answer one JSON array, or a header and raw numbers; write everything else to standard error"


class AnswerError(Exception):
    """Answer that breaks the protocol: what the program did, when (with a leading space, or empty), and the remedy.

    `has_ended` says whether the program closed a pipe, and so has probably ended.
    """

    def __init__(self, what: str, way_out: str = _RULE, *, when: str = "", has_ended: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.when = when
        self.way_out = way_out
        self.has_ended = has_ended


def request_line(dataset: Any, runs: int, seed: int) -> bytes:
    """Return the request for a block of runs: one line of ASCII, with the keys runs, seed and dataset in this order.

    Arrays and tuples become JSON arrays, and numpy numbers become numbers. Numbers that are not finite are written as
    answers may write them: NaN, Infinity and -Infinity, although JSON lacks them. For a value that JSON cannot hold,
    the `DatasetError` says where in the dataset it is.

    Examples
    --------
    >>> request_line(np.array([1, 2]), 1000, 7)
    b'{"runs": 1000, "seed": 7, "dataset": [1, 2]}\\n'
    """
    try:
        plain = _plain(dataset, "dataset")
        return json.dumps({"runs": runs, "seed": seed, "dataset": plain}).encode("ascii") + b"\n"
    except RecursionError as error:
        raise DatasetError("the dataset is nested too deeply for JSON, or holds itself; flatten it.") from error


def _plain(value: Any, where: str) -> Any:
    """Return the value in types that JSON has."""
    if isinstance(value, np.ndarray):
        is_plain = value.dtype.kind in "biuf"
        value = value.tolist()
        if is_plain and not isinstance(value, np.generic):
            return value
    elif isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, (list, tuple)):
        return [_plain(part, f"{where}[{i}]") for i, part in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(part, f"{where}[{key!r}]") for key, part in value.items()}
    kind = f"a {type(value).__name__}" + (" with keys other than strings" if isinstance(value, Mapping) else "")
    raise DatasetError(
        f"{where} is {kind}, which JSON cannot hold; use numbers, strings, None, lists, and dicts with string keys "
        '(for a data frame, frame.to_dict("records")).',
        where=where,
        type=type(value).__name__,
    )


def read_array(line: bytes, runs: int) -> list[Any] | npt.NDArray[Any]:
    """Return the outputs in a line that is a JSON array, one per run; raise an `AnswerError` for any other line.

    NaN, Infinity and -Infinity are accepted although JSON lacks them, because many JSON writers produce them.
    """
    outputs = _parsed(line)
    if not isinstance(outputs, list):
        raise AnswerError(f"answered {shown(line)}, which is not an array")
    if len(outputs) != runs:
        raise AnswerError(f"answered {len(outputs)} outputs", "answer one output per requested run")
    return np.array(outputs) if _is_plain(outputs) else outputs


def _is_plain(outputs: list[Any]) -> bool:
    """Return whether the outputs are numbers of one type, or vectors of these, so that an array can hold them."""
    if set(map(type, outputs)) == {list} and len(set(map(len, outputs))) == 1:
        outputs = list(chain.from_iterable(outputs))
    kinds = set(map(type, outputs))
    return kinds == {float} or (kinds == {int} and max(map(abs, outputs)) < 2**62)


def read_header(line: bytes, runs: int) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return type and shape of the raw numbers after a header; raise an `AnswerError` for any other header."""
    header = _parsed(line, objects=True)
    if not isinstance(header, dict) or header.keys() != {"format", "shape"} or header["format"] not in list(_FORMATS):
        raise AnswerError(
            f"answered the header {shown(line)}",
            f'use {{"format": "float64", "shape": [{runs}]}}, or "int64", or the shape [{runs}, n_coords]',
        )
    shape = header["shape"]
    is_shape = isinstance(shape, list) and len(shape) in (1, 2) and all(type(n) is int and n >= 0 for n in shape)
    if not is_shape or shape[0] != runs:
        raise AnswerError(f"answered the shape {str(shape)[:_SHOWN]}", f"use [{runs}] or [{runs}, n_coords]")
    return _FORMATS[header["format"]], tuple(shape)


def _parsed(line: bytes, *, objects: bool = False) -> Any:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise AnswerError(f"answered {shown(line)}, which is not UTF-8") from error
    try:
        return json.loads(text, object_pairs_hook=None if objects else _refuse)
    except RecursionError as error:
        raise AnswerError(f"answered {shown(line)}, which is nested too deeply") from error
    except ValueError as error:  # not JSON, or a number with thousands of digits
        raise AnswerError(f"answered {shown(line)}, which is not JSON ({str(error)[:_SHOWN]})") from error


def _refuse(pairs: list[tuple[str, Any]]) -> Any:
    raise AnswerError("answered an object as an output", "write an object as an array, or as a string of JSON")


def shown_words(command: Sequence[str]) -> str:
    """Return a command for a message, with long words and long lists of words cut short."""
    words = [word if len(word) <= _SHOWN else f"{word[:_SHOWN]}…" for word in command]
    return repr(words if len(words) <= _MOST_WORDS else [*words[:_MOST_WORDS], "…"])


def shown(content: bytes | bytearray) -> str:
    """Return the start of a program's output for a message, escaped and on one line."""
    text = content[: 4 * _SHOWN].decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


# Any program, in any language, as a mechanism that answers requests for blocks of runs through its pipes.
#
# The protocol is in docs/guides/program.md. A dataset may hold NaN, Infinity and -Infinity, which JSON lacks; a program
# whose reader refuses them fails on such datasets, and a search passes over these. The first request is for a single
# run and includes the time that the program needs to start. A program that seeds itself identically at every start
# gives every worker the same runs: use jobs=1, or the health checks report it.

# A running program that answers requests for blocks through its pipes, with a limit on its silence.

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


@dataclass(frozen=True, slots=True)
class Program:
    r"""A program as a mechanism.

    It starts on first use and stays open from block to block, one process for each thread that asks at the same time.
    It ends when this object is deleted, when Python ends, or by `close`. A copy in a worker process starts its own.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments, as words. There is no shell.
    claim, adjacency : optional
        The program's claim, and its neighbours.
    seconds : float
        Longest silence while an answer is due, including the program's start. An answer written piece by piece may take
        longer in total; an answer held back until it is complete, as JSON often is, must fit into this time.
    claim_source : str
        Source of the claim.
    name : str, optional
        Name in messages and results; by default the command.
    environment : mapping of str to str, optional
        Variables to set in addition to those of this process.
    folder : path, optional
        Working directory of the program; a relative program path is resolved there.
    retries : int
        How often to repeat a failed request, with the same seed, on a restarted program. Safe only if failures are
        independent of the noise. Otherwise, a program that fails when its noise is large, and does not draw the noise
        from the seed, is audited without these runs: its noise looks smaller, or a leak goes unseen.

    Examples
    --------
    >>> import sys, numpy as np
    >>> program = Program([sys.executable, "-c", '''
    ... import json
    ... for line in open(0):
    ...     request = json.loads(line)
    ...     print([len(request["dataset"])] * request["runs"], flush=True)
    ... '''])
    >>> program.sample(["a", "b"], 3, np.random.default_rng(1)).tolist()
    [2, 2, 2]
    """

    command: Sequence[str | os.PathLike[str]]
    _: KW_ONLY
    claim: Claim | ClaimAtDistance | None = None
    adjacency: Adjacency | None = None
    seconds: float = 60.0
    claim_source: str = ""
    name: str | None = None
    environment: Mapping[str, str] | None = field(default=None, repr=False, hash=False)  # it may hold secrets
    folder: str | os.PathLike[str] | None = None
    retries: int = 0
    _idle: deque[RunningProgram] = field(default_factory=deque, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if os.name != "posix":
            raise MechanismError("programs need POSIX pipes; use Linux, macOS or WSL.")
        object.__setattr__(self, "command", _words(self.command))
        checked("claim_source", self.claim_source)
        if self.adjacency is not None:
            object.__setattr__(self, "adjacency", as_adjacency(self.adjacency))
        checked("name", self.name, or_none=True)
        if not 0.0 < as_number(self.seconds) < math.inf:
            raise OptionError(
                f"seconds={shorten(self.seconds)} is not a time limit; use a positive number.", seconds=self.seconds
            )
        if not is_whole(self.retries) or self.retries < 0:
            raise OptionError(
                f"retries={shorten(self.retries)} is not a number of retries; use 0 or more.", retries=self.retries
            )

    @property
    def _command_line(self) -> str:
        return shlex.join(os.fspath(word) for word in self.command)

    def __str__(self) -> str:
        text = self._command_line if self.name is None else self.name
        text = text if text.isprintable() else repr(text)
        return text if len(text) <= 80 else f"{text[:79]}…"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Program, **{f.name: getattr(self, f.name) for f in fields(self) if f.init}), ()

    def __audit_identity__(self) -> tuple[Any, ...]:
        """Command, surroundings, and contents of every file in the command, by which a store recognises the program."""
        folder = Path("." if self.folder is None else self.folder)
        words = [os.fspath(word) for word in self.command]
        first = words[:1] if os.sep in words[0] else [shutil.which(words[0]) or words[0]]
        contents = []
        for word in [*first, *words[1:]]:
            path = folder / word
            contents.append(hashlib.blake2b(path.read_bytes()).digest() if path.is_file() else b"")
        return words, dict(self.environment or {}), str(folder), contents

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """Return the program's answer to one request for `size` runs, with a 63-bit seed drawn from `rng`.

        A program that cannot be started, ends, does not answer in time, or does not answer with `size` outputs raises a
        `MechanismError` that quotes its standard error; the program and every process that it started are killed.
        """
        seed = int(rng.integers(2**63))
        request = request_line(dataset, size, seed)
        attempts = 0
        while True:
            attempts += 1
            running = self._take()
            try:
                outputs = running.ask(request, size, float(self.seconds))
            except AnswerError as broken:
                status = running.end(is_dying=broken.has_ended)
                if attempts > self.retries:
                    raise self._failure(broken, status, running.last_words, size, seed) from None
            except BaseException:  # Ctrl-C: a late answer would be taken for the answer to another request
                running.end()
                raise
            else:
                self._idle.append(running)
                return outputs

    def close(self) -> None:
        """End the programs that wait for a request; a later request starts a new one."""
        with suppress(IndexError):  # none left
            while True:
                self._idle.pop().end()

    def _take(self) -> RunningProgram:
        """Return a running program that no other thread uses."""
        while True:
            try:
                running = self._idle.pop()
            except IndexError:
                folder = None if self.folder is None else os.fspath(self.folder)
                return RunningProgram(tuple(os.fspath(word) for word in self.command), self.environment or {}, folder)
            if running.is_ours:
                return running

    def _failure(self, broken: AnswerError, status: int | None, words: str, runs: int, seed: int) -> MechanismError:
        what = broken.what if status is None or not broken.has_ended else _ending(status)
        tried = f" ({self.retries + 1} times)" if self.retries else ""
        asked = f"asked for {runs} run{'s' * (runs != 1)} with seed {seed}"
        heard = f"its standard error ends with {words!r}" if words else "it wrote nothing to standard error"
        started = "" if str(self) == self._command_line else f"; its command is {shown_words(_words(self.command))}"
        return MechanismError(
            f"{self} {what}{broken.when}{tried}, {asked}; {broken.way_out}; {heard}{started}.",
            mechanism=str(self),
            command=list(self.command),
            runs=runs,
            seed=seed,
            status=status,
            standard_error=words,
        )


def _words(command: Any) -> tuple[str, ...]:
    if isinstance(command, (str, bytes, os.PathLike)):
        raise MechanismError(
            f"command={shorten(command)} is not a list of words; use [program, argument, …], for example "
            "shlex.split(command_line): there is no shell.",
            command=command,
        )
    words = list(command) if isinstance(command, Sequence) else []
    if not words or not all(isinstance(word, (str, os.PathLike)) and "\0" not in str(word) for word in words):
        raise MechanismError(
            f"command={shorten(command)} is not a list of words; use the program and its arguments as strings.",
            command=command,
        )
    return tuple(os.fspath(word) for word in words)


def _ending(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"
