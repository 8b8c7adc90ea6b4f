/*
 * Tamis for C: have I seen this key before? Never a false "no", and a false "yes" only at the promised rate.
 *
 *     tamis_filter *seen = tamis_new(TAMIS_BLOCKED, 1000000, 0.01, NULL);
 *     if (!seen)
 *         fprintf(stderr, "%s\n", tamis_last_error());
 *     if (tamis_insert(seen, "apple", 5)) ...            new
 *     if (tamis_contains(seen, "apple", 5)) ...          maybe; 0 is always right
 *     tamis_save(seen, "seen.tamis");
 *     tamis_free(seen);
 *
 * Results. A call that returns an int returns 0 or more when it succeeded, and a negative tamis_status when it failed.
 * An answer is 1 for yes and 0 for no, so that an error in an `if` is never a false "no". A call that returns a
 * pointer returns NULL when it failed. tamis_last_error() then says why.
 *
 * Keys are bytes. A key may be NULL if its length is 0. Integers (the calls with u64) are their eight little-endian
 * bytes, to which no rule for keys is applied.
 *
 * A window that is asked or added to without a moment takes now: what the system's clock says, but not before its latest
 * key. So a window that nobody adds to forgets all the same. The calls with _at say when.
 *
 * Paths are the bytes that the system takes; on Windows, UTF-8.
 *
 * Threads. Any number of threads may ask one filter (tamis_contains..., tamis_info, tamis_save, tamis_to_bytes). While
 * they do, others may add to bloom, blocked, counting and window filters (tamis_insert..., but for those with alone).
 * Everything else that takes a filter that is not const needs it for itself: other calls that change it, and adding to a
 * cuckoo or a growing filter. A list is for one thread at a time. Errors are kept for each thread.
 *
 * What is the caller's to keep, since it can't be checked: a pointer is NULL or valid, with as many bytes or elements
 * behind it as are said; a handle comes from this library and is used no more after it was freed, nor freed twice;
 * bytes of a view stay as they are until it is freed.
 */


#ifndef TAMIS_H
#define TAMIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The version of the interface that this header describes.
#define TAMIS_ABI_VERSION 0

// The secret is not stored in the file: whoever opens it must have it.
#define TAMIS_SECRET_APART 1

// Case makes no difference: that of Unicode letters in keys that are UTF-8, else that of ASCII letters.
#define TAMIS_IGNORE_CASE 2

// Keys that are URLs are normalised.
#define TAMIS_URL 4

// Of a window: every sighting of a key renews it.
#define TAMIS_QUIET 8

// Opens a file that was open for writing when its machine went down. Keys that were added last may be missing from
// it: the one case in which a filter can answer a false "no", so it must be asked for.
#define TAMIS_ACCEPT_LOSS 1

// Compares a mapped file with its checksum, which reads all of it. The other ways of opening always do.
#define TAMIS_VERIFY 2

// The kinds of filter, by their numbers in files.
typedef enum tamis_kind {
    // The textbook Bloom filter.
    TAMIS_BLOOM = 1,
    // Bloom bits of a key within one to four 64-byte lines: the default.
    TAMIS_BLOCKED = 2,
    // Blocked with counters instead of bits: keys can be removed.
    TAMIS_COUNTING = 3,
    // Fingerprints in two places: keys can be removed, and it is small.
    TAMIS_CUCKOO = 4,
    // Layers of blocked filters, for an unknown number of keys.
    TAMIS_GROWING = 5,
    // A finished list: fast to build and to ask.
    TAMIS_FUSE = 6,
    // A finished list: the smallest.
    TAMIS_RIBBON = 7,
    // A finished block list with an allow list, never wrong about a key on either.
    TAMIS_CASCADE = 8,
    // For a stream: the keys of the last hours, or the last so many.
    TAMIS_WINDOW = 9,
} tamis_kind;

