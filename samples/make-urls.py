#!/usr/bin/env python3
"""Makes urls.txt: 5,000 realistic, fictitious URLs, about 30 % of which were seen before. Always the same: the seed is fixed.

A repeat is exact in most cases; in some, only the spelling differs (case of the host, default port, fragment), so that
`tamis dedup` and `tamis dedup --url` give different counts.
"""
import pathlib
import random

LINES, REPEATS, RESPELLED = 5000, 0.34, 0.12

SITES = ["example.com", "example.org", "example.net", "shop.example.com", "blog.example.org", "www.example.net",
         "news.example.com", "docs.example.org", "cdn.example.net", "api.example.com", "forum.example.org",
         "bakery.test", "www.bakery.test", "library.test", "museum.test", "trains.test", "weather.test",
         "garden.example", "recipes.example", "bücher.example", "static.recipes.example"]
WORDS = ["flour", "sieve", "copper", "whisk", "sourdough", "rye", "autumn", "harbour", "lantern", "granite", "meadow",
         "violin", "atlas", "ember", "juniper", "saffron", "river", "cobalt", "walnut", "thistle", "orchard", "prism"]
SECTIONS = ["articles", "products", "category", "users", "archive", "wiki", "images", "events", "tags", "help"]
SOURCES = ["newsletter", "mastodon", "feed", "partner", "search"]

chance = random.Random(20240229)


def words(low, high):
    return "-".join(chance.choices(WORDS, k=chance.randint(low, high)))


def path():
    section = chance.choice(SECTIONS)
    return chance.choice([
        lambda: f"/{section}/{chance.randint(1, 99999)}",
        lambda: f"/{section}/{words(2, 4)}",
        lambda: f"/{chance.randint(2009, 2025)}/{chance.randint(1, 12):02}/{chance.randint(1, 28):02}/{words(2, 5)}.html",
        lambda: f"/{section}/{words(1, 2)}/{words(1, 3)}/",
        lambda: f"/static/img/{chance.getrandbits(40):010x}.{chance.choice(['jpg', 'png', 'webp', 'svg'])}",
        lambda: f"/v{chance.randint(1, 3)}/{section}/{chance.getrandbits(64):016x}",
        lambda: f"/~{chance.choice(WORDS)}/{words(1, 2)}.txt",
    ])()


def query():
    page = f"page={chance.randint(1, 40)}"
    return chance.choices([
        "", f"?{page}", f"?q={'+'.join(chance.choices(WORDS, k=2))}&{page}", f"?id={chance.randint(1, 9999999)}",
        f"?utm_source={chance.choice(SOURCES)}&utm_medium=link", f"?lang={chance.choice(['en', 'fr', 'de', 'pt-BR'])}",
        f"?sort=price&dir={chance.choice(['asc', 'desc'])}&{page}",
    ], weights=[10, 4, 3, 4, 3, 2, 2])[0]


def new_url():
    scheme = chance.choices(["https", "http"], weights=[9, 1])[0]
    port = chance.choices(["", ":8080", ":8443"], weights=[30, 1, 1])[0]
    fragment = chance.choices(["", f"#{words(1, 2)}"], weights=[15, 1])[0]
    return f"{scheme}://{chance.choice(SITES)}{port}{path()}{query()}{fragment}"


def respelled(url):
    """Another spelling of the same address."""
    scheme, rest = url.split("://", 1)
    host, slash, tail = rest.partition("/")
    page = tail.partition("#")[0]
    return chance.choice([
        f"{scheme.upper()}://{host}{slash}{tail}",
        f"{scheme}://{host.title()}{slash}{tail}",
        f"{scheme}://{host}{slash}{page}#comments",
        f"{scheme}://{host}{slash}./{tail}",
        f"{scheme}://{host}{'' if ':' in host else ':443' if scheme == 'https' else ':80'}{slash}{tail}",
    ])


lines = []
for _ in range(LINES):
    if lines and chance.random() < REPEATS:
        # Pages seen lately come back sooner than old ones.
        url = lines[-1 - int(len(lines) * chance.random() ** 2)]
        lines.append(respelled(url) if chance.random() < RESPELLED else url)
    else:
        lines.append(new_url())
pathlib.Path(__file__).with_name("urls.txt").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
