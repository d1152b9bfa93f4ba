"""What is installed is what the tree holds, under the one name `dpaudit`, and a release of it works."""

from __future__ import annotations

import doctest
import os
import re
import runpy
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from packaging.metadata import Metadata

import dpaudit

ROOT = Path(__file__).parents[1]
FOLDERS = ("audit", "mechanisms", "experiments", "reports")
EVIDENCE = ("experiments/benchmarks", "experiments/catalogue", "experiments/published")
"""Folders of what measures dpaudit itself, which the wheel does not have."""
BESIDE = ("docs", "examples", "tests", ".ci", ".github", "packaging", *EVIDENCE)
"""Folders that the sdist has and the wheel does not."""
AT_THE_ROOT = (
    "pyproject.toml", "setup.py", "MANIFEST.in", "Makefile", "LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md",
    "SECURITY.md", "CITATION.cff", "mkdocs.yml", "action.yml", ".gitignore", ".pre-commit-config.yaml",
    ".pre-commit-hooks.yaml",
)  # fmt: skip
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = METADATA["project"]
BACKEND = "import sys; from setuptools import build_meta; build_meta.build_{}(sys.argv[1])"
RECIPE = yaml.safe_load((ROOT / "packaging" / "recipe.yaml").read_text(encoding="utf-8"))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def tree() -> set[str]:
    """Modules and data files that are installed, as paths inside the package."""
    files = {ROOT / "__init__.py", ROOT / "__main__.py", ROOT / "py.typed"}
    for folder in FOLDERS:
        files |= {path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".j2", ".js", ".txt", ".toml")}
    names = {path.relative_to(ROOT).as_posix() for path in files}
    return {name for name in names if not name.startswith(EVIDENCE)}


def project() -> set[str]:
    """All files of the project: the tree, and what lies beside it."""
    beside = {path for folder in BESIDE for path in (ROOT / folder).rglob("*") if path.is_file()}
    kept = {path.relative_to(ROOT).as_posix() for path in beside if path.suffix != ".pyc"}
    return tree() | kept | set(AT_THE_ROOT)


def test_the_tests_run_against_this_tree():
    """Otherwise an old installed copy would make them say nothing."""
    assert Path(dpaudit.__file__).resolve().parent == ROOT, "run `make test`, or set PYTHONPATH=.venv/source"


def done(*arguments: str, **options: object) -> None:
    made = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, **options
    )
    assert made.returncode == 0, made.stdout + made.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, Path]:
    """The sdist of a copy of the project, and the wheel of the unpacked sdist, as `python -m build` makes them.

    The folder of the wheel has a build/ with a module of a former build, which the wheel must not hold.
    """
    folder = tmp_path_factory.mktemp("built")
    source, backend = folder / "source", folder / "backend"
    for name in project():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    uv, requires = ROOT / ".venv" / "uv", METADATA["build-system"]["requires"]  # in a sixth of pip's time
    pip = ("uv", "pip") if uv.is_dir() else ("pip", "--disable-pip-version-check")
    options = ("--quiet", "--no-compile", "--target", str(backend))
    done("-m", *pip, "install", *options, *requires, env=os.environ | {"PYTHONPATH": str(uv)})
    env = os.environ | {"PYTHONPATH": str(backend)}
    done("-c", BACKEND.format("sdist"), str(folder), cwd=source, env=env)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    unpacked = folder / sdist.name.removesuffix(".tar.gz")
    former = unpacked / "build/lib/dpaudit/audit/of_a_former_build.py"
    former.parent.mkdir(parents=True)
    former.touch()
    done("-c", BACKEND.format("wheel"), str(folder), cwd=unpacked, env=env)
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


def test_the_sdist_holds_the_project_and_nothing_else(built):
    with tarfile.open(built[0]) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    made = {name for name in names if name.startswith("dpaudit.egg-info/")} | {"PKG-INFO", "setup.cfg"}
    assert names - made == project()


