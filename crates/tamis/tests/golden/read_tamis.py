"""Reads Tamis filters: version 1, all kinds. Needs `pip install xxhash`.

Written from docs/format.md alone, to prove that it can be.

    python read_tamis.py FILTER.tamis KEY...        prints the keys that may be present
"""

import struct
import sys

import xxhash

MASK = 2**64 - 1
UNKNOWN = 2**64 - 1
HEADER = struct.Struct("<8sHBBIQd16sQQIIQQQ QQ16s")
assert HEADER.size == 128


class Corrupt(Exception):
    """The bytes are not a sound filter."""


class Unclean(Exception):
    """The file is, or was left, open for writing."""


class KeyNeeded(Exception):
    """The secret is kept apart, and was not given or is another one."""


class Filter:
    """A filter in bytes; `key in filter` asks it."""

    def __init__(self, data, secret=None, accept_loss=False):
        if len(data) < 128:
            raise Corrupt(f"length: expected at least 128 bytes, got {len(data)}")
        (magic, version, kind, hash_, flags, self.capacity, self.rate, field, key_check,
         shape1, shape2a, shape2b, shape3, body_len, header_sum,
         keys, body_sum, mark) = HEADER.unpack_from(data)  # fmt: skip
        self.body = data[128:]

        check("magic", magic, b"TAMIS\r\n\x1a")
        check("version", version, 1)
        check("header checksum", xxhash.xxh3_64_intdigest(data[:88]), header_sum)
        self.ignore_case, url, self.values = flags >> 1 & 1, flags >> 2 & 1, flags >> 8 or 1
        if flags & 0xF8 or flags >> 16 or flags >> 8 == 1:
            raise Corrupt(f"flags: expected known ones, got {flags:#x}")
        if url:
            raise NotImplementedError("URLs are normalised by the WHATWG's parser, which this reader has not")
        flags &= 1
        if hash_ == 1:
            check("flags", flags, 0)
            check("bytes after the seed", field[8:], bytes(8))
            check("key check", key_check, 0)
            seed = int.from_bytes(field[:8], "little")
            self.hash = lambda key: xxhash.xxh3_128_intdigest(key, seed)
        elif hash_ == 2:
            if flags == 1:
                check("secret kept apart", field, bytes(16))
                if secret is None:
                    raise KeyNeeded("the secret is kept apart from the file")
                if siphash128(secret, b"tamis key check") & MASK != key_check:
                    raise KeyNeeded("this is another secret")
                field = secret
            else:
                check("flags", flags, 0)
                check("key check", key_check, 0)
            self.hash = lambda key: siphash128(field, key)
        else:
            raise Corrupt(f"hash: expected 1 or 2, got {hash_}")
        if not 0 < self.rate < 1:
            raise Corrupt(f"rate: expected between 0 and 1, got {self.rate}")
        if kind not in (5, 7, 9):
            check("shape 3", shape3, 0)
        if kind == 1:
            self.kind = "bloom"
            check_range("bits", shape1, 2**63)
            check_range("hashes", shape2a, 64)
            check("shape 2b", shape2b, 0)
            self.positions = lambda hi, lo: bloom(hi, lo, shape1, shape2a)
            expected = (shape1 + 511) // 512 * 64
        elif kind == 2:
            self.kind = "blocked"
            check_lines(shape1, shape2a, shape2b)
            self.positions = lambda hi, lo: blocked(hi, lo, shape1, shape2a, shape2b)
            expected = shape1 * 64
        elif kind == 3:
            self.kind = "counting"
            check_lines(shape1, shape2a, shape2b)
            self.counters = lambda hi, lo: blocked(hi, lo, shape1, shape2a, shape2b)
            expected = shape1 * 256
        elif kind == 4:
            self.kind = "cuckoo"
            if not (2 <= shape2a <= 4 and 4 <= shape2b <= 32 and shape2a * shape2b <= 64):
                raise Corrupt(f"window and width: got {shape2a} and {shape2b}")
            if not shape2a <= shape1 < 2**56 // shape2b:
                raise Corrupt(f"slots: got {shape1}")
            self.slots = lambda hi, lo: cuckoo(hi, lo, shape1, shape2a, shape2b)
            self.width = shape2b
            expected = (shape1 * shape2b + 64 + 511) // 512 * 64
        elif kind == 5:
            self.kind = "growing"
            check_range("layers", shape3, 1000)
            if not 2 * shape3 <= shape1 <= 2**54:
                raise Corrupt(f"lines: got {shape1} for {shape3} layers")
            check_lines(shape1 - shape3, shape2a, shape2b)
            self.lines_per_key = shape2b
            expected = shape1 * 64
        elif kind == 6:
            self.kind = "fuse"
            self.fuse = Fuse(shape1, shape2a, shape2b)
            expected = self.fuse.body_words() * 8
        elif kind == 7:
            self.kind = "ribbon"
            self.ribbon = Ribbon(shape1, shape2a | shape2b << 32, shape3)
            expected = self.ribbon.body_words * 8
        elif kind == 8:
            self.kind = "cascade"
            check_range("lines", shape1, 2**54)
            check("shape 2", (shape2a, shape2b), (0, 0))
            expected = shape1 * 64
        elif kind == 9:
            self.kind = "window"
            self.window = Window(shape1, shape2a, shape2b, shape3)
            expected = self.window.body_words * 8
        else:
            raise Corrupt(f"kind: expected 1 to 9, got {kind}")
        check("body length", body_len, expected)
        if kind == 5 and len(self.body) > expected:
            self.body = self.body[:expected]  # a layer that was never finished
        check("file length", len(self.body) + 128, expected + 128)
        if mark != bytes(16) and not accept_loss:
            # Whether it is this machine's boot, a copy can't tell.
            raise Unclean("the filter was open for writing; keys may be missing")
        self.checked = body_sum != 0
        if self.checked:
            check("body checksum", xxhash.xxh3_64_intdigest(self.body, keys), body_sum)
        self.keys = None if keys == UNKNOWN or mark != bytes(16) else keys
        if kind == 5:
            layers = self.layers(shape3)
            self.any_of = [
                lambda hi, lo, n=lines, at=at: (
                    512 * at + b for b in blocked(hi, lo, n, shape2a, shape2b)
                )
                for lines, at in layers
            ]
        elif kind == 8:
            self.levels(shape1)
        elif kind == 9:
            self.window.read_head(self.word)
            if mark == bytes(16):
                self.keys = self.window.keys

    def layers(self, count):
        """(lines, first line) of every layer of a growing filter."""
        layers, at, end, capacities, rates = [], 0, len(self.body) // 64, 0, 0.0
        while at < end:
            lines, capacity, keys, rate = struct.unpack_from("<QQQd", self.body, 64 * at)
            check_range("lines of a layer", lines, end - at - 1)
            check("lines of a layer, beyond equal banks", lines % self.lines_per_key, 0)
            check_range("capacity of a layer", capacity, 2**64 - 1 - capacities)
            capacities += capacity
            if keys > capacity:
                raise Corrupt(f"keys of a layer: {keys} exceed {capacity}")
            rates += rate
            if not (rate > 0 and rates <= self.rate * (1 + 1e-9)):
                raise Corrupt(f"rate of a layer: got {rate}")
            check("reserved", self.body[64 * at + 32 : 64 * at + 64], bytes(32))
            layers.append((lines, at + 1))
            at += 1 + lines
        check("layers", len(layers), count)
        return layers

    def levels(self, lines):
        """The two ribbons of a cascade."""
        words = struct.unpack_from("<8Q", self.body)
        self.first, self.second = Ribbon(*words[:3]), Ribbon(*words[3:6])
        check("reserved", words[6:], (0, 0))
        check("lines", 1 + (self.first.body_words + self.second.body_words) // 8, lines)
        self.second_at = 8 + self.first.body_words

    def word(self, i):
        return int.from_bytes(self.body[8 * i : 8 * i + 8], "little")

    def made(self, value):
        """A value as it is in a key."""
        if not self.ignore_case:
            return value
        try:
            return "".join(c.lower() for c in value.decode()).encode()
        except UnicodeDecodeError:
            return value.lower()

    def __contains__(self, key):
        """Asks one value; of a filter with several values a key, a tuple of them."""
        if self.values > 1:
            check("values", len(key), self.values)
            key = b"".join(len(v).to_bytes(8, "little") + v for v in map(self.made, key))
        else:
            key = self.made(key)
        h = self.hash(key)
        hi, lo = h >> 64, h & MASK
        if self.kind == "counting":
            return all(self.bits(4 * c, 4) for c in self.counters(hi, lo))
        if self.kind == "cuckoo":
            width = self.width
            return any(self.bits(s * width, width) == v for s, v in self.slots(hi, lo))
        if self.kind == "growing":
            return any(all(self.bits(b, 1) for b in layer(hi, lo)) for layer in self.any_of)
        if self.kind == "fuse":
            return self.fuse.contains(hi, lo, self.word, self.bits)
        if self.kind == "ribbon":
            return self.ribbon.contains(hi, lo, self.word)
        if self.kind == "cascade":
            return self.first.contains(hi, lo, lambda i: self.word(8 + i)) and self.second.contains(
                hi, mix(lo ^ 0x243F6A8885A308D3), lambda i: self.word(self.second_at + i)
            )
        if self.kind == "window":
            return self.window.contains(hi, lo, self.word)
        return all(self.bits(b, 1) for b in self.positions(hi, lo))

    def bits(self, start, count):
        """So many bits of the body."""
        first, end = start // 8, (start + count + 7) // 8
        return int.from_bytes(self.body[first:end], "little") >> start % 8 & (1 << count) - 1


def check(what, got, expected):
    if got != expected:
        raise Corrupt(f"{what}: expected {expected!r}, got {got!r}")


def check_range(what, got, most):
    if not 1 <= got <= most:
        raise Corrupt(f"{what}: expected 1 to {most}, got {got}")


def check_lines(lines, k, lines_per_key):
    check_range("lines", lines, 2**54)
    check_range("hashes per line", k, 8)
    check_range("lines per key", lines_per_key, 4)
    check("lines beyond equal banks", lines % lines_per_key, 0)


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93 & MASK
    return x ^ x >> 32


def reduce(x, n):
    return x * n >> 64


def bloom(hi, lo, m, k):
    x = lo
    for _ in range(k):
        yield reduce(x, m)
        x = (x * 0xD6E8FEB86659FD93 + hi) & MASK


def blocked(hi, lo, lines, k, lines_per_key):
    per_bank = lines // lines_per_key
    for bank in range(lines_per_key):
        line = bank * per_bank + reduce(hi, per_bank)
        for word in range(8):
            if (word - (lo >> 61)) % 8 < k:
                yield 512 * line + 64 * word + (lo >> 6 * word & 63)
        hi, lo = mix(hi), mix(lo)


def cuckoo(hi, lo, slots, window, width):
    places = slots - window + 1
    fingerprints = (2**width - 1) // window
    fingerprint = 1 + reduce(mix(lo), fingerprints)
    first = reduce(hi, places)
    second = (reduce(mix(mix(fingerprint)), places) - first) % places
    for place in (first, second):
        for i in range(window):
            yield place + i, i * fingerprints + fingerprint


class Window:
    """The tables of a window, and which generations are asked."""

    LOADS = {6: 208, 8: 218, 12: 230, 16: 236, 24: 245, 32: 248}
    WIDTHS, GROWN = (16, 21, 32, 64), (4, 4, 4, 8)

    def __init__(self, bins, a, b, span):
        generations, width, words, count = a.to_bytes(4, "little")
        check_range("generations", generations, 62)
        check_range("tables", count, 24)
        if width > 3 or words not in (2, 4, 8) or 64 // self.WIDTHS[width] * words not in self.LOADS:
            raise Corrupt(f"slots: got width {width}, {words} words")
        if not 2 <= bins <= 2**48 or b > 3:
            raise Corrupt(f"window: got {bins} bins, flags {b:#x}")
        self.by_keys = b & 1
        self.step = -(-span // generations)
        least, most = (1, 2**56) if self.by_keys else (1_000, 20_000 * 366 * 86_400 * 1_000_000)
        if not least <= self.step <= most:
            raise Corrupt(f"length of a generation: got {self.step}")
        self.in_span = -(-span // self.step)
        kept = self.in_span + 2
        self.stamp_bits = (kept + max(kept // 2, 4) - 1).bit_length()
        room = bins * (slots := 64 // self.WIDTHS[width] * words) * self.LOADS[slots] // 256
        self.tables, at = [], 8
        for number in range(count):
            if number:
                width = min(width + 1, 3)
                words = self.GROWN[width]
                slots = 64 // self.WIDTHS[width] * words
                bins = max(2, -(-(room << number) * 256 // (slots * self.LOADS[slots])))
            pages = -(-bins * words // 4096)
            epochs = at + up(2**self.stamp_bits)
            first = epochs + up(pages)
            self.tables.append((at, epochs, pages, first, bins, words, self.WIDTHS[width]))
            at = first + up(bins * words)
        if at >= 2**57:
            raise Corrupt(f"window: {at} words")
        self.body_words = at

    def read_head(self, word):
        self.full = word(2) != 0
        if self.by_keys:
            newest = min(word(1), 2**57) // self.step
        else:
            newest = (word(0) - 2**63) // self.step if word(0) else None
        for _, epochs, pages, *_ in self.tables:
            for at in range(epochs, epochs + pages):
                epoch = self.epoch(word(at))
                if epoch is not None and (newest is None or epoch > newest):
                    raise Corrupt(f"epoch {epoch} after {newest}")
        self.keys, self.oldest = 0, None
        if newest is not None:
            self.oldest = newest - self.in_span
            for g in range(self.oldest, newest + 1):
                for ring, *_ in self.tables:
                    count = word(ring + g % 2**self.stamp_bits)
                    self.keys += count % 2**40 if count >> 40 == g % 2**24 else 0

    def epoch(self, word):
        return word % 2**61 - 2**60 if word else None

    def contains(self, hi, lo, word):
        return self.oldest is not None and any(self.has(table, hi, lo, word) for table in self.tables)

    def has(self, table, hi, lo, word):
        _, epochs, _, first, bins, words, width = table
        low = width - self.stamp_bits
        print_ = 1 + reduce(lo, 2 ** (low - 1) - 1)
        home = reduce(hi, bins)
        second = (home + 1 + reduce(print_ * 0x9E3779B97F4A7C15 & MASK, bins - 1)) % bins
        for bin_, place in ((home, 0), (second, 1)):
            epoch = self.epoch(word(epochs + bin_ * words // 4096))
            for at in range(first + bin_ * words, first + (bin_ + 1) * words):
                for lane in range(64 // width):
                    slot = word(at) >> lane * width & (1 << width) - 1
                    stamp, value = slot >> low, slot & (1 << low) - 1
                    if value == print_ | place << low - 1 or self.full and value == 1 << low - 1:
                        if epoch is not None and epoch - (epoch - stamp) % 2**self.stamp_bits >= self.oldest:
                            return True
        return False


def up(words):
    return -(-words // 8) * 8


class Fuse:
    """The shape of a fuse filter."""

    def __init__(self, shape1, shape2a, shape2b):
        self.blocks, self.window = shape1, shape2a
        self.width, self.shard_bits = shape2b & 255, shape2b >> 8
        check_range("width", self.width, 32)
        if (self.shard_bits, self.blocks, self.window) == (0, 0, 0):
            return
        if self.shard_bits > 16 or not 3 <= self.blocks < 2**26:
            raise Corrupt(f"shard bits, blocks: got {self.shard_bits}, {self.blocks}")
        check_range("window", self.window, (self.blocks - 1) // 2)

    def shard_words(self):
        return 8 + self.blocks * self.width

    def body_words(self):
        if self.blocks == 0:
            return 0
        return ((self.shard_words() << self.shard_bits) + 1 + 7) // 8 * 8

    def slots(self, hi, lo, seed):
        near = reduce(hi << self.shard_bits & MASK, 64 * (self.blocks - 2 * self.window))
        m = lo * seed & MASK
        window = 64 * self.window
        far = near + window + reduce(m, window)
        x = max(1, m * window >> 58 & 63)
        y = max(1, m >> 26 & 63)
        return near, near ^ x, far, far ^ y

    def contains(self, hi, lo, word, bits):
        if self.blocks == 0:
            return False
        first = (hi >> 64 - self.shard_bits) * self.shard_words()
        x = hi & (1 << self.width) - 1
        for slot in self.slots(hi, lo, word(first)):
            x ^= bits(64 * (first + 8) + slot * self.width, self.width)
        return x == 0


class Ribbon:
    """The shape of a ribbon table, from its three words."""

    def __init__(self, one, two, three):
        shards = (one & 0xFFFFFFFF, one >> 32, two & 0xFFFFFFFF)
        last_rows = (two >> 32) * 64
        rows = [(three >> at & 0xFFFF) * 192 for at in (0, 16, 32)]
        self.width, self.seed = three >> 48 & 255, three >> 56
        check_range("width", self.width, 32)
        self.layers, first, ended = [], 0, False
        for s, r in zip(shards, rows):
            if s == r == 0:
                ended = True
            elif ended or s == 0 or r == 0:
                raise Corrupt(f"layer: got {s} shards of {r} rows")
            else:
                self.layers.append((s, r, first))
                first += s * r
        if last_rows >= 2**32 or (first + last_rows) // 64 * self.width >= 2**63:
            raise Corrupt(f"rows: got {first} and {last_rows}")
        self.last = (1, last_rows, first)
        self.codes_at = (first + last_rows) // 64 * self.width
        code_words = (first // 192 + 31) // 32
        self.body_words = (self.codes_at + code_words + 7) // 8 * 8

    def contains(self, hi, lo, word):
        if self.body_words == 0:
            return False
        for layer in self.layers:
            row = self.row(hi, layer)
            bucket = row // 192
            code = word(self.codes_at + bucket // 32) >> bucket % 32 * 2 & 3
            if row % 192 >= (0, 20, 44, 192)[code]:
                return self.matches(hi, lo, row, word)
            hi, lo = rehash(hi, lo, 0)
        if self.last[1] == 0:
            return False
        hi, lo = rehash(hi, lo, self.seed)
        return self.matches(hi, lo, self.row(hi, self.last), word)

    def row(self, hi, layer):
        shards, rows, first = layer
        rest = hi * shards & MASK
        return first + reduce(hi, shards) * rows + reduce(rest, rows - 63)

    def matches(self, hi, lo, row, word):
        group, shift = divmod(row, 64)
        chosen = (lo | 1) << shift
        fingerprint = mix(hi ^ lo)
        for column in range(self.width):
            x = word(group * self.width + column)
            if shift:
                x |= word((group + 1) * self.width + column) << 64
            if (x & chosen).bit_count() & 1 != fingerprint >> column & 1:
                return False
        return True


def rehash(hi, lo, seed):
    hi ^= mix(lo ^ seed)
    return hi, lo ^ mix(hi)


def siphash128(secret, message):
    """SipHash-2-4 with 128 bits of output, as an integer (little-endian)."""

    def rotate(x, n):
        return (x << n | x >> (64 - n)) & MASK

    def rounds(count):
        nonlocal v0, v1, v2, v3
        for _ in range(count):
            v0 = (v0 + v1) & MASK
            v1 = rotate(v1, 13) ^ v0
            v0 = rotate(v0, 32)
            v2 = (v2 + v3) & MASK
            v3 = rotate(v3, 16) ^ v2
            v0 = (v0 + v3) & MASK
            v3 = rotate(v3, 21) ^ v0
            v2 = (v2 + v1) & MASK
            v1 = rotate(v1, 17) ^ v2
            v2 = rotate(v2, 32)

    k0, k1 = struct.unpack("<QQ", secret)
    v0, v1 = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D ^ 0xEE
    v2, v3 = k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573
    # The last word holds the rest of the message, and its length on top.
    padded = message + bytes(7 - len(message) % 8) + bytes([len(message) & 255])
    for (word,) in struct.iter_unpack("<Q", padded):
        v3 ^= word
        rounds(2)
        v0 ^= word
    v2 ^= 0xEE
    rounds(4)
    low = v0 ^ v1 ^ v2 ^ v3
    v1 ^= 0xDD
    rounds(4)
    return (v0 ^ v1 ^ v2 ^ v3) << 64 | low


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        opened = Filter(file.read())
    for argument in sys.argv[2:]:
        if argument.encode() in opened:
            print(argument)
