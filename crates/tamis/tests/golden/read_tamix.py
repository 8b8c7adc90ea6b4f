"""Reads Tamis index files, version 1. Needs `pip install xxhash`.

Written from docs/format.md alone, to prove that it can be.

    python read_tamix.py INDEX.tamix SPEC KEY...     prints the ids of the candidates of each key
"""

import struct
import sys

import xxhash
from read_tamis import MASK, Corrupt, KeyNeeded, check, check_range, mix, reduce, rehash, siphash128

HEADER = struct.Struct("<8sHBBIQd16sQIHHQQQQ32s")
FILTER = struct.Struct("<QQQQ")
ENTRY = struct.Struct("<QIIQqqQ")
UNKNOWN = 2**64 - 1
assert (HEADER.size, FILTER.size, ENTRY.size) == (128, 32, 48)


class Index:
    """An index in bytes; `index.candidates(spec, key)` asks it."""

    def __init__(self, data, secret=None):
        if len(data) < 128:
            raise Corrupt(f"length: expected at least 128 bytes, got {len(data)}")
        (magic, version, reserved, hash_, flags, entries, rate, field, key_check,
         specs, self.width, self.narrow, directory, text_len, directory_sum,
         header_sum, reserved_end) = HEADER.unpack_from(data)  # fmt: skip
        self.data = data
        check("magic", magic, b"TAMIX\r\n\x1a")
        check("version", version, 1)
        check("header checksum", xxhash.xxh3_64_intdigest(data[:88]), header_sum)
        check("reserved", (reserved, reserved_end), (0, bytes(32)))
        if not 0 < rate < 1:
            raise Corrupt(f"rate: expected between 0 and 1, got {rate}")
        check_range("width", self.width, 32)
        if self.width == 1:
            check("narrow", self.narrow, 0)
        if 2**-self.width * (1 + self.narrow / 65536) > rate:
            raise Corrupt("width: the rate is not kept")
        check_range("specs", specs, 255)
        self.hash = hasher(hash_, flags, field, key_check, secret)
        pages = (directory + 1023) // 1024 if directory > 128 else 0
        expected = directory + entries * (32 * specs + 48) + 4 * pages + 8 * specs + text_len
        check("file length", len(data), expected)
        if directory < 128 or directory % 8:
            raise Corrupt(f"directory: got {directory}")
        check("directory checksum", xxhash.xxh3_64_intdigest(data[directory:]), directory_sum)

        records_at = directory + 32 * specs * entries
        sums_at = records_at + 48 * entries
        ends_at = sums_at + 4 * pages
        filters = list(FILTER.iter_unpack(data[directory:records_at]))
        unknown = {i % entries for i, record in enumerate(filters) if record[1] == UNKNOWN}
        text = data[len(data) - text_len :]
        self.specs, self.entries, start = [], [], 0
        for (end,) in struct.iter_unpack("<Q", data[ends_at : ends_at + 8 * specs]):
            if not start <= end <= text_len:
                raise Corrupt(f"end of a spec: got {end}")
            self.specs.append(text[start:end].decode())
            start = end
        check("different specs", len(set(self.specs)), specs)
        for number, record in enumerate(ENTRY.iter_unpack(data[records_at:sums_at])):
            end, id_len, flags, *stamp = record
            if not start + id_len <= end <= text_len:
                raise Corrupt(f"end of an entry: got {end}")
            if flags >> 2 or flags & 3 == 2 or not flags & 1 and any(stamp):
                raise Corrupt(f"flags: got {flags}")
            reason = text[start + id_len : end].decode()
            if reason and number not in unknown:
                raise Corrupt("reason of an indexed entry")
            self.entries.append((text[start : start + id_len], flags, stamp, reason))
            start = end
        check("text", start, text_len)

        self.filters, at = [[] for _ in range(specs)], 128
        for entry in range(entries):
            for spec in range(specs):
                offset, keys, *shape = filters[spec * entries + entry]
                table = Nothing() if keys == 0 else Anything()
                if (offset, keys, *shape) not in ((0, 0, 0, 0), (0, UNKNOWN, 0, 0)):
                    table = Table(*shape, self.width, self.narrow)
                    if keys in (0, UNKNOWN) or table.words == 0:
                        raise Corrupt("filter: expected keys")
                    check("offset", offset, at)
                    at += 8 * table.words
                    if at > directory:
                        raise Corrupt("filter: it ends behind the directory")
                    table.body = int.from_bytes(data[offset:at], "little")
                self.filters[spec].append(table)
        check("end of the filters", at, directory)
        for page in range(pages):
            bodies = data[max(1024 * page, 128) : min(1024 * (page + 1), directory)]
            (expected,) = struct.unpack_from("<I", data, sums_at + 4 * page)
            check("page sum", (xxhash.xxh3_64_intdigest(bodies) ^ page) & 0xFFFFFFFF, expected)

    def candidates(self, spec, key):
        """The numbers of the entries that may hold the key."""
        h = self.hash(key)
        tables = self.filters[self.specs.index(spec)]
        return [i for i, table in enumerate(tables) if table.contains(h >> 64, h & MASK)]


