// Tamis for C++17: have I seen this key before? Never a false "no", and a false "yes" only at the promised rate.
//
//     auto seen = tamis::filter(tamis::kind::blocked, 1'000'000, 0.01);
//     if (seen.insert("apple")) ...      // new
//     if (seen.contains("apple")) ...    // maybe; false is always right
//     seen.save("seen.tamis");
//
// Filters are moved, not copied, and freed at the end of their scope. Errors are exceptions, tamis::error. Threads may
// use a filter as tamis.h says: all may ask, and meanwhile add to bloom, blocked, counting and window filters.

#ifndef TAMIS_HPP
#define TAMIS_HPP

#include "tamis.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tamis {

/// A call that failed: what() is for people, status() one of tamis_status.
class error : public std::runtime_error {
public:
    error(int status, const char *text) : std::runtime_error(text), status_(status) {}
    int status() const noexcept { return status_; }

private:
    int status_;
};

namespace detail {

inline int checked(int result) {
    if (result < 0) {
        throw error(result, tamis_last_error());
    }
    return result;
}

template <typename T> T *checked(T *handle) {
    if (!handle) {
        throw error(tamis_last_status(), tamis_last_error());
    }
    return handle;
}

/// Many keys as C takes them; at least one element of each, so that data() is never NULL.
struct keys {
    explicit keys(const std::vector<std::string_view> &all) : pointers(all.size() + 1), lengths(all.size() + 1) {
        for (std::size_t i = 0; i < all.size(); ++i) {
            pointers[i] = all[i].data();
            lengths[i] = all[i].size();
        }
    }
    std::vector<const void *> pointers;
    std::vector<std::size_t> lengths;
};

/// Answers as C gives them, which std::vector<bool> can't take.
class answers {
public:
    explicit answers(std::size_t count) : count_(count), room_(new bool[count + 1]) {}
    bool *data() { return room_.get(); }
    std::vector<bool> vector() const { return std::vector<bool>(room_.get(), room_.get() + count_); }

private:
    std::size_t count_;
    std::unique_ptr<bool[]> room_;
};

/// Bytes that the library made.
inline std::string taken(std::uint8_t *bytes, std::size_t length) {
    struct freed {
        std::size_t length;
        void operator()(std::uint8_t *bytes) const { tamis_bytes_free(bytes, length); }
    };
    std::unique_ptr<std::uint8_t, freed> owner(bytes, freed{length});
    return std::string(reinterpret_cast<const char *>(bytes), length);
}

} // namespace detail

/// The kinds of filter; see tamis_kind.
enum class kind : int {
    bloom = TAMIS_BLOOM,
    blocked = TAMIS_BLOCKED,
    counting = TAMIS_COUNTING,
    cuckoo = TAMIS_CUCKOO,
    growing = TAMIS_GROWING,
    fuse = TAMIS_FUSE,
    ribbon = TAMIS_RIBBON,
    cascade = TAMIS_CASCADE,
    window = TAMIS_WINDOW,
};

using info = tamis_filter_info;
using plan = tamis_filter_plan;
using options = tamis_options;
/// When a key was seen.
using moment = std::chrono::time_point<std::chrono::system_clock, std::chrono::microseconds>;

/// The secret of a keyed filter.
class secret : public tamis_secret {
public:
    explicit secret(const std::array<std::uint8_t, 16> &all) : tamis_secret{} {
        for (std::size_t i = 0; i < all.size(); ++i) {
            bytes[i] = all[i];
        }
    }
    static secret random() {
        secret made;
        detail::checked(tamis_secret_random(&made));
        return made;
    }
    static secret load(const std::string &path) {
        secret made;
        detail::checked(tamis_secret_load(path.c_str(), &made));
        return made;
    }
    static secret load_or_create(const std::string &path) {
        secret made;
        detail::checked(tamis_secret_load_or_create(path.c_str(), &made));
        return made;
    }

private:
    secret() : tamis_secret{} {}
};

/// A filter of any kind.
class filter {
public:
    /// An empty filter for so many keys at no more than this rate.
    filter(kind of, std::uint64_t keys, double rate, const options &with = {})
        : filter(tamis_new(static_cast<int>(of), keys, rate, &with)) {}

