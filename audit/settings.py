"""Settings that calls share: options of many audits, and how many runs an audit may take.

In order of precedence: the call, `settings`, the profile in the environment variable ``DPAUDIT_PROFILE``, the table
``[tool.dpaudit]`` of the nearest pyproject.toml that has one, the default. Files say what an audit may cost, and never
what it means. The logger ``dpaudit`` names the file of a setting that an audit uses, and what is ignored in a damaged
file, at level WARNING, which Python prints to standard error.
"""

from __future__ import annotations

import inspect
import logging
import os
import re
from collections import defaultdict
from functools import cache, lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from .errors import OptionError
from .options import OTHERS, RULES, checked, names_in
from .printing import did_you_mean, shorten

PROFILE_VARIABLE: Final = "DPAUDIT_PROFILE"
_SHARED: Final = ("jobs", "progress", "chunk_seconds")
_IN_FILES: Final = ("runs", "search_runs", *_SHARED)
_OF_ONE_CALL: Final = ("seconds", "bins", "name", "claim_source", "on_interim", "store")
_IN_AUDITS: Final = tuple(name for name in OTHERS if name not in _OF_ONE_CALL)
_AUDITS: Final = ("check", "find_worst_pair", "check_outputs", "check_equivalence")


def settings_of(function: str) -> tuple[str, ...]:
    """Return the options for which calls of a function take the setting; the number of runs is asked for elsewhere."""
    return (*_SHARED, *_IN_AUDITS) if function in _AUDITS else _SHARED


_LOG = logging.getLogger("dpaudit")
_KNOWN: Final = (*dict.fromkeys((*_IN_FILES, *_IN_AUDITS)),)
_given: dict[str, Any] = {}  # of this process; never changed in place


