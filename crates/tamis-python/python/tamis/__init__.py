"""Have I seen this key before?

>>> import tamis
>>> seen = tamis.Filter(n=1_000_000, p=0.01)
>>> seen.add("https://example.org/")
True
>>> "https://example.org/" in seen
True

Filters answer with the memory of a few bits a key, never with a false "no",
and with a rate of false "yes" that is promised and kept.
"""

from . import errors
from ._tamis import Filter, Guard, Mask, Plan, build, plan
from .errors import *  # noqa: F403

__all__ = ["Filter", "Guard", "Mask", "Plan", "build", "errors", "plan", *errors.__all__]
