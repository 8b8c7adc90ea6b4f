/* Nanoseconds of single calls through C, at a filter that stays in the processor's caches: what a call costs is then not
 * hidden behind memory. native.rs is the same loops in Rust. */
#include "tamis.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KEYS = 10000, ROUNDS = 100, TRIES = 9, LENGTH = 16 };

static char keys[2 * KEYS][LENGTH + 1];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Of one of the two calls, on new keys. */
static double inserting(int (*insert)(tamis_filter *, const void *, size_t)) {
    double best = 1e300;
    for (int try = 0; try < TRIES; try++) {
        double took = 0;
        for (int round = 0; round < ROUNDS; round++) {
            tamis_filter *filter = tamis_new(TAMIS_BLOCKED, KEYS, 0.01, NULL);
            uint64_t new = 0;
            const double start = now();
            for (int i = 0; i < KEYS; i++)
                new += (uint64_t)insert(filter, keys[i], LENGTH);
            took += now() - start;
            if (new < KEYS * 99 / 100)
                exit(1);
            tamis_free(filter);
        }
        took /= (double)KEYS * ROUNDS;
        best = took < best ? took : best;
    }
    return best;
}

int main(void) {
    for (int i = 0; i < 2 * KEYS; i++)
        snprintf(keys[i], sizeof keys[i], "user-%011d", i);

    printf("c insert\t%.2f\n", inserting(tamis_insert));
    printf("c insert alone\t%.2f\n", inserting(tamis_insert_alone));

    tamis_filter *filter = tamis_new(TAMIS_BLOCKED, KEYS, 0.01, NULL);
    for (int i = 0; i < KEYS; i++)
        tamis_insert(filter, keys[i], LENGTH);
    /* Half of them are there. */
    double best = 1e300;
    for (int try = 0; try < TRIES; try++) {
        uint64_t yes = 0;
        const double start = now();
        for (int round = 0; round < ROUNDS; round++)
            for (int i = 0; i < 2 * KEYS; i++)
                yes += (uint64_t)tamis_contains(filter, keys[i], LENGTH);
        const double took = (now() - start) / (2.0 * KEYS * ROUNDS);
        if (yes < (uint64_t)KEYS * ROUNDS)
            return 1;
        best = took < best ? took : best;
    }
    printf("c contains\t%.2f\n", best);
    tamis_free(filter);
    return 0;
}
