/* The calls of tamis.h, in a folder that they may write to; those with wrong arguments are in arguments.c. */
#include "check.h"
#include "kinds.h"

#include <pthread.h>

/* Keys of all lengths at which hashes and copies change their ways; each has other bytes. */
static const size_t LENGTHS[] = {0, 1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 1000000};
#define MANY 2000

static const void *keys[MANY];
static size_t lengths[MANY];

static void make_keys(void) {
    for (size_t i = 0; i < MANY; i++) {
        if (i < COUNT(LENGTHS)) {
            lengths[i] = LENGTHS[i];
            unsigned char *bytes = malloc(lengths[i] + 1);
            for (size_t j = 0; j < lengths[i]; j++)
                bytes[j] = (unsigned char)(i * 31 + j * 7);
            keys[i] = bytes;
        } else {
            char *text = malloc(32);
            lengths[i] = (size_t)snprintf(text, 32, "key number %zu", i);
            keys[i] = text;
        }
    }
    free((void *)keys[0]);
    keys[0] = NULL; /* the empty one */
}

static void free_keys(void) {
    for (size_t i = 0; i < MANY; i++)
        free((void *)keys[i]);
}

static void same_bytes(const tamis_filter *filter, const uint8_t *bytes, size_t length) {
    uint8_t *own;
    size_t own_length;
    CHECK(tamis_to_bytes(filter, &own, &own_length) == 0);
    CHECK(own_length == length && memcmp(own, bytes, length) == 0);
    tamis_bytes_free(own, own_length);
}

/* All keys are there, asked in every way; and the filter in every form answers alike. */
static void round_trip(tamis_filter *filter, const tamis_secret *secret) {
    static bool answers[MANY];
    uint8_t *bytes;
    size_t length;
    CHECK(tamis_to_bytes(filter, &bytes, &length) == 0);
    CHECK(tamis_save(filter, "filter.tamis") == 0);
    uint8_t *moved = malloc(length + 1);
    memcpy(moved + 1, bytes, length); /* not aligned */
    tamis_filter *forms[] = {
        filter,
        tamis_open("filter.tamis", secret, 0),
        tamis_open("filter.tamis", secret, TAMIS_VERIFY),
        tamis_load("filter.tamis", secret, 0),
        tamis_from_bytes(bytes, length, secret, 0),
        tamis_view(bytes, length, secret, 0),
        tamis_view(moved + 1, length, secret, 0),
    };
    for (size_t form = 0; form < COUNT(forms); form++) {
        CHECK(forms[form]);
        for (size_t i = 0; i < MANY; i++)
            CHECK(tamis_contains(forms[form], keys[i], lengths[i]) == 1);
        memset(answers, 7, sizeof answers);
        CHECK(tamis_contains_many(forms[form], keys, lengths, MANY, answers) == 0);
        for (size_t i = 0; i < MANY; i++)
            CHECK(answers[i]);
        for (uint64_t i = 0; i < MANY; i++) {
            int one = tamis_contains_u64(filter, i);
            CHECK(tamis_contains_u64(forms[form], i) == one);
        }
        same_bytes(forms[form], bytes, length);
        tamis_filter_info info;
        CHECK(tamis_info(forms[form], &info) == 0);
        CHECK(info.keys >= MANY - MANY / 20 && info.keys <= MANY + MANY / 20);
        if (form == 1 || form == 2 || form >= 5) {
            CHECK(!info.writable);
            FAILS(TAMIS_ERROR_UNABLE, "opened for reading", tamis_insert(forms[form], "x", 1));
            FAILS(TAMIS_ERROR_UNABLE, "opened for reading", tamis_insert_alone(forms[form], "x", 1));
            FAILS(TAMIS_ERROR_UNABLE, "opened for reading", tamis_insert_many(forms[form], keys, lengths, 1, NULL));
            FAILS(TAMIS_ERROR_UNABLE, "opened for reading", tamis_insert_many_alone(forms[form], keys, lengths, 1, NULL));
            FAILS(TAMIS_ERROR_UNABLE, "opened for reading", tamis_remove(forms[form], "x", 1));
            FAILS(TAMIS_ERROR_UNABLE, "opened for reading", tamis_union(forms[form], filter));
        }
        if (form > 0)
            tamis_free(forms[form]);
    }

    /* Cut anywhere, it is refused. */
    for (size_t cut = 0; cut < length; cut += 1 + length / 40) {
        CHECK(tamis_view(bytes, cut, secret, 0) == NULL);
        CHECK(tamis_from_bytes(bytes, cut, secret, 0) == NULL);
    }
    tamis_bytes_free(bytes, length);
    free(moved);
}

