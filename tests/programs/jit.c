/* Native code calls code written at run time, which calls native code, which calls written code again; a perf map shows
   what was written. The written code has frame pointers and nothing else, native code only what its compiler describes. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef uint64_t (*Code)(uint64_t, void *);

volatile uint64_t sink;
static Code inner;
static void *spins;

#define FUNCTION __attribute__((noinline, noclone)) static

/* push rbp; mov rbp, rsp; call rsi; mov rsp, rbp; pop rbp; ret */
static const uint8_t CALLS[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x48, 0x89, 0xec, 0x5d, 0xc3};
/* push rbp; mov rbp, rsp; again: dec rdi; jnz again; mov rax, rdi; pop rbp; ret */
static const uint8_t SPINS[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x48, 0x89, 0xf8, 0x5d, 0xc3};

FUNCTION uint64_t native_leaf(uint64_t x) {
    for (uint64_t i = 0; i < x; i++) sink += i * i;
    return sink;
}

/* Keeps all registers that it may keep, the frame pointer too, busy across the calls. */
FUNCTION uint64_t native_between(uint64_t x) {
    uint64_t a = sink + x, b = sink * 3, c = sink ^ x, d = sink - x, e = sink | x, f = sink & x;
    uint64_t r = native_leaf(x) + inner(x, spins);
    sink += r + a * b + c * d + e * f;
    return a + b + c + d + e + f;
}

FUNCTION uint64_t native_entry(Code outer, uint64_t x) {
    uint64_t a = sink + x, b = sink * 5;
    uint64_t r = outer(x, (void *)native_between);
    return r + a * b;
}

static uint8_t *next;

static Code write_code(FILE *map, const char *name, const uint8_t *bytes, size_t size) {
    uint8_t *at = memcpy(next, bytes, size);
    fprintf(map, "%llx %zx %s\n", (unsigned long long)(uintptr_t)at, size, name);
    next += 64;
    return (Code)(uintptr_t)at;
}

/* The argument is where the map goes, a directory. */
int main(int count, char **arguments) {
    char path[4096];
    snprintf(path, sizeof path, "%s/perf-%d.map", count > 1 ? arguments[1] : ".", (int)getpid());
    FILE *map = fopen(path, "w");
    next = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!map || next == MAP_FAILED) return 1;
    Code outer = write_code(map, "jit_outer", CALLS, sizeof CALLS);
    inner = write_code(map, "jit_inner", CALLS, sizeof CALLS);
    spins = (void *)(uintptr_t)write_code(map, "jit_spin", SPINS, sizeof SPINS);
    fclose(map);
    for (int i = 0; i < 3000; i++) sink += native_entry(outer, 20000);
    return 0;
}
