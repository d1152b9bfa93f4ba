"""Programs in any language."""

from __future__ import annotations

import codecs
import hashlib
import math
import os
import re
import secrets
import select
import shlex
import shutil
import signal
import subprocess
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import Claim, ClaimAtDistance
from ...audit.clock import now
from ...audit.datasets.adjacency import Adjacency, as_adjacency
from ...audit.errors import MechanismError, OptionError
from ...audit.events.outputs import Raised
from ...audit.options import checked, is_whole
from ...audit.printing import shorten
from .data_files import (
    FORMATS,
    MOST_BYTES,
    OutputError,
    check_size,
    content_of,
    contents_of,
    json_in,
    output_at,
    output_in,
    shown,
)

# Protocol between audit and program: request lines, and answers as JSON or as raw numbers after a JSON header.

_FORMATS = {"float64": np.dtype("<f8"), "int64": np.dtype("<i8")}
_MOST_WORDS, _LONGEST_WORD = 8, 60  # of a command in a message
_RULE = "answer one JSON array, or a header and raw numbers; write everything else to standard error"
_RULE_OF_FILES = (
    "let it write a number or JSON alone, or the format that the command names, such as > {output.csv} or "
    "> {output.txt}, and logs to standard error"
)


def request_line(dataset: Any, runs: int, seed: int) -> bytes:
    """Return the request for a block of runs: one line of ASCII, with the keys runs, seed and dataset in this order.

    Examples
    --------
    >>> request_line(np.array([1, 2]), 1000, 7)
    b'{"runs": 1000, "seed": 7, "dataset": [1, 2]}\\n'
    """
    return b'{"runs": %d, "seed": %d, "dataset": %b}\n' % (runs, seed, content_of(dataset, "json"))


def read_array(line: bytes, runs: int) -> list[Any] | npt.NDArray[Any]:
    """Return the outputs in a line that is a JSON array, one per run; raise an `OutputError` for any other line."""
    outputs = _answer_in(line)
    if not isinstance(outputs, list):
        raise OutputError(f"answered {shown(line)}, which is not an array")
    if len(outputs) != runs:
        raise OutputError(f"answered {len(outputs)} outputs", "answer one output per requested run")
    return np.array(outputs) if _is_plain(outputs) else outputs


def _is_plain(outputs: list[Any]) -> bool:
    """Return whether the outputs are numbers of one type, or vectors of these, so that an array can hold them."""
    if set(map(type, outputs)) == {list} and len(set(map(len, outputs))) == 1:
        outputs = list(chain.from_iterable(outputs))
    kinds = set(map(type, outputs))
    return kinds == {float} or (kinds == {int} and max(map(abs, outputs)) < 2**62)


