"""Detection of violations: published suites, the catalogue of bugs, leaks and low bits,
single wrong outcomes, small excesses, hidden losses, local protocols and synthetic tables."""

from __future__ import annotations

from ..core.page import Page
from .caught_bugs import CATALOGUE
from .dp_sniper_pairs import SNIPER, SNIPER_LONG
from .hidden_losses import HIDDEN
from .leaks_and_low_bits import LEAKS
from .local_protocols import LOCAL
from .published_suites import SUITES
from .rare_leaks import RARE_LEAKS
from .searched_bugs import SEARCHED
from .small_excesses import SMALL_EXCESSES
from .synthetic_tables import SYNTHETIC
from .wrong_outcomes import OUTCOMES

DETECTION = Page(
    "detection",
    "Benchmarks of detection",
    (
        SNIPER,
        SNIPER_LONG,
        SUITES,
        CATALOGUE,
        SEARCHED,
        LEAKS,
        RARE_LEAKS,
        OUTCOMES,
        SMALL_EXCESSES,
        HIDDEN,
        LOCAL,
        SYNTHETIC,
    ),
)
