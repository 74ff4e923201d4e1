/* A guest of QEMU: this many seconds of work. */
#include <stdlib.h>
#include <time.h>
long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(int argc, char **argv) {
    time_t end = time(0) + atoi(argv[1]);
    volatile long x = 0;
    while (time(0) < end) x += fib(18);
    return 0;
}