static void kinds(void) {
    static bool is_new[MANY];
    for (size_t i = 0; i < COUNT(CREATED); i++) {
        tamis_filter *one = tamis_new(CREATED[i], MANY, 0.001, NULL);
        tamis_filter *many = tamis_new(CREATED[i], MANY, 0.001, NULL);
        tamis_filter *alone = tamis_new(CREATED[i], MANY, 0.001, NULL);
        tamis_filter *many_alone = tamis_new(CREATED[i], MANY, 0.001, NULL);
        CHECK(one && many && alone && many_alone);
        size_t new = 0;
        for (size_t k = 0; k < MANY; k++) {
            CHECK(tamis_contains(one, keys[k], lengths[k]) >= 0);
            new += (size_t)tamis_insert(one, keys[k], lengths[k]);
            CHECK(tamis_contains(one, keys[k], lengths[k]) == 1);
        }
        CHECK(new > MANY * 99 / 100 && new <= MANY);
        CHECK(tamis_insert_many(many, keys, lengths, MANY, is_new) == 0);
        size_t many_new = 0;
        for (size_t k = 0; k < MANY; k++)
            many_new += is_new[k];
        CHECK(many_new == new);
        for (size_t k = 0; k < MANY; k++)
            CHECK(tamis_insert_alone(alone, keys[k], lengths[k]) == is_new[k]);
        static bool again[MANY];
        CHECK(tamis_insert_many_alone(many_alone, keys, lengths, MANY, again) == 0);
        CHECK(memcmp(is_new, again, sizeof again) == 0);
        uint8_t *bytes;
        size_t length;
        CHECK(tamis_to_bytes(one, &bytes, &length) == 0);
        /* In a cuckoo filter, where a key lies depends on who was there first. */
        if (CREATED[i] != TAMIS_CUCKOO)
            same_bytes(many, bytes, length);
        /* In a window, whoever is alone fills both bins of a key evenly. */
        if (CREATED[i] != TAMIS_WINDOW)
            same_bytes(alone, bytes, length);
        tamis_bytes_free(bytes, length);
        round_trip(one, NULL);
        round_trip(many, NULL);
        round_trip(many_alone, NULL);
        tamis_free(one);
        tamis_free(many);
        tamis_free(alone);
        tamis_free(many_alone);
    }
}