    /// Maps a file for reading; see tamis_open.
    static filter open(const std::string &path, const tamis_secret *secret = nullptr, std::uint32_t flags = 0) {
        return filter(tamis_open(path.c_str(), secret, flags));
    }
    /// Reads a whole file into memory, where it can be changed.
    static filter load(const std::string &path, const tamis_secret *secret = nullptr, std::uint32_t flags = 0) {
        return filter(tamis_load(path.c_str(), secret, flags));
    }
    /// Maps a file for adding keys, together with other processes; see tamis_share.
    static filter share(const std::string &path, const tamis_secret *secret = nullptr) {
        return filter(tamis_share(path.c_str(), secret));
    }
    /// Copies a filter out of the bytes of a file.
    static filter from_bytes(std::string_view bytes, const tamis_secret *secret = nullptr, std::uint32_t flags = 0) {
        return filter(tamis_from_bytes(bytes.data(), bytes.size(), secret, flags));
    }
    /// A filter in bytes that stay where they are, unchanged, as long as it lives.
    static filter view(std::string_view bytes, const tamis_secret *secret = nullptr, std::uint32_t flags = 0) {
        return filter(tamis_view(bytes.data(), bytes.size(), secret, flags));
    }

    /// Whether the key may have been added. `false` is always right. A window is asked as of now, unless a moment is given.
    bool contains(std::string_view key) const {
        return detail::checked(tamis_contains(get(), key.data(), key.size())) != 0;
    }
    bool contains(std::string_view key, moment at) const {
        auto micros = at.time_since_epoch().count();
        return detail::checked(tamis_contains_at(get(), key.data(), key.size(), micros)) != 0;
    }
    bool contains_u64(std::uint64_t key) const { return detail::checked(tamis_contains_u64(get(), key)) != 0; }
    std::vector<bool> contains_many(const std::vector<std::string_view> &keys) const {
        detail::keys all(keys);
        detail::answers out(keys.size());
        detail::checked(
            tamis_contains_many(get(), all.pointers.data(), all.lengths.data(), keys.size(), out.data()));
        return out.vector();
    }
    std::vector<bool> contains_many_u64(const std::vector<std::uint64_t> &keys) const {
        detail::answers out(keys.size());
        detail::checked(tamis_contains_many_u64(get(), keys.data(), keys.size(), out.data()));
        return out.vector();
    }

    /// Adds a key and returns whether it was new. `true` is always right. To a window it is added as of now, unless a
    /// moment is given.
    bool insert(std::string_view key) { return detail::checked(tamis_insert(get(), key.data(), key.size())) != 0; }
    /// The same while no other thread uses the filter: several times as fast.
    bool insert_alone(std::string_view key) {
        return detail::checked(tamis_insert_alone(get(), key.data(), key.size())) != 0;
    }
    bool insert(std::string_view key, moment at) {
        auto micros = at.time_since_epoch().count();
        return detail::checked(tamis_insert_at(get(), key.data(), key.size(), micros)) != 0;
    }
    bool insert_u64(std::uint64_t key) { return detail::checked(tamis_insert_u64(get(), key)) != 0; }
    std::vector<bool> insert_many(const std::vector<std::string_view> &keys) {
        detail::keys all(keys);
        detail::answers out(keys.size());
        detail::checked(tamis_insert_many(get(), all.pointers.data(), all.lengths.data(), keys.size(), out.data()));
        return out.vector();
    }
    std::vector<bool> insert_many_alone(const std::vector<std::string_view> &keys) {
        detail::keys all(keys);
        detail::answers out(keys.size());
        detail::checked(
            tamis_insert_many_alone(get(), all.pointers.data(), all.lengths.data(), keys.size(), out.data()));
        return out.vector();
    }
    std::vector<bool> insert_many_u64(const std::vector<std::uint64_t> &keys) {
        detail::answers out(keys.size());
        detail::checked(tamis_insert_many_u64(get(), keys.data(), keys.size(), out.data()));
        return out.vector();
    }

    /// Takes back one adding of a key that was added; see tamis_remove.
    bool remove(std::string_view key) { return detail::checked(tamis_remove(get(), key.data(), key.size())) != 0; }
    bool remove_u64(std::uint64_t key) { return detail::checked(tamis_remove_u64(get(), key)) != 0; }

    /// Adds all keys of another filter of the same kind, shape and hash.
    void unite(const filter &other) { detail::checked(tamis_union(get(), other.get())); }

