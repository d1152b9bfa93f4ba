"""A dry run of a release: what dist/ holds is installed from an index on this machine, and makes a first audit.

``python packaging/dry_run.py dist``. With ``--offline`` the libraries are those of this Python, not installed ones.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import threading
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

EVERY_NAME = "import dpaudit\n[getattr(dpaudit, name) for name in dpaudit.__all__]\nprint(dpaudit.__file__)\n"
README = Path(__file__).resolve().parents[1] / "README.md"


class Quiet(SimpleHTTPRequestHandler):
    """Folders as the pages of an index, which list their files as links."""

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def index(dist: Path, folder: Path) -> Iterator[str]:
    """Serve the files of `dist` as the project dpaudit of an index, and yield its address."""
    (folder / "dpaudit").symlink_to(dist.resolve(), target_is_directory=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def output(*command: str | Path, cwd: Path, without: str = "PYTHON", **settings: str) -> str:
    """Return what a command prints, run without some variables of the environment."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(without)} | settings
    return subprocess.run(command, cwd=cwd, env=env, check=True, text=True, stdout=subprocess.PIPE).stdout


def try_release(dist: Path, *, offline: bool) -> None:
    """Install the wheel into a fresh environment, and compare what README.md's first audit prints."""
    (wheel,) = dist.glob("*.whl")
    version = wheel.name.split("-")[1]
    assert (dist / f"dpaudit-{version}.tar.gz").is_file(), "the archive and the wheel are of different versions"
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "index").mkdir()
        venv.create(folder / "fresh", symlinks=True)
        programs = folder / "fresh" / "bin"
        pip = (sys.executable, "-m", "pip", "--python", programs / "python", "--quiet", "--disable-pip-version-check")
        with index(dist, folder / "index") as url:
            install = (*pip, "install", "--no-deps", "--no-compile", "--index-url", url, f"dpaudit=={version}")
            output(*install, cwd=folder, without="PIP_", PIP_CONFIG_FILE=os.devnull)  # from this index alone
        if offline:
            (site,) = (folder / "fresh").glob("lib/*/site-packages")
            (site / "libraries.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
        else:
            output(*pip, "install", "--no-compile", f"dpaudit[all]=={version}", cwd=folder)
        assert output(programs / "dpaudit", "--version", cwd=folder) == f"dpaudit {version}\n"
        code, printed = re.findall(r"```(?:python|text)\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[:2]
        shown = output(programs / "python", "-c", f"{EVERY_NAME}{code}", cwd=folder)
        where, _, shown = shown.partition("\n")
        assert Path(where).is_relative_to(folder.resolve()), f"{where} is not the installed wheel"
        assert shown == printed, f"README.md shows\n{printed}\nthe installed wheel\n{shown}"
        print(f"dpaudit {version} was installed from {url}\n{shown}", end="")


if __name__ == "__main__":
    try_release(Path(sys.argv[1]), offline="--offline" in sys.argv[2:])
