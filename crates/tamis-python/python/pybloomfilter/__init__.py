"""A drop-in for pybloomfiltermmap3."""