class settings:  # noqa: N801, a function to its callers, like joblib.parallel_config
    """Set options for the audits that follow, or for those of a ``with`` block.

    Settings hold from the call on, and until the end of the block where there is one. Settings that are not named keep
    their values; None unsets one. They belong to the process, so blocks of several threads must not overlap.

    Parameters
    ----------
    profile : str, optional
        Name of a table ``[tool.dpaudit.profiles.NAME]`` in pyproject.toml, whose values the other arguments override.
    **options
        Those below. A call that names an option itself takes precedence. Files set only `runs`, `search_runs`, `jobs`,
        `progress` and `chunk_seconds`. The last six below belong to single calls of `check` and `find_worst_pair`, and
        cannot be set.

    Other Parameters
    ----------------
    runs : int
        Runs on each dataset of audits (`check`, `find_worst_pair`, `check_equivalence`) whose call names neither
        runs nor an excess to detect nor a time limit, unless `detect` is set too.
    search_runs : int
        Runs of a search.
    detect : float
        Excess over the claim's privacy parameter that the audit has to detect; an audit with too few `runs` for it is
        INCONCLUSIVE. Without `runs` the audit takes the runs that it needs, within the `seconds` if there are any, and
        states the excess that it reached. By default an audit is INCONCLUSIVE if it does not detect twice the claim
        (for a claim of 0: a parameter of 1, or half of the family's largest); a larger value accepts that.
    power : float
        Probability with which the excess is detected, in (0, 1); .95 by default.
    floating_point : {"warn", "test", "ignore"}
        Whether floating-point leaks, in the last digits of the outputs, are part of the verdict ("test"). By default
        the verdict is about values, and a warning says if a leak in the pilot, or in the first 20,000 runs of a
        sequential audit, breaks the claim; "ignore" skips this check.
    ignore : str or iterable of str
        Health checks to silence, by the names in their findings.
    keep_datasets : bool
        Whether the result stores the datasets as text, instead of only their types, sizes and difference.
    jobs : int
        Number of workers; the default is that of `joblib.parallel_config`, or every core for a mechanism of single
        runs and one for a vectorised mechanism.
    progress : bool or callable
        True shows the progress on standard error; a function receives the number of runs just finished. By default
        calls of more than three seconds are shown on a terminal and in a notebook, and any call says on standard error
        how long it takes if more than a minute is left. False shows nothing.
    chunk_seconds : float
        Time limit of one chunk of runs; a longer chunk is an error. A chunk is 1/256 of the runs of a vectorised
        mechanism, or a megabyte of outputs; for a function of a single run, at most 1,024 runs. With one worker, a
        chunk that never lets go of Python's lock, such as a search with a regular expression or a call of C code, is
        not ended.
    seconds : float
        Time limit, which makes the audit sequential; its last batch is cut to fit. The audit makes at least 40 runs on
        each dataset, and 32 more to learn the names of outputs that are records, and completes a batch that a `store`
        recorded as begun. The final test is made only if `runs` are given and done in time. Without `runs`, or with
        ``float("inf")`` seconds, none is planned and the bets have all of alpha; so to repeat an audit that had a limit
        and no `runs`, set `runs` to the number it reached, and ``seconds=float("inf")``.
    bins : int
        Number of bins in which to count the outputs in addition to the event, such as 32; 0 for none. The result then
        has the likelihood ratio of each bin, the privacy profile and the trade-off curve, with a confidence band. The
        bins take a tenth of alpha. Not for sequential audits.
    name : str
        Name of the mechanism in the result.
    claim_source : str
        Where the claim is from, for the report: "docs of mylib 1.2, section 3", or the call that states it.
    on_interim : callable
        Called with the `InterimAnalysis` after each batch of a sequential audit: runs so far, running bound and
        p-value. If the function returns True, the audit stops there with a valid result.
    store : path, Store or StorePart
        Folder or open store that keeps the drawn outputs, so that an audit that was stopped or crashed can be resumed.
        Without a time limit a resumed audit ends with the result of an uninterrupted one. With `seconds` later batches
        have other sizes, but no kept run is drawn again and `alpha` holds over all sessions together. A store of
        another audit of the same name is refused.

    Raises
    ------
    OptionError
        For an unknown name, profile or value; in pyproject.toml, unknown names and values are ignored with a warning.

    See Also
    --------
    check : The audit of a pair, which takes all of these options.
    find_worst_pair : The audit of the worst pair of a domain.

    Examples
    --------
    >>> import dpaudit
    >>> def noisy(value, size, rng):
    ...     return value + rng.laplace(size=size)
    >>> with dpaudit.settings(runs=10_000):
    ...     dpaudit.check(noisy, 0, 1, claim=1.0).runs
    10000
    """

    def __init__(self, profile: str | None = None, **options: Any) -> None:
        named = {} if profile is None else _profile(profile)
        given = _checked(options, "settings", _KNOWN)
        global _given
        self._before, _given = _given, {**_given, **named, **given}

    def __enter__(self) -> settings:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        global _given
        _given = self._before


def setting(name: str) -> Any:
    """Return the value of a setting, or None if nothing sets it.

    Raises
    ------
    OptionError
        If the profile that is named in the environment does not exist.
    """
    if name in _given:
        return _given[name]
    if name not in _IN_FILES:
        return None
    found, where = _tables()[0], "[tool.dpaudit]"
    if (profile := os.environ.get(PROFILE_VARIABLE)) and name in (named := _profile(profile)):
        found, where = named, f"[tool.dpaudit.profiles.{profile}]"
    if name not in found:
        return None
    _say_once(f"{name} = {found[name]} is set by {_file()}, {where}")
    return found[name]


def or_setting(name: str, value: Any) -> Any:
    """Return the value, or the setting of this name if it is None, within its range."""
    return checked(name, setting(name) if value is None else value, or_none=True)


def _profile(name: Any) -> dict[str, Any]:
    if not isinstance(name, str):
        raise OptionError(f"profile={shorten(name)} is not a name; name the settings, as in settings(runs=100_000).")
    profiles = _tables()[1]
    if name not in profiles:
        known = ", ".join(profiles) or "none"
        raise OptionError(
            f"profile={shorten(name)} is not in [tool.dpaudit.profiles] of {_file() or 'a pyproject.toml'}, which has "
            f"{known}{did_you_mean(name[:80], profiles, otherwise='.')}",
            profile=name,
        )
    return profiles[name]


