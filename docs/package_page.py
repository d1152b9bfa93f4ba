"""The page that a package index shows: README.md, with links that lead somewhere from there.

``python docs/package_page.py`` writes docs/package-page.md.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)([^)\s]+)\)")
HEADER = "<!-- Written by docs/package_page.py from README.md. -->\n\n"


def package_page(readme: str, repository: str) -> str:
    """The README with absolute links into the repository."""
    return HEADER + LINK.sub(rf"[\1]({repository}/blob/main/\2)", readme)


def repository() -> str:
    """The address in `[project.urls]`."""
    address: str = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Source"]
    return address


if __name__ == "__main__":
    page = package_page((ROOT / "README.md").read_text(encoding="utf-8"), repository())
    (ROOT / "docs" / "package-page.md").write_text(page, encoding="utf-8")
