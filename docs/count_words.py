"""Counts words of prose in the documents, per folder: code, tables and formulas do not count.

``python docs/count_words.py``
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GENERATED = {"docs/package-page.md", "docs/gallery.md", "docs/sources-errata.md"}
NO_PROSE = re.compile(
    r"^( *)(```+).*?^\1\2$|\$\$.*?\$\$|\$[^$\n]*\$|^ *\|.*?$|^ *:::.*?$|(?<=\])\([^)]*\)|`", re.DOTALL | re.MULTILINE
)
WORD = re.compile(r"[^\W_][\w'’-]*")


def words(text: str) -> int:
    """How many words of prose a page in Markdown has."""
    return len(WORD.findall(NO_PROSE.sub(" ", text)))


def main() -> None:
    """Print pages and words per folder."""
    pages: Counter[str] = Counter()
    counted: Counter[str] = Counter()
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        name = path.relative_to(ROOT)
        folder = "written by programs" if name.as_posix() in GENERATED else name.parent.as_posix()
        pages[folder] += 1
        counted[folder] += words(path.read_text(encoding="utf-8"))
    for folder in sorted(pages):
        print(f"{folder:24} {pages[folder]:4} pages {counted[folder]:8,} words")


if __name__ == "__main__":
    main()