// How a call failed. Numbers of later versions may be others, but are always negative.
typedef enum tamis_status {
    // It did not fail.
    TAMIS_OK = 0,
    // An argument is out of its range, or NULL where it must not be.
    TAMIS_ERROR_ARGUMENT = -1,
    // The operating system refused.
    TAMIS_ERROR_IO = -2,
    // The bytes are not a valid filter.
    TAMIS_ERROR_CORRUPT = -3,
    // This kind of filter, or one opened for reading, can't do that.
    TAMIS_ERROR_UNABLE = -4,
    // Two filters differ and can't be combined.
    TAMIS_ERROR_UNLIKE = -5,
    // A cuckoo filter has no room for the key; nothing was changed.
    TAMIS_ERROR_FULL = -6,
    // The filter is keyed and its secret is not in the file.
    TAMIS_ERROR_KEY_NEEDED = -7,
    // The secret is not the one the filter was made with.
    TAMIS_ERROR_WRONG_KEY = -8,
    // The file was open for writing when its machine went down, so keys may be missing.
    TAMIS_ERROR_UNCLEAN = -9,
    // Another process is writing the file.
    TAMIS_ERROR_BUSY = -10,
    // Keys are on both lists of a cascade, or two different ones have the same hash.
    TAMIS_ERROR_CONTRADICTION = -11,
    // Memory ran out.
    TAMIS_ERROR_MEMORY = -12,
    // Any other error, such as a fault of this library.
    TAMIS_ERROR_OTHER = -13,
} tamis_status;

// Which list wins when a key is on both lists of a cascade.
typedef enum tamis_both {
    // None: it is an error.
    TAMIS_BOTH_REFUSE = 0,
    // The key is blocked.
    TAMIS_BOTH_BLOCK = 1,
    // The key is allowed.
    TAMIS_BOTH_ALLOW = 2,
} tamis_both;

// How keys are hashed.
typedef enum tamis_hash {
    // XXH3-128 under a seed.
    TAMIS_XXH3_128 = 1,
    // SipHash-2-4-128 under a secret.
    TAMIS_SIPHASH_128 = 2,
} tamis_hash;

// A filter of any kind.
typedef struct tamis_filter tamis_filter;

// A list of which a filter will be built.
typedef struct tamis_list tamis_list;

// The secret of a keyed filter.
typedef struct tamis_secret {
    // As they are in a key file.
    uint8_t bytes[16];
} tamis_secret;

// Options of a new filter or list. All zeros, `{0}`, are the defaults, and so is NULL.
typedef struct tamis_options {
    // Distinguishes filters; it offers no protection.
    uint64_t seed;
    // Against keys that an adversary may choose; NULL for none. Then there is no seed.
    const struct tamis_secret *secret;
    // TAMIS_SECRET_APART, TAMIS_IGNORE_CASE, TAMIS_URL, TAMIS_QUIET, added up.
    uint32_t flags;
    // How many values a key is made of, by tamis_join; 0 is 1.
    uint32_t values;
    // Of a window: the time that it spans, in microseconds; 0 if it spans so many keys as it is made for.
    uint64_t window_micros;
    // Of a window: in how many generations it is divided, 1 to 62; 0 is 8.
    uint32_t generations;
    // Of a cascade: one of tamis_both.
    uint32_t both;
    // Of a list: the memory that it takes, about, in bytes; the rest goes to a temporary file. 0 is no limit.
    uint64_t memory;
    // Zeros.
    uint64_t reserved[4];
} tamis_options;

// What is known about a filter.
typedef struct tamis_filter_info {
    // One of tamis_kind.
    uint32_t kind;
    // One of tamis_hash.
    uint32_t hash;
    // Of TAMIS_XXH3_128.
    uint64_t seed;
    // TAMIS_SECRET_APART, TAMIS_IGNORE_CASE, TAMIS_URL, as for tamis_options.
    uint32_t flags;
    // How many values a key is made of.
    uint32_t values;
    // The number of keys it was made for.
    uint64_t capacity;
    // The promised rate, kept up to the capacity.
    double rate;
    // The number of distinct keys in it.
    uint64_t keys;
    // 1 if they were counted; 0 if the number is an estimate from how full it is.
    uint32_t keys_counted;
    // 1 if it can be changed.
    uint32_t writable;
    // The rate to expect now.
    double rate_now;
    // The size of its body.
    uint64_t bytes;
    // Zeros.
    uint64_t reserved[4];
} tamis_filter_info;

// A filter that could be made, and what to expect of it.
typedef struct tamis_filter_plan {
    // One of tamis_kind.
    uint32_t kind;
    // How many bits are set for a key.
    uint32_t hashes;
    // The number of keys it would be made for.
    uint64_t keys;
    // The expected rate when it holds them.
    double rate;
    // The size of its body.
    uint64_t bytes;
    // Its size for each of them.
    double bits_per_key;
    // Zeros.
    uint64_t reserved[4];
} tamis_filter_plan;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Why the last call of this thread that failed did so, for people, as UTF-8. The text stays until another call of this
// thread fails. "" if none has failed.
const char *tamis_last_error(void);