def read_header(line: bytes, runs: int) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return type and shape of the raw numbers after a header; raise an `OutputError` for any other header."""
    header = _answer_in(line)
    if not isinstance(header, dict) or header.keys() != {"format", "shape"} or header["format"] not in list(_FORMATS):
        raise OutputError(
            f"answered the header {shown(line)}",
            f'use {{"format": "float64", "shape": [{runs}]}}, or "int64", or the shape [{runs}, n_coords]',
        )
    shape = header["shape"]
    is_shape = isinstance(shape, list) and len(shape) in (1, 2) and all(type(n) is int and n >= 0 for n in shape)
    if not is_shape or shape[0] != runs:
        raise OutputError(f"answered the shape {str(shape)[:_LONGEST_WORD]}", f"use [{runs}] or [{runs}, n_coords]")
    return _FORMATS[header["format"]], tuple(shape)


def _answer_in(line: bytes) -> Any:
    try:
        return json_in(line.decode("utf-8"), "answered")
    except UnicodeDecodeError as error:
        raise OutputError(f"answered {shown(line)}, which is not UTF-8") from error


def shown_words(command: Sequence[str]) -> str:
    """Return a command for a message, with long words and long lists of words cut short."""
    words = [word if len(word) <= _LONGEST_WORD else f"{word[:_LONGEST_WORD]}…" for word in command]
    return repr(words if len(words) <= _MOST_WORDS else [*words[:_MOST_WORDS], "…"])


# A running program that answers requests for blocks through its pipes, with a limit on its silence.
#
# The protocol is in docs/how-to/languages.md. A dataset may hold NaN, Infinity and -Infinity, which JSON lacks; a
# program whose reader refuses them fails on such datasets, and a search passes over these. The first request is for a
# single run and includes the time that the program needs to start. A program that seeds itself identically at every
# start gives every worker the same runs: use jobs=1, or the health checks report it.

_CHUNK = 1 << 18
_TAIL = 1 << 14  # bytes kept of standard error: some hundred frames
_FRAMES = re.compile(r"((?:^[ \t]+at .*\n){4})(?:[ \t]+at .*\n?)+", re.MULTILINE)  # after an error of Java, JavaScript
_PATIENCE = 0.2  # seconds for a program to end by itself after its input is closed
_DEATH_THROES = 0.5  # seconds to end after it closed a pipe, to obtain its exit status
_GLANCE = 0.1  # seconds of silence before checking whether it has ended: its child may hold the pipes open
_SEEDS_OF_REQUESTS = 2**53  # whole numbers that a reader of JSON keeps as a double: JavaScript, R
_MARK, _SWEEPS = "DPAUDIT_PROGRAM", 20  # variable that marks what a program starts, and searches for it
_UNTIL_THE_END = "a program answers requests until the end of its standard input"


class RunningProgram:
    """A started program with its three pipes, for one thread at a time.

    One non-blocking loop serves all pipes, so a program that floods its standard error, or answers before it has read
    the whole request, does not block the audit. The program and its process group end when this object is deleted.
    """

    def __init__(self, program: Program) -> None:
        mark = secrets.token_hex(16)
        self._process = _started(program, _words(program.command), [subprocess.PIPE] * 3, mark)
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
        return _as_words(bytes(self._said))

    def ask(self, request: bytes, runs: int, seconds: float) -> Any:
        """Return the outputs for a request, a list or an array; `seconds` limits the time without a byte of answer.

        Any other behaviour of the program raises an `OutputError`; the program cannot be used afterwards.
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
            raise OutputError("answered before it had read the request", "read a line for each answer")
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
                raise OutputError(
                    f"wrote {start} bytes without the end of a line, which begin with {shown(self._answer)}"
                )
            self._serve()
        return bytes(self._take(end + 1)[:-1])

    def _exactly(self, size: int) -> bytearray:
        if size > MOST_BYTES:
            raise OutputError(f"announced {size} bytes", f"the most in an answer is {MOST_BYTES}")
        while len(self._answer) < size:
            self._serve(size)
        return self._take(size)

    def _take(self, size: int) -> bytearray:
        taken = self._answer[:size]
        del self._answer[:size]
        return taken

    def _check_silence(self, when: str) -> None:
        """Raise an `OutputError` for surplus output: here, or at the latest before the next request."""
        if not self._answer:
            self._answer += self._stdout.read(_CHUNK) or b""
        if self._answer:
            raise OutputError(f"wrote {shown(self._answer)} {when}")

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
            raise OutputError("ended", _UNTIL_THE_END, when=self._when_incomplete(), has_ended=True)
        if left <= 0:
            came = f"{len(self._answer)} bytes" + (f" of {size}" if size is not None else "")
            unread = f", and {len(self._unsent)} bytes of the request were not read" if self._unsent else ""
            raise OutputError(
                f"did not answer for {self._seconds:g} seconds ({came} came{unread})",
                "raise Program(…, seconds=…), the longest time without a byte of an answer, including the start of the "
                "program, or let the program end its answer with a line break and flush it, also in parts",
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
        raise OutputError(f"closed its standard {which}", _UNTIL_THE_END, when=when, has_ended=True)

    def _when_incomplete(self) -> str:
        came = f" ({len(self._answer)} bytes came: {shown(self._answer)})" if self._answer else ""
        return f" before its answer was complete{came}"

    def _listen(self) -> None:
        chunk = self._stderr.read(_CHUNK)
        self._is_listening = chunk != b""
        self._said += chunk or b""
        del self._said[:-_TAIL]


def _started(program: Program, command: Sequence[str], streams: Sequence[Any], mark: str) -> subprocess.Popen[bytes]:
    """Start a program with its three standard streams; it and all that it starts have the mark in the environment."""
    try:
        return subprocess.Popen(
            command,
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            bufsize=0,
            cwd=program.folder,
            env={**os.environ, **(program.environment or {}), _MARK: mark},
            start_new_session=True,  # so that its child processes can be ended with it
        )
    except (OSError, ValueError) as error:
        raise MechanismError(
            f"command={shown_words(command)} cannot be started ({error}); give the path of an executable program, "
            "and its folder if the path is relative.",
            command=list(command),
        ) from error


def _pipes(process: subprocess.Popen[bytes]) -> list[IO[bytes]]:
    return [pipe for pipe in (process.stdin, process.stdout, process.stderr) if pipe is not None]


def _end(process: subprocess.Popen[bytes], owner: int, mark: str) -> None:
    _stop(process, owner, mark, _PATIENCE)
    _close(process)


def _stop(process: subprocess.Popen[bytes], owner: int, mark: str, patience: float) -> int | None:
    """End a process and what it started; return its exit status, or None if it had to be killed.

    Processes that left its group are known by the mark in their environment, unless they left it too or the system does
    not show it (only Linux does).
    """
    if os.getpid() != owner:  # a forked process must not end its parent's programs
        process.returncode = 0
        return None
    _pipes(process)[0].close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(patience)
    status = process.poll()
    _kill_group(process)
    process.wait()
    _kill_marked(mark)
    return status


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _kill_marked(mark: str, since: int = 0) -> None:
    for _ in range(_SWEEPS):  # a process may start another while it is being looked for
        if not (left := _marked(mark, since)):
            break
        for number in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)


