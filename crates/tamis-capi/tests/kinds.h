/* The kinds of filter: those that are created empty, and those that are built from a finished list. */
#ifndef KINDS_H
#define KINDS_H

#include "tamis.h"

static const int CREATED[] = {TAMIS_BLOOM, TAMIS_BLOCKED, TAMIS_COUNTING, TAMIS_CUCKOO, TAMIS_GROWING, TAMIS_WINDOW};
static const int LISTS[] = {TAMIS_FUSE, TAMIS_RIBBON, TAMIS_CASCADE};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
