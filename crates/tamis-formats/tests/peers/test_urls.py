"""`--url`, and ada: two URLs are one key if ada makes one of them, and what it refuses is a key as it is."""

import odd_urls

import tamis


def test_as_ada_says():
    keys = tamis.Filter(200_000, 1e-12, url=True)
    seen = set()
    for url in odd_urls.odd_urls(2, 100_000):
        # Damaged Punycode: see there.
        if "xn--" in url and "xn--caf-dma.com" not in url:
            continue
        normal = odd_urls.normal(url) or url
        assert keys.add(url) == (normal not in seen), (url, normal)
        seen.add(normal)
        assert normal in keys, (url, normal)
    assert len(seen) > 20_000
