"""The README's Python runs, and prints what the README says it prints."""

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def examples() -> list[tuple[str, str]]:
    return re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def printed(code: str, names: dict[str, object]) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "<page>", "exec", dont_inherit=True), names)  # without this file's annotations as text
    return output.getvalue()


def test_examples_print_what_they_say():
    names: dict[str, object] = {"__name__": "readme"}  # a later example goes on from an earlier one
    assert examples()
    for code, expected in examples():
        assert printed(code, names) == expected
