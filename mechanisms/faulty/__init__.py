"""Known bugs: mechanisms that break their claims, each with the strongest guarantee known to hold."""

from . import calibration, composition, flaw, local, noise, selection, synthetic
from .calibration import *
from .composition import *
from .flaw import *
from .local import *
from .noise import *
from .selection import *
from .synthetic import *

__all__: list[str] = []
__all__ += calibration.__all__
__all__ += composition.__all__
__all__ += flaw.__all__
__all__ += local.__all__
__all__ += noise.__all__
__all__ += selection.__all__
__all__ += synthetic.__all__
