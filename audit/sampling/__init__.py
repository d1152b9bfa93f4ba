"""Running a mechanism in seeded blocks: in this process, in worker processes, or on a cluster."""

from .draw import count_hits, count_pairs, draw_block, draw_pilot
from .plan import Memory, Plan
from .provenance import Provenance
from .sampler import Sampler, as_sampler

__all__ = [
    "draw_block",
    "Memory",
    "Plan",
    "Provenance",
    "Sampler",
    "as_sampler",
    "count_hits",
    "count_pairs",
    "draw_pilot",
]
