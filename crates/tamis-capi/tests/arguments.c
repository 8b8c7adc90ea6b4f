/* Calls of tamis.h with wrong arguments, in a folder that they may write to: which error it is, and what it says. */
#include "check.h"
#include "kinds.h"

#include <math.h>

/* One valid key, the empty one, for calls in which something else is wrong. */
static const void *const keys[] = {NULL};
static const size_t lengths[] = {0};

static void bad_arguments(void) {
    static tamis_filter_info info;
    static tamis_filter_plan plan;
    const uint64_t number = 1;
    bool answer;
    uint8_t *bytes;
    size_t length;
    tamis_secret secret;
    const int bad = TAMIS_ERROR_ARGUMENT;

    CHECK(tamis_abi_version() == TAMIS_ABI_VERSION);
    CHECK(strcmp(tamis_last_error(), "") == 0 && tamis_last_status() == TAMIS_OK);

    FAILS(bad, "filter: expected a pointer, got NULL", tamis_contains(NULL, "a", 1));
    FAILS(bad, "NULL", tamis_contains_u64(NULL, 1));
    FAILS(bad, "NULL", tamis_contains_at(NULL, "a", 1, 0));
    FAILS(bad, "NULL", tamis_contains_many(NULL, keys, lengths, 1, &answer));
    FAILS(bad, "NULL", tamis_contains_many_at(NULL, keys, lengths, 1, 0, &answer));
    FAILS(bad, "NULL", tamis_contains_many_u64(NULL, &number, 1, &answer));
    FAILS(bad, "NULL", tamis_insert(NULL, "a", 1));
    FAILS(bad, "NULL", tamis_insert_u64(NULL, 1));
    FAILS(bad, "NULL", tamis_insert_alone(NULL, "a", 1));
    FAILS(bad, "NULL", tamis_insert_many_alone(NULL, keys, lengths, 1, &answer));
    FAILS(bad, "NULL", tamis_insert_many(NULL, NULL, NULL, 0, NULL));
    FAILS(bad, "NULL", tamis_insert_at(NULL, "a", 1, 0));
    FAILS(bad, "NULL", tamis_insert_many(NULL, keys, lengths, 1, &answer));
    FAILS(bad, "NULL", tamis_insert_many_at(NULL, keys, lengths, 1, 0, &answer));
    FAILS(bad, "NULL", tamis_insert_many_u64(NULL, &number, 1, &answer));
    FAILS(bad, "NULL", tamis_remove(NULL, "a", 1));
    FAILS(bad, "NULL", tamis_remove_u64(NULL, 1));
    FAILS(bad, "other: expected another filter", tamis_union(NULL, NULL));
    FAILS(bad, "NULL", tamis_save(NULL, "none.tamis"));
    FAILS(bad, "NULL", tamis_to_bytes(NULL, &bytes, &length));
    FAILS(bad, "NULL", tamis_join(NULL, keys, lengths, 1, &bytes, &length));
    FAILS(bad, "NULL", tamis_sync(NULL));
    FAILS(bad, "NULL", tamis_info(NULL, &info));
    FAILS(bad, "NULL", tamis_list_add(NULL, "a", 1));
    FAILS(bad, "NULL", tamis_list_add_many(NULL, keys, lengths, 1));
    FAILS(bad, "NULL", tamis_list_add_many_u64(NULL, &number, 1));
    FAILS(bad, "NULL", tamis_list_allow(NULL, "a", 1));
    FAILS(bad, "NULL", tamis_list_allow_many(NULL, keys, lengths, 1));
    FAILS(bad, "NULL", tamis_list_allow_many_u64(NULL, &number, 1));
    REFUSES(bad, "NULL", tamis_list_build(NULL));
    FAILS(bad, "NULL", tamis_secret_random(NULL));
    FAILS(bad, "NULL", tamis_secret_load(NULL, &secret));
    FAILS(bad, "NULL", tamis_secret_load_or_create("none.key", NULL));
    FAILS(bad, "NULL", tamis_plan_size(TAMIS_BLOCKED, 1, 0.1, NULL));
    REFUSES(bad, "path: expected a pointer", tamis_open(NULL, NULL, 0));
    REFUSES(bad, "NULL", tamis_load(NULL, NULL, 0));
    REFUSES(bad, "NULL", tamis_share(NULL, NULL));
    REFUSES(bad, "NULL", tamis_view(NULL, 200, NULL, 0));
    REFUSES(bad, "NULL", tamis_from_bytes(NULL, 200, NULL, 0));
    REFUSES(TAMIS_ERROR_CORRUPT, "not a valid Tamis filter", tamis_view(NULL, 0, NULL, 0));
    tamis_free(NULL);
    tamis_list_free(NULL);
    tamis_bytes_free(NULL, 5);
    CHECK(tamis_close(NULL) == 0);

    static const int kinds[] = {0, 10, -1, 1 << 30};
    for (size_t i = 0; i < COUNT(kinds); i++) {
        REFUSES(bad, "kind: expected one of tamis_kind", tamis_new(kinds[i], 1000, 0.01, NULL));
        REFUSES(bad, "kind", tamis_list_new(kinds[i], 0.01, NULL));
        FAILS(bad, "kind", tamis_plan_size(kinds[i], 1000, 0.01, &plan));
    }
    for (size_t i = 0; i < COUNT(LISTS); i++)
        REFUSES(TAMIS_ERROR_UNABLE, "can't be created empty", tamis_new(LISTS[i], 1000, 0.01, NULL));
    for (size_t i = 0; i < COUNT(CREATED); i++) {
        REFUSES(TAMIS_ERROR_UNABLE, "can't be built from a finished list", tamis_list_new(CREATED[i], 0.01, NULL));
        static const double rates[] = {0.0, 1.0, -0.5, 7.0, -INFINITY, INFINITY, NAN};
        for (size_t j = 0; j < COUNT(rates); j++)
            REFUSES(bad, "rate", tamis_new(CREATED[i], 1000, rates[j], NULL));
        REFUSES(bad, "", tamis_new(CREATED[i], 0, 0.01, NULL));
        static const uint64_t huge[] = {UINT64_MAX, (uint64_t)1 << 63, (uint64_t)1 << 52};
        for (size_t j = 0; j < COUNT(huge); j++) {
            /* A growing filter begins small, whatever is expected. */
            tamis_filter *filter = tamis_new(CREATED[i], huge[j], 0.001, NULL);
            CHECK(filter == NULL || CREATED[i] == TAMIS_GROWING);
            CHECK(filter || tamis_last_status() == TAMIS_ERROR_ARGUMENT || tamis_last_status() == TAMIS_ERROR_MEMORY);
            tamis_free(filter);
        }
    }

    tamis_filter *filter = tamis_new(TAMIS_BLOCKED, 1000, 0.01, NULL);
    CHECK(filter);
    FAILS(bad, "key: expected a pointer", tamis_contains(filter, NULL, 1));
    FAILS(bad, "key", tamis_insert(filter, NULL, SIZE_MAX));
    FAILS(bad, "at most", tamis_contains(filter, "a", SIZE_MAX));
    FAILS(bad, "keys", tamis_contains_many(filter, NULL, lengths, 1, &answer));
    FAILS(bad, "lengths", tamis_contains_many(filter, keys, NULL, 1, &answer));
    FAILS(bad, "answers", tamis_contains_many(filter, keys, lengths, 1, NULL));
    FAILS(bad, "answers", tamis_contains_many_u64(filter, &number, 1, NULL));
    FAILS(bad, "keys", tamis_contains_many_u64(filter, NULL, 1, &answer));
    FAILS(bad, "same", tamis_union(filter, filter));
    FAILS(bad, "other", tamis_union(filter, NULL));
    FAILS(bad, "info", tamis_info(filter, NULL));
    FAILS(bad, "path", tamis_save(filter, NULL));
    FAILS(bad, "bytes", tamis_to_bytes(filter, NULL, &length));
    FAILS(bad, "length", tamis_to_bytes(filter, &bytes, NULL));
    FAILS(TAMIS_ERROR_IO, "no/such/folder", tamis_save(filter, "no/such/folder/f.tamis"));
    FAILS(TAMIS_ERROR_UNABLE, "can't be removed from", tamis_remove(filter, "a", 1));
    FAILS(TAMIS_ERROR_UNABLE, "can't be removed from", tamis_remove_u64(filter, 1));

    /* One wrong key of many, and nothing was added. */
    const void *some[] = {"a", NULL};
    const size_t both[] = {1, 1};
    FAILS(bad, "key", tamis_insert_many(filter, some, both, 2, NULL));
    CHECK(tamis_contains(filter, "a", 1) == 0);

    /* None at all is fine. */
    CHECK(tamis_contains_many(filter, NULL, NULL, 0, NULL) == 0);
    CHECK(tamis_insert_many(filter, NULL, NULL, 0, NULL) == 0);
    CHECK(tamis_contains_many_u64(filter, NULL, 0, NULL) == 0);
    CHECK(tamis_insert_many_u64(filter, NULL, 0, NULL) == 0);

    tamis_options options = {0};
    options.flags = 16;
    REFUSES(bad, "flags", tamis_new(TAMIS_BLOCKED, 1000, 0.01, &options));
    options.flags = 0;
    options.reserved[3] = 1;
    REFUSES(bad, "reserved", tamis_new(TAMIS_BLOCKED, 1000, 0.01, &options));
    options.reserved[3] = 0;
    options.values = 256;
    REFUSES(bad, "options.values: expected 1 to 255, got 256", tamis_new(TAMIS_BLOCKED, 1000, 0.01, &options));
    options.values = 0;
    options.both = 3;
    REFUSES(bad, "options.both", tamis_list_new(TAMIS_CASCADE, 0.01, &options));
    options.both = 0;
    options.generations = 63;
    REFUSES(bad, "generations: expected 1 to 62", tamis_new(TAMIS_WINDOW, 1000, 0.01, &options));
    REFUSES(bad, "a window", tamis_new(TAMIS_BLOCKED, 1000, 0.01, &options));
    REFUSES(bad, "a window", tamis_list_new(TAMIS_FUSE, 0.01, &options));
    options.generations = 0;
    options.flags = TAMIS_SECRET_APART;
    REFUSES(bad, "options.secret", tamis_new(TAMIS_BLOCKED, 1000, 0.01, &options));
    REFUSES(bad, "flags", tamis_open("none.tamis", NULL, 4));
    REFUSES(TAMIS_ERROR_IO, "none.tamis", tamis_open("none.tamis", NULL, 0));
    REFUSES(TAMIS_ERROR_IO, "none.tamis", tamis_load("none.tamis", NULL, 0));
    REFUSES(TAMIS_ERROR_IO, "none.tamis", tamis_share("none.tamis", NULL));
    static const char *const no_files[] = {"", ".", "/dev/null", "/dev/zero"};
    for (size_t i = 0; i < COUNT(no_files); i++) {
        CHECK(tamis_open(no_files[i], NULL, 0) == NULL && tamis_load(no_files[i], NULL, 0) == NULL);
        CHECK(tamis_share(no_files[i], NULL) == NULL && tamis_save(filter, no_files[i]) < 0);
    }
    REFUSES(TAMIS_ERROR_IO, "none.tamis", tamis_open("none.tamis", NULL, 0));

    /* The text of an error stays when calls succeed. */
    CHECK(tamis_insert(filter, "key", 3) == 1);
    CHECK(strstr(tamis_last_error(), "none.tamis") != NULL);
    tamis_free(filter);
}

int main(void) {
    bad_arguments();
    puts("all is well");
    return 0;
}
