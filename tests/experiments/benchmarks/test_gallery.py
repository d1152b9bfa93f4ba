"""The gallery of bugs: the committed page is what the command writes, and each bug in it is found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpaudit.audit.errors import OptionError
from dpaudit.experiments.benchmarks.gallery import exhibit, names, section

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = (DOCS / "gallery.md").read_text(encoding="utf-8")


def test_a_bug_is_refuted_and_shown_as_the_page_says():
    shown = exhibit("clamped-to-the-rows")
    committed = (DOCS / "pictures" / "gallery" / "clamped-to-the-rows.svg").read_text(encoding="utf-8")
    assert shown.result.is_refuted
    assert section(shown) in PAGE
    assert all(shown.result.event_in_words in picture for picture in (shown.picture, committed))


def test_the_page_shows_every_bug_with_its_picture():
    pictures = re.findall(r"\(pictures/gallery/([a-z-]+)\.svg\)", PAGE)
    assert tuple(pictures) == names()
    assert {path.stem for path in (DOCS / "pictures" / "gallery").iterdir()} == set(names())
    assert PAGE.count("\n## ") == len(re.findall(r"^\| \[", PAGE, re.MULTILINE)) == len(names()) == 20


def test_a_bug_that_is_not_in_the_gallery_is_refused():
    with pytest.raises(OptionError, match="the gallery has no bug 'weights'"):
        exhibit("weights")
