"""Counts in other languages, from a copy: the commands of their README, the verdicts, and the tests in the language."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dpaudit import Verdict, check
from dpaudit.mechanisms.adapters import Program

EXAMPLES = Path(__file__).parents[3] / "examples" / "languages"
README = (EXAMPLES / "README.md").read_text(encoding="utf-8")
PAGE = (EXAMPLES.parents[1] / "docs" / "how-to" / "languages.md").read_text(encoding="utf-8")
BLOCKS = {
    language: (folder, commands.splitlines())
    for language, folder, commands in re.findall(
        r"^## (.*?)\n.*?^```sh\ncd ([a-z]+)\n(.*?)^```", README, re.DOTALL | re.MULTILINE
    )
}
INSTALL = {
    "node": "Node 22.18 or newer is missing: npm install --global node@22",
    "cargo": "Rust is missing: apt-get install cargo",
    "go": "Go is missing: apt-get install golang-go",
    "javac": "Java is missing: apt-get install default-jdk",
    "c++": "C++ is missing: apt-get install g++",
    "cmake": "CMake is missing: apt-get install cmake",
    "Rscript": "R is missing: apt-get install r-base-core r-cran-testthat",
}
# Bug in the name of a mechanism: noisyCount, NoisyCount and noisy_count.
TWIN = re.compile(r"\b((noisyCount|NoisyCount)|noisy_count)\b(?!_is)")


def with_bug(text: str) -> str:
    """A command, or a test, that names the count with the bug instead of the correct one."""
    return TWIN.sub(lambda name: name[0] + ("WithBug" if name[2] else "_with_bug"), text)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """PATH, with the command `dpaudit` of this tree, and HOME; nothing else."""
    folder = tmp_path_factory.mktemp("commands")
    command = folder / "dpaudit"
    command.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(os.pathsep.join(sys.path))} exec {sys.executable} -m dpaudit "$@"\n'
    )
    command.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "HOME": os.environ.get("HOME", str(folder))}


def copied(language: str, to: Path) -> Path:
    folder, _ = BLOCKS[language]
    return Path(shutil.copytree(EXAMPLES / folder, to / folder, ignore=shutil.ignore_patterns("build", "target")))


def needs(command: str) -> None:
    words = shlex.split(command)
    program = shlex.split(words[words.index("--program") + 1])[0] if "--program" in words else words[0]
    is_there = program not in INSTALL or shutil.which(program) is not None
    if is_there and program == "node":
        version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
        is_there = tuple(map(int, re.findall(r"\d+", version)[:2])) >= (22, 18)
    if not is_there:
        pytest.skip(INSTALL[program])


def test_the_readme_has_six_languages():
    assert sorted(BLOCKS) == ["C++", "Go", "Java", "R", "Rust", "TypeScript"]
    assert all(sum(command.startswith("dpaudit audit") for command in commands) == 1 for _, commands in BLOCKS.values())


def test_cpp_keeps_its_claim_is_refuted_for_a_smaller_one_and_for_its_bug(tmp_path):
    """The same as below without the command line, and so in the tests of every change."""
    needs("c++")
    folder = copied("C++", tmp_path)
    subprocess.run(["c++", "-std=c++17", "-o", "audit", "audit.cpp"], cwd=folder, check=True)
    for name, claim, verdict in (
        ("noisy_count", 0.7, Verdict.NOT_REFUTED),
        ("noisy_count", 0.5, Verdict.REFUTED),
        ("noisy_count_with_bug", 0.7, Verdict.REFUTED),
    ):
        program = Program(["./audit", name], folder=folder)
        result = check(program, [1], [], claim=claim, adjacency="add-remove", alpha=1e-6, runs=10_000, jobs=1)
        assert result.verdict is verdict
        assert result.is_reproducible
        assert result.floating_point_leak is None or not result.floating_point_leak.is_suspicious
        program.close()


@pytest.mark.evidence
@pytest.mark.parametrize("language", BLOCKS)
def test_the_commands_of_the_readme(language, tmp_path, environment):
    folder = copied(language, tmp_path)

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )

    _, commands = BLOCKS[language]
    (test,) = (path for path in folder.rglob("*") if re.search(r"CMakeLists|[Pp]rivacy|_test\.go|\.test\.", path.name))
    for command in commands:
        needs(command)
    for command in commands:
        done = run(command)
        assert done.returncode == 0, done.stdout + done.stderr
        if command.startswith("dpaudit"):
            assert done.stdout.startswith("NOT REFUTED")
            done = run(with_bug(command))
            assert (done.returncode, done.stdout[:8]) == (1, "REFUTED ")
            assert language != "Rust" or "\n".join(done.stdout.splitlines()[:2]) in PAGE
    if language != "Java":  # whose test needs Maven, and Maven a network
        test.write_text(with_bug(test.read_text(encoding="utf-8")), encoding="utf-8")
        done = run(" && ".join(commands[-2:] if language == "C++" else commands[-1:]))  # CMake copies the test
        assert done.returncode != 0
        assert "REFUTED" in done.stdout + done.stderr
