"""Odd URLs, and what ada makes of them (PyPI's ada-url: the parser of Node.js, by the WHATWG's standard).

    python odd_urls.py > crates/tamis/tests/urls.tsv     # ada-url 4.0.0

Two differences are meant. `^` in a path stays as it is: to encode it, as the standard does since 2025, would change keys
of filters that there are. And damaged Punycode in a host (`xn--`, `xn--caf-d`), which ada accepts, is refused."""

import random

PREFIXES = ["", "", "", "", " ", "\t", "\n\x01"]
SCHEMES = "http https file FTP ws wss mailto data javascript foo a+b blob urn tel git+ssh about 1x jar".split()
SEPARATORS = [":", "://", ":/", ":///", ":////", ":\\\\", ":/\\", ":\\", "://h//", "//"]
USERS = ["", "", "", "", "u@", "u:p@", "u:@", ":@", "@", "a@b@", "%40@", "u%:p@"]
HOSTS = """h Example.COM example.com localhost LOCALHOST 1.2.3.4 0x7f.1 127.1 256.1.1.1 1.2.3.4.5 [::1] [1::]
[::ffff:1.2.3.4] [v1.x] é.com xn--caf-dma.com a%41b a_b % a<b C: C| c%7C ß.de a..b a. .. ９.com 1e3 0x 08 h|x a%00b 日本
Ⅷ.com *.x ~ a,b {x} a`b a'b""".split() + ["", "a b", "a\tb", "\u00ad"]
PORTS = ["", "", "", ":80", ":443", ":21", ":8080", ":0", ":65536", ":", ":00080", ":x", ":8 0"]
SEGMENTS = """a b .. . %2e %2E%2e .%2e C: C| c%3a é %zz %41 {x} ` | " < a;b ~ ' \\ x\\y 日 a%20 %C3%A9 [x] ..a ...""".split()
SEGMENTS += ["", "", "", "a b", " ", "\t", "\n"]
QUERIES = ["", "", "", "?", "?a=1", "?a b", "?é", "?'", '?"<>', "?#", "?%zz", "?a|b", "?`{}", "?\\", "? "]
FRAGMENTS = ["", "", "#", "#x", "#?", "# "]
ODD = "\t\n\r #%/:?@[\\]|\x7f\x80\u2028\ufffd\U0001f4a9"


def odd_urls(seed, count):
    chance = random.Random(seed)
    for _ in range(count):
        url = chance.choice(PREFIXES) + chance.choice(SCHEMES) + chance.choice(SEPARATORS)
        if chance.random() < 0.8:
            url += chance.choice(USERS) + chance.choice(HOSTS) + chance.choice(PORTS)
        path = "".join(chance.choice(["/", "/", "/", "\\", "//"]) + chance.choice(SEGMENTS) for _ in range(chance.randrange(5)))
        url += path[chance.random() < 0.15 :] + chance.choice(QUERIES) + chance.choice(FRAGMENTS) + chance.choice(["", "", "", " "])
        if chance.random() < 0.1:
            at = chance.randrange(len(url) + 1)
            url = url[:at] + chance.choice(ODD) + url[at:]
        yield url


def normal(url):
    """The URL without its fragment; None if it is none."""
    import ada_url

    try:
        parsed = ada_url.URL(url)
    except ValueError:
        return None
    parsed.hash = ""
    return parsed.href


if __name__ == "__main__":
    named = ["file://h//b", "file://h/b", "file:////b", "mailto://u@h:80\\x", "mailto:a@b", "http://h/C:/../a", "foo://:@?a", "tel:a #b"]
    for url in [*named, *odd_urls(1, 1500)]:
        escaped = url.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
        print(escaped, normal(url) or "!", sep="\t")