static void lists(void) {
    for (size_t i = 0; i < COUNT(LISTS); i++) {
        tamis_list *list = tamis_list_new(LISTS[i], 0.001, NULL);
        CHECK(list);
        CHECK(tamis_list_add_many(list, keys, lengths, MANY / 2) == 0);
        for (size_t k = MANY / 2; k < MANY; k++)
            CHECK(tamis_list_add(list, keys[k], lengths[k]) == 0);
        if (LISTS[i] != TAMIS_CASCADE)
            FAILS(TAMIS_ERROR_UNABLE, "allow list", tamis_list_allow(list, "a", 1));
        tamis_filter *filter = tamis_list_build(list);
        CHECK(filter);
        FAILS(TAMIS_ERROR_UNABLE, "can't be added to: build it again", tamis_insert(filter, "a", 1));
        FAILS(TAMIS_ERROR_UNABLE, "can't be added to: build it again", tamis_insert_alone(filter, "a", 1));
        FAILS(TAMIS_ERROR_UNABLE, "can't be added to: build it again", tamis_insert_many(filter, keys, lengths, 1, NULL));
        round_trip(filter, NULL);
        tamis_free(filter);
    }
    tamis_list_free(tamis_list_new(TAMIS_FUSE, 0.01, NULL));

    /* A cascade is right about both lists. */
    static uint64_t blocked[5000], allowed[50000];
    static bool answers[50000];
    for (uint64_t i = 0; i < COUNT(blocked); i++)
        blocked[i] = i * 7919;
    for (uint64_t i = 0; i < COUNT(allowed); i++)
        allowed[i] = ~i;
    for (int both = TAMIS_BOTH_REFUSE; both <= TAMIS_BOTH_ALLOW; both++) {
        tamis_options options = {0};
        options.both = (uint32_t)both;
        tamis_list *list = tamis_list_new(TAMIS_CASCADE, 0.01, &options);
        CHECK(tamis_list_add_many_u64(list, blocked, COUNT(blocked)) == 0);
        CHECK(tamis_list_allow_many_u64(list, allowed, COUNT(allowed)) == 0);
        CHECK(tamis_list_allow_many(list, keys, lengths, MANY) == 0);
        CHECK(tamis_list_add(list, "both", 4) == 0);
        CHECK(tamis_list_allow(list, "both", 4) == 0);
        if (both == TAMIS_BOTH_REFUSE) {
            REFUSES(TAMIS_ERROR_CONTRADICTION, "1 key is on both", tamis_list_build(list));
            continue;
        }
        tamis_filter *filter = tamis_list_build(list);
        CHECK(filter);
        CHECK(tamis_contains(filter, "both", 4) == (both == TAMIS_BOTH_BLOCK));
        CHECK(tamis_contains_many_u64(filter, blocked, COUNT(blocked), answers) == 0);
        for (size_t i = 0; i < COUNT(blocked); i++)
            CHECK(answers[i] && tamis_contains_u64(filter, blocked[i]) == 1);
        CHECK(tamis_contains_many_u64(filter, allowed, COUNT(allowed), answers) == 0);
        for (size_t i = 0; i < COUNT(allowed); i++)
            CHECK(!answers[i]);
        tamis_free(filter);
    }
}

/* Half of the keys that were added are asked, and twice as many others: no false "no", and the promised rate. */
static void rates(void) {
    enum { KEYS = 100000 };
    static uint64_t numbers[3 * KEYS];
    static bool answers[3 * KEYS];
    /* Multiples of 4096, as addresses and times often are. */
    for (uint64_t i = 0; i < 3 * KEYS; i++)
        numbers[i] = i * 4096;
    for (size_t i = 0; i < COUNT(CREATED) + COUNT(LISTS); i++) {
        tamis_filter *filter;
        if (i < COUNT(CREATED)) {
            filter = tamis_new(CREATED[i], KEYS, 0.01, NULL);
            CHECK(filter && tamis_insert_many_u64(filter, numbers, KEYS, answers) == 0);
        } else {
            tamis_list *list = tamis_list_new(LISTS[i - COUNT(CREATED)], 0.01, NULL);
            CHECK(list && tamis_list_add_many_u64(list, numbers, KEYS) == 0);
            filter = tamis_list_build(list);
        }
        CHECK(filter && tamis_contains_many_u64(filter, numbers, 3 * KEYS, answers) == 0);
        size_t wrong = 0;
        for (size_t k = 0; k < 3 * KEYS; k++) {
            CHECK(answers[k] || k >= KEYS);
            wrong += answers[k] && k >= KEYS;
        }
        /* 2,000 are expected at most, and 45 is the standard deviation. */
        CHECK(wrong < 2000 + 5 * 45);
        tamis_free(filter);
    }
}

