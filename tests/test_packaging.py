"""What is installed is what the tree holds, under the one name `dpaudit`."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.metadata import entry_points, version
from pathlib import Path

import dpaudit

ROOT = Path(__file__).parents[1]
FOLDERS = ("audit", "mechanisms", "experiments", "reports")


def tree() -> set[str]:
    """Modules and data files of the source tree, as paths inside the package."""
    files = {ROOT / "__init__.py", ROOT / "py.typed"}
    for folder in FOLDERS:
        files |= {path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".j2", ".js", ".toml")}
    return {path.relative_to(ROOT).as_posix() for path in files}


def test_the_installed_package_is_this_tree():
    """Every other test runs against the installed copy, so an old one would make them say nothing."""
    installed = Path(dpaudit.__file__).parent
    assert installed != ROOT, "run `make test`: the tests audit an installed package"
    for name in tree():
        assert (installed / name).read_bytes() == (ROOT / name).read_bytes(), name


def test_the_wheel_holds_the_tree_and_nothing_else(tmp_path):
    # A copy, so that no build folder of this tree is used or left behind.
    source = tmp_path / "source"
    source.mkdir()
    for name in [*tree(), "pyproject.toml", "README.md"]:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    built = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(source)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    packed = {name.removeprefix("dpaudit/") for name in names if name.startswith("dpaudit/")}
    assert packed == tree()
    assert {name.split("/")[0] for name in names} == {"dpaudit", f"dpaudit-{version('dpaudit')}.dist-info"}


def test_entry_point():
    (script,) = entry_points(group="console_scripts", name="dpaudit")
    assert callable(script.load())


def test_public_names_exist_and_hide_no_folder():
    for name in dpaudit.__all__:
        assert hasattr(dpaudit, name)
    assert not set(dpaudit.__all__) & set(FOLDERS)


def test_importing_the_library_stays_light():
    slow = {"matplotlib", "statsmodels", "pandas", "scipy.stats", "scipy.optimize", "jinja2"}
    names = "[getattr(dpaudit, name) for name in dpaudit.__all__]"  # importing the package alone imports none of them
    modules = "sys, dpaudit, dpaudit.experiments.cli.main, dpaudit.mechanisms.faulty"
    code = f"import {modules}; {names}; print(sorted({slow} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