class Nothing:
    """The filter of no keys."""

    def contains(self, hi, lo):
        return False


class Anything:
    """The filter of keys that are not known."""

    def contains(self, hi, lo):
        return True


def hasher(hash_, flags, field, key_check, secret):
    if hash_ == 1:
        check("flags", (flags, key_check, field[8:]), (0, 0, bytes(8)))
        seed = int.from_bytes(field[:8], "little")
        return lambda key: xxhash.xxh3_128_intdigest(key, seed)
    check("hash", hash_, 2)
    if flags == 1:
        check("secret kept apart", field, bytes(16))
        if secret is None or siphash128(secret, b"tamis key check") & MASK != key_check:
            raise KeyNeeded("the secret is kept apart, and is not this one")
        field = secret
    else:
        check("flags", (flags, key_check), (0, 0))
    return lambda key: siphash128(field, key)


class Table:
    """A ribbon table without padding. Its body is one large number."""

    def __init__(self, one, two, width, narrow):
        shards = (one & 0xFFFFFF, one >> 34 & 0xFFFFF, two & 0xFFFF)
        buckets = (one >> 24 & 1023, one >> 54, two >> 16 & 1023)
        self.seed, self.last_rows, self.width = two >> 26 & 63, two >> 32, width
        self.layers, first = [], 0
        for i, (s, b) in enumerate(zip(shards, buckets)):
            if (s == 0) != (b == 0) or s and i != len(self.layers):
                raise Corrupt(f"layer: got {s} shards of {b} buckets")
            if s:
                self.layers.append((first, s, 192 * b))
                first += s * 192 * b
        self.first_of_last = first
        self.groups, self.rest = divmod(first + self.last_rows, 64)
        self.codes = (first // 192 + 31) // 32
        _, s, rows = self.layers[0] if self.layers else (0, 1, self.last_rows)
        self.narrow = 0
        if rows >= 64:
            starts = rows - 63
            few = s * starts * narrow // 65536
            self.narrow = (few // starts * rows + few % starts) // 64
        self.words = self.at(self.groups) + (self.rest * width + 63) // 64

    def at(self, group):
        return self.codes + group * self.width - min(group, self.narrow)

    def bit(self, row, column):
        group, i = divmod(row, 64)
        if group < self.groups:
            return self.body >> 64 * (self.at(group) + column) + i & 1
        return self.body >> 64 * self.at(group) + column * self.rest + i & 1

    def contains(self, hi, lo):
        for first, shards, rows in self.layers:
            row = start(hi, first, shards, rows)
            code = self.body >> 2 * (row // 192) & 3
            if row % 192 >= (0, 20, 44, 192)[code]:
                return self.test(row, hi, lo)
            hi, lo = rehash(hi, lo, 0)
        if self.last_rows == 0:
            return False
        hi, lo = rehash(hi, lo, self.seed)
        if self.last_rows < 64:
            return self.test(self.first_of_last, hi, lo, (1 << self.last_rows) - 1)
        return self.test(start(hi, self.first_of_last, 1, self.last_rows), hi, lo)

    def test(self, row, hi, lo, mask=MASK):
        chosen, fingerprint = (lo | 1) & mask, mix(hi ^ lo)
        rows = [row + i for i in range(64) if chosen >> i & 1]
        return all(
            sum(self.bit(r, column) for r in rows) & 1 == fingerprint >> column & 1
            for column in range(self.width - (row // 64 < self.narrow))
        )


def start(hi, first, shards, rows):
    return first + reduce(hi, shards) * rows + reduce(hi * shards & MASK, rows - 63)


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        index = Index(file.read())
    for key in sys.argv[3:]:
        for number in index.candidates(sys.argv[2], key.encode()):
            print(key, index.entries[number][0].decode(errors="replace"))
