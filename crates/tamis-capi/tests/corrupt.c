/* corrupt FILE...: none is a filter, in whatever way it is opened. */
#include "check.h"

static void refused(const char *name, const char *way, tamis_filter *filter) {
    if (filter) {
        printf("%s: %s took it for a filter\n", name, way);
        exit(1);
    }
    CHECK(tamis_last_status() < 0 && strlen(tamis_last_error()) > 10);
}

int main(int count, char **names) {
    const tamis_secret secret = {{1, 2, 3}};
    for (int i = 1; i < count; i++) {
        FILE *file = fopen(names[i], "rb");
        CHECK(file && fseek(file, 0, SEEK_END) == 0);
        const long length = ftell(file);
        CHECK(length >= 0 && fseek(file, 0, SEEK_SET) == 0);
        unsigned char *all = malloc((size_t)length + 1);
        CHECK(all && fread(all, 1, (size_t)length, file) == (size_t)length && fclose(file) == 0);
        for (int keyed = 0; keyed < 2; keyed++) {
            const tamis_secret *with = keyed ? &secret : NULL;
            /* A map looks at all bytes only when it is asked to. */
            refused(names[i], "open", tamis_open(names[i], with, TAMIS_VERIFY));
            refused(names[i], "load", tamis_load(names[i], with, 0));
            refused(names[i], "share", tamis_share(names[i], with));
            refused(names[i], "from_bytes", tamis_from_bytes(all, (size_t)length, with, 0));
            refused(names[i], "view", tamis_view(all, (size_t)length, with, 0));
            /* Whatever it makes of the rest, asking it ends. */
            tamis_filter *filter = tamis_open(names[i], with, TAMIS_ACCEPT_LOSS);
            if (filter) {
                CHECK(tamis_contains(filter, "key", 3) >= 0 && tamis_contains_u64(filter, 1) >= 0);
                tamis_filter_info info;
                CHECK(tamis_info(filter, &info) == 0);
            }
            tamis_free(filter);
        }
        free(all);
    }
    printf("%d files refused\n", count - 1);
    return 0;
}