static void integers_and_rules(void) {
    /* No rule changes an integer, whatever letters its bytes may be. */
    const uint64_t letters = 0x4142434445464748, lower = 0x6162636465666768;
    static bool is_new[4];
    static const int flags[] = {0, TAMIS_IGNORE_CASE, TAMIS_URL, TAMIS_IGNORE_CASE | TAMIS_URL};
    for (size_t i = 0; i < COUNT(flags); i++) {
        for (size_t k = 0; k < COUNT(CREATED); k++) {
            tamis_options options = {0};
            options.flags = (uint32_t)flags[i];
            tamis_filter *filter = tamis_new(CREATED[k], 1000, 1e-6, &options);
            CHECK(filter && tamis_insert_u64(filter, letters) == 1);
            CHECK(tamis_contains_u64(filter, letters) == 1 && tamis_contains_u64(filter, lower) == 0);
            const uint64_t some[] = {letters, lower, lower, 5};
            CHECK(tamis_insert_many_u64(filter, some, 4, is_new) == 0);
            CHECK(!is_new[0] && is_new[1] && !is_new[2] && is_new[3]);
            CHECK(tamis_contains_many_u64(filter, some, 4, is_new) == 0);
            CHECK(is_new[0] && is_new[1] && is_new[2] && is_new[3]);
            tamis_free(filter);
        }
    }

    tamis_options options = {0};
    options.flags = TAMIS_IGNORE_CASE | TAMIS_URL;
    options.seed = 7;
    tamis_filter *filter = tamis_new(TAMIS_BLOCKED, 1000, 1e-6, &options);
    const char *url = "HTTP://Example.org:80/A/../B#top", *same = "http://example.org/b";
    CHECK(tamis_insert(filter, url, strlen(url)) == 1);
    CHECK(tamis_contains(filter, same, strlen(same)) == 1);
    tamis_filter_info info;
    CHECK(tamis_info(filter, &info) == 0);
    CHECK(info.flags == options.flags && info.values == 1 && info.seed == 7 && info.hash == TAMIS_XXH3_128);
    CHECK(info.capacity == 1000 && info.rate == 1e-6 && info.keys == 1 && info.keys_counted && info.writable);
    tamis_free(filter);

    /* Keys of two values. */
    options.flags = TAMIS_IGNORE_CASE;
    options.values = 2;
    filter = tamis_new(TAMIS_BLOCKED, 1000, 1e-6, &options);
    const void *values[] = {"Row", "", NULL}, *others[] = {"", "Row"};
    const size_t sizes[] = {3, 0, 0}, other_sizes[] = {0, 3};
    uint8_t *key, *other;
    size_t length, other_length;
    CHECK(tamis_join(filter, values, sizes, 2, &key, &length) == 0);
    CHECK(tamis_join(filter, others, other_sizes, 2, &other, &other_length) == 0);
    CHECK(tamis_insert(filter, key, length) == 1);
    CHECK(tamis_contains(filter, key, length) == 1 && tamis_contains(filter, other, other_length) == 0);
    tamis_bytes_free(key, length);
    values[0] = "ROW";
    CHECK(tamis_join(filter, values, sizes, 2, &key, &length) == 0);
    CHECK(tamis_contains(filter, key, length) == 1);
    FAILS(TAMIS_ERROR_ARGUMENT, "values: expected 2, got 3", tamis_join(filter, values, sizes, 3, &key, &length));
    tamis_bytes_free(key, length);
    tamis_bytes_free(other, other_length);
    tamis_free(filter);
}