def _tables() -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the settings of the project and its profiles by name."""
    file = _file()
    table = {} if file is None else _tool(file).get("dpaudit", {})
    where = f"{file}, [tool.dpaudit"
    if not isinstance(table, dict):
        return _readable(table, f"{where}]"), {}
    own = {name: value for name, value in table.items() if name != "profiles"}
    profiles = table.get("profiles", {})
    if not isinstance(profiles, dict):
        profiles = _readable(profiles, f"{where}.profiles]")
    return _readable(own, f"{where}]"), {
        name: _readable(values, f"{where}.profiles.{name}]") for name, values in profiles.items()
    }


def _file() -> Path | None:
    """Return the nearest pyproject.toml with a table ``[tool.dpaudit]``, from the working folder upwards."""
    try:
        here = Path.cwd()
    except OSError:  # the folder was deleted, or is not to be read
        return None
    files = (folder / "pyproject.toml" for folder in (here, *here.parents))
    return next((file for file in files if os.path.isfile(file) and "dpaudit" in _tool(file)), None)


def _tool(file: Path) -> dict[str, Any]:
    """Return the table ``[tool]`` of a pyproject.toml; empty for a damaged file."""
    try:
        return _parsed(file, file.stat().st_mtime_ns)
    except OSError as error:
        _say_once(f"{file} is ignored, as it cannot be read ({error})")
        return {}


@lru_cache(maxsize=64)
def _parsed(file: Path, changed: int) -> dict[str, Any]:
    """Return the table ``[tool]`` of a file that was last changed at this time."""
    import tomllib  # only where there is a file

    try:
        tool = tomllib.loads(file.read_text(encoding="utf-8-sig")).get("tool", {})
    except (ValueError, RecursionError) as error:  # no UTF-8, no TOML, or an integer of thousands of digits
        _say_once(f"{file} is ignored, as it is damaged ({error})")
        return {}
    return tool if isinstance(tool, dict) else {}


@cache
def _say_once(warning: str) -> None:
    _LOG.warning("%s", warning)


def _readable(table: Any, where: str) -> dict[str, Any]:
    """Return the settings of a table in a file that this version knows, with a warning about each other one."""
    if not isinstance(table, dict):
        _say_once(f"{where} is ignored, as {table!r} is not a table of settings; write for example runs = 100_000")
        return {}
    found: dict[str, Any] = {}
    for name, value in table.items():
        try:
            found |= _checked({name: value}, where, _IN_FILES)
        except OptionError as error:
            _say_once(f"{str(error).rstrip('.')}; it is ignored")
    return found


def _checked(values: dict[str, Any], where: str, known: tuple[str, ...]) -> dict[str, Any]:
    """Return the values, each as its rule reads it; None for an option that is to have its default."""
    read = {}
    for name, value in values.items():
        if name not in known:
            raise OptionError(
                f"{where}: {name} is not a setting; use {', '.join(known)}. What an audit means is stated in its "
                f"call{did_you_mean(name, known, otherwise='.')}",
                name=name,
            )
        try:
            read[name] = checked(name, value, or_none=True) if name in RULES else names_in(value)
        except OptionError as error:
            raise OptionError(f"{where}: {error}", **error.facts) from error
    return read


@cache
def explained() -> defaultdict[str, str]:
    """What each option does, in the first sentence of its paragraph in the docstring of `settings`."""
    text = inspect.cleandoc(settings.__doc__ or "")  # Python 3.13 compiles docstrings without their indentation
    found = re.findall(r"(?m)^(\w+) : .*\n((?:    .*\n?)+)", text)
    sentences = {name: re.split(r"(?<=[.;:])\s", " ".join(text.split()))[0].rstrip(".;:") + "." for name, text in found}
    return defaultdict(str, sentences)  # Python without docstrings (-OO) has no help
