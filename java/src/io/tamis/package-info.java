/**
 * Have I seen this key before? Filters that answer it in little memory, in files that every Tamis program reads: {@link
 * io.tamis.TamisFilter} is where to begin.
 */
package io.tamis;
