"""Settings that calls share: how many runs an audit may take, on how many workers, with which display.

Settings say what an audit may cost, and never what it means: claim, alpha, seed and health checks belong to the call.
In order of precedence: the call, `settings`, the profile in the environment variable ``DPAUDIT_PROFILE``, the table
``[tool.dpaudit]`` of the project's pyproject.toml, the default. The project is the folder that pytest, started in the
working folder, takes for its root. The logger ``dpaudit`` names the file of a setting that an audit uses, and what is
ignored in a damaged file, at level WARNING, which Python prints to standard error.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from functools import cache, lru_cache
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
_LOG = logging.getLogger("dpaudit")
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
        Runs on each dataset of audits (`check`, `find_worst_pair`, `check_equivalence`) whose call names neither
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
        For an unknown name, profile or value; in pyproject.toml, unknown names and values are ignored with a warning.

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
        If the profile that is named in the environment does not exist.
    """
    if name in _given:
        return _given[name]
    found, where = _of_project(), "[tool.dpaudit]"
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


def _of_project() -> dict[str, Any]:
    return _tables()[0]


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
    """Return the pyproject.toml of the project: of the folder that pytest would take for its root.

    That is the nearest folder, from the working folder upwards, with a configuration of pytest, or else the nearest one
    with a pyproject.toml.
    """
    try:
        here = Path.cwd()
    except OSError:  # the folder was deleted, or is not to be read
        return None
    nearest = None
    for folder in (here, *here.parents):
        file = folder / "pyproject.toml"
        is_there = os.path.isfile(file)
        if (is_there and "pytest" in _tool(file)) or _has_pytest_ini(folder):
            return file if is_there else None
        nearest = nearest or (file if is_there else None)
    return nearest


def _has_pytest_ini(folder: Path) -> bool:
    """Whether a folder has a file of pytest, or a section for pytest in the file of another tool."""
    if any(os.path.isfile(folder / name) for name in ("pytest.ini", ".pytest.ini")):
        return True
    for name, section in (("tox.ini", "[pytest]"), ("setup.cfg", "[tool:pytest]")):
        if os.path.isfile(folder / name):
            with suppress(OSError):
                if section in (folder / name).read_text(encoding="utf-8", errors="replace").splitlines():
                    return True
    return False


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
            found |= _checked({name: value}, where)
        except OptionError as error:
            _say_once(f"{str(error).rstrip('.')}; it is ignored")
    return found


def _checked(values: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the values, each within its range."""
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
