/*
 * The C filter of many tutorials, written anew: h = seed * h + character, one seed for each of k hashes, and the
 * result cut to the number of bits by a mask.
 *
 *   seeds MIB KEYS [modulo|mixed]: a filter of that many MiB is given that many URLs and asked for a million others
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t SEEDS[] = {5, 7, 11, 13, 31, 37, 61};
enum { HASHES = sizeof SEEDS / sizeof *SEEDS, OTHERS = 1000000 };

static uint32_t bits;
static enum { MASKED, MODULO, MIXED } way;

static uint32_t seeded(const char *key, uint32_t seed) {
    uint32_t h = 0;
    for (; *key; key++)
        h = seed * h + (unsigned char)*key;
    return h;
}

/* One good hash, and the seed mixed into its result. */
static uint64_t mixed(const char *key, uint32_t seed) {
    uint64_t h = 0xCBF29CE484222325;
    for (; *key; key++)
        h = (h ^ (unsigned char)*key) * 0x100000001B3;
    h += seed * 0x9E3779B97F4A7C15;
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9;
    h = (h ^ h >> 27) * 0x94D049BB133111EB;
    return h ^ h >> 31;
}

static uint32_t position(const char *key, uint32_t seed) {
    switch (way) {
    case MASKED:
        return seeded(key, seed) & (bits - 1);
    case MODULO:
        return seeded(key, seed) % bits;
    default:
        return (uint32_t)(mixed(key, seed) % bits);
    }
}

static void url(char *text, unsigned number) {
    sprintf(text, "https://example.org/page/%u", number);
}

static int is_set(const unsigned char *filter, uint32_t at) {
    return filter[at / 8] >> at % 8 & 1;
}

/* Whether the bit was clear. */
static int set(unsigned char *filter, uint32_t at) {
    int was = is_set(filter, at);
    filter[at / 8] |= (unsigned char)(1 << at % 8);
    return !was;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    char key[64];
    size_t bytes = (size_t)atoi(argv[1]) << 20;
    unsigned keys = (unsigned)atoi(argv[2]), yes = 0, bits_set = 0, own[HASHES] = {0};
    unsigned char *filter = calloc(bytes, 1), *alone = calloc(bytes, HASHES);
    bits = (uint32_t)(bytes * 8);
    way = argc < 4 ? MASKED : strcmp(argv[3], "modulo") ? MIXED : MODULO;

    for (unsigned i = 0; i < keys; i++) {
        url(key, i);
        for (int k = 0; k < HASHES; k++) {
            uint32_t at = position(key, SEEDS[k]);
            own[k] += (unsigned)set(alone + bytes * k, at);
            bits_set += (unsigned)set(filter, at);
        }
    }
    printf("bits set by each seed alone:");
    for (int k = 0; k < HASHES; k++)
        printf(" %u", own[k]);
    for (unsigned i = keys; i < keys + OTHERS; i++) {
        int all = 1;
        url(key, i);
        for (int k = 0; k < HASHES && all; k++)
            all = is_set(filter, position(key, SEEDS[k]));
        yes += (unsigned)all;
    }
    double expected = -expm1(-(double)HASHES * keys / bits);
    double reached = way == MASKED ? ldexp(1, __builtin_popcount(bits - 1)) : bits;
    printf("\nbits within reach: %.1f %%\n", 100 * reached / bits);
    printf("bits set: %.2f %%, and %.2f %% by the formula\n", 100.0 * bits_set / bits, 100 * expected);
    double rate = (double)yes / OTHERS, promised = pow(expected, HASHES);
    printf("false yes: %.6f, and %.6f by the formula: %.1f times as many\n", rate, promised, rate / promised);
    free(filter);
    free(alone);
}
