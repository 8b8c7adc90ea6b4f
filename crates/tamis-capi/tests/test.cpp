// tamis.hpp: what it adds to tamis.h.
#include "tamis.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <type_traits>

#define CHECK(condition)                                                                                              \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                      \
            std::exit(1);                                                                                             \
        }                                                                                                             \
    } while (0)

static void fails(int status, const char *text, const std::function<void()> &call) {
    try {
        call();
    } catch (const tamis::error &error) {
        if (error.status() == status && std::strstr(error.what(), text)) {
            return;
        }
        std::fprintf(stderr, "%d: %s\n", error.status(), error.what());
    }
    std::fprintf(stderr, "expected an error with %s\n", text);
    std::exit(1);
}

static_assert(!std::is_copy_constructible_v<tamis::filter> && std::is_nothrow_move_constructible_v<tamis::filter>);
static_assert(!std::is_copy_assignable_v<tamis::list> && std::is_nothrow_move_assignable_v<tamis::list>);

int main() {
    using tamis::kind;
    const std::string empty, one = "a", binary("\0\xff\0", 3), long_one(1'000'000, 'x');
    const std::vector<std::string_view> keys = {empty, std::string_view(), one, binary, long_one, "apple"};

    tamis::filter seen(kind::blocked, 1'000, 1e-6);
    CHECK(seen.insert("apple") && !seen.insert("apple") && seen.contains("apple") && !seen.contains("pear"));
    CHECK((seen.insert_many(keys) == std::vector<bool>{true, false, true, true, true, false}));
    CHECK(!seen.insert_alone("apple") && seen.insert_many_alone({"apple", one}) == std::vector<bool>(2, false));
    CHECK((seen.contains_many(keys) == std::vector<bool>(6, true)));
    CHECK(seen.contains_many({}).empty() && seen.insert_many_u64({}).empty());
    CHECK(seen.insert_u64(7) && seen.contains_u64(7) && !seen.contains_u64(8));
    CHECK((seen.insert_many_u64({7, 8}) == std::vector<bool>{false, true}));
    CHECK((seen.contains_many_u64({7, 8, 9}) == std::vector<bool>{true, true, false}));
    CHECK(seen.info().keys == 7 && seen.info().kind == TAMIS_BLOCKED);

    // Every form of it, and moves between variables.
    seen.save("cpp.tamis");
    const std::string bytes = seen.to_bytes();
    for (int form = 0; form < 4; ++form) {
        tamis::filter again = form == 0   ? tamis::filter::open("cpp.tamis")
                              : form == 1 ? tamis::filter::load("cpp.tamis")
                              : form == 2 ? tamis::filter::from_bytes(bytes)
                                          : tamis::filter::view(bytes);
        CHECK(again.to_bytes() == bytes);
        tamis::filter moved = std::move(again);
        CHECK(moved.contains(long_one));
        fails(TAMIS_ERROR_ARGUMENT, "filter: expected a pointer", [&] { again.contains("gone"); });
        again = std::move(moved);
        CHECK(again.contains(binary));
    }
    tamis::filter other(kind::blocked, 1'000, 1e-6);
    other.insert("pear");
    seen.unite(other);
    CHECK(seen.contains("pear"));
    fails(TAMIS_ERROR_ARGUMENT, "same", [&] { seen.unite(seen); });

    fails(TAMIS_ERROR_ARGUMENT, "rate", [] { tamis::filter(kind::blocked, 1'000, 2.0); });
    fails(TAMIS_ERROR_UNABLE, "created empty", [] { tamis::filter(kind::fuse, 1'000, 0.01); });
    fails(TAMIS_ERROR_IO, "none.tamis", [] { tamis::filter::open("none.tamis"); });
    fails(TAMIS_ERROR_CORRUPT, "not a valid Tamis filter", [] { tamis::filter::view("not a filter"); });
    fails(TAMIS_ERROR_UNABLE, "opened for reading", [] { tamis::filter::open("cpp.tamis").insert("x"); });

    // Keyed apart, and keys of two values.
    const tamis::secret secret = tamis::secret::load_or_create("cpp.key");
    CHECK(std::memcmp(tamis::secret::load("cpp.key").bytes, secret.bytes, 16) == 0);
    tamis::options options{};
    options.secret = &secret;
    options.flags = TAMIS_SECRET_APART;
    options.values = 2;
    tamis::filter keyed(kind::cuckoo, 1'000, 1e-6, options);
    CHECK(keyed.insert(keyed.join({"row", "column"})) && !keyed.contains(keyed.join({"rowc", "olumn"})));
    CHECK(keyed.remove(keyed.join({"row", "column"})) && keyed.insert_u64(1) && keyed.remove_u64(1));
    const std::string kept = keyed.to_bytes();
    fails(TAMIS_ERROR_KEY_NEEDED, "keyed", [&] { tamis::filter::from_bytes(kept); });
    CHECK(tamis::filter::from_bytes(kept, &secret).info().hash == TAMIS_SIPHASH_128);

    tamis::list list(kind::cascade, 0.01);
    list.add("bad");
    list.add_many(keys);
    list.add_many_u64({1, 2, 3});
    list.allow("good");
    list.allow_many({"better", "best"});
    list.allow_many_u64({4, 5, 6});
    const tamis::filter built = list.build();
    CHECK(built.contains("bad") && built.contains_u64(3) && !built.contains("best") && !built.contains_u64(6));
    fails(TAMIS_ERROR_ARGUMENT, "list", [&] { list.build(); });
    fails(TAMIS_ERROR_ARGUMENT, "list", [&] { list.add("late"); });

    using namespace std::chrono_literals;
    tamis::options minute{};
    minute.window_micros = 60'000'000;
    tamis::filter window(kind::window, 1'000, 1e-6, minute);
    const tamis::moment start{1'000s};
    CHECK(window.insert("key", start) && !window.insert("key", start + 30s));
    CHECK(window.contains("key", start + 60s) && !window.contains("key", start + 75s));

    tamis::filter shared = tamis::filter::share("cpp.tamis");
    shared.insert("shared");
    shared.sync();
    shared.close();
    CHECK(tamis::filter::load("cpp.tamis").contains("shared"));

    const tamis::plan plan = tamis::plan_size(kind::blocked, 1'000'000, 0.01);
    CHECK(tamis::plan_rate(kind::blocked, 1'000'000, plan.bytes).rate <= 0.01);
    CHECK(tamis::plan_keys(kind::blocked, 0.01, plan.bytes).keys >= 1'000'000);
    std::puts("all is well");
}
