/* alike KIND RATE KEYS OUT: a filter of the lines of a file, which the command must write alike. */
#include "check.h"

int main(int count, char **words) {
    CHECK(count == 5);
    const int kind = atoi(words[1]);
    const double rate = atof(words[2]);
    FILE *file = fopen(words[3], "rb");
    CHECK(file);
    static char lines[100000][64];
    uint64_t keys = 0;
    while (keys < 100000 && fgets(lines[keys], sizeof lines[0], file)) {
        lines[keys][strcspn(lines[keys], "\n")] = 0;
        keys++;
    }
    fclose(file);
    tamis_filter *filter;
    if (kind == TAMIS_FUSE || kind == TAMIS_RIBBON) {
        tamis_list *list = tamis_list_new(kind, rate, NULL);
        CHECK(list);
        for (uint64_t i = 0; i < keys; i++)
            CHECK(tamis_list_add(list, lines[i], strlen(lines[i])) == 0);
        filter = tamis_list_build(list);
    } else {
        filter = tamis_new(kind, keys, rate, NULL);
        for (uint64_t i = 0; i < keys; i++)
            CHECK(tamis_insert(filter, lines[i], strlen(lines[i])) >= 0);
    }
    CHECK(filter && tamis_save(filter, words[4]) == 0);
    tamis_free(filter);
    return 0;
}
