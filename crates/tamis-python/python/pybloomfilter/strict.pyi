import pybloomfilter
from pybloomfilter import AUTHOR as AUTHOR
from pybloomfilter import VERSION as VERSION
from pybloomfilter import IndeterminateCountError as IndeterminateCountError

__all__ = ["AUTHOR", "BloomFilter", "IndeterminateCountError", "VERSION"]

class BloomFilter(pybloomfilter.BloomFilter): ...
