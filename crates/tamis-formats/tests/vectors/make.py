#!/usr/bin/env python3
"""Writes hashes.tsv: what other implementations make of the keys that have broken some.

    pip install fnvhash highwayhash-cffi mmh3 murmurhash siphash24 xxhash
    python make.py

Where a published package has the hash, its answer is written. The variants that no package has are spelled out below
from their definitions, byte by byte and as slowly as that is. They share nothing with the crate's code."""

import ctypes
import struct
from pathlib import Path

import fnvhash
import highwayhash
import mmh3
import siphash24
import xxhash
from murmurhash import mrmr

M32, M64 = (1 << 32) - 1, (1 << 64) - 1


def rotl(x, by, bits):
    return (x << by | x >> (bits - by)) & ((1 << bits) - 1)


def signed_byte(byte):
    return byte - 256 if byte >= 128 else byte


# --- MurmurHash ---


def murmur3_x64_128(key, seed):
    low, high = mmh3.hash64(key, seed, signed=False)
    return high << 64 | low


def fmix64(x):
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCD & M64
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53 & M64
    return x ^ x >> 33


def murmur3_x64_128_signed(key, seed):
    """Cassandra's: the tail's bytes are Java's, so that one from 0x80 on drags ones into everything above it."""
    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
    h1 = h2 = seed
    whole = len(key) // 16 * 16
    for at in range(0, whole, 16):
        k1, k2 = struct.unpack_from("<QQ", key, at)
        h1 ^= rotl(k1 * c1 & M64, 31, 64) * c2 & M64
        h1 = (rotl(h1, 27, 64) + h2) * 5 + 0x52DCE729 & M64
        h2 ^= rotl(k2 * c2 & M64, 33, 64) * c1 & M64
        h2 = (rotl(h2, 31, 64) + h1) * 5 + 0x38495AB5 & M64
    k1 = k2 = 0
    for i, byte in enumerate(key[whole:]):
        if i < 8:
            k1 ^= signed_byte(byte) << 8 * i & M64
        else:
            k2 ^= signed_byte(byte) << 8 * (i - 8) & M64
    h2 ^= rotl(k2 * c2 & M64, 33, 64) * c1 & M64
    h1 ^= rotl(k1 * c1 & M64, 31, 64) * c2 & M64
    h1 ^= len(key)
    h2 ^= len(key)
    h1 = h1 + h2 & M64
    h2 = h2 + h1 & M64
    h1, h2 = fmix64(h1), fmix64(h2)
    h1 = h1 + h2 & M64
    h2 = h2 + h1 & M64
    return h2 << 64 | h1


def murmur3_x86_32(key, seed):
    return mmh3.hash(key, seed, signed=False)


def murmur3_spark(key, seed):
    """Spark's hashUnsafeBytes: every byte of the tail is mixed as an int of its own, sign and all."""
    h = seed
    whole = len(key) // 4 * 4
    blocks = [struct.unpack_from("<i", key, at)[0] for at in range(0, whole, 4)]
    for block in blocks + [signed_byte(byte) for byte in key[whole:]]:
        k = rotl((block & M32) * 0xCC9E2D51 & M32, 15, 32) * 0x1B873593 & M32
        h = rotl(h ^ k, 13, 32) * 5 + 0xE6546B64 & M32
    h ^= len(key)
    h = (h ^ h >> 16) * 0x85EBCA6B & M32
    h = (h ^ h >> 13) * 0xC2B2AE35 & M32
    return h ^ h >> 16


def murmur3_orc(key, seed):
    """ORC's hash64: the first half of the 128-bit one, fed with every eight bytes."""
    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
    h = seed
    whole = len(key) // 8 * 8
    for at in range(0, whole, 8):
        k = rotl(struct.unpack_from("<Q", key, at)[0] * c1 & M64, 31, 64) * c2 & M64
        h = rotl(h ^ k, 27, 64) * 5 + 0x52DCE729 & M64
    k = 0
    for i, byte in enumerate(key[whole:]):
        k ^= byte << 8 * i
    h ^= rotl(k * c1 & M64, 31, 64) * c2 & M64
    return fmix64(h ^ len(key))


def c_murmur2_64a():
    """MurmurHash64A by Austin Appleby, which the package murmurhash has for its own C code."""
    name = b"uint64_t (void *, int, uint64_t)"
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = pointer(mrmr.__pyx_capi__["hash64"], name)
    function = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint64)(address)
    return lambda key, seed: function(key, len(key), seed)


# --- the others ---


def wang(key, _seed):
    """Thomas Wang's 64-bit mix as Java runs it: the shifts to the right keep the sign."""

    def java_long(x):
        x &= M64
        return x - (1 << 64) if x >> 63 else x

    x = struct.unpack("<q", key)[0]
    x = java_long(~x + (x << 21))
    x = java_long(x ^ x >> 24)
    x = java_long(x + (x << 3) + (x << 8))
    x = java_long(x ^ x >> 14)
    x = java_long(x + (x << 2) + (x << 4))
    x = java_long(x ^ x >> 28)
    return (x + (x << 31)) & M64


def leveldb(key, seed):
    m = 0xC6A4A793
    h = seed ^ len(key) * m & M32
    whole = len(key) // 4 * 4
    for at in range(0, whole, 4):
        h = (h + struct.unpack_from("<I", key, at)[0]) * m & M32
        h ^= h >> 16
    rest = key[whole:]
    if len(rest) == 3:
        h = h + (rest[2] << 16) & M32
    if len(rest) >= 2:
        h = h + (rest[1] << 8) & M32
    if len(rest) >= 1:
        h = (h + rest[0]) * m & M32
        h ^= h >> 24
    return h


