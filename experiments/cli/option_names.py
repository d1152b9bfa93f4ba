"""Messages of the library in the words of the command line: ``jobs=1`` becomes ``--jobs 1``."""

from __future__ import annotations

import re

_SAME_NAME = (
    "adjacency", "alpha", "audits", "bits", "block_seconds", "budget", "cells", "coins", "delta", "distance", "epsilon",
    "guesses", "ignore", "jobs", "keep_datasets", "method", "minutes", "mu", "name", "only", "out", "power",
    "probability", "q", "resolution", "resume", "rho", "runs", "say", "search_runs", "seconds", "seed", "sequential",
    "sequential_audits", "title",
)  # fmt: skip
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in _SAME_NAME} | {
    "command": "--program",
    "domain": "--search",
    "store": "--out",
    "workers": "--jobs",
}
"""Options by the name of the parameter that they set."""

_PHRASES = {
    "Pass claim=PureDP(epsilon) or another claim (shell: --epsilon)": "Pass --epsilon, --mu or --rho",
    " (--search-runs)": "",
    ", or None for a fresh seed": "",
    'use "warn", True or False': "use warn, true or false",
    "use True where": "use 1 where",
    "use an instance such as AddRemove() or Replace()": "use add-remove or replace",
    "pass the claim for neighbours": "state the claim for neighbours",
    "or integer=False": "or integer=False in the domain",
    "(sharper: claim GaussianDP, or cells=)": "(sharper: --mu, or --cells)",
    "seconds=inf without runs would never end; set runs": "--seconds inf without --runs would never end; set --runs",
    "mechanism=": "mechanism ",
    "claim=": "claim ",
    "raise seconds=": "raise the limit (in Python, `seconds` of `Program`) from ",
    "[program, argument, …], for example shlex.split(command_line)": "--program 'name arguments'",
}
"""Texts that the rule for names does not cover."""

_FLAG = re.compile(r"\b(?:use|with|pass) (sequential|keep_datasets|resume)=False")
_GIVEN = re.compile(
    rf"(?<![\w.\-(\[{{])({'|'.join(sorted(OPTIONS, key=len, reverse=True))})=(?!=)(\"[^\"]*\"|'[^']*'|[^\s,;:)\"']*)"
)
_CALL = re.compile(r"\w+\([^()]*\)")
_QUOTED = re.compile(r"(?:raised|failed with) [\w.]+: |Input should be ")
"""What precedes the words of the caller's own code."""


def in_options(text: str) -> str:
    """Return a message with options in place of the library's parameters; quoted errors of the caller's code stay.

    Examples
    --------
    >>> in_options("runs=3 is too few; use a whole number >= 40.")
    '--runs 3 is too few; use a whole number >= 40.'
    >>> in_options("bits=True audits the bits too, bits=False silences this.")
    '--bits true audits the bits too, --bits false silences this.'
    >>> in_options("cells need a fixed number of runs; use sequential=False.")
    'cells need a fixed number of runs; leave out --sequential.'
    """
    quoted = _QUOTED.search(text)
    own, rest = (text, "") if quoted is None else (text[: quoted.start()], text[quoted.start() :])
    for phrase, words in _PHRASES.items():
        own = own.replace(phrase, words)
    own = _FLAG.sub(lambda found: f"leave out {OPTIONS[found[1]]}", own)
    parts, at = [], 0
    for call in _CALL.finditer(own):  # such as draw_block(…, seed=1), which is Python in the shell too
        parts += [_GIVEN.sub(_as_option, own[at : call.start()]), call[0]]
        at = call.end()
    return "".join([*parts, _GIVEN.sub(_as_option, own[at:]), rest])


def _as_option(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    dot = "." * value.endswith(".")
    value = value.removesuffix(".") if dot else value
    if name in ("sequential", "keep_datasets", "resume") and value == "True":
        return f"{OPTIONS[name]}{dot}"
    if name == "bits" and value in ("True", "False"):
        value = value.lower()
    if len(value) > 1 and value[0] == value[-1] == "'" and re.fullmatch(r"[\w-]+", value[1:-1]):
        value = value[1:-1]
    return f"{OPTIONS[name]} {value}{dot}".replace(" .", ".") if value else f"{OPTIONS[name]}{dot}"
