// bcryptprimitives.dll for a Wine that has none: its one function that Rust's programs ask for.

#include <windows.h>

// RtlGenRandom, by the name that advapi32.dll exports.
BOOLEAN NTAPI SystemFunction036(void *bytes, ULONG count);

__declspec(dllexport) BOOL WINAPI ProcessPrng(unsigned char *bytes, size_t count) {
    while (count > 0) {
        ULONG part = count < 1 << 30 ? (ULONG)count : 1 << 30;
        if (!SystemFunction036(bytes, part)) {
            return FALSE;
        }
        bytes += part;
        count -= part;
    }
    return TRUE;
}
