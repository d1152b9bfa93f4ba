"""Any program, in any language, as a mechanism that answers requests for blocks of runs through its pipes.

For each block the program reads one line of ASCII, such as

    {"runs": 1000, "seed": 123, "dataset": [1, 0, 1]}

with the keys in this order. A dataset may hold NaN, Infinity and -Infinity, which JSON lacks; a program whose reader
refuses them fails on such datasets, and a search passes over these. The program answers in one of two ways:

- one line with a JSON array of `runs` outputs: numbers, strings, true, false, null, and arrays of these. NaN, Infinity
  and -Infinity are accepted, although JSON lacks them; objects are not.
- raw numbers: one line {"format": "float64", "shape": [1000]}, or "int64", or the shape [1000, n_coords], directly
  followed by exactly that many 8-byte numbers, little-endian, row by row.

The program flushes its output, waits for the next line, and ends when its input ends. It must write nothing else to
standard output; messages quote what it writes to standard error. The first request is for a single run and includes the
time that the program needs to start.

If a program draws its noise from the seed, the audit is replayable. A program with its own entropy works too. A program
that seeds itself identically at every start gives every worker the same runs: use jobs=1, or the health checks report
it.
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

from ...audit.claims.claim import Claim, ClaimAtDistance
from ...audit.datasets.adjacency import Adjacency
from ...audit.datasets.named_adjacency import as_adjacency
from ...audit.errors import MechanismError, OptionError
from ...audit.options import as_number, checked, is_whole
from ...audit.printing import shorten
from .program_process import RunningProgram
from .program_protocol import AnswerError, request_line, shown_words


@dataclass(frozen=True, slots=True)
class Program:
    r"""A program as a mechanism.

    It starts on first use and stays open from block to block, one process for each thread that asks at the same time.
    It ends when this object is deleted, when Python ends, or by `close`. A copy in a worker process starts its own.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments, as words. There is no shell.
    claim, adjacency, claim_source : optional
        The program's claim, its neighbours, and the source of the claim.
    seconds : float
        Longest silence while an answer is due, including the program's start. An answer written piece by piece may take
        longer in total; an answer held back until it is complete, as JSON often is, must fit into this time.
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
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        return _rebuild, (kept,)

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

        Raises
        ------
        DatasetError
            If JSON cannot hold the dataset.
        MechanismError
            If the program cannot be started, ends, does not answer in time, or does not answer with `size` outputs. The
            message quotes its standard error. The program and every process that it started are killed.
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


def _rebuild(kept: dict[str, Any]) -> Program:
    return Program(**kept)


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