def _marked(mark: str, since: int) -> list[int]:
    """Return the processes with this mark in their environment, and at least this number, that have not ended."""
    wanted, proc = f"{_MARK}={mark}".encode(), Path("/proc")
    numbers, found = filter(str.isdigit, os.listdir(proc) if proc.is_dir() else ()), []
    for number in (number for number in map(int, numbers) if number >= since):
        with suppress(OSError):  # it has ended, or is another user's
            if wanted in (proc / str(number) / "environ").read_bytes().split(b"\0"):
                found.append(number)
    return found


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in _pipes(process):
        pipe.close()


# A command with placeholders, which is started for each run and knows nothing of the audit.

_PLACEHOLDER = re.compile(r"\{(?:(input|output)(\.\w+|/)|seed)\}")
_LIKE_ONE = re.compile(rf"(?<!\$)\{{(?:\w+\.(?:{'|'.join(FORMATS)})|\w+/|(?:input|output)(?:[./][\w.]*)?)\}}")
_BARE = re.compile(r"[\w@%+=:,./{}<>-]+", re.ASCII)  # words that shlex reads as they are
_STREAMS = {"input": "<", "output": ">"}
_LOOK = 1.0  # seconds between looks at the size of what a program writes
_SEEDS = 2**31  # seeds of runs: as many as R's set.seed takes, and srand of C and awk


