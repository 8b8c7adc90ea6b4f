"""``pybloomfilter`` with the ``len`` of pybloomfiltermmap, the older package.

It never estimates: where the number of keys is not known, ``len`` raises. Code
written for it runs with ``import pybloomfilter.strict as pybloomfilter``.

>>> import pybloomfilter.strict as pybloomfilter
>>> fruit = pybloomfilter.BloomFilter(100, 0.1, hash_seeds=[1, 2, 3])
>>> fruit |= pybloomfilter.BloomFilter(100, 0.1, hash_seeds=[1, 2, 3])
>>> len(fruit)
Traceback (most recent call last):
pybloomfilter.IndeterminateCountError: Length of BloomFilter object is unavailable after intersection or union called.
"""

import pybloomfilter
from pybloomfilter import AUTHOR, VERSION, IndeterminateCountError

__all__ = ["AUTHOR", "BloomFilter", "IndeterminateCountError", "VERSION"]


class BloomFilter(pybloomfilter.BloomFilter):
    __slots__ = ()

    def __len__(self):
        exact = self._exact_len()
        if exact is None:
            raise IndeterminateCountError(
                f"Length of {type(self).__name__} object is unavailable "
                "after intersection or union called."
            )
        return exact
