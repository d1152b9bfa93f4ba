"""The options of the commands: their declarations, what the shell completes, and their names in messages."""

from __future__ import annotations

import datetime
import os
import platform
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...audit.errors import OptionError
from ...audit.printing import did_you_mean
from ...audit.settings import explained

if TYPE_CHECKING:
    from ...audit.datasets.adjacency import Adjacency

# What the shell completes, kept here so that completion does not load the library; tests compare it with the library.
ADJACENCIES = ("add-remove", "replace", "zero-out", "edge", "node", "local", "l1", "l2", "linf")
CANARY_ADJACENCIES = ("add-remove", "replace", "zero-out")
CANARY_ANSWERS = ("both", "in", "out")
CANARY_INCLUSION = ("independent", "fixed")
CANARY_METHODS = ("auto", "betting", "counts", "steinke", "f-dp")
FLOATING_POINT = ("warn", "test", "ignore")
PRIMITIVES = ("numpy", "random", "scipy", "torch", "diffprivlib", "pydp", "opendp")
HEALTH_CHECKS = (
    "duplicate-outputs", "nonstationary", "serial-dependence", "shared-randomness", "dataset-mutated", "equal-datasets",
    "constant-output", "no-power",
)  # fmt: skip

_AUDITOR = ("DPAUDIT_AUDITOR", "GITHUB_ACTOR", "GITLAB_USER_LOGIN")
"""Environment variables that name who audits, the first one that is set."""
_MOST_DIGITS = 100
"""Of a whole number with an exponent, since one of a billion digits would fill the memory."""


def optional(text: str, *names: str, metavar: str | None = None, complete: Sequence[str] = ()) -> Any:
    """Return an option whose help does not show its default, and which the shell completes from the given values."""
    return typer.Option(
        *names,
        metavar=metavar,
        help=text,
        show_default=False,
        autocompletion=completion(complete) if complete else None,
    )


def one_of(text: str, names: Sequence[str], *flags: str) -> Any:
    """Return an option whose value is one of the names, which its help lists."""
    return optional(f"{text}: {', '.join(names[:-1])} or {names[-1]}.", *flags, complete=names)


def whole(text: str, *names: str, show_default: bool | str = True) -> Any:
    """Return an option whose value is a whole number in any of the forms of `whole_number`."""
    return typer.Option(*names, help=text, show_default=show_default, parser=whole_number)


def whole_number(text: str | int) -> int:
    """Return a whole number that may have underscores or an exponent.

    Examples
    --------
    >>> whole_number("100_000"), whole_number("1e5"), whole_number("2.5e3"), whole_number("-1")
    (100000, 100000, 2500, -1)
    """
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = Decimal(text)
        if value.adjusted() < _MOST_DIGITS and value == value.to_integral_value():
            return int(value)
    except (InvalidOperation, ValueError, OverflowError):  # letters, NaN, infinity
        pass
    raise typer.BadParameter(f"{text!r} is not a whole number, such as 100000, 100_000 or 1e5")