static void secrets(void) {
    tamis_secret made, loaded, wrong = {{0}};
    CHECK(tamis_secret_load_or_create("made.key", &made) == 0);
    CHECK(tamis_secret_load("made.key", &loaded) == 0);
    CHECK(memcmp(&made, &loaded, sizeof made) == 0 && memcmp(&made, &wrong, sizeof made) != 0);
    CHECK(tamis_secret_random(&loaded) == 0 && memcmp(&made, &loaded, sizeof made) != 0);
    FAILS(TAMIS_ERROR_IO, "none.key", tamis_secret_load("none.key", &loaded));
    FILE *file = fopen("bad.key", "w");
    CHECK(file && fputs("not a key", file) >= 0 && fclose(file) == 0);
    FAILS(TAMIS_ERROR_ARGUMENT, "32 hexadecimal digits", tamis_secret_load("bad.key", &loaded));

    tamis_options options = {0};
    options.secret = &made;
    options.seed = 1;
    REFUSES(TAMIS_ERROR_ARGUMENT, "options.seed: expected 0 with a secret", tamis_new(TAMIS_BLOCKED, 10, 0.01, &options));
    options.seed = 0;
    tamis_filter *filter = tamis_new(TAMIS_BLOCKED, MANY, 0.001, &options);
    CHECK(tamis_insert_many(filter, keys, lengths, MANY, NULL) == 0);
    round_trip(filter, NULL);
    tamis_free(filter);

    options.flags = TAMIS_SECRET_APART;
    filter = tamis_new(TAMIS_CUCKOO, MANY, 0.001, &options);
    CHECK(tamis_insert_many(filter, keys, lengths, MANY, NULL) == 0);
    round_trip(filter, &made);
    REFUSES(TAMIS_ERROR_KEY_NEEDED, "keyed", tamis_open("filter.tamis", NULL, 0));
    REFUSES(TAMIS_ERROR_WRONG_KEY, "not the secret key", tamis_load("filter.tamis", &wrong, 0));
    tamis_filter_info info;
    CHECK(tamis_info(filter, &info) == 0 && info.hash == TAMIS_SIPHASH_128 && info.flags == TAMIS_SECRET_APART);
    tamis_free(filter);
}

static void removing_and_combining(void) {
    static const int removable[] = {TAMIS_COUNTING, TAMIS_CUCKOO};
    for (size_t i = 0; i < COUNT(removable); i++) {
        tamis_filter *filter = tamis_new(removable[i], 1000, 1e-6, NULL);
        CHECK(tamis_insert(filter, "ada", 3) == 1 && tamis_insert_u64(filter, 5) == 1);
        CHECK(tamis_remove(filter, "ada", 3) == 1 && tamis_remove_u64(filter, 5) == 1);
        CHECK(tamis_contains(filter, "ada", 3) == 0 && tamis_contains_u64(filter, 5) == 0);
        CHECK(tamis_remove(filter, "ada", 3) == 0);
        tamis_free(filter);
    }

    /* A full one says so, and denies none of those that it took. */
    tamis_filter *full = tamis_new(TAMIS_CUCKOO, 1000, 0.01, NULL);
    uint64_t taken = 0;
    while (tamis_insert_u64(full, taken) >= 0)
        taken++;
    CHECK(tamis_last_status() == TAMIS_ERROR_FULL && strstr(tamis_last_error(), "full"));
    CHECK(taken >= 1000);
    for (uint64_t i = 0; i < taken; i++)
        CHECK(tamis_contains_u64(full, i) == 1);
    tamis_free(full);

    tamis_filter *a = tamis_new(TAMIS_BLOCKED, 1000, 0.001, NULL);
    tamis_filter *b = tamis_new(TAMIS_BLOCKED, 1000, 0.001, NULL);
    tamis_filter *larger = tamis_new(TAMIS_BLOCKED, 100000, 0.001, NULL);
    tamis_filter *bloom = tamis_new(TAMIS_BLOOM, 1000, 0.001, NULL);
    CHECK(tamis_insert(a, "left", 4) == 1 && tamis_insert(b, "right", 5) == 1);
    CHECK(tamis_save(b, "b.tamis") == 0);
    tamis_filter *mapped = tamis_open("b.tamis", NULL, 0);
    CHECK(tamis_union(a, mapped) == 0);
    CHECK(tamis_contains(a, "left", 4) == 1 && tamis_contains(a, "right", 5) == 1);
    FAILS(TAMIS_ERROR_UNLIKE, "differ", tamis_union(a, larger));
    FAILS(TAMIS_ERROR_UNLIKE, "the kind", tamis_union(a, bloom));
    tamis_filter_info info;
    CHECK(tamis_info(a, &info) == 0 && !info.keys_counted && info.keys == 2);
    tamis_free(a);
    tamis_free(b);
    tamis_free(mapped);
    tamis_free(larger);
    tamis_free(bloom);
}

