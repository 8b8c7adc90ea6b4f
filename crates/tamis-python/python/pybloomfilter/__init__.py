"""Bloom filters in memory and in mapped files: a drop-in for pybloomfiltermmap3 0.6.3.

>>> import pybloomfilter
>>> fruit = pybloomfilter.BloomFilter(100000, 0.1)
>>> fruit.update(('apple', 'pear', 'orange', 'apple'))
>>> len(fruit)
3
>>> 'mike' in fruit
False

``pybloomfilter.strict`` is the same with the ``len`` of the older pybloomfiltermmap.
"""

from tamis._tamis import BloomFilter

__all__ = ["AUTHOR", "BloomFilter", "IndeterminateCountError", "VERSION"]

#: The version of pybloomfiltermmap3 whose behaviour this is.
VERSION = (0, 6, 3)
__VERSION__ = VERSION
#: Who made pybloomfiltermmap.
AUTHOR = "Michael Axiak"


class IndeterminateCountError(ValueError):
    """The number of keys is unknown."""
