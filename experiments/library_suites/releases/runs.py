"""Run the suite of a library in environments that hold its releases, each by its own interpreter."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from ....audit.errors import OptionError
from ....audit.files import check_target, write_atomically
from ..run_plan import PLAN_FILE
from .matrix import LOG_FILE

_RELEASE = "import sys; from dpaudit.experiments.libraries.installed import release_of as of; print(of(sys.argv[1]))"
_PYTHONS = ("bin/python", "Scripts/python.exe")


def interpreter_of(path: Path) -> Path | None:
    """Return the interpreter that a path names, itself or in an environment; None for another folder.

    Raises
    ------
    OptionError
        If the path does not exist.
    """
    if not path.exists():
        raise OptionError(f"{path} does not exist; pass an environment, its Python, or the folder of a suite.")
    candidates = [path / name for name in _PYTHONS] if path.is_dir() else [path]
    found = next((each for each in candidates if each.exists()), None)
    return None if found is None else Path(os.path.abspath(found))  # a link of an environment is not followed


def run_release(
    python: Path, library: str, options: Sequence[str], out: Path, *, is_resumed: bool, watch: Callable[[str], None]
) -> Path:
    """Run a suite with an interpreter, and return its folder below `out`; its output is ``log.txt`` there.

    The folder has the name of the release, or of the environment if the library is not installed in it.

    Parameters
    ----------
    python : Path
    library : str
    options : sequence of str
        Options of ``dpaudit suite``.
    out : Path
    is_resumed : bool
        Whether a suite that began is continued.
    watch : callable
        Receives each line about a finished point.

    Raises
    ------
    OptionError
        If the folder holds a suite that is not continued, or that cannot be continued with these options.
    """
    asked = subprocess.run([str(python), "-c", _RELEASE, library], capture_output=True, text=True, check=False)
    name = asked.stdout.strip().replace(" ", "-") if asked.returncode == 0 else python.parents[1].name
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / LOG_FILE
    if asked.returncode:
        write_atomically(log, asked.stderr)
        return folder
    has_begun = (folder / PLAN_FILE).exists()
    if has_begun and not is_resumed:
        raise OptionError(f"{folder} holds a suite; continue it with --resume, or use another folder.")
    more = ["--resume"] if has_begun else []
    command = [str(python), "-m", "dpaudit", "suite", library, "--out", str(folder), *options, *more]
    check_target(log)
    with (
        log.open("w", encoding="utf-8") as kept,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1) as process,
    ):
        for line in process.stdout or ():
            kept.write(line)
            if line.startswith("["):
                watch(line.rstrip("\n"))
    if has_begun and process.returncode not in (0, 1, 3):
        raise OptionError(f"the suite in {folder} does not continue: {log.read_text(encoding='utf-8').strip()}")
    return folder