def test_tests_run_in_the_unpacked_sdist(built):
    """Its folder has a name that no module can have, and its metadata lie beside the package."""
    folder = built[0].with_name(built[0].name.removesuffix(".tar.gz"))
    done("-m", "pytest", "-p", "no:cacheprovider", "tests/audit/results/test_score_sketch.py", cwd=folder)


def test_the_wheel_holds_the_tree_and_nothing_else(built):
    wheel = zipfile.ZipFile(built[1])
    names = set(wheel.namelist())
    packed = {name.removeprefix("dpaudit/") for name in names if name.startswith("dpaudit/")}
    assert packed == tree()
    for name in packed:
        assert wheel.read(f"dpaudit/{name}") == (ROOT / name).read_bytes(), name
    assert {name.split("/")[0] for name in names} == {"dpaudit", f"dpaudit-{version('dpaudit')}.dist-info"}
    assert built[1].stat().st_size < 1_500_000


def test_a_dry_run_of_a_release(built):
    """The commands of docs/releasing.md that need no network: an index on this machine, and a first audit from it."""
    done("packaging/dry_run.py", str(built[0].parent), "--offline", cwd=ROOT)


def test_examples_of_modules_that_are_not_installed():
    """`make doctests` runs those of the installed ones."""
    tried = 0
    for path in (path for folder in EVIDENCE for path in sorted((ROOT / folder).rglob("*.py"))):
        if ">>> " in path.read_text(encoding="utf-8"):
            module = ".".join(("dpaudit", *path.relative_to(ROOT).with_suffix("").parts))
            failed, attempted = doctest.testmod(import_module(module))
            assert failed == 0, module
            tried += attempted
    assert tried > 2