@dataclass(frozen=True, slots=True)
class _Files:
    """What the placeholders of a command say: where the dataset goes, in which formats, and what the output is.

    A format is an ending such as ".csv", or "/" for a folder.
    """

    words: tuple[str, ...]  # of the command without redirections
    inputs: frozenset[str]
    output: str
    read: str | None  # format of the input that is standard input
    is_printed: bool

    @classmethod
    def of(cls, command: Sequence[str]) -> _Files | None:
        """Return the files of a command; None for a command without placeholders."""
        words: list[str] = []
        streams: dict[str, str] = {}
        found: set[tuple[str | None, str | None]] = set()
        for word in command:
            found |= {(match[1], match[2]) for match in _PLACEHOLDER.finditer(word)}
            whole = _PLACEHOLDER.fullmatch(word)
            if whole and whole[2] != "/" and words[-1:] == [_STREAMS.get(whole[1])]:
                streams[words.pop()] = whole[2]
            else:
                words.append(word)
        inputs, outputs = ({str(ending) for kind, ending in found if kind == wanted} for wanted in _STREAMS)
        unknown = {match[0] for word in command for match in _LIKE_ONE.finditer(word)}
        unknown -= {f"{{{kind}{ending}}}" for kind in _STREAMS for ending in ("/", *(f".{each}" for each in FORMATS))}
        problem = ""
        if unknown:
            problem = f"has the unknown placeholder {min(unknown)}; use {{input.…}} and {{output.…}} with the endings "
            problem += f"{', '.join(FORMATS)}, {{input/}} and {{output/}} for folders, and {{seed}}"
        elif found and not inputs:
            problem = "gives the program no dataset; name a file with {input.csv}, or standard input with < {input.csv}"
        elif len(outputs) > 1:
            problem = "has several outputs; name one, or files of one folder: {output/}first.csv {output/}second.csv"
        if problem:
            raise MechanismError(f"command={shown_words(command)} {problem}.", command=list(command))
        if not inputs:
            return None
        is_printed = ">" in streams or not outputs
        return cls(tuple(words), frozenset(inputs), min(outputs, default=".json"), streams.get("<"), is_printed)

    def run(self, program: Program, files: Mapping[str, bytes], seed: int, mark: str) -> Any:
        """Return the output of a run, which has a folder of its own; an `OutputError` says why there is none."""
        with ExitStack() as stack:
            # What the program leaves there without the right to delete it stays.
            made = tempfile.TemporaryDirectory(prefix="dpaudit-", ignore_cleanup_errors=True)
            folder = Path(stack.enter_context(made))
            path = folder / f"output{self.output.removesuffix('/')}"
            for each in (folder / "input" if "/" in self.inputs else folder, path if self.output == "/" else folder):
                each.mkdir(exist_ok=True)
            for name, content in files.items():
                (folder / name).write_bytes(content)
            given = stack.enter_context(open(os.devnull if self.read is None else folder / f"input{self.read}", "rb"))
            printed, said = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))

            def filled(found: re.Match[str]) -> str:
                return str(seed) if found[1] is None else f"{folder}{os.sep}{found[1]}{found[2]}"

            words = [_PLACEHOLDER.sub(filled, word) for word in self.words]
            process = _started(program, words, (given, printed, said), mark)
            try:
                try:
                    _wait(process, float(program.seconds), (printed, said), path)
                finally:
                    _kill_group(process)  # while its number is its own, unless `_wait` had to ask for its status
                    status = process.wait()
                    _kill_marked(mark, process.pid)  # younger processes have larger numbers, but for a few
                if status != 0 and program.failures == "output":
                    return Raised(f"exit status {status}")
                if status != 0:
                    way_out = 'let it end with status 0, or use Program(…, failures="output") if failures are outputs'
                    raise OutputError(_ending(status), way_out)
                if not self.is_printed:
                    return output_at(path, self.output, program.encoding)
                check_size(printed.seek(0, os.SEEK_END))
                printed.seek(0)
                return output_in(printed.read(), self.output[1:], program.encoding)
            except OutputError as broken:
                said.seek(max(0, said.seek(0, os.SEEK_END) - _TAIL))
                broken.status, broken.words = process.returncode, _as_words(said.read())
                raise


def _wait(process: subprocess.Popen[bytes], seconds: float, streams: Sequence[IO[bytes]], path: Path) -> None:
    """Wait until a program has ended; an `OutputError` if it takes too long or writes too much."""
    deadline, poll, pause, is_told = now() + seconds, select.poll(), _GLANCE / 10, False
    with ExitStack() as stack:
        with suppress(AttributeError, OSError):  # macOS, and sandboxes, have no such files
            number = os.pidfd_open(process.pid)
            stack.callback(os.close, number)
            poll.register(number, select.POLLIN)
            pause, is_told = _LOOK, True
        while (left := deadline - now()) > 0:
            if poll.poll(math.ceil(1000 * min(left, pause))) or (not is_told and process.poll() is not None):
                return
            for stream in streams:
                check_size(os.fstat(stream.fileno()).st_size)
            check_size(path.stat().st_size if path.is_file() else 0)
    raise OutputError(f"did not end within {seconds:g} seconds", "raise Program(…, seconds=…), the limit of a run")


