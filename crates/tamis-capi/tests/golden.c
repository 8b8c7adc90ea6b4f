/* golden FOLDER [FILE MICROS]...: for each golden file, opened in every way, how many of the keys of alike.json get a "yes",
 * and the digest of the answers. A window is asked at the moment; of others, calls that need none are asked as well. */
#include "check.h"

enum { KEYS = 10000 };

static const void *keys[KEYS];
static size_t lengths[KEYS];
static uint64_t integers[KEYS];
static bool answers[KEYS];
static int64_t moment;
static bool is_timeless;

static void print(const char *type) {
    uint64_t digest = 0xcbf29ce484222325, yes = 0;
    for (size_t i = 0; i < KEYS; i++) {
        yes += answers[i];
        digest = (digest ^ (answers[i] ? '1' : '0')) * 0x100000001b3;
    }
    printf(" %s %llu %016llx", type, (unsigned long long)yes, (unsigned long long)digest);
}

static void ask_bytes(const tamis_filter *filter, const char *type) {
    CHECK(tamis_contains_many_at(filter, keys, lengths, KEYS, moment, answers) == 0);
    for (size_t i = 0; i < KEYS; i++)
        CHECK(tamis_contains_at(filter, keys[i], lengths[i], moment) == answers[i]);
    print(type);
    if (!is_timeless)
        return;
    static bool again[KEYS];
    CHECK(tamis_contains_many(filter, keys, lengths, KEYS, again) == 0 && memcmp(again, answers, sizeof answers) == 0);
    for (size_t i = 0; i < KEYS; i++)
        CHECK(tamis_contains(filter, keys[i], lengths[i]) == answers[i]);
}

static void ask(const char *name, const char *way, tamis_filter *filter) {
    static char texts[KEYS][16];
    static unsigned char bytes[KEYS][300];
    CHECK(filter);
    printf("%s %s", name, way);
    for (size_t i = 0; i < KEYS; i++) {
        lengths[i] = (size_t)snprintf(texts[i], sizeof texts[i], i < KEYS / 2 ? "probe-%zu" : "added-%zu", i % (KEYS / 2));
        keys[i] = texts[i];
    }
    ask_bytes(filter, "texts");
    for (size_t i = 0; i < KEYS; i++) {
        lengths[i] = i % 300;
        for (size_t j = 0; j < lengths[i]; j++)
            bytes[i][j] = (unsigned char)(31 * i + 7 * j);
        keys[i] = lengths[i] ? bytes[i] : NULL;
    }
    ask_bytes(filter, "bytes");
    for (uint64_t i = 0; i < KEYS; i++) {
        integers[i] = i * 0x9E3779B97F4A7C15;
        lengths[i] = 8;
        for (size_t j = 0; j < 8; j++)
            bytes[i][j] = (unsigned char)(integers[i] >> 8 * j);
        keys[i] = bytes[i];
    }
    ask_bytes(filter, "integers");
    if (is_timeless) {
        static bool again[KEYS];
        CHECK(tamis_contains_many_u64(filter, integers, KEYS, again) == 0 && memcmp(again, answers, sizeof answers) == 0);
        for (size_t i = 0; i < KEYS; i++)
            CHECK(tamis_contains_u64(filter, integers[i]) == answers[i]);
    }
    puts("");
    tamis_free(filter);
}

int main(int count, char **names) {
    tamis_secret secret;
    char path[4096];
    snprintf(path, sizeof path, "%s/secret.key", names[1]);
    FILE *file = fopen(path, "rb");
    CHECK(file && fread(secret.bytes, 1, 16, file) == 16 && fclose(file) == 0);
    for (int i = 2; i < count; i += 2) {
        moment = strtoll(names[i + 1], NULL, 10);
        is_timeless = moment == 0;
        static unsigned char all[1 << 20];
        snprintf(path, sizeof path, "%s/%s", names[1], names[i]);
        file = fopen(path, "rb");
        CHECK(file);
        const size_t length = fread(all, 1, sizeof all, file);
        CHECK(length < sizeof all && fclose(file) == 0);
        const tamis_secret *apart = strstr(names[i], "apart") ? &secret : NULL;
        const uint32_t flags = strstr(names[i], "unclean") ? TAMIS_ACCEPT_LOSS : 0;
        if (flags) {
            REFUSES(TAMIS_ERROR_UNCLEAN, "machine went down", tamis_load(path, apart, 0));
            REFUSES(TAMIS_ERROR_UNCLEAN, "machine went down", tamis_open(path, apart, 0));
            REFUSES(TAMIS_ERROR_UNCLEAN, "machine went down", tamis_view(all, length, apart, 0));
        }
        ask(names[i], "open", tamis_open(path, apart, flags));
        ask(names[i], "load", tamis_load(path, apart, flags));
        ask(names[i], "bytes", tamis_from_bytes(all, length, apart, flags));
        ask(names[i], "view", tamis_view(all, length, apart, flags));
    }
    return 0;
}
