"""The pages' Python runs and prints what the pages say, and so do their commands.

Run as a program this file writes what is printed into the pages: `python tests/test_docs_pages.py [page …]`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path
from textwrap import dedent, indent

import pytest

ROOT = Path(__file__).resolve().parents[1]
SITE = ("tutorial.md", "tutorial-training.md", "install.md", "cheat-sheet.md", "index.md", "troubleshooting.md")
PAGES = [
    "CONTRIBUTING.md",
    "docs/extend.md",
    *(f"docs/{name}" for name in SITE),
    *(
        path.relative_to(ROOT).as_posix()
        for folder in ("how-to", "guides", "explanation")
        for path in sorted((ROOT / "docs" / folder).glob("*.md"))
    ),
]
NEEDS = {
    "docs/guides/diffprivlib.md": "diffprivlib",
    "docs/guides/opendp.md": "opendp",
    "docs/guides/pipeline-dp.md": "pipeline_dp",
    "docs/guides/pydp.md": "pydp",
}
"""The library that the blocks of a page import, if no other page does."""

# Blocks in tabs are indented.
FILE = re.compile(r'^( *)```py title="([^"]*)"\n(.*?)^\1```$', re.DOTALL | re.MULTILINE)
BLOCK = re.compile(
    r"^(?P<in> *)```(?P<kind>python|sh)\n(?P<code>(?:(?!```).)*)```\n\n(?P=in)```text\n(?P<says>.*?)^(?P=in)```$",
    re.DOTALL | re.MULTILINE,
)
# Of a session of pytest: what is asserted, and how the session ended but for its time.
SHOWN = re.compile(r"^(E  .*|>.*|\d+ failed.*?passed)", re.MULTILINE)


def readme_tests():
    """The module that runs the README's blocks."""
    spec = importlib.util.spec_from_file_location("readme_tests", Path(__file__).with_name("test_readme.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def said(command: str, folder: Path) -> str:
    """What a command prints."""
    program, *arguments = shlex.split(command)
    return {"dpaudit": said_by_dpaudit, "pytest": said_by_pytest}[program](arguments, folder)


def said_by_dpaudit(arguments: list[str], folder: Path) -> str:
    """What the command line prints, run in this process, which has imported the library already."""
    from dpaudit.reports.cli.main import main

    output, errors = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
        contextlib.suppress(SystemExit),
    ):
        patch.chdir(folder)
        patch.setenv("COLUMNS", "100")
        patch.setattr(sys, "argv", ["dpaudit", *arguments])
        main()
    assert not errors.getvalue(), errors.getvalue()
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines()).strip("\n")


def said_by_pytest(arguments: list[str], folder: Path) -> str:
    """What a session of pytest, in this process, asserts, and how it ended."""
    start = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:xdist"]
    output, errors = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        patch.chdir(folder)
        patch.setenv("COLUMNS", "100")
        for name in [name for name in os.environ if name.startswith(("PYTEST", "COV"))]:
            patch.delenv(name)
        pytest.main([*start, *arguments])
    assert not errors.getvalue(), errors.getvalue()
    return "\n".join(SHOWN.findall("\n".join(line.rstrip() for line in output.getvalue().splitlines())))


def run_page(text: str, folder: Path) -> list[tuple[str, str]]:
    """What each block of a page is said to print, and what it prints; a later one goes on from an earlier one."""
    for _, name, code in FILE.findall(text):
        (folder / name).write_text(dedent(code), encoding="utf-8")
    own = [name.removesuffix(".py") for _, name, _ in FILE.findall(text)]
    printed, names = readme_tests().printed, {"__name__": "__main__"}  # where dataclasses look
    sys.path.insert(0, str(folder))
    found = []
    try:
        for block in BLOCK.finditer(text):
            code, expected = dedent(block["code"]), dedent(block["says"])
            if block["kind"] == "python":
                found.append((expected, printed(code, names)))
            else:
                found.append((expected, "".join(said(line, folder) + "\n" for line in code.splitlines())))
    finally:
        sys.path.remove(str(folder))
        for name in own:
            sys.modules.pop(name, None)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_blocks_print_what_they_say(page, tmp_path, monkeypatch):
    if page in NEEDS:
        pytest.importorskip(NEEDS[page], reason=f"{NEEDS[page]} cannot be imported")
    monkeypatch.chdir(tmp_path)
    for expected, found in run_page((ROOT / page).read_text(encoding="utf-8"), tmp_path):
        assert found == expected


def test_every_python_block_is_run():
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        assert text.count("```python\n") == sum(block["kind"] == "python" for block in BLOCK.finditer(text)), page


def rewritten(page: Path) -> str:
    """The page with what its blocks print."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        found = iter([output for _, output in run_page(text, Path(folder))])

    def filled(block: re.Match[str]) -> str:
        start = block["in"]
        head = f"{start}```{block['kind']}\n{block['code']}```\n\n{start}```text\n"
        return f"{head}{indent(next(found), start)}{start}```"

    return BLOCK.sub(filled, text)


if __name__ == "__main__":
    for name in sys.argv[1:] or [page for page in PAGES if importlib.util.find_spec(NEEDS.get(page, "pytest"))]:
        (ROOT / name).write_text(rewritten(ROOT / name), encoding="utf-8")
        print(name)
