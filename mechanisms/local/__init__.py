"""Mechanisms of the local model, in which each person randomises their own value."""

from . import frequency_oracles, randomised_response
from .frequency_oracles import *
from .randomised_response import *

__all__: list[str] = []
__all__ += frequency_oracles.__all__
__all__ += randomised_response.__all__
