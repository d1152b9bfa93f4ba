"""Settings that calls share: how many runs an audit may take, on how many workers, with which display.

Settings say what an audit may cost, and never what it means: claim, alpha, seed and health checks belong to the call.
In order of precedence: the call, `settings`, the profile in the environment variable ``DPAUDIT_PROFILE``, the table
``[tool.dpaudit]`` of the nearest pyproject.toml, the default.
"""

from __future__ import annotations

import os
import tomllib
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from .errors import OptionError
from .options import checked
from .printing import did_you_mean, shorten

PROFILE_VARIABLE: Final = "DPAUDIT_PROFILE"
SHARED: Final = ("jobs", "progress", "block_seconds")
"""Settings that every call takes that has an option of this name."""
_KNOWN: Final = ("runs", "search_runs", *SHARED)
_given: dict[str, Any] = {}  # of this process; never changed in place


class settings:  # noqa: N801, a function to its callers, like joblib.parallel_config
    """Settings for the audits that follow, or for those of a ``with`` block.

    Settings hold from the call on, and until the end of the block where there is one. Settings that are not named keep
    their values. They belong to the process, so blocks of several threads must not overlap.

    Parameters
    ----------
    profile : str, optional
        Name of a table ``[tool.dpaudit.profiles.NAME]`` in pyproject.toml, whose values the other arguments override.
    runs : int, optional
        Runs on each dataset of audits (`check`, `find_worst_pair`, `check_same_distribution`) whose call names neither
        runs nor a resolution nor a time limit.
    search_runs : int, optional
        Executions of a search.
    jobs : int, optional
        Workers.
    progress : bool or callable, optional
        True shows the progress of audits on standard error.
    block_seconds : float, optional
        Time limit of a block of runs.

    Raises
    ------
    OptionError
        For an unknown name, profile or value, also in pyproject.toml.

    Examples
    --------
    >>> import dpaudit
    >>> def noisy(value, size, rng):
    ...     return value + rng.laplace(size=size)
    >>> with dpaudit.settings(runs=10_000):
    ...     dpaudit.check(noisy, 0, 1, claim=1.0).runs
    10000
    """

    def __init__(self, profile: str | None = None, **values: Any) -> None:
        named = {} if profile is None else _profile(profile)
        given = _checked({name: value for name, value in values.items() if value is not None}, "settings")
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
        If pyproject.toml or the named profile is wrong.
    """
    if name in _given:
        return _given[name]
    if (profile := os.environ.get(PROFILE_VARIABLE)) and name in (named := _profile(profile)):
        return named[name]
    return _of_project().get(name)


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


def _of_project() -> dict[str, Any]:
    return _tables()[0]


def _tables() -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the settings of the project and its profiles by name."""
    file = _file()
    return ({}, {}) if file is None else _read(file, file.stat().st_mtime_ns)


def _file() -> Path | None:
    """Return the pyproject.toml of the working folder, or of the nearest folder above it that has one."""
    try:
        here = Path.cwd()
        return next((file for folder in (here, *here.parents) if (file := folder / "pyproject.toml").is_file()), None)
    except OSError:  # the folder was deleted, or is not to be read
        return None


@lru_cache(maxsize=8)
def _read(file: Path, changed: int) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the settings of a file that was last changed at this time."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {}).get("dpaudit", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, AttributeError, RecursionError) as error:
        raise OptionError(f"{file} cannot be read ({error}); mend or move it.", file=str(file)) from error
    if not isinstance(table, dict) or not isinstance(profiles := table.pop("profiles", {}), dict):
        raise OptionError(f"{file}: [tool.dpaudit] is not a table of settings; write for example runs = 100_000.")
    where = f"{file}, [tool.dpaudit]"
    return _checked(table, where), {
        name: _checked(values, f"{file}, [tool.dpaudit.profiles.{name}]") for name, values in profiles.items()
    }


def _checked(values: Any, where: str) -> dict[str, Any]:
    """Return the values, each within its range."""
    if not isinstance(values, dict):
        raise OptionError(f"{where}: {values!r} is not a table of settings; write for example runs = 100_000.")
    for name, value in values.items():
        if name not in _KNOWN:
            raise OptionError(
                f"{where}: {name} is not a setting; use {', '.join(_KNOWN)}. What an audit means is stated in its "
                f"call{did_you_mean(name, _KNOWN, otherwise='.')}",
                name=name,
            )
        try:
            checked(name, value)
        except OptionError as error:
            raise OptionError(f"{where}: {error}", **error.facts) from error
    return values
