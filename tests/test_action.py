"""The GitHub Action and the pre-commit hook: what they declare, and their commands as a runner would start them."""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from xml.etree import ElementTree

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}

LIBRARY = "def noisy(rows, size, rng):\n    return len(rows) + rng.laplace(scale={scale}, size=size)\n"
AUDIT = """
from dpaudit import AddRemove, PureDP
from {module} import noisy

def test_noisy(dp_audit):
    dp_audit(noisy, [1, 1], [1], claim=PureDP(1.0), adjacency=AddRemove(), runs=1_000, floating_point="ignore",
    sequential=False)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A repository with two modules, of which one breaks its claim, and the environment of a runner."""
    for name, scale in (("good", 1.0), ("bad", 0.3)):
        (tmp_path / f"{name}.py").write_text(LIBRARY.format(scale=scale))
        (tmp_path / f"test_{name}.py").write_text(AUDIT.format(module=name))
    (tmp_path / "test_other.py").write_text("def test_without_an_audit():\n    raise RuntimeError\n")
    (tmp_path / "temp").mkdir()
    # python and dpaudit are those of this process. An installation is only noted, and so is pytest after `noted()`.
    programs = tmp_path / "bin"
    programs.mkdir()
    note = 'if [ "$2" = "$NOTED" ]; then printf "%s\\n" "$@" > "$RUNNER_TEMP/noted"; exit; fi'
    command = f'exec {sys.executable} -c "from dpaudit.reports.cli.main import program; program()" "$@"'
    for name, line in (("python", f'{note}\nexec {sys.executable} "$@"'), ("dpaudit", command)):
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(stat.S_IRWXU)
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "RUNNER_TEMP": str(tmp_path / "temp"),
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "temp/summary"),
        "GITHUB_OUTPUT": str(tmp_path / "temp/output"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "PYTEST_ADDOPTS": "-p no:cacheprovider -p no:hypothesispytest",  # a session starts sooner without them
    }.items():
        monkeypatch.setenv(name, value)
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def step(name: str, NOTED: str = "", **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run a step as a runner does, with the inputs in place of its expressions."""
    found = STEPS[name]
    given = {key: str(each["default"]) for key, each in ACTION["inputs"].items()} | inputs
    env = {"NOTED": NOTED}
    for variable, expression in found.get("env", {}).items():
        read = re.fullmatch(r"\$\{\{ inputs\.([a-z-]+) \}\}", expression)
        env[variable] = given[read[1]] if read else given.get("base", "")
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", found["run"]]
    return subprocess.run(shell, env=os.environ | env, capture_output=True, text=True, check=False)


def noted(name: str, program: str = "pytest", **inputs: str) -> list[str]:
    """Run a step, and return what it would pass to a program of Python."""
    done = step(name, NOTED=program, **inputs)
    assert done.returncode == 0, done.stderr
    return Path(os.environ["RUNNER_TEMP"], "noted").read_text().splitlines()[2:]


def test_the_declaration():
    used = "".join(str(found.get("env", "")) for found in STEPS.values())
    assert set(re.findall(r"inputs\.([a-z-]+)", used)) == ACTION["inputs"].keys()
    for each in ACTION["inputs"].values():
        assert each.keys() == {"description", "default"}
        assert isinstance(each["default"], str)
    for name, found in STEPS.items():
        assert found["shell"] == "bash", name
        assert "uses" not in found, "no action of others"
        assert "${{" not in found["run"], "an input within a command could end it and start another"


def test_a_broken_claim_fails_and_is_reported(folder, monkeypatch):
    installed = noted("Install dpaudit", "pip")
    assert installed == ["install", "--quiet", "--disable-pip-version-check", f"{ROOT}[all]", "pytest"]
    copy = folder / "tools/dpaudit"  # its tests are not those of the project
    copy.mkdir(parents=True)
    (copy / "test_of_dpaudit.py").write_text("raise RuntimeError\n")
    monkeypatch.setenv("GITHUB_ACTION_PATH", f"{folder}/./tools/dpaudit")
    done = step("Audit", budget="0.001")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "2 tests, 2 audits × alpha 1e-05 = 2e-05 of error budget 0.001" in done.stdout
    assert "1 failed, 1 passed, 1 deselected" in done.stdout
    assert step("Report", junit="out/junit.xml", **{"code-scanning": "out/a.sarif"}).returncode == 0
    (finding,) = json.loads((folder / "out/a.sarif").read_text())["runs"][0]["results"]
    place = finding["locations"][0]["physicalLocation"]
    assert (finding["level"], place["artifactLocation"]["uri"]) == ("error", "bad.py")
    assert place["region"] == {"startLine": 1}
    summary = (folder / "temp/summary").read_text(encoding="utf-8")
    assert "2 audits, 1 refuted, 1 not refuted" in summary
    (suite,) = ElementTree.parse(folder / "out/junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert (folder / "temp/output").read_text() == f"results={folder}/temp/dp-audit/results.json\n"


def test_inputs_are_data(folder):
    given = noted(
        "Audit", tests="test_good.py\n\na b.py; touch stolen", runs="$(touch stolen)", budget="`touch stolen`"
    )
    assert given[0] == "--dp-audit-only"
    assert given[2:] == [
        f"--ignore={ROOT}",
        "--dp-audit-budget=`touch stolen`",
        "--dp-audit-runs=$(touch stolen)",
        "test_good.py",
        "a b.py; touch stolen",
    ]
    assert not (folder / "stolen").exists()


def test_without_results_the_summary_says_so(folder):
    assert step("Report").returncode == 0
    assert "the audits did not start" in (folder / "temp/summary").read_text()
    assert not (folder / "dp-audit-junit.xml").exists()


def test_the_page_states_inputs_hook_and_options_as_they_are():
    page = (ROOT / "docs/how-to/continuous-integration.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE) == list(ACTION["inputs"])
    workflow, gitlab, of_changes, hooks = (
        yaml.safe_load(dedent(block))
        for block in re.findall(r"```yaml .*?\n(.*?)^ *```", page, re.DOTALL | re.MULTILINE)
    )
    ((hook,),) = (each["hooks"] for each in hooks["repos"])
    assert hook == {key: value for key, value in HOOK.items() if key != "description"}
    (step_of_action,) = (each for each in of_changes["jobs"]["audits"]["steps"] if "dpaudit" in each.get("uses", ""))
    assert step_of_action["with"].keys() <= ACTION["inputs"].keys()
    steps = [each["run"] for each in workflow["jobs"]["audits"]["steps"] if "run" in each]
    assert steps == gitlab["audits"]["script"]
    assert any("--dp-audit-only" in step for step in steps)
    (ignored,) = re.findall(r'^addopts = \["--ignore=([a-z_]+)"\]$', page, re.MULTILINE)
    nightly = (ROOT / "docs/how-to/pytest.md").read_text(encoding="utf-8")
    copies = re.findall(r"\S+(?=/dpaudit[\['`\n])", page + nightly)
    assert len(copies) > 5
    assert {copy.strip("`'./") for copy in copies} == {ignored}


def test_the_hook_runs_the_audits(folder):
    assert (HOOK["language"], HOOK["types"], HOOK["pass_filenames"]) == ("system", ["python"], False)
    done = subprocess.run([*HOOK["entry"].split(), "test_good.py", "test_other.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "1 of 2 tests cannot request dp_audit" in done.stdout
    assert "1 passed" in done.stdout
