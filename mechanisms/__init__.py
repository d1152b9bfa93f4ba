"""Reference mechanisms, each with its privacy claim and the exact distribution of its output.

A parameter outside its documented range raises `ClaimError`; a dataset that the mechanism cannot take raises
`DatasetError`. Sources are cited by authors and year; docs/sources.md has the titles.
"""

from . import composition, distributions, local, noise, selection, synthetic
from .composition import *
from .distributions import *
from .local import *
from .noise import *
from .queries import CategoryCounts, EachCandidate, query_sensitivity, utility_sensitivity
from .selection import *
from .synthetic import *

__all__ = ["CategoryCounts", "EachCandidate", "query_sensitivity", "utility_sensitivity"]
__all__ += composition.__all__
__all__ += distributions.__all__
__all__ += local.__all__
__all__ += noise.__all__
__all__ += selection.__all__
__all__ += synthetic.__all__