static void plans(void) {
    tamis_filter_plan plan;
    CHECK(tamis_plan_size(TAMIS_BLOCKED, 1000000, 0.01, &plan) == 0);
    CHECK(plan.kind == TAMIS_BLOCKED && plan.keys == 1000000 && plan.rate <= 0.01 && plan.bits_per_key < 9.95);
    const uint64_t bytes = plan.bytes;
    CHECK(tamis_plan_rate(TAMIS_BLOCKED, 1000000, bytes, &plan) == 0 && plan.rate <= 0.01 && plan.bytes <= bytes);
    CHECK(tamis_plan_keys(TAMIS_BLOCKED, 0.01, bytes, &plan) == 0 && plan.keys >= 1000000);
    tamis_filter *filter = tamis_new(TAMIS_BLOCKED, 1000000, 0.01, NULL);
    tamis_filter_info info;
    CHECK(tamis_info(filter, &info) == 0 && info.bytes == bytes);
    tamis_free(filter);
}

static void windows(void) {
    const int64_t second = 1000000;
    tamis_options options = {0};
    options.window_micros = 60 * (uint64_t)second;
    tamis_filter *window = tamis_new(TAMIS_WINDOW, 1000, 1e-6, &options);
    CHECK(window);
    CHECK(tamis_insert_at(window, "key", 3, 1000 * second) == 1);
    CHECK(tamis_insert_at(window, "key", 3, 1001 * second) == 0);
    CHECK(tamis_contains_at(window, "key", 3, 1060 * second) == 1);
    CHECK(tamis_contains_at(window, "key", 3, 1075 * second) == 0);
    bool is_new[20], answers[20];
    CHECK(tamis_insert_many_at(window, keys, lengths, 20, 1010 * second, is_new) == 0);
    CHECK(tamis_contains_many_at(window, keys, lengths, 20, 1070 * second, answers) == 0);
    for (size_t i = 0; i < 20; i++)
        CHECK(is_new[i] && answers[i]);
    CHECK(tamis_contains_many_at(window, keys, lengths, 20, 1090 * second, answers) == 0);
    for (size_t i = 0; i < 20; i++)
        CHECK(!answers[i]);
    /* Without a moment, it is asked as of now: what was added in 1970 is forgotten, though nothing came after it. */
    CHECK(tamis_contains(window, "key", 3) == 0 && tamis_contains_u64(window, 1) == 0);
    CHECK(tamis_contains_many(window, keys, lengths, 20, answers) == 0 && !answers[0] && !answers[19]);
    /* And added to as of now. */
    const uint64_t numbers[] = {1, 2};
    CHECK(tamis_insert(window, "now", 3) == 1 && tamis_insert(window, "now", 3) == 0);
    CHECK(tamis_insert_alone(window, "alone", 5) == 1 && tamis_insert_alone(window, "alone", 5) == 0);
    CHECK(tamis_insert_u64(window, 1) == 1 && tamis_insert_many_u64(window, numbers, 2, is_new) == 0);
    CHECK(!is_new[0] && is_new[1] && tamis_contains_many_u64(window, numbers, 2, answers) == 0 && answers[0] && answers[1]);
    CHECK(tamis_insert_many(window, keys, lengths, 10, NULL) == 0);
    CHECK(tamis_insert_many_alone(window, keys, lengths, 20, is_new) == 0 && !is_new[9] && is_new[10]);
    CHECK(tamis_contains_many(window, keys, lengths, 20, answers) == 0 && answers[0] && answers[19]);
    CHECK(tamis_contains(window, "now", 3) == 1 && tamis_contains(window, "alone", 5) == 1);
    CHECK(tamis_contains(window, "key", 3) == 0);
    /* A clock that was set back: now isn't before the latest key. */
    CHECK(tamis_insert_at(window, "ahead", 5, 4102444800 * second) == 1);
    CHECK(tamis_contains(window, "ahead", 5) == 1 && tamis_insert(window, "ahead", 5) == 0);
    CHECK(tamis_contains(window, "now", 3) == 0);
    /* The ends of time. */
    CHECK(tamis_insert_at(window, "late", 4, INT64_MAX) >= 0 && tamis_insert_at(window, "early", 5, INT64_MIN) >= 0);
    tamis_free(window);

    /* The last thousand keys. */
    window = tamis_new(TAMIS_WINDOW, 1000, 1e-6, NULL);
    for (uint64_t i = 0; i < 5000; i++) {
        CHECK(tamis_insert_u64(window, i) == 1);
        for (uint64_t j = i < 999 ? 0 : i - 999; j <= i; j += 37)
            CHECK(tamis_contains_u64(window, j) == 1);
    }
    CHECK(tamis_contains_u64(window, 0) == 0);
    tamis_free(window);
}

