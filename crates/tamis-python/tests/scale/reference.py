"""What every engine's result is compared with: the filter of one process."""

import tamis

URLS = [f"https://example.org/{i}" for i in range(20_000)]


def alone(keys, n, p=0.01, **options):
    """Its bytes. A union's count is indeterminate: so is that of a union with nothing."""
    filter = tamis.Filter(n, p, **options)
    filter.update(keys)
    return united_with_nothing(filter, n, p, **options)


def united_with_nothing(filter, n, p=0.01, **options):
    return bytes(filter | tamis.Filter(n, p, **options))