def _as_words(said: bytes) -> str:
    return _FRAMES.sub(r"\1…\n", said.decode("utf-8", "backslashreplace")).strip()[-1000:]


@dataclass(frozen=True, slots=True)
class Program:
    r"""A program as a mechanism: any command that reads and writes files, or one that answers requests.

    A command with placeholders is started for each run. The program may know nothing of dpaudit:

    ``{input.csv}``
        Path of a file with the dataset, in the format of its ending: csv, tsv, json, jsonl or txt. ``{input/}`` is a
        folder for a dict of tables.
    ``{output.csv}``
        Path of the file that the program writes, and which is the output. ``{output/}`` is a folder.
    ``<``, ``{input.csv}`` and ``>``, ``{output.csv}``
        As two words: standard input and standard output. Without a placeholder of the output, standard output is
        the output: a number or JSON.
    ``{seed}``
        Seed of the run, a whole number below 2³¹.

    A command without placeholders is started once for each thread, and answers requests for blocks of runs (protocol
    in docs/how-to/languages.md). It ends when this object is deleted, when Python ends, or by `close`.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments, as words. There is no shell.
    claim, adjacency : optional
        The program's claim, and its neighbours.
    seconds : float
        Longest time of a run, or longest silence while an answer is due, including the program's start. An answer
        written piece by piece may take longer in total; one held back until it is complete, as JSON often is, may not.
    claim_source : str
        Source of the claim.
    name : str, optional
        Name in messages and results; by default the command.
    environment : mapping of str to str, optional
        Variables to set in addition to those of this process.
    folder : path, optional
        Working directory of the program; a relative program path is resolved there.
    retries : int
        How often to repeat a failed run or request, with the same seed. Safe only if failures are independent of the
        noise. Otherwise, a program that fails when its noise is large, and does not draw the noise from the seed, is
        audited without these runs: its noise looks smaller, or a leak goes unseen.
    columns : sequence of str, optional
        Names of the columns in a file of rows without names, and of no rows.
    failures : {"error", "output"}
        Whether a run with an exit status other than 0 ends the audit, or has this status as its output.
    encoding : str
        Encoding of the files and of standard output.

    Raises
    ------
    MechanismError
        If the command or its placeholders cannot be used. A run that cannot be started, takes too long, fails or
        writes no output ends the audit with this error, which quotes the end of standard error.

    Examples
    --------
    >>> import numpy as np
    >>> rows = Program(["awk", "END { print NR }", "{input.csv}"])
    >>> rows.sample([31, 57], 3, np.random.default_rng(1))
    [2, 2, 2]
    """

    draws_elsewhere: ClassVar[bool] = True  # in another process, where no replay sees the noise

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
    columns: Sequence[str] | None = None
    failures: Literal["error", "output"] = "error"
    encoding: str = "utf-8"
    _files: _Files | None = field(init=False, repr=False, compare=False)
    _idle: deque[RunningProgram] = field(default_factory=deque, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if os.name != "posix":
            raise MechanismError("programs need POSIX pipes; use Linux, macOS or WSL.")
        object.__setattr__(self, "command", _words(self.command))
        object.__setattr__(self, "_files", _Files.of(_words(self.command)))
        checked("claim_source", self.claim_source)
        if self.adjacency is not None:
            object.__setattr__(self, "adjacency", as_adjacency(self.adjacency))
        checked("name", self.name, or_none=True)
        checked("seconds", self.seconds)
        if not is_whole(self.retries) or self.retries < 0:
            raise OptionError(
                f"retries={shorten(self.retries)} is not a number of retries; use 0 or more.", retries=self.retries
            )
        if self.columns is not None:
            if isinstance(self.columns, str) or not all(isinstance(name, str) for name in self.columns):
                raise OptionError(f"columns={shorten(self.columns)} are not names; use a list of str.")
            object.__setattr__(self, "columns", tuple(self.columns))
        if self.failures not in ("error", "output") or (self.failures == "output" and self._files is None):
            raise OptionError(
                f'failures={shorten(self.failures)} is unknown; use "error", or, with placeholders, "output".'
            )
        try:
            codecs.lookup(self.encoding)
        except (LookupError, TypeError) as error:
            raise OptionError(f'encoding={shorten(self.encoding)} is unknown; use "utf-8" or "latin-1".') from error

    @property
    def takes_files(self) -> bool:
        """Whether the dataset reaches the program in a file, and not in a request."""
        return self._files is not None

    @property
    def _command_line(self) -> str:
        words = [os.fspath(word) for word in self.command]
        return " ".join(word if _BARE.fullmatch(word) else shlex.quote(word) for word in words)

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
        options = self.columns, self.failures, self.encoding
        return words, dict(self.environment or {}), str(folder), contents, options

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """Return the outputs of `size` runs, with seeds drawn from `rng`: one for a request, or one for each run.

        A program that cannot be started, ends, takes too long, or has no output in the right form raises a
        `MechanismError` that quotes its standard error. After a run or an error, the program's process group is killed
        and, on Linux, every process that has its environment. A process that left both goes on.
        """
        if self._files is None:
            seed = int(rng.integers(_SEEDS_OF_REQUESTS))
            request = request_line(dataset, size, seed)
            asked = f"asked for {size} run{'s' * (size != 1)} with seed {seed}"
            return self._with_retries(partial(self._answer, request, size), asked, _RULE, runs=size, seed=seed)
        contents = contents_of(dataset, self._files.inputs, columns=self.columns, encoding=self.encoding)
        mark = secrets.token_hex(16)
        outputs = []
        try:
            for seed in rng.integers(_SEEDS, size=size).tolist():
                asked = f"in a run with seed {seed}" if "{seed}" in "".join(self._files.words) else "in a run"
                work = partial(self._files.run, self, contents, seed, mark)
                outputs.append(self._with_retries(work, asked, _RULE_OF_FILES, runs=1, seed=seed))
        finally:
            _kill_marked(mark)  # the few of small numbers
        return outputs

    def close(self) -> None:
        """End the programs that wait for a request; a later request starts a new one."""
        with suppress(IndexError):  # none left
            while True:
                self._idle.pop().end()

    def _answer(self, request: bytes, runs: int) -> Any:
        """Return the answer of a running program; end the program if it breaks the protocol."""
        running = self._take()
        try:
            outputs = running.ask(request, runs, float(self.seconds))
        except OutputError as broken:
            broken.status, broken.words = running.end(is_dying=broken.has_ended), running.last_words
            raise
        except BaseException:  # Ctrl-C: a late answer would be taken for the answer to another request
            running.end()
            raise
        self._idle.append(running)
        return outputs

    def _take(self) -> RunningProgram:
        """Return a running program that no other thread uses."""
        while True:
            try:
                running = self._idle.pop()
            except IndexError:
                return RunningProgram(self)
            if running.is_ours:
                return running

    def _with_retries(self, work: Callable[[], Any], asked: str, rule: str, **facts: int) -> Any:
        """Return what the work returns; a `MechanismError` if it fails more often than it may be repeated."""
        for _ in range(self.retries):
            with suppress(OutputError):
                return work()
        try:
            return work()
        except OutputError as broken:
            raise self._failure(broken, asked, rule, facts) from None

    def _failure(self, broken: OutputError, asked: str, rule: str, facts: Mapping[str, int]) -> MechanismError:
        status, words = broken.status, broken.words
        what = broken.what if status is None or not broken.has_ended else _ending(status)
        tried = f" ({self.retries + 1} times)" if self.retries else ""
        heard = f"its standard error ends with {words!r}" if words else "it wrote nothing to standard error"
        started = "" if str(self) == self._command_line else f"; its command is {shown_words(_words(self.command))}"
        return MechanismError(
            f"{self} {what}{broken.when}{tried}, {asked}; {broken.way_out or rule}; {heard}{started}.",
            mechanism=str(self),
            command=list(self.command),
            status=status,
            standard_error=words,
            **facts,
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
