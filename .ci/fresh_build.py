"""The build backend: setuptools, which builds a wheel in a fresh folder.

In build/, its default, setuptools would pack what a former build of another version left there.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  # the other hooks


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Build the wheel of the tree; return its name."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder, "setup.cfg")
        settings.write_text(f"[build]\nbuild_base = {folder}\n", encoding="utf-8")
        os.environ["DIST_EXTRA_CONFIG"] = str(settings)  # of this process alone, which builds one wheel
        return str(build_meta.build_wheel(wheel_directory, config_settings, metadata_directory))
