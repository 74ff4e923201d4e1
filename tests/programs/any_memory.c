/* Runs code that it logs, in memory of the kind that the first argument names; the second shows how it is logged: `map`
   or `dump`. Prints where the code is. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SIZE 8192

/* again: dec rdi; jnz again; ret */
static const uint8_t CODE[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3};

static uint8_t in_data[2 * SIZE] __attribute__((aligned(4096))) = {1};
static uint8_t in_bss[2 * SIZE] __attribute__((aligned(4096)));

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static uint8_t *map(int file, int flags) {
    if (file >= 0 && ftruncate(file, SIZE)) exit(1);
    void *at = mmap(0, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, flags, file, 0);
    if (at == MAP_FAILED) exit(1);
    return at;
}

static uint8_t *make_memory(const char *kind) {
    char path[64];
    if (!strcmp(kind, "shm")) {
        snprintf(path, sizeof path, "/jitgraft-test-%d", getpid());
        int file = shm_open(path, O_CREAT | O_RDWR, 0600);
        shm_unlink(path);
        return map(file, MAP_SHARED);
    }
    if (!strcmp(kind, "named-shm")) {
        snprintf(path, sizeof path, "/dev/shm/jitgraft-test-%d", getpid());
        uint8_t *at = map(open(path, O_CREAT | O_RDWR, 0700), MAP_SHARED);
        return at;
    }
    if (!strcmp(kind, "unlinked") || !strcmp(kind, "toggled")) {
        strcpy(path, "codeXXXXXX");
        int file = mkstemp(path);
        unlink(path);
        return map(file, MAP_SHARED);
    }
    if (!strcmp(kind, "tmpfile")) return map(open(".", O_TMPFILE | O_RDWR, 0600), MAP_SHARED);
    if (!strcmp(kind, "memfd")) return map(memfd_create("code", 0), MAP_SHARED);
    if (!strcmp(kind, "cache")) return map(open("code.cache", O_CREAT | O_RDWR, 0600), MAP_SHARED);
    if (!strcmp(kind, "moved")) {
        uint8_t *at = map(-1, MAP_PRIVATE | MAP_ANONYMOUS), *to = (uint8_t *)0x600000000000;
        return mremap(at, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    }
    uint8_t *at = !strcmp(kind, "data") ? in_data : in_bss;
    if (mprotect(at, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC)) exit(1);
    return at;
}

static void log_to_map(uint8_t *at) {
    char path[64];
    snprintf(path, sizeof path, "perf-%d.map", getpid());
    FILE *file = fopen(path, "w");
    if (!file || fprintf(file, "%llx %zx logged\n", (unsigned long long)(uintptr_t)at, sizeof CODE) < 0) exit(1);
    fclose(file);
}

static void log_to_dump(uint8_t *at) {
    static const char NAME[] = "logged";
    char path[64];
    snprintf(path, sizeof path, "jit-%d.dump", getpid());
    int file = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
    struct { uint32_t magic, version, size, machine, pad, pid; uint64_t time, flags; } header =
        {0x4A695444, 1, 40, 62, 0, getpid(), now(), 0};
    if (file < 0 || write(file, &header, sizeof header) != sizeof header) exit(1);
    if (mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED) exit(1);
    struct { uint32_t id, size; uint64_t time; uint32_t pid, tid; uint64_t vma, addr, length, index; } load = {
        0, sizeof load + sizeof NAME + sizeof CODE, now(), getpid(), syscall(SYS_gettid),
        (uintptr_t)at, (uintptr_t)at, sizeof CODE, 1};
    if (write(file, &load, sizeof load) < 0 || write(file, NAME, sizeof NAME) < 0) exit(1);
    if (write(file, CODE, sizeof CODE) < 0) exit(1);
}

int main(int count, char **arguments) {
    if (count < 3) return 1;
    uint8_t *at = make_memory(arguments[1]);
    if (at == MAP_FAILED) return 1;
    at += 64;
    memcpy(at, CODE, sizeof CODE);
    if (!strcmp(arguments[2], "map")) log_to_map(at); else log_to_dump(at);
    int toggled = !strcmp(arguments[1], "toggled");
    for (uint64_t end = now() + 100000000; now() < end;) {
        if (toggled) {
            /* Memory that may be written or run, but not both. */
            mprotect(at - 64, SIZE, PROT_READ | PROT_WRITE);
            mprotect(at - 64, SIZE, PROT_READ | PROT_EXEC);
        }
        ((void (*)(uint64_t))at)(100000);
    }
    printf("%lx %zx\n", (unsigned long)(uintptr_t)at, sizeof CODE);
    return 0;
}
