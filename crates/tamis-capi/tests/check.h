/* What the tests share: checks that say where they failed. */
#ifndef CHECK_H
#define CHECK_H

#include "tamis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                              \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            fprintf(stderr, "%s:%d: %s\nlast error: %s\n", __FILE__, __LINE__, #condition, tamis_last_error());       \
            exit(1);                                                                                                  \
        }                                                                                                             \
    } while (0)

/* That a call failed so, and what it said. */
#define FAILS(status, text, call)                                                                                     \
    do {                                                                                                              \
        CHECK((call) == (status));                                                                                    \
        CHECK(tamis_last_status() == (status));                                                                       \
        CHECK(strstr(tamis_last_error(), text) != NULL);                                                              \
    } while (0)

/* The same for calls that return a handle. */
#define REFUSES(status, text, call)                                                                                   \
    do {                                                                                                              \
        CHECK((call) == NULL);                                                                                        \
        CHECK(tamis_last_status() == (status));                                                                       \
        CHECK(strstr(tamis_last_error(), text) != NULL);                                                              \
    } while (0)

#endif
