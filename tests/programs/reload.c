/* Runs one place of memory twice, and logs the code only before the second time: first other code is there, which
   nobody logs. The argument shows what lies between: `remap` (the memory is unmapped and mapped again), `rewrite` (the
   code is replaced in place), `exec` (another program; the dump is the second one's), `exec-map` (the same with a perf
   map). Prints where the code is, and when it was logged (CLOCK_MONOTONIC). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PLACE ((void *)0x600000000000)

/* again: dec rdi; jnz again; ret */
static const uint8_t FIRST[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3};
/* again: dec rdi; nop; jnz again; ret */
static const uint8_t SECOND[] = {0x48, 0xff, 0xcf, 0x90, 0x75, 0xfa, 0xc3};

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void *map_place(void) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    void *at = mmap(PLACE, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, flags, -1, 0);
    if (at == MAP_FAILED) exit(1);
    return at;
}

static void run(void *code) {
    for (uint64_t end = now() + 300000000; now() < end;) ((void (*)(uint64_t))code)(100000);
}

static int open_dump(void) {
    char path[64];
    snprintf(path, sizeof path, "jit-%d.dump", getpid());
    int file = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
    struct { uint32_t magic, version, size, machine, pad, pid; uint64_t time, flags; } header =
        {0x4A695444, 1, 40, 62, 0, getpid(), now(), 0};
    if (file < 0 || write(file, &header, sizeof header) != sizeof header) exit(1);
    /* perf finds the dump by this mapping. */
    if (mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED) exit(1);
    return file;
}

static uint64_t log_to_dump(int file) {
    static const char NAME[] = "logged";
    struct { uint32_t id, size; uint64_t time; uint32_t pid, tid; uint64_t vma, addr, length, index; } load = {
        0, sizeof load + sizeof NAME + sizeof SECOND, now(), getpid(), syscall(SYS_gettid),
        (uintptr_t)PLACE, (uintptr_t)PLACE, sizeof SECOND, 1};
    if (write(file, &load, sizeof load) < 0 || write(file, NAME, sizeof NAME) < 0) exit(1);
    if (write(file, SECOND, sizeof SECOND) < 0) exit(1);
    return load.time;
}

static uint64_t log_to_map(void) {
    char path[64];
    snprintf(path, sizeof path, "perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    if (!map || fprintf(map, "%llx %zx logged\n", (unsigned long long)(uintptr_t)PLACE, sizeof SECOND) < 0) exit(1);
    fclose(map);
    return now();
}

int main(int count, char **arguments) {
    if (count < 2) return 2;
    const char *between = arguments[1];
    int is_second = count > 2, is_exec = strncmp(between, "exec", 4) == 0;
    int dump = is_exec ? -1 : open_dump();
    if (!is_second) {
        run(memcpy(map_place(), FIRST, sizeof FIRST));
        if (is_exec) return execl("/proc/self/exe", "reload", between, "second", (char *)0);
        if (strcmp(between, "remap") == 0) {
            munmap(PLACE, 4096);
            map_place();
        }
    } else {
        map_place();
        if (strcmp(between, "exec") == 0) dump = open_dump();
    }
    memcpy(PLACE, SECOND, sizeof SECOND);
    uint64_t logged = dump < 0 ? log_to_map() : log_to_dump(dump);
    run(PLACE);
    printf("%llx %llx %llu\n", (unsigned long long)(uintptr_t)PLACE, (unsigned long long)sizeof SECOND,
           (unsigned long long)logged);
    return 0;
}
