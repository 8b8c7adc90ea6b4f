"""Two sentences of many tutorials, tried out.

python myths.py tables    how full cuckoo hashing gets before the first key finds no place
python myths.py remove    what a plain Bloom filter loses when a key's bits are set back to 0
"""

import hashlib
import random
import sys


def url(number):
    return b"https://example.org/page/%d" % number


def positions(key, count, below):
    """From one hash, as everywhere here."""
    digest = hashlib.blake2b(key, digest_size=16).digest()
    x, step = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little") | 1
    return [(x + i * step) % 2**64 * below >> 64 for i in range(count)]


def full_at(tables, slots, places=10_000, kicks=1_000):
    """The share of slots in use when a key has kicked that often and still finds no place."""
    chance = random.Random(1)
    held = [[[] for _ in range(places)] for _ in range(tables)]
    for number in range(tables * slots * places):
        key, came_from = url(number), None
        for _ in range(kicks):
            at = positions(key, tables, places)
            free = [table for table in range(tables) if len(held[table][at[table]]) < slots]
            table = free[0] if free else chance.choice([table for table in range(tables) if table != came_from])
            place = held[table][at[table]]
            place.append(key)
            if free:
                break
            key, came_from = place.pop(chance.randrange(slots)), table
        else:
            return number / (tables * slots * places)
    return 1.0


def tables():
    for tables, slots in [(2, 1), (3, 1), (4, 1), (2, 4)]:
        print(f"{tables} tables, {slots} in each place: {full_at(tables, slots):.1%}")


def remove(keys=100_000, removed=1_000, hashes=7):
    bits = bytearray(958_506)  # 1 % by the formula; one byte for each bit
    for number in range(keys):
        for position in positions(url(number), hashes, len(bits)):
            bits[position] = 1
    for number in range(removed):
        for position in positions(url(number), hashes, len(bits)):
            bits[position] = 0
    denied = sum(not all(bits[p] for p in positions(url(n), hashes, len(bits))) for n in range(removed, keys))
    print(f"{removed:,} keys removed; {denied:,} of the other {keys - removed:,} are denied")


if __name__ == "__main__":
    {"tables": tables, "remove": remove}[sys.argv[1]]()
