"""Any program, in any language, as a mechanism: it is asked for blocks of runs through its standard input and output.

For each block the program reads one line, such as

    {"runs": 1000, "seed": 123, "dataset": [1, 0, 1]}

in ASCII, with the keys in this order, and answers in one of two ways:

- one line with a JSON array of as many outputs: numbers, strings, true, false, null, and arrays of these. NaN,
  Infinity and -Infinity are understood too, though JSON lacks them; objects are not.
- raw numbers: one line {"format": "float64", "shape": [1000]}, or "int64", or the shape [1000, n_coords], and right
  after its line break exactly that many numbers of 8 bytes, little-endian, row by row.

It flushes its output, waits for the next line, and ends when its input ends. Nothing else may go to standard output;
what goes to standard error is kept for messages. The first request is for a single run, and takes the time that the
program needs to start.

A program that draws its noise from the seed makes the audit replayable. One with entropy of its own is fine as well.
One that seeds itself in the same way whenever it is started gives every worker the same runs: use jobs=1, or else the
health checks find them.
"""

from __future__ import annotations

import hashlib
import math
import os
import shlex
import shutil
import signal
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from ...audit.claims.at_distance import ClaimAtDistance
from ...audit.claims.claim import Claim
from ...audit.datasets.adjacency import Adjacency, check_adjacency
from ...audit.errors import MechanismError, OptionError
from ...audit.options import check_claim_source
from ...audit.printing import shorten
from .program_process import RunningProgram
from .program_protocol import AnswerError, request_line, shown_words


@dataclass(frozen=True, slots=True)
class Program:
    r"""A program as a mechanism.

    It is started when it is first used and kept open from block to block, once for each thread that asks at the same
    time; it is ended when this object goes, when Python ends, or by `close`. A copy in a worker process starts its own.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments, as words. There is no shell.
    claim, adjacency, claim_source : optional
        What the program promises, for which neighbours, and where that is said.
    seconds : float
        How long a program may be silent while an answer is due: time without a byte of it, the program's start
        included. An answer that is written as it is made may take longer in all; one that is held back to its end, as
        JSON often is, has to fit into this.
    name : str, optional
        For messages and results; the command by default.
    environment : mapping of str to str, optional
        Variables to set besides those of this process.
    folder : path, optional
        Where to start it; a relative path of the program counts from there.
    retries : int
        How often a request whose answer failed is put again, with the same seed, to a program started anew. Safe only
        where failing has nothing to do with the noise. A program that fails where its noise is large, and that does not
        draw it from the seed, is otherwise audited without these runs: its noise looks smaller, or a leak is not seen.

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
            raise MechanismError("programs are asked through POSIX pipes; use Linux, macOS or WSL.")
        object.__setattr__(self, "command", _words(self.command))
        check_claim_source(self.claim_source)
        if self.adjacency is not None:
            check_adjacency(self.adjacency)
        seconds: object = self.seconds
        if not isinstance(seconds, (int, float)) or not 0 < seconds < math.inf:
            raise OptionError(
                f"seconds={self.seconds!r} is no time limit; use a positive number.", seconds=self.seconds
            )
        if not isinstance(self.retries, int) or self.retries < 0:
            raise OptionError(
                f"retries={self.retries!r} is no number of retries; use 0, or more.", retries=self.retries
            )

    @property
    def _command_line(self) -> str:
        return shlex.join(os.fspath(word) for word in self.command)

    def __str__(self) -> str:
        text = self._command_line if self.name is None else self.name
        text = text if text.isprintable() else repr(text)
        return text if len(text) <= 80 else f"{text[:79]}…"

    def __reduce__(self) -> tuple[Any, ...]:
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        return _rebuild, (kept,)

    def __audit_identity__(self) -> tuple[Any, ...]:
        """Command and surroundings, and the contents of every file that the command names: a store knows them again."""
        folder = Path("." if self.folder is None else self.folder)
        words = [os.fspath(word) for word in self.command]
        first = words[:1] if os.sep in words[0] else [shutil.which(words[0]) or words[0]]
        contents = []
        for word in [*first, *words[1:]]:
            path = folder / word
            contents.append(hashlib.blake2b(path.read_bytes()).digest() if path.is_file() else b"")
        return words, dict(self.environment or {}), str(folder), contents

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """The program's answer to one request for `size` runs, with a seed of 63 bits drawn from `rng`.

        Raises
        ------
        DatasetError
            For a dataset that JSON cannot hold.
        MechanismError
            For a program that cannot be started, ends, does not answer in time, or answers anything but `size` outputs;
            with what it said on standard error. It is killed then, and so is whatever it has started.
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
            except BaseException:  # Ctrl-C: what it answers later would be taken for the answer to another request
                running.end()
                raise
            else:
                self._idle.append(running)
                return outputs

    def close(self) -> None:
        """Ends the programs that wait for a request; a later request starts another."""
        with suppress(IndexError):  # when there is none left
            while True:
                self._idle.pop().end()

    def _take(self) -> RunningProgram:
        """A running program that no other thread uses."""
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


def _rebuild(kept: dict[str, Any]) -> Program:
    return Program(**kept)


def _words(command: Any) -> tuple[str, ...]:
    if isinstance(command, (str, bytes, os.PathLike)):
        raise MechanismError(
            f"command={shorten(command)} is no list of words; use [program, argument, …], such as shlex.split of a "
            "command line. There is no shell.",
            command=command,
        )
    words = list(command) if isinstance(command, Sequence) else []
    if not words or not all(isinstance(word, (str, os.PathLike)) and "\0" not in str(word) for word in words):
        raise MechanismError(
            f"command={shorten(command)} is no list of words; use the program and its arguments as strings.",
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
