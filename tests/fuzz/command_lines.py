"""Fuzzed command lines: good ones in which something was changed, run in this process."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from random import Random

from dpaudit.audit.records.json_codec import to_json

from .mutations import mutated_bytes, mutated_json, odd_number, odd_text
from .sandbox import OUT, MisstepError, Yard
from .targets import Attempt, sample_results

_MODULE = """
def noisy(rows, size, rng):
    return len(rows) + rng.laplace(size=size)

def broken(rows, size, rng):
    raise ValueError("no such column")

def ragged(rows, size, rng):
    return [[0.0]] * len(rows)

class Holder:
    claim = 3
    inner = noisy

number = 3
"""
_TRAP = "raise SystemExit('imported')\n"
_LINES: tuple[tuple[str, ...], ...] = (
    ("audit", "mine:noisy", "--x", "[1]", "--y", "[]", "--epsilon", "1"),
    ("audit", "mine:noisy", "--x", "[1]", "--y", "[]", "--mu", "1", "--out", f"{OUT}/a"),
    ("audit", "mine:Holder.inner", "--x", "@data.csv", "--y", "@data.npy", "--rho", "0.1", "--sequential"),
    ("audit", "--program", "no-such-program 1", "--x", "1", "--y", "2", "--epsilon", "1"),
    ("plan", "--epsilon", "1", "--resolution", "0.2"),
    ("report", f"{OUT}/results.json", "--markdown"),
    ("report", f"{OUT}/results.json", "kept/results.json", "--csv", "--junit", "--json", "--out", f"{OUT}/r"),
    ("compare", f"{OUT}/results.json", "kept/results.json"),
    ("compare", "kept/results.json", f"{OUT}/results.json", "--markdown", "--out", f"{OUT}/c"),
    ("list", "E2"),
    ("run", "no-such", "--out", f"{OUT}/run"),
    ("run", "--resume", f"{OUT}/none"),
    ("bench", "inference", "--table", "none"),
    ("bench", "reports", "--only", "none"),
    ("schema",),
)  # fmt: skip
_OBJECTS = (
    "mine:noisy", "mine:broken", "mine:ragged", "mine:number", "mine:Holder", "mine:absent", "mine", "mine:", ":noisy",
    "mine.py:noisy", "absent:f", "mine:noisy.__globals__", "mine:noisy:x", "", "..:f", ".mine:f", "mine..x:f", "é:f",
    "mine:\udcff", "\udcff:f", "json:dumps", "mine/noisy:f",
)  # fmt: skip
_PATHS = (
    f"{OUT}/a", f"{OUT}/new/deep", "precious.txt", "precious.txt/x", f"{OUT}/" + "n" * 300, f"{OUT}/é", f"{OUT}/\udcff",
    "/dev/null/x", f"{OUT}/results.json", "kept/results.json", "data.csv",
)  # fmt: skip
_DATASETS = (
    "@data.csv", "@data.npy", "@odd", "@absent.json", "@data.txt", "@", "@kept/results.json", f"@{OUT}/odd.npy", "[1]",
    f"@{OUT}/odd.csv", f"@{OUT}/odd.json", "[1, 2]", "[[1], 2]", "{}", "trap:object", "NaN", "[" * 5000,
    "1e999", "null",
)  # fmt: skip
_PROGRAMS = ("no-such-program", "'open", "", " ", f"{OUT}", "precious.txt", "./absent 1 2", "\udcff", "é")
_NUMBERS = (
    "--epsilon", "--delta", "--mu", "--rho", "--resolution", "--power", "--alpha", "--q", "--distance", "--seed",
)  # fmt: skip
_FLAGS = (
    "--sequential", "--keep-datasets", "--resume", "--html", "--markdown", "--csv", "--json", "--version", "--help",
)  # fmt: skip
_NAMES = (
    "--adjacency", "--bits", "--ignore", "--name", "--title", "--document", "--cells", "--budget", "--nothing", "-x",
)  # fmt: skip
_CHOICES = ("replace", "add-remove", "edge", "l2", "true", "false", "warn", "steady counts", "4", "2", "0.5", "E1")
_ALWAYS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "audit": (
        ("--runs", ("200", "200", "200", "40", "39", "0", "-1", "x", "1e3")),
        ("--search-runs", ("100",)),
        ("--jobs", ("1", "1", "1", "0", "-2", "x")),
    ),
    "run": (("--runs", ("60", "0", "x")), ("--out", (f"{OUT}/run",))),
    "bench": (("--jobs", ("1", "0", "x")),),
    "report": (("--out", (f"{OUT}/r",)),),
}


def commands(yard: Yard) -> Attempt:
    """Tries command lines in the yard, which has a module, datasets, results and a module that nobody names."""
    import matplotlib.pyplot  # noqa: F401  (makes folders of its own when it is first imported)
    import numpy as np

    text = to_json(sample_results())
    array = io.BytesIO()
    np.save(array, np.ones(2))
    for name, content in (
        ("mine.py", _MODULE), ("trap.py", _TRAP), ("precious.txt", "precious\n"), ("data.csv", "income\n1\n2\n"),
        ("data.npy", array.getvalue()), ("data.txt", "1"), ("odd", "1"), ("kept/results.json", text),
    ):  # fmt: skip
        yard.plant(name, content)

    def attempt(rng: Random) -> bool:
        for suffix, content in (("npy", array.getvalue()), ("csv", b"a,b\n1,2\n"), ("json", b"[1, 2]")):
            if rng.random() < 0.2:
                (yard.out / f"odd.{suffix}").write_bytes(mutated_bytes(rng, content))
        whole = rng.random() < 0.3
        (yard.out / "results.json").write_bytes(text.encode() if whole else mutated_json(rng, text))
        return _run(_line(rng))

    return attempt


def _line(rng: Random) -> list[str]:
    """A command line: one that could take long has its length set, and none is told to write beside the output."""
    command, *words = rng.choice(_LINES)
    for _ in range(rng.choice((0, 0, 1, 1, 1, 2, 3))):
        _change(rng, words)
    for place, word in enumerate(words[:-1]):
        if word == "--out" and words[place + 1] not in _PATHS:
            words[place + 1] = rng.choice(_PATHS)
    always = [word for option, values in _ALWAYS.get(command, ()) for word in (option, rng.choice(values))]
    if command == "compare" and {"--html", "--markdown"} & set(words):
        always = ["--out", f"{OUT}/c"]
    words = ["--x=trap:object" if word == "trap:object" else word for word in words]  # nobody names it as an object
    return [command if rng.random() < 0.98 else odd_text(rng), *always, *words]


def _change(rng: Random, words: list[str]) -> None:
    """A word left out, put in or replaced; or an option more."""
    place, kind = rng.randrange(len(words) + 1), rng.randrange(8)
    if kind == 0:
        del words[place : place + 1]
    elif kind == 1:
        words.insert(place, _odd_word(rng))
    elif kind == 2:
        words[place : place + 1] = [_odd_word(rng)]
    elif kind == 3:
        words += [rng.choice(_NUMBERS), rng.choice((repr(odd_number(rng)), odd_text(rng)))]
    elif kind == 4:
        words += [rng.choice(_FLAGS)]
    elif kind == 5:
        words += [rng.choice(_NAMES), rng.choice((*_CHOICES, odd_text(rng)))]
    elif kind == 6:
        words += rng.choice(
            (
                ["--out", rng.choice(_PATHS)], ["--x", rng.choice(_DATASETS)], ["--y", rng.choice(_DATASETS)],
                ["--search", rng.choice(_OBJECTS)], ["--program", rng.choice(_PROGRAMS)], [rng.choice(_PATHS)],
            )
        )  # fmt: skip
    else:
        words[:] = [rng.choice(_OBJECTS) if ":" in word and not word.startswith("-") else word for word in words]


def _odd_word(rng: Random) -> str:
    """Any word but one that would have the command write where it likes."""
    word = rng.choice((odd_text(rng), rng.choice(_OBJECTS), rng.choice(_DATASETS), rng.choice(_FLAGS)))
    return word if not set(word) & {"\0", "/"} or word.startswith("@") else "odd"


def _run(words: list[str]) -> bool:
    """Runs the command line; whether its status is not that of an error.

    Raises
    ------
    MisstepError
        For a traceback, an error without a message, or another status than the documented ones.
    """
    from dpaudit.reports.cli.main import main

    words = [word.replace("\0", "") for word in words]  # no system passes one on
    out, errors = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=mode) for mode in ("strict", "backslashreplace")
    )
    with _as_command(words, out, errors):
        try:
            main()
            raise MisstepError(f"{words} does not end")
        except SystemExit as ended:
            status = ended.code
    said, complaint = (stream.detach().getvalue().decode() for stream in (out, errors))
    if "Traceback" in complaint:
        raise MisstepError(f"{words} ends with {complaint.strip().splitlines()[-1]}")
    if status not in (0, 1, 2, 3):
        raise MisstepError(f"{words} has the exit status {status}")
    if not (complaint if status == 2 else said).strip() and words[:1] != ["--version"]:
        raise MisstepError(f"{words} ends with {status} and says nothing")
    return status != 2


@contextlib.contextmanager
def _as_command(words: list[str], out: io.TextIOWrapper, errors: io.TextIOWrapper) -> Iterator[None]:
    """What a process of its own would have: arguments, streams and modules."""
    former, path = sys.argv, list(sys.path)
    sys.argv = ["dpaudit", *words]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            yield
            out.flush()
            errors.flush()
    finally:
        sys.argv, sys.path[:] = former, path
        for name in ("mine", "trap"):
            sys.modules.pop(name, None)
