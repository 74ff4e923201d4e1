/* Makes chains by frame pointers that contain addresses which no call precedes, and a return address after a call that
   never returns. Functions must follow each other in this order, without gaps. */
#include <setjmp.h>
#include <stdlib.h>

volatile unsigned long sink;
static jmp_buf back;

#define FUNCTION __attribute__((noinline, noclone))

FUNCTION void before_entered(void) { sink += 1; }
FUNCTION void entered(void) { sink += 2; }

/* Uses the frame pointer for something else, as C code without frame pointers does. */
FUNCTION void stray(void **table) {
    __asm__ volatile("push %%rbp; mov %0, %%rbp; mov $3000000, %%ecx; 1: dec %%ecx; jnz 1b; pop %%rbp"
                     : : "r"(table) : "rcx", "cc", "memory");
}

FUNCTION __attribute__((noreturn)) void never_returns(void) {
    for (unsigned long i = 0; i < 3000000; i++) sink += i;
    longjmp(back, 1);
}
FUNCTION void calls_last(void) { never_returns(); }
FUNCTION void after_calls_last(void) { sink += 3; }

static int compare(const void *left, const void *right) { return *(const int *)left - *(const int *)right; }

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 100, numbers[] = {2, 1};
    /* What the frame pointer leads to: the caller's frame pointer, and its return address. */
    void *of_function[] = {0, (void *)entered}, *of_stub[] = {0, (void *)qsort},
         *of_other_stub[] = {0, (void *)atoi};
    for (volatile int round = 0; round < rounds; round++) {
        stray(of_function);
        stray(of_stub);
        stray(of_other_stub);
        if (!setjmp(back)) calls_last();
        before_entered(), entered(), after_calls_last();
        qsort(numbers, 2, sizeof *numbers, compare);
    }
    return 0;
}
