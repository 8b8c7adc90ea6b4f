/*
 * The C array that many tutorials copy, with its seeds and its mask, written to a file.
 *
 *   array FILE KEY...
 */
#include <stdio.h>

#define SIZE (15 * 1024 * 1024)

static unsigned char array[SIZE];
static const int SEEDS[] = {5, 7, 11, 13, 31, 37, 61};

static unsigned hashcode(unsigned cap, int seed, const char *key) {
    unsigned hash = 0;
    for (; *key; key++)
        hash = (unsigned)seed * hash + (unsigned char)*key;
    return hash & (cap - 1);
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    for (int i = 2; i < argc; i++)
        for (unsigned k = 0; k < sizeof SEEDS / sizeof *SEEDS; k++) {
            unsigned at = hashcode(SIZE * 8u, SEEDS[k], argv[i]);
            array[at / 8] |= (unsigned char)(1 << at % 8);
        }
    FILE *file = fopen(argv[1], "wb");
    return file && fwrite(array, 1, SIZE, file) == SIZE && !fclose(file) ? 0 : 1;
}
