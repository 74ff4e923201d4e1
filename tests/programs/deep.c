/* Every function's name is the path of its callers, so that the name of the innermost one gives the whole true stack:
   n_a_b was called by n_a, that by n. Each kind of function has another shape of frame. */
#include <alloca.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

volatile uint64_t sink;
static volatile int depth_limit = 3;

#define FUNCTION __attribute__((noinline, noclone)) static

FUNCTION void spin(void) {
#ifdef SAVE_LINK /* 32-bit Arm: the link register is saved, although nothing is called. */
    __asm__ volatile("" ::: "lr");
#endif
    for (int i = 0; i < 20000; i++) sink += (uint64_t)i * i;
}

/* A plain frame. */
#define PLAIN(name, ...) FUNCTION uint64_t name(uint64_t x) { uint64_t y = x + 1; __VA_ARGS__; sink += y; return y; }
/* A frame of variable size: the frame pointer is needed. */
#define VARIABLE(name, ...) \
    FUNCTION uint64_t name(uint64_t x) { \
        char *area = alloca((x & 31) * 8 + 16); memset(area, (int)x, 16); __VA_ARGS__; sink += (uint64_t)area[3]; return x; }
/* A realigned frame: the stack pointer's old value is kept in another register. */
#define ALIGNED(name, ...) \
    FUNCTION uint64_t name(uint64_t x) { \
        uint64_t area[16] __attribute__((aligned(64))); for (int i = 0; i < 16; i++) area[i] = x + (uint64_t)i; \
        __VA_ARGS__; uint64_t sum = 0; for (int i = 0; i < 16; i++) sum += area[i]; sink += sum; return sum; }
/* Realigned and variable: the frame is described by an expression. */
#define BOTH(name, ...) \
    FUNCTION uint64_t name(uint64_t x) { \
        uint64_t area[8] __attribute__((aligned(64))); char *more = alloca((x & 15) * 16 + 32); \
        memset(more, 1, 16); memset(area, 2, sizeof area); __VA_ARGS__; sink += area[x & 7] + (uint64_t)more[0]; return x; }
/* All callee-saved registers live across the calls. */
#define BUSY(name, ...) \
    FUNCTION uint64_t name(uint64_t x) { \
        uint64_t a = sink + x, b = sink * 3, c = sink ^ x, d = sink - x, e = sink | x, f = sink & x; \
        __VA_ARGS__; sink += a * b + c * d + e * f; return a + b + c + d + e + f; }

#define LEAVES(prefix) \
    PLAIN(prefix##_p, spin()) VARIABLE(prefix##_v, spin()) ALIGNED(prefix##_a, spin()) BOTH(prefix##_b, spin()) BUSY(prefix##_s, spin())
#define CALLS(prefix) prefix##_p(x); prefix##_v(x + 1); prefix##_a(x + 2); prefix##_b(x + 3); prefix##_s(x + 4)
#define BRANCHES(prefix) \
    LEAVES(prefix##_p) LEAVES(prefix##_v) LEAVES(prefix##_a) LEAVES(prefix##_b) LEAVES(prefix##_s) \
    PLAIN(prefix##_p, CALLS(prefix##_p)) VARIABLE(prefix##_v, CALLS(prefix##_v)) ALIGNED(prefix##_a, CALLS(prefix##_a)) \
    BOTH(prefix##_b, CALLS(prefix##_b)) BUSY(prefix##_s, CALLS(prefix##_s))

BRANCHES(n_p) BRANCHES(n_v) BRANCHES(n_b)
PLAIN(n_p, CALLS(n_p)) VARIABLE(n_v, CALLS(n_v)) BOTH(n_b, CALLS(n_b))

/* Through a library without our frames: qsort calls back. */
LEAVES(n_q_compare)
FUNCTION int n_q_compare(const void *left, const void *right) {
    uint64_t x = *(const uint64_t *)left;
    if (x < 2) { CALLS(n_q_compare); }
    return (x > *(const uint64_t *)right) - (x < *(const uint64_t *)right);
}
FUNCTION uint64_t n_q(uint64_t x) {
    uint64_t list[4] = {3, x & 1, 7, 1};
    qsort(list, 4, sizeof *list, n_q_compare);
    sink += list[0];
    return list[1];
}

/* Through the kernel: a signal interrupts a function that calls nothing. */
LEAVES(n_i_handler)
static void n_i_handler(int number) {
    uint64_t x = (uint64_t)number;
    CALLS(n_i_handler);
    sink += x;
}
FUNCTION uint64_t n_i(uint64_t x) {
    raise(SIGUSR1);
    sink += x;
    return x;
}

FUNCTION uint64_t n(uint64_t x) { return n_p(x) + n_v(x) + n_b(x) + n_q(x) + n_i(x) + sink; }

int main(int count, char **arguments) {
    signal(SIGUSR1, n_i_handler);
    int rounds = count > 1 ? atoi(arguments[1]) : 1;
    for (int round = 0; round < rounds; round++) sink += n((uint64_t)round);
    return depth_limit == 0;
}