def completion(values: Sequence[str]) -> Callable[[str], list[str]]:
    """Return the function by which typer completes a value."""

    def complete(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    return complete


Seed = Annotated[int, whole("Random seed; results do not depend on the number of workers.")]
Epsilon = Annotated[float | None, optional("Claimed ε.")]
Delta = Annotated[float, typer.Option(help="Claimed δ.")]
Mu = Annotated[float | None, optional("Claimed μ, for Gaussian DP.")]
Rho = Annotated[float | None, optional("Claimed ρ, for zero-concentrated DP.")]
X = Annotated[str | None, optional("Dataset x: JSON, or a file: .json, .npy or .csv.")]
Y = Annotated[str | None, optional("Dataset y, a neighbour of x.")]
Relation = Annotated[str | None, one_of("Neighbour relation of the pair", ADJACENCIES)]
Distance = Annotated[int, whole("Distance of the pair; above 1, the claim is that of group privacy.")]
Part = Annotated[str | None, optional("Part of the output: a name, a path such as stats.mean, or a place.", "--output")]
Alpha = Annotated[float, typer.Option(help="Allowed probability of refuting a correct mechanism.")]
Power = Annotated[float, typer.Option(help=explained()["power"])]
Detect = Annotated[float | None, optional(explained()["detect"])]
Out = Annotated[Path | None, optional("Folder for results.json and the report; by default none.")]
Jobs = Annotated[
    int | None,
    whole("Number of workers; by default every core, or one for a vectorised mechanism.", show_default=False),
]


def check_choices(given: Sequence[str | None], known: Sequence[str], option: str) -> None:
    """Raise an `OptionError` for a value that is neither None nor one of the known ones."""
    for name in given:
        if name is not None and name not in known:
            hint = did_you_mean(name, known) or "."
            raise OptionError(f"{option} {name!r} is unknown; use one of {', '.join(known)}{hint}", name=name)


def one_mechanism(path: object, program: object) -> None:
    """Raise an `OptionError` unless exactly one of the two names the mechanism of an audit."""
    if (path is None) == (program is None):
        raise OptionError(
            "a mechanism is named as MODULE:OBJECT or as --program 'name arguments'; give one of the two."
        )


@contextmanager
def streams_kept() -> Iterator[None]:
    """Restore the standard streams after code of the user, which may replace or delete them."""
    streams = sys.stdout, sys.stderr
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def say(text: str) -> None:
    """Write a line to standard error."""
    typer.echo(text, err=True)


def names_file(dataset: str) -> bool:
    """Whether a dataset in an argument is a file or a folder; no JSON ends as their names do.

    Examples
    --------
    >>> names_file("data/x.csv"), names_file("tables/"), names_file("[1, 2.5]"), names_file("2.5")
    (True, True, False, False)
    """
    return dataset.startswith("@") or re.search(r"(\.[A-Za-z]\w*|/)$", dataset) is not None


_STARTED = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def environment_of_command() -> dict[str, Any]:
    """Return the command line without its datasets, the machine, the time at the start, and the auditor if named."""
    words, shown = sys.argv[1:], ["dpaudit"]
    for before, word in zip(["", *words], words, strict=False):
        option, equals, value = word.partition("=")
        start, value = (f"{option}=", value) if equals and option in ("--x", "--y") else ("", word)
        is_dataset = (start or before in ("--x", "--y")) and not names_file(value)
        shown.append(f"{start}…" if is_dataset and "--keep-datasets" not in words else word)
    by = next((name for variable in _AUDITOR if (name := os.environ.get(variable))), None)
    told = {"command": shlex.join(shown), "machine": platform.platform(), "started": _STARTED}
    return told if by is None else {**told, "by": by}


def claim_from_options(
    epsilon: float | None, delta: float, mu: float | None, rho: float | None, *, or_none: bool = False
) -> Any:
    """Return the claim of exactly one of epsilon (with delta), mu and rho; None, if permitted, without any of them."""
    from ...audit.claims.claim import ApproxDP, GaussianDP, PureDP
    from ...audit.claims.renyi import ZeroConcentratedDP

    given = {"--epsilon": epsilon, "--mu": mu, "--rho": rho}
    named = [name for name, value in given.items() if value is not None]
    if or_none and not named and delta == 0:
        return None
    if len(named) != 1:
        raise OptionError(
            f"{' and '.join(named) or 'no claim'} given; give exactly one of --epsilon (with --delta), --mu and --rho.",
            given=named,
        )
    if epsilon is None and delta != 0:
        raise OptionError(f"--delta {delta:g} belongs to --epsilon, not to {named[0]}; leave it out.", delta=delta)
    if mu is not None:
        return GaussianDP(mu)
    if rho is not None:
        return ZeroConcentratedDP(rho)
    assert epsilon is not None
    return ApproxDP(epsilon, delta) if delta != 0 else PureDP(epsilon)


def adjacency_from_option(name: str | None) -> Adjacency | None:
    """Return the neighbour relation of the given name."""
    from ...audit.datasets.adjacency import NAMED

    check_choices([name], ADJACENCIES, "--adjacency")
    return None if name is None else NAMED[name]


_SAME_NAME = (
    "adjacency", "alpha", "audits", "bins", "chunk_seconds", "delta", "detect", "distance", "epsilon",
    "floating_point", "guess", "guesses", "ignore", "inclusion", "jobs", "keep_datasets", "method", "minutes", "mu",
    "name", "only", "out", "output", "power", "primitives", "probability", "q", "resume", "rho", "runs", "search_runs",
    "seconds", "seed", "sequential", "title",
)  # fmt: skip
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in _SAME_NAME} | {
    "command": "--program",
    "domain": "--search",
    "store": "--out",
    "workers": "--jobs",
}
"""Options by the name of the parameter that they set: ``jobs=1`` in a message of the library becomes ``--jobs 1``."""

_GIVEN = re.compile(rf"(?<![\w.\-(\[{{])({'|'.join(OPTIONS)})=(?!=)(True\b|False\b|'\w+')?(?=([^\s,;:.)])?)")
_CALL = re.compile(r"(\w+\((?:[^()]|\([^()]*\))*\))")  # with at most one call or tuple in it
_QUOTED = re.compile(r"(?:raised|failed with) [\w.]+: |Input should be ")
"""What precedes the words of the caller's own code."""


def in_options(text: str) -> str:
    """Return a message with options in place of the library's parameters; calls and quoted errors stay.

    Examples
    --------
    >>> in_options("runs=3 is too few; use a whole number >= 40.")
    '--runs 3 is too few; use a whole number >= 40.'
    >>> in_options("bins need a fixed number of runs; use sequential=False.")
    'bins need a fixed number of runs; use --no-sequential.'
    >>> in_options("floating_point='test' audits leaks too.")
    '--floating-point test audits leaks too.'
    """
    text = text.replace("(find_worst_pair, or neighbours= in pytest)", "(--search)")
    quoted = _QUOTED.search(text)
    end = len(text) if quoted is None else quoted.start()
    parts = _CALL.split(text[:end])  # such as draw_block(…, seed=1), which is Python in the shell too
    own = [part if place % 2 else _GIVEN.sub(_as_option, part) for place, part in enumerate(parts)]
    return "".join([*own, text[end:]])


def _as_option(found: re.Match[str]) -> str:
    option, value, after = OPTIONS[found[1]], found[2], found[3]
    if value is None:
        return f"{option} " if after else option
    if value.startswith("'"):
        return f"{option} {value[1:-1]}"
    return option if value == "True" else option.replace("--", "--no-")
