"""What is found: the published suites, the catalogue of bugs, leaks and low bits, and what looking costs."""

from __future__ import annotations

from .bench_page import Page
from .detection_catalogue import CATALOGUE
from .detection_cost import COST
from .detection_leaks import LEAKS
from .detection_sniper import SNIPER
from .detection_suites import SUITES

DETECTION = Page("detection", "Finding violations, measured", (SNIPER, SUITES, CATALOGUE, LEAKS, COST))
