"""Mechanisms that add noise to a query's answer."""

from . import gaussian, laplace
from .gaussian import *
from .laplace import *

__all__: list[str] = []
__all__ += gaussian.__all__
__all__ += laplace.__all__
