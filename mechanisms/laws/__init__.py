"""Exact laws of outputs, and the exact privacy loss between two laws."""

from . import divergences, laws, released_values
from .divergences import *
from .laws import *
from .released_values import *

__all__: list[str] = []
__all__ += divergences.__all__
__all__ += laws.__all__
__all__ += released_values.__all__