// The tamis_status of the last call of this thread that failed; TAMIS_OK if none has.
int tamis_last_status(void);

// The version of this interface. It changes only when programs that were compiled for an older one must be compiled
// again: compare it with TAMIS_ABI_VERSION.
uint32_t tamis_abi_version(void);

// A secret from the system's random source.
int tamis_secret_random(struct tamis_secret *secret);

// The secret in a key file, of 32 hexadecimal digits.
int tamis_secret_load(const char *file, struct tamis_secret *secret);

// The secret in a key file; if there is none, it is made with a new secret, readable by its owner only.
int tamis_secret_load_or_create(const char *file, struct tamis_secret *secret);

// An empty filter of a kind (tamis_kind) for this many keys at no more than this rate; TAMIS_BLOCKED is the usual one.
// Finished lists are built: see tamis_list_new.
struct tamis_filter *tamis_new(int kind,
                               uint64_t keys,
                               double rate,
                               const struct tamis_options *options);

// Maps a file for reading: it costs the same for any size, and processes share the memory. The file must not be
// shortened or written in place by others meanwhile; replacing it, as tamis_save does, is fine. The secret is NULL
// unless it is kept apart from the file. Flags are TAMIS_ACCEPT_LOSS and TAMIS_VERIFY, or 0.
struct tamis_filter *tamis_open(const char *file, const struct tamis_secret *secret, uint32_t flags);

// Reads a whole file into memory, where it can be changed.
struct tamis_filter *tamis_load(const char *file, const struct tamis_secret *secret, uint32_t flags);

// Maps a file for adding keys, together with other processes that do the same. What was added survives the death of
// this process, but not a crash of the machine: see tamis_sync.
struct tamis_filter *tamis_share(const char *file,
                                 const struct tamis_secret *secret);

// Copies a filter out of the bytes of a file.
struct tamis_filter *tamis_from_bytes(const void *bytes,
                                      size_t length,
                                      const struct tamis_secret *secret,
                                      uint32_t flags);

// A filter in bytes that stay where they are, unchanged, until it is freed. They need not be aligned.
struct tamis_filter *tamis_view(const void *bytes,
                                size_t length,
                                const struct tamis_secret *secret,
                                uint32_t flags);

// Frees a filter; NULL is fine. A shared file is written back: use tamis_close to hear of failures.
void tamis_free(struct tamis_filter *filter);

// Whether the key may have been added: 1, or 0, which is always right. A window is asked as of now.
int tamis_contains(const struct tamis_filter *filter, const void *key, size_t length);

// tamis_contains for an integer.
int tamis_contains_u64(const struct tamis_filter *filter, uint64_t key);

// tamis_contains at a moment, in microseconds since 1970, which only a window heeds: whether the key was seen within
// its span before.
int tamis_contains_at(const struct tamis_filter *filter,
                      const void *key,
                      size_t length,
                      int64_t micros);

// Asks many keys: answers[i] for keys[i], which has lengths[i] bytes. Much faster than a loop on filters larger than
// the processor's cache.
int tamis_contains_many(const struct tamis_filter *filter,
                        const void *const *keys,
                        const size_t *lengths,
                        size_t count,
                        bool *answers);

// tamis_contains_many at a moment, the same for all; see tamis_contains_at.
int tamis_contains_many_at(const struct tamis_filter *filter,
                           const void *const *keys,
                           const size_t *lengths,
                           size_t count,
                           int64_t micros,
                           bool *answers);

// tamis_contains_many for integers.
int tamis_contains_many_u64(const struct tamis_filter *filter, const uint64_t *keys, size_t count, bool *answers);

// Adds a key: 1 if it was new, which is always right; 0 if it seemed present. To a window it is added as of now.
int tamis_insert(struct tamis_filter *filter, const void *key, size_t length);

// tamis_insert for a filter that no other thread uses meanwhile, whatever its kind: several times as fast, because it
// needs no atomic instructions.
int tamis_insert_alone(struct tamis_filter *filter,
                       const void *key,
                       size_t length);

// tamis_insert for an integer.
int tamis_insert_u64(struct tamis_filter *filter, uint64_t key);

// tamis_insert at a moment, in microseconds since 1970, which only a window heeds.
int tamis_insert_at(struct tamis_filter *filter, const void *key, size_t length, int64_t micros);

// Adds many keys: is_new[i] answers for keys[i], which has lengths[i] bytes. is_new may be NULL. When a filter refuses a
// key, those before it are in.
int tamis_insert_many(struct tamis_filter *filter,
                      const void *const *keys,
                      const size_t *lengths,
                      size_t count,
                      bool *is_new);

