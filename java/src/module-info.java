/** Filters of Tamis in pure Java: {@link io.tamis.TamisFilter} is where to begin. */
module io.tamis {
    exports io.tamis;
}
