/* Makes chains by frame pointers that contain addresses of variables: with and without contents, constant, and thread
   local. */
#include <stdlib.h>

int filled[16] = {1, 2}, zeroed[16];
const char constant[64] = "constant";
static _Thread_local int of_thread[16];

/* Uses the frame pointer for something else, as C code without frame pointers does. */
__attribute__((noinline, noclone)) void stray(void **table) {
    __asm__ volatile("push %%rbp; mov %0, %%rbp; mov $3000000, %%ecx; 1: dec %%ecx; jnz 1b; pop %%rbp"
                     : : "r"(table) : "rcx", "cc", "memory");
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    /* What the frame pointer leads to: the caller's frame pointer, and its return address. */
    void *variables[][2] = {{0, filled}, {0, &filled[3]}, {0, &zeroed[5]}, {0, (void *)&constant[7]},
                            {0, &of_thread[1]}};
    for (volatile int round = 0; round < rounds; round++)
        for (int variable = 0; variable < 5; variable++) stray(variables[variable]);
    return 0;
}