// tamis_insert_many at a moment, the same for all; see tamis_insert_at.
int tamis_insert_many_at(struct tamis_filter *filter,
                         const void *const *keys,
                         const size_t *lengths,
                         size_t count,
                         int64_t micros,
                         bool *is_new);

// tamis_insert_many for a filter that no other thread uses meanwhile, whatever its kind: the fastest way to add.
int tamis_insert_many_alone(struct tamis_filter *filter,
                            const void *const *keys,
                            const size_t *lengths,
                            size_t count,
                            bool *is_new);

// tamis_insert_many for integers.
int tamis_insert_many_u64(struct tamis_filter *filter, const uint64_t *keys, size_t count, bool *is_new);

// Takes back one adding of a key, from a counting or cuckoo filter: 1 if it seemed present. Only for keys that were
// added: removing others may make the filter deny keys that it has.
int tamis_remove(struct tamis_filter *filter,
                 const void *key,
                 size_t length);

// tamis_remove for an integer.
int tamis_remove_u64(struct tamis_filter *filter, uint64_t key);

// Adds all keys of another filter. If the two differ in kind, shape or hash it fails, and changes nothing.
int tamis_union(struct tamis_filter *filter, const struct tamis_filter *other);

// Writes a filter to a file, which appears whole or not at all, and replaces one that is there.
int tamis_save(const struct tamis_filter *filter, const char *file);

// The bytes of the file that tamis_save would write; to be freed with tamis_bytes_free.
int tamis_to_bytes(const struct tamis_filter *filter, uint8_t **bytes, size_t *length);

// Frees what tamis_to_bytes or tamis_join gave, with its length; NULL is fine.
void tamis_bytes_free(uint8_t *bytes, size_t length);

// For a filter whose keys are made of several values (tamis_filter_info.values): the key that these values are, to be
// freed with tamis_bytes_free.
int tamis_join(const struct tamis_filter *filter,
               const void *const *values,
               const size_t *lengths,
               size_t count,
               uint8_t **key,
               size_t *key_length);

// For a filter that shares a file: waits until all that was added is on disk, where it survives a power loss.
int tamis_sync(const struct tamis_filter *filter);

// Frees a filter, as tamis_free does, also when it fails; and says whether a shared file could be written back.
int tamis_close(struct tamis_filter *filter);

// What is known about a filter. Reads all of it.
int tamis_info(const struct tamis_filter *filter, struct tamis_filter_info *info);

// The smallest filter of a kind (tamis_kind) for so many keys at no more than this rate: its size.
int tamis_plan_size(int kind, uint64_t keys, double rate, struct tamis_filter_plan *plan);

// The filter of a kind within so many bytes that gives so many keys the best rate: its rate.
int tamis_plan_rate(int kind, uint64_t keys, uint64_t bytes, struct tamis_filter_plan *plan);

// The filter of a kind within so many bytes that holds the most keys at no more than this rate: how many.
int tamis_plan_keys(int kind, double rate, uint64_t bytes, struct tamis_filter_plan *plan);

// A finished list of a kind: TAMIS_FUSE, TAMIS_RIBBON or TAMIS_CASCADE.
struct tamis_list *tamis_list_new(int kind, double rate, const struct tamis_options *options);

// Adds a key to the list.
int tamis_list_add(struct tamis_list *list, const void *key, size_t length);

// Adds many keys to the list; keys[i] has lengths[i] bytes.
int tamis_list_add_many(struct tamis_list *list, const void *const *keys, const size_t *lengths, size_t count);

// Adds many integers to the list.
int tamis_list_add_many_u64(struct tamis_list *list, const uint64_t *keys, size_t count);

// Adds a key to the allow list of a cascade, which then never takes it for present.
int tamis_list_allow(struct tamis_list *list, const void *key, size_t length);

// Adds many keys to the allow list of a cascade; keys[i] has lengths[i] bytes.
int tamis_list_allow_many(struct tamis_list *list, const void *const *keys, const size_t *lengths, size_t count);

// Adds many integers to the allow list of a cascade.
int tamis_list_allow_many_u64(struct tamis_list *list, const uint64_t *keys, size_t count);

// The filter of all keys. Frees the list, also when it fails.
struct tamis_filter *tamis_list_build(struct tamis_list *list);

// Frees a list that was not built; NULL is fine.
void tamis_list_free(struct tamis_list *list);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TAMIS_H */