    /// The key that several values are, for a filter whose keys are made of so many.
    std::string join(const std::vector<std::string_view> &values) const {
        detail::keys all(values);
        std::uint8_t *key = nullptr;
        std::size_t length = 0;
        detail::checked(
            tamis_join(get(), all.pointers.data(), all.lengths.data(), values.size(), &key, &length));
        return detail::taken(key, length);
    }

    /// Writes it to a file, which appears whole or not at all, and replaces one that is there.
    void save(const std::string &path) const { detail::checked(tamis_save(get(), path.c_str())); }
    /// The bytes of that file.
    std::string to_bytes() const {
        std::uint8_t *bytes = nullptr;
        std::size_t length = 0;
        detail::checked(tamis_to_bytes(get(), &bytes, &length));
        return detail::taken(bytes, length);
    }
    /// For a filter that shares a file: waits until all that was added is on disk.
    void sync() const { detail::checked(tamis_sync(get())); }
    /// Frees it now, and throws if a shared file could not be written back.
    void close() { detail::checked(tamis_close(handle_.release())); }

    /// What is known about it; reads all of it.
    tamis::info info() const {
        tamis::info all{};
        detail::checked(tamis_info(get(), &all));
        return all;
    }

    /// For the calls of tamis.h; it stays this object's.
    tamis_filter *get() { return handle_.get(); }
    const tamis_filter *get() const { return handle_.get(); }

private:
    friend class list;
    explicit filter(tamis_filter *handle) : handle_(detail::checked(handle)) {}
    struct freed {
        void operator()(tamis_filter *handle) const { tamis_free(handle); }
    };
    std::unique_ptr<tamis_filter, freed> handle_;
};

/// A finished list, of which a filter is built: kind::fuse, kind::ribbon or kind::cascade.
class list {
public:
    explicit list(kind of, double rate, const options &with = {})
        : handle_(detail::checked(tamis_list_new(static_cast<int>(of), rate, &with))) {}

    void add(std::string_view key) { detail::checked(tamis_list_add(handle_.get(), key.data(), key.size())); }
    void add_many(const std::vector<std::string_view> &keys) {
        detail::keys all(keys);
        detail::checked(
            tamis_list_add_many(handle_.get(), all.pointers.data(), all.lengths.data(), keys.size()));
    }
    void add_many_u64(const std::vector<std::uint64_t> &keys) {
        detail::checked(tamis_list_add_many_u64(handle_.get(), keys.data(), keys.size()));
    }
    /// Of a cascade: a key that it must never take for present.
    void allow(std::string_view key) { detail::checked(tamis_list_allow(handle_.get(), key.data(), key.size())); }
    void allow_many(const std::vector<std::string_view> &keys) {
        detail::keys all(keys);
        detail::checked(
            tamis_list_allow_many(handle_.get(), all.pointers.data(), all.lengths.data(), keys.size()));
    }
    void allow_many_u64(const std::vector<std::uint64_t> &keys) {
        detail::checked(tamis_list_allow_many_u64(handle_.get(), keys.data(), keys.size()));
    }

    /// The filter of all keys. The list is empty then, and can only be destroyed.
    filter build() { return filter(tamis_list_build(handle_.release())); }

private:
    struct freed {
        void operator()(tamis_list *handle) const { tamis_list_free(handle); }
    };
    std::unique_ptr<tamis_list, freed> handle_;
};

/// The smallest filter for so many keys at no more than this rate.
inline plan plan_size(kind of, std::uint64_t keys, double rate) {
    plan made{};
    detail::checked(tamis_plan_size(static_cast<int>(of), keys, rate, &made));
    return made;
}
/// The best rate for so many keys within so many bytes.
inline plan plan_rate(kind of, std::uint64_t keys, std::uint64_t bytes) {
    plan made{};
    detail::checked(tamis_plan_rate(static_cast<int>(of), keys, bytes, &made));
    return made;
}
/// The most keys at no more than this rate within so many bytes.
inline plan plan_keys(kind of, double rate, std::uint64_t bytes) {
    plan made{};
    detail::checked(tamis_plan_keys(static_cast<int>(of), rate, bytes, &made));
    return made;
}

} // namespace tamis

#endif // TAMIS_HPP
