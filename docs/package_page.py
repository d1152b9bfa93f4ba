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


def package_page(readme: str, repository: str | None) -> str:
    """The README with absolute links into the repository; without a repository, with the words of the links only."""

    def absolute(found: re.Match[str]) -> str:
        words, path = found.groups()
        return f"[{words}]({repository.rstrip('/')}/blob/main/{path})" if repository else words

    return HEADER + LINK.sub(absolute, readme)


def repository() -> str | None:
    """The address in `[project.urls]`, if there is one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project.get("urls", {}).get("Repository")


if __name__ == "__main__":
    page = package_page((ROOT / "README.md").read_text(encoding="utf-8"), repository())
    (ROOT / "docs" / "package-page.md").write_text(page, encoding="utf-8")