def highway(key, seed):
    assert seed == 0
    redisson = struct.pack("<4Q", 0x9E3779B97F4A7C15, 0xF39CC0605CEDC834, 0x1082276BF3A27251, 0xF86C6A11D0C18E95)
    return int.from_bytes(highwayhash.highwayhash_128(redisson, key), "little")


def siphash_1_3(key, seed):
    digest = siphash24.siphash13(key, key=struct.pack("<QQ", seed, seed)).digest()
    return int.from_bytes(digest, "little")


def mum(a, b):
    product = a * b
    return product & M64 ^ product >> 64


def wyhash_2(key, seed):
    """The second version of wyhash, which reads what is left over in an order of its own."""
    p0, p1, p2, p3, p4, p5 = (
        0xA0761D6478BD642F,
        0xE7037ED1A0B428DB,
        0x8EBC6AF09C88C6E3,
        0x589965CC75374CC3,
        0x1D8E4E27C47D124F,
        0xEB44ACCAB455D165,
    )

    def number(data):
        return int.from_bytes(data, "little")

    def swapped(data):
        return number(data[:4]) << 32 | number(data[4:8])

    def left_over(data):
        size = len(data)
        if size == 3:
            return number(data[:2]) << 8 | data[2]
        if size in (1, 2, 4):
            return number(data)
        if size == 7:
            return number(data[:4]) << 24 | number(data[4:6]) << 8 | data[6]
        return number(data[:4]) << 8 * (size - 4) | number(data[4:])

    whole = len(key) // 32 * 32
    for at in range(0, whole, 32):
        a, b, c, d = struct.unpack_from("<4Q", key, at)
        seed = mum(seed ^ p0, mum(a ^ p1, b ^ p2) ^ mum(c ^ p3, d ^ p4))
    seed ^= p0
    rest = key[whole:]
    parts = [rest[at : at + 8] for at in range(0, len(rest), 8)]
    if len(parts) == 1:
        seed = mum(seed, left_over(parts[0]) ^ p1)
    elif len(parts) == 2:
        seed = mum(swapped(parts[0]) ^ seed, left_over(parts[1]) ^ p2)
    elif len(parts) == 3:
        seed = mum(swapped(parts[0]) ^ seed, swapped(parts[1]) ^ p2) ^ mum(seed, left_over(parts[2]) ^ p3)
    elif len(parts) == 4:
        first = mum(swapped(parts[0]) ^ seed, swapped(parts[1]) ^ p2)
        seed = first ^ mum(swapped(parts[2]) ^ seed, left_over(parts[3]) ^ p4)
    return mum(seed, len(key) ^ p5)


# --- the keys ---

LONG = bytes((131 * i + 7) % 256 for i in range(100_000))
LENGTHS = [*range(0, 18), 23, 24, 25, 31, 32, 33, 63, 64, 65, 127, 128, 129, 241]


def keys():
    for length in LENGTHS:
        yield bytes((i * 37 + 1) % 128 for i in range(length))
        yield bytes(i * 37 % 128 + 128 for i in range(length))
        if length:
            # Only the last byte has its highest bit set; then all but the last.
            yield bytes(length - 1) + b"\x80"
            yield b"\xff" * (length - 1) + b"\x7f"
    yield from (b"\xff" * 33, b"a\0b", "tamis \U0001f33e sieve \U0001f9c2".encode(), "\U0001f33e".encode("utf-16-le"))
    yield LONG


# Name, function, seeds. Seeds are those of formats, and ones with the highest bit set.
HASHES = [
    ("murmur3-x64-128", murmur3_x64_128, [0, 1, 0xDEADBEEF]),
    ("murmur3-x64-128-signed", murmur3_x64_128_signed, [0]),
    ("murmur3-x86-32", murmur3_x86_32, [0, 0xFBA4C795]),
    ("murmur3-spark", murmur3_spark, [0, 0x9747B28C]),
    ("murmur3-orc", murmur3_orc, [104729]),
    ("murmur2-64a", c_murmur2_64a(), [0, 0xC6A4A7935BD1E995]),
    ("fnv1", lambda key, _: fnvhash.fnv1_64(key), [0]),
    ("wang", wang, [0]),
    ("leveldb", leveldb, [0xBC9F1D34]),
    ("highway-128", highway, [0]),
    ("siphash-1-3", siphash_1_3, [0x0706050403020100]),
    ("wyhash-2", wyhash_2, [0x706F707079533D42]),
    ("xxh64", lambda key, seed: xxhash.xxh64_intdigest(key, seed), [0, 0x9E3779B1]),
]


def main():
    numbered = list(dict.fromkeys(keys()))
    with open(Path(__file__).with_name("hashes.tsv"), "w") as out:
        print("# Made by make.py: the keys, numbered from 0; then hash, seed, number of the key, expected. In hex.", file=out)
        for key in numbered:
            print("LONG" if key is LONG else key.hex(), file=out)
        for name, function, seeds in HASHES:
            for seed in seeds:
                for number, key in enumerate(numbered):
                    if name != "wang" or len(key) == 8:
                        print(name, f"{seed:x}", number, f"{function(key, seed):x}", sep="\t", file=out)


if __name__ == "__main__":
    main()