static void shared_files(void) {
    tamis_filter *filter = tamis_new(TAMIS_BLOCKED, 1000, 1e-6, NULL);
    CHECK(tamis_save(filter, "shared.tamis") == 0);
    tamis_free(filter);
    tamis_filter *one = tamis_share("shared.tamis", NULL), *other = tamis_share("shared.tamis", NULL);
    CHECK(one && other);
    CHECK(tamis_insert(one, "key", 3) == 1 && tamis_contains(other, "key", 3) == 1);
    CHECK(tamis_sync(one) == 0 && tamis_close(one) == 0 && tamis_close(other) == 0);
    filter = tamis_load("shared.tamis", NULL, 0);
    CHECK(filter && tamis_contains(filter, "key", 3) == 1);
    tamis_free(filter);
}

enum { THREADS = 4, EACH = 5000 };
struct work {
    tamis_filter *filter;
    uint64_t number;
};

static void *add(void *argument) {
    struct work *work = argument;
    CHECK(strcmp(tamis_last_error(), "") == 0); /* of this thread */
    for (uint64_t i = 0; i < EACH; i++) {
        const uint64_t key = i * THREADS + work->number;
        CHECK(tamis_insert_u64(work->filter, key) >= 0);
        CHECK(tamis_contains_u64(work->filter, key) == 1);
        /* What is saved meanwhile is whole, and has all that was added before. */
        if (i % 1000 == 999) {
            char path[32];
            snprintf(path, sizeof path, "thread-%d.tamis", (int)work->number);
            CHECK(tamis_save(work->filter, path) == 0);
            tamis_filter *saved = tamis_load(path, NULL, 0);
            CHECK(saved && tamis_contains_u64(saved, key) == 1);
            tamis_free(saved);
        }
    }
    static bool is_new[THREADS][MANY];
    CHECK(tamis_insert_many(work->filter, keys, lengths, MANY, is_new[work->number]) == 0);
    tamis_filter_info info;
    CHECK(tamis_info(work->filter, &info) == 0);
    CHECK(tamis_contains(NULL, "a", 1) == TAMIS_ERROR_ARGUMENT);
    return NULL;
}

static void threads(void) {
    static const int shared[] = {TAMIS_BLOOM, TAMIS_BLOCKED, TAMIS_COUNTING, TAMIS_WINDOW};
    for (size_t i = 0; i < COUNT(shared); i++) {
        tamis_filter *filter = tamis_new(shared[i], THREADS * EACH + MANY * THREADS, 0.001, NULL);
        pthread_t started[THREADS];
        struct work works[THREADS];
        for (uint64_t t = 0; t < THREADS; t++) {
            works[t] = (struct work){filter, t};
            CHECK(pthread_create(&started[t], NULL, add, &works[t]) == 0);
        }
        for (size_t t = 0; t < THREADS; t++)
            CHECK(pthread_join(started[t], NULL) == 0);
        for (uint64_t k = 0; k < THREADS * EACH; k++)
            CHECK(tamis_contains_u64(filter, k) == 1);
        for (size_t k = 0; k < MANY; k++)
            CHECK(tamis_contains(filter, keys[k], lengths[k]) == 1);
        tamis_free(filter);
    }
}

int main(void) {
    make_keys();
    kinds();
    lists();
    rates();
    integers_and_rules();
    secrets();
    removing_and_combining();
    plans();
    windows();
    shared_files();
    threads();
    free_keys();
    puts("all is well");
    return 0;
}