def test_the_metadata_of_the_wheel(built):
    wheel, folder = zipfile.ZipFile(built[1]), f"dpaudit-{version('dpaudit')}.dist-info"
    Metadata.from_email(wheel.read(f"{folder}/METADATA"), validate=True)
    read = message_from_bytes(wheel.read(f"{folder}/METADATA"))
    assert read["Description-Content-Type"] == "text/markdown"
    assert read["License-Expression"] == "Apache-2.0"
    assert wheel.read(f"{folder}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    assert read["Author"] == "the dpaudit authors"
    needed = {re.split(r"[<>=;]", line)[0] for line in read.get_all("Requires-Dist") if "extra ==" not in line}
    assert needed == {
        "numpy", "scipy", "statsmodels", "joblib", "scikit-learn", "threadpoolctl", "cloudpickle", "cattrs"
    }  # fmt: skip
    pythons = re.findall(r"Python :: (3\.\d+)", "".join(read.get_all("Classifier")))
    assert f">={pythons[0]}" == read["Requires-Python"]
    text = str(read.get_payload())
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert [link for link in links if not link.startswith("https://")] == [], "dead on the page of a package index"
    assert "REFUTED  noisy_count: epsilon >= " in text


def test_the_package_page_is_made_from_the_readme():
    """`python docs/package_page.py` writes it."""
    made = runpy.run_path(str(ROOT / "docs" / "package_page.py"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert (ROOT / PROJECT["readme"]).read_text(encoding="utf-8") == made["package_page"](readme, made["repository"]())
    linked = made["package_page"]("[a](docs/a.md), [b](https://b.org)", "https://host/dpaudit")
    assert linked.endswith("[a](https://host/dpaudit/blob/main/docs/a.md), [b](https://b.org)")


def test_versions_and_addresses_are_those_of_the_project():
    """`make version` sets the version everywhere; the tests of the pages compare the one in docs/install.md."""
    cited = (ROOT / "docs" / "how-to" / "reviewers.md").read_text(encoding="utf-8")
    stated = {CITATION["version"], RECIPE["context"]["version"], *re.findall(r"^  version = \{(.*)\},$", cited, re.M)}
    assert stated == {PROJECT["version"]}
    urls = PROJECT["urls"]
    assert (CITATION["repository-code"], CITATION["url"]) == (urls["Source"], urls["Documentation"])
    assert (RECIPE["about"]["homepage"], RECIPE["about"]["documentation"]) == (urls["Source"], urls["Documentation"])
    assert all(urls[name].startswith(urls["Source"] + "/") for name in ("Changelog", "Issues"))
    owner, name = urls["Source"].removeprefix("https://github.com/").split("/")
    assert urls["Documentation"] == f"https://{owner}.github.io/{name}/"
    page = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
    assert set(re.findall(r"--repo (\S+)", page)) == {f"{owner}/{name}"}
    assert set(re.findall(r"https://github.com/(\w+/\w+)", page)) == {f"{owner}/{name}"}


def test_a_released_version_does_not_say_that_there_is_none():
    texts = {page: page.read_text(encoding="utf-8") for page in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))}
    stated, state = re.search(r"^## (\S+) \((.*)\)$", texts[ROOT / "CHANGELOG.md"], re.MULTILINE).groups()
    saying = [page.name for page, text in texts.items() if re.search("released? yet|unreleased", text)]
    assert stated == PROJECT["version"]
    assert bool(saying) == (state == "unreleased"), saying


def test_the_recipe_needs_what_the_wheel_needs():
    """A package of conda has no extras, so it has those of `all`, and a matplotlib without a window system."""
    extras = PROJECT["optional-dependencies"]
    needed = [*PROJECT["dependencies"], *(line for name in ("report", "cli", "graphs") for line in extras[name])]
    assert extras["all"] == ["dpaudit[report,cli,graphs]"]
    python, *run = RECIPE["requirements"]["run"]
    assert [line.replace(" ", "").replace("matplotlib-base", "matplotlib") for line in run] == needed
    assert python == "python >=${{ python_min }}"
    assert f">={RECIPE['context']['python_min']}" == PROJECT["requires-python"]
    assert RECIPE["requirements"]["host"][2].replace(" ", "") == METADATA["build-system"]["requires"][0]
    program = " = ".join(*PROJECT["scripts"].items())
    assert RECIPE["build"]["python"]["entry_points"] == [program]


def test_the_release_page_and_its_workflow_name_what_exists():
    page = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    made = {target for text in (page, workflow) for target in re.findall(r"(?:^ *|`|run: )make ([a-z-]+)", text, re.M)}
    assert {"version", "dist", "dry-run", "site", "test", "evidence"} <= made
    (phony,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert made <= {*phony.split()}
    named = re.findall(r"[`(/ ]((?:packaging|docs|tests|\.github)/[\w./-]+\.\w+|packaging/Containerfile)", page)
    assert len(named) > 5
    assert [name for name in named if not (ROOT / name).is_file()] == []
    jobs = yaml.safe_load(workflow)["jobs"]
    assert list(jobs) == list(dict.fromkeys(re.findall(r"job `(\w+)`", page)))
    assert jobs["publish"]["environment"] == "release"
    assert {name for name, job in jobs.items() if "id-token" in job["permissions"]} == {"publish"}


def test_the_readme_names_every_extra():
    (table,) = re.findall(r"(?:^\| `[^\n]*\n)+", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    named = set(re.findall(r"`([\w-]+)`", table.replace("`dpaudit`", "").replace("`dp_accounting`", "")))
    assert named == PROJECT["optional-dependencies"].keys() - {"docs", "test"}


def test_importing_the_library_stays_light():
    slow = {"matplotlib", "statsmodels", "pandas", "scipy.stats", "scipy.optimize", "jinja2"}
    names = "[getattr(dpaudit, name) for name in dpaudit.__all__]"  # importing the package alone imports none of them
    modules = "sys, dpaudit, dpaudit.reports.cli.main, dpaudit.mechanisms.faulty"
    late = {"scipy.special", "scipy.fft", "importlib.metadata"}  # each takes as long as all of the library
    code = (
        f"import sys; from dpaudit import check; found = {late} & set(sys.modules)\n"
        f"import {modules}; {names}; print(sorted(found | {slow} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
