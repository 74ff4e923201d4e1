/* A small just-in-time compiler, to be recorded: it runs programs of integer functions (tiers.lisp) in three tiers.
 *
 *   interpreted a stub of written code for each function, which calls the interpreter, so that stacks name it baseline
 *   one piece of machine code for each instruction of the bytecode; values go over the stack optimized from the tree:
 *   values in registers, chosen by trying all choices; comparisons without a result
 *
 * A function is compiled by the calls that it had; (flush) throws all compiled code away, and what is compiled next
 * lies where other functions were. Code, names, times and lines go to jit-PID.dump in the present directory. All written
 * code keeps frame pointers. x86-64 only:
 *
 *   gcc -O2 -fno-omit-frame-pointer -fno-optimize-sibling-calls -static -o tiers tests/programs/tiers.c
 *   ./tiers tests/programs/tiers.lisp */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { CALLS_TO_BASELINE = 30, CALLS_TO_OPTIMISED = 1000, REGISTERS = 3, HEAP = 1 << 16, CODE_SIZE = 1 << 16 };

/* Bytecode and trees have the same operations; those after CALL are of bytecode only. */
enum Op { NUMBER, LOCAL, SET, IF, WHILE, DO, ADD, SUB, MUL, DIV, REM, LESS, EQUAL, AT, PUT, BUILTIN, CALL,
          POP, JUMP, JUMP_IF_ZERO, RETURN };

typedef struct Node {
    enum Op op;
    int line;
    int64_t value; /* the number, or which local, builtin or function */
    int count;
    struct Node *kids[8];
} Node;

typedef struct { int op, line; int64_t value; int count, depth; } Instruction;
typedef int64_t (*Entry)(const int64_t *arguments);

typedef struct {
    char name[32], locals[16][16];
    int line, parameters, local_count, tier, size;
    int64_t calls_left;
    Entry entry, stub;
    Node *body;
    Instruction bytecode[512];
} Function;

static Function functions[64];
static int function_count;
static int64_t heap[HEAP];

static void die(const char *what, const char *which) {
    fprintf(stderr, "tiers: %s %s\n", what, which);
    exit(1);
}

/* ---- what programs may call, beside their own functions ---- */

static uint64_t seed;
static uint8_t *code_start, *code_next, *stubs_next;

static int64_t next_random(const int64_t *a) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (int64_t)(seed % (uint64_t)a[0]);
}
static int64_t fixed_multiply(const int64_t *a) { return (int64_t)(((__int128)a[0] * a[1]) >> 16); }
static int64_t print(const int64_t *a) {
    printf("%lld\n", (long long)a[0]);
    return a[0];
}
/* To be called where no compiled function is running. */
static int64_t flush(const int64_t *a) {
    (void)a;
    for (Function *f = functions; f < functions + function_count; f++) {
        f->entry = f->stub, f->tier = 0, f->calls_left = CALLS_TO_BASELINE;
    }
    code_next = code_start;
    return 0;
}
static const struct { const char *name; Entry entry; } BUILTINS[] = {
    {"random", next_random}, {"fixed*", fixed_multiply}, {"print", print}, {"flush", flush}};

/* ---- text → trees ---- */

static const char *source, *source_path;
static int source_line = 1;
static Function *defining;

static int next_token(char *token) {
    for (; *source && strchr(" \n;", *source); source++) {
        if (*source == ';') source = strchrnul(source, '\n');
        source_line += *source == '\n';
    }
    int size = 0;
    if (*source == '(' || *source == ')') token[size++] = *source++;
    else while (*source && !strchr("() \n", *source) && size < 15) token[size++] = *source++;
    token[size] = 0;
    if (size == 15) die("too long:", token);
    return size;
}

static int local(const char *name, int may_add) {
    for (int i = 0; i < defining->local_count; i++) {
        if (!strcmp(defining->locals[i], name)) return i;
    }
    if (!may_add || defining->local_count == 16) die("unknown name", name);
    strcpy(defining->locals[defining->local_count], name);
    return defining->local_count++;
}

static Function *function(const char *name) {
    for (Function *f = functions; f < functions + function_count; f++) {
        if (!strcmp(f->name, name)) return f;
    }
    if (function_count == 64) die("too many functions before", name);
    strcpy(functions[function_count].name, name);
    return &functions[function_count++];
}

static const char *const OPERATIONS[] = {"", "", "set", "if", "while", "do", "+", "-", "*", "/", "%", "<", "=", "at", "put"};

static void operation(Node *node, const char *name) {
    for (int op = SET; op <= PUT; op++) {
        if (!strcmp(OPERATIONS[op], name)) { node->op = op; return; }
    }
    for (size_t i = 0; i < sizeof BUILTINS / sizeof *BUILTINS; i++) {
        if (!strcmp(BUILTINS[i].name, name)) { node->op = BUILTIN, node->value = (int64_t)i; return; }
    }
    node->op = CALL, node->value = function(name) - functions;
}

static Node *parse(const char *token) {
    Node *node = calloc(1, sizeof *node);
    node->line = source_line;
    char next[16], *end;
    if (*token != '(') {
        node->value = strtoll(token, &end, 10);
        if (*end || !*token) node->op = LOCAL, node->value = local(token, 0);
        return node;
    }
    next_token(next);
    operation(node, next);
    if (node->op == SET) next_token(next), node->value = local(next, 1);
    while (next_token(next), *next != ')') {
        if (!*next || node->count == 8) die("too long or not closed:", defining->name);
        node->kids[node->count++] = parse(next);
    }
    return node;
}

/* (define (NAME PARAMETER…) BODY) */
static void parse_program(void) {
    char token[16];
    while (next_token(token)) {
        next_token(token), next_token(token), next_token(token);
        defining = function(token);
        defining->line = source_line;
        while (next_token(token), *token != ')') local(token, 1);
        defining->parameters = defining->local_count;
        next_token(token);
        defining->body = parse(token);
        next_token(token);
    }
}

/* ---- trees → bytecode → results ---- */

static Instruction *add(Function *f, const Node *node, int op, int64_t value) {
    f->bytecode[f->size] = (Instruction){op, node->line, value, node->count, 0};
    return &f->bytecode[f->size++];
}

/* One value more is on the stack afterwards, above `depth` others. */
static void to_bytecode(Function *f, const Node *node, int depth) {
    switch (node->op) {
    case IF: {
        to_bytecode(f, node->kids[0], depth);
        Instruction *otherwise = add(f, node, JUMP_IF_ZERO, 0);
        to_bytecode(f, node->kids[1], depth);
        Instruction *end = add(f, node, JUMP, 0);
        otherwise->value = f->size;
        to_bytecode(f, node->kids[2], depth);
        end->value = f->size;
        return;
    }
    case WHILE: {
        int start = f->size;
        to_bytecode(f, node->kids[0], depth);
        Instruction *out = add(f, node, JUMP_IF_ZERO, 0);
        for (int i = 1; i < node->count; i++) to_bytecode(f, node->kids[i], depth), add(f, node, POP, 0);
        add(f, node, JUMP, start);
        out->value = f->size;
        add(f, node, NUMBER, 0);
        return;
    }
    case DO:
        for (int i = 0; i < node->count; i++) {
            if (i) add(f, node, POP, 0);
            to_bytecode(f, node->kids[i], depth);
        }
        return;
    case CALL:
    case BUILTIN: /* The first argument lies lowest: on top. */
        for (int i = node->count; i-- > 0;) to_bytecode(f, node->kids[i], depth + node->count - 1 - i);
        add(f, node, node->op, node->value)->depth = depth + node->count;
        return;
    default:
        for (int i = 0; i < node->count; i++) to_bytecode(f, node->kids[i], depth + i);
        add(f, node, node->op, node->value);
    }
}

static void tier_up(Function *f);

static int64_t interpret(Function *f, const int64_t *arguments) {
    int64_t locals[16], stack[64], *top = stack;
    memcpy(locals, arguments, (size_t)f->parameters * sizeof *locals);
    if (--f->calls_left == 0) tier_up(f);
    for (const Instruction *at = f->bytecode;; at++) {
        switch (at->op) {
        case NUMBER: *top++ = at->value; break;
        case LOCAL: *top++ = locals[at->value]; break;
        case SET: locals[at->value] = top[-1]; break;
        case POP: top--; break;
        case ADD: top--, top[-1] += *top; break;
        case SUB: top--, top[-1] -= *top; break;
        case MUL: top--, top[-1] *= *top; break;
        case DIV: top--, top[-1] /= *top; break;
        case REM: top--, top[-1] %= *top; break;
        case LESS: top--, top[-1] = top[-1] < *top; break;
        case EQUAL: top--, top[-1] = top[-1] == *top; break;
        case AT: top[-1] = heap[top[-1] & (HEAP - 1)]; break;
        case PUT: top--, top[-1] = heap[top[-1] & (HEAP - 1)] = *top; break;
        case JUMP: at = f->bytecode + at->value - 1; break;
        case JUMP_IF_ZERO: if (!*--top) at = f->bytecode + at->value - 1; break;
        case RETURN: return top[-1];
        case BUILTIN:
        case CALL: { /* On this stack the first argument lies highest. */
            int64_t turned[8];
            for (int i = 0; i < at->count; i++) turned[i] = *--top;
            *top++ = (at->op == CALL ? functions[at->value].entry : BUILTINS[at->value].entry)(turned);
        }
        }
    }
}

/* ---- machine code ---- */

static uint8_t *code;
static struct { uint64_t addr; int line; } lines[512];
static int line_count;

static void bytes(int count, ...) {
    va_list list;
    va_start(list, count);
    while (count-- > 0) *code++ = (uint8_t)va_arg(list, int);
    va_end(list);
}
#define COUNT(_1, _2, _3, _4, _5, _6, _7, _8, n, ...) n
#define CODE(...) bytes(COUNT(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0), __VA_ARGS__)

static void put32(int64_t value) { code = (uint8_t *)mempcpy(code, &value, 4); }
static void put64(const void *value) { code = (uint8_t *)mempcpy(code, &value, 8); }
static uint8_t *jump(int opcode) { /* 0xe9: always, else 0x0f OPCODE; returns where the target goes */
    if (opcode == 0xe9) CODE(0xe9);
    else CODE(0x0f, opcode);
    put32(0);
    return code;
}
static void land(uint8_t *from, const uint8_t *at) {
    int32_t distance = (int32_t)(at - from);
    memcpy(from - 4, &distance, 4);
}
static void at_line(int line) {
    if (line_count && lines[line_count - 1].line == line) return;
    if (line_count == 512) return;
    lines[line_count].addr = (uint64_t)code, lines[line_count++].line = line;
}

/* Calls with the topmost `count` of `depth` values as arguments and leaves the result in rax. */
static void call(int op, int64_t which, int count, int depth) {
    int odd = depth & 1;
    CODE(0x48, 0x89, 0xe7); /* mov rdi, rsp */
    if (odd) CODE(0x50);    /* push rax: calls want rsp in multiples of 16 */
    CODE(0x48, 0xb8);       /* mov rax, … */
    put64(op == CALL ? (const void *)&functions[which].entry : (const void *)(uintptr_t)BUILTINS[which].entry);
    CODE(0xff, op == CALL ? 0x10 : 0xd0); /* call [rax] or rax */
    CODE(0x48, 0x81, 0xc4);               /* add rsp, … */
    put32(8 * (count + odd));
}

static void heap_address(void) { /* rcx + 8 * rax */
    CODE(0x25), put32(HEAP - 1);
    CODE(0x48, 0xb9), put64(heap);
}

/* rax OP rcx → rax */
static void calculate(int op) {
    switch (op) {
    case ADD: CODE(0x48, 0x01, 0xc8); break;
    case SUB: CODE(0x48, 0x29, 0xc8); break;
    case MUL: CODE(0x48, 0x0f, 0xaf, 0xc1); break;
    case DIV: CODE(0x48, 0x99, 0x48, 0xf7, 0xf9); break;
    case REM: CODE(0x48, 0x99, 0x48, 0xf7, 0xf9), CODE(0x48, 0x89, 0xd0); break;
    default: /* cmp rax, rcx; setl or sete al; movzx eax, al */
        CODE(0x48, 0x39, 0xc8);
        CODE(0x0f, op == LESS ? 0x9c : 0x94, 0xc0);
        CODE(0x0f, 0xb6, 0xc0);
    }
}

/* ---- the baseline compiler ---- */

static void baseline_instruction(const Instruction *at) {
    int64_t slot = -8 * (at->value + 1);
    switch (at->op) {
    case NUMBER: CODE(0x68), put32(at->value); break;
    case LOCAL: CODE(0xff, 0xb5), put32(slot); break;
    case SET: CODE(0x58, 0x50, 0x48, 0x89, 0x85), put32(slot); break;
    case POP: CODE(0x58); break;
    case RETURN: CODE(0x58, 0xc9, 0xc3); break;
    case AT: CODE(0x58), heap_address(), CODE(0xff, 0x34, 0xc1); break;
    case PUT: CODE(0x5a, 0x58), heap_address(), CODE(0x48, 0x89, 0x14, 0xc1, 0x52); break;
    case CALL:
    case BUILTIN: call(at->op, at->value, at->count, at->depth), CODE(0x50); break;
    default: CODE(0x59, 0x58), calculate(at->op), CODE(0x50); break;
    }
}

static void compile_baseline(Function *f) {
    uint8_t *starts[512], *jumps[512] = {0};
    CODE(0x55, 0x48, 0x89, 0xe5);  /* push rbp; mov rbp, rsp */
    CODE(0x48, 0x81, 0xec), put32(8 * ((f->local_count + 1) & ~1));
    for (int i = 0; i < f->parameters; i++) {
        CODE(0x48, 0x8b, 0x87), put32(8 * i);        /* mov rax, [rdi + …] */
        CODE(0x48, 0x89, 0x85), put32(-8 * (i + 1)); /* mov [rbp - …], rax */
    }
    CODE(0x48, 0xb8), put64(&f->calls_left);
    CODE(0x48, 0xff, 0x08); /* dec qword [rax] */
    uint8_t *skip = jump(0x85);
    CODE(0x48, 0xbf), put64(f);
    CODE(0x48, 0xb8), put64((void *)(uintptr_t)tier_up);
    CODE(0xff, 0xd0);
    land(skip, code);
    for (int i = 0; i < f->size; i++) {
        const Instruction *at = &f->bytecode[i];
        starts[i] = code;
        at_line(at->line);
        if (at->op == JUMP_IF_ZERO) CODE(0x58, 0x48, 0x85, 0xc0), jumps[i] = jump(0x84);
        else if (at->op == JUMP) jumps[i] = jump(0xe9);
        else baseline_instruction(at);
    }
    for (int i = 0; i < f->size; i++) {
        if (jumps[i]) land(jumps[i], starts[f->bytecode[i].value]);
    }
}

/* ---- the optimizing compiler ---- */

static const int REGISTER[REGISTERS] = {3, 12, 13}; /* rbx, r12, r13 */
static int homes[16];                               /* of the locals: a register, or -1: in memory */
static int64_t cost, weight;

/* OPCODE rax, LOCAL; or rcx, with `to` 1 */
static void with_local(int opcode, int64_t which, int to) {
    int home = homes[which];
    cost += home < 0 ? weight : 0;
    CODE(home >= 8 ? 0x49 : 0x48);
    if (opcode > 0xff) CODE(opcode >> 8);
    CODE(opcode & 0xff, (home < 0 ? 0x85 : 0xc0 | (home & 7)) | to << 3);
    if (home < 0) put32(-8 * (which + 1 + REGISTERS));
}

static int fold_constants(Node *node) {
    int all = node->op == NUMBER || (node->op >= ADD && node->op <= MUL);
    for (int i = 0; i < node->count; i++) all &= fold_constants(node->kids[i]);
    if (all && node->op != NUMBER) {
        int64_t a = node->kids[0]->value, b = node->kids[1]->value;
        node->value = node->op == ADD ? a + b : node->op == SUB ? a - b : a * b;
        node->op = NUMBER, node->count = 0;
    }
    return all;
}

static void generate(const Node *node, int depth);

/* The left value comes to be in rax and the right one in rcx, or compared with rax at once. */
static void generate_operands(const Node *node, int depth) {
    const Node *right = node->kids[1];
    if (right->op == LOCAL || right->op == NUMBER) {
        generate(node->kids[0], depth);
        if (right->op == LOCAL) with_local(0x8b, right->value, 1);
        else CODE(0x48, 0xc7, 0xc1), put32(right->value);
        return;
    }
    generate(right, depth);
    CODE(0x50);
    generate(node->kids[0], depth + 1);
    CODE(0x59);
}

/* Jumps if the condition does not hold. */
static uint8_t *generate_condition(const Node *node, int depth) {
    if (node->op == LESS || node->op == EQUAL) {
        generate_operands(node, depth);
        CODE(0x48, 0x39, 0xc8);
        return jump(node->op == LESS ? 0x8d : 0x85);
    }
    generate(node, depth);
    CODE(0x48, 0x85, 0xc0);
    return jump(0x84);
}

static void generate_if(const Node *node, int depth) {
    uint8_t *otherwise = generate_condition(node->kids[0], depth);
    generate(node->kids[1], depth);
    uint8_t *end = jump(0xe9);
    land(otherwise, code);
    generate(node->kids[2], depth);
    land(end, code);
}

static void generate_while(const Node *node, int depth) {
    uint8_t *start = code;
    weight *= 8;
    uint8_t *out = generate_condition(node->kids[0], depth);
    for (int i = 1; i < node->count; i++) generate(node->kids[i], depth);
    weight /= 8;
    land(jump(0xe9), start);
    land(out, code);
    CODE(0x31, 0xc0); /* xor eax, eax */
}

static void generate_call(const Node *node, int depth) {
    for (int i = node->count; i-- > 0;) generate(node->kids[i], depth + node->count - 1 - i), CODE(0x50);
    call(node->op, node->value, node->count, depth + node->count);
}

/* The result comes to be in rax; `depth` values are on the stack. */
static void generate(const Node *node, int depth) {
    at_line(node->line);
    switch (node->op) {
    case NUMBER: CODE(0x48, 0xc7, 0xc0), put32(node->value); break;
    case LOCAL: with_local(0x8b, node->value, 0); break;
    case SET: generate(node->kids[0], depth), with_local(0x89, node->value, 0); break;
    case IF: generate_if(node, depth); break;
    case WHILE: generate_while(node, depth); break;
    case DO: for (int i = 0; i < node->count; i++) generate(node->kids[i], depth); break;
    case AT: generate(node->kids[0], depth), heap_address(), CODE(0x48, 0x8b, 0x04, 0xc1); break;
    case PUT:
        generate(node->kids[1], depth), CODE(0x50);
        generate(node->kids[0], depth + 1), heap_address(), CODE(0x5a, 0x48, 0x89, 0x14, 0xc1), CODE(0x48, 0x89, 0xd0);
        break;
    case CALL:
    case BUILTIN: generate_call(node, depth); break;
    default: generate_operands(node, depth), calculate(node->op); break;
    }
}

static void generate_function(const Function *f) {
    int slots = f->local_count + REGISTERS;
    CODE(0x55, 0x48, 0x89, 0xe5);
    CODE(0x53, 0x41, 0x54, 0x41, 0x55); /* push rbx, r12, r13 */
    CODE(0x48, 0x81, 0xec), put32(8 * (((slots + 1) & ~1) - REGISTERS));
    for (int i = 0; i < f->parameters; i++) {
        CODE(0x48, 0x8b, 0x87), put32(8 * i); /* mov rax, [rdi + …] */
        with_local(0x89, i, 0);
    }
    generate(f->body, 0);
    CODE(0x48, 0x8d, 0x65, -8 * REGISTERS); /* lea rsp, [rbp - …] */
    CODE(0x41, 0x5d, 0x41, 0x5c, 0x5b, 0x5d, 0xc3);
}

static void choose_homes(const Function *f, unsigned chosen) {
    for (int i = 0, next = 0; i < f->local_count; i++) homes[i] = chosen >> i & 1 ? REGISTER[next++] : -1;
}

/* Tries all choices of locals for the registers, and takes the one with the fewest uses of memory. */
static unsigned best_registers(const Function *f) {
    unsigned best = 0;
    int64_t least = INT64_MAX;
    for (unsigned chosen = 0; chosen < 1u << f->local_count; chosen++) {
        if (__builtin_popcount(chosen) > REGISTERS) continue;
        uint8_t *start = code;
        choose_homes(f, chosen);
        cost = 0, weight = 1;
        generate_function(f);
        if (cost < least) best = chosen, least = cost;
        code = start, line_count = 0;
    }
    return best;
}

static void compile_optimised(Function *f) {
    fold_constants(f->body);
    choose_homes(f, best_registers(f));
    generate_function(f);
}

/* ---- the jitdump ---- */

static FILE *dump;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void dump_start(void) {
    char path[32];
    snprintf(path, sizeof path, "jit-%d.dump", (int)getpid());
    if (!(dump = fopen(path, "w+"))) die("cannot write", path);
    struct { uint32_t magic, version, size, machine, pad, pid; uint64_t time, flags; } header =
        {0x4a695444, 1, 40, 62, 0, (uint32_t)getpid(), now(), 0};
    fwrite(&header, sizeof header, 1, dump);
    /* This mapping is the sign by which perf and others find the dump. */
    mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0);
}

static void dump_lines(const uint8_t *start) {
    size_t name = strlen(source_path) + 1;
    struct { uint32_t id, size; uint64_t time, addr, count; } record =
        {2, (uint32_t)(32 + (unsigned)line_count * (16 + name)), now(), (uint64_t)start, (uint64_t)line_count};
    fwrite(&record, sizeof record, 1, dump);
    for (int i = 0; i < line_count; i++) {
        struct { uint64_t addr; int32_t line, discriminator; } entry = {lines[i].addr, lines[i].line, 0};
        fwrite(&entry, sizeof entry, 1, dump), fwrite(source_path, name, 1, dump);
    }
}

static void dump_code(const Function *f, const char *tier, const uint8_t *start) {
    static uint64_t index;
    char name[64];
    size_t name_size = (size_t)snprintf(name, sizeof name, "%s [%s]", f->name, tier) + 1, size = (size_t)(code - start);
    if (line_count) dump_lines(start);
    struct { uint32_t id, size; uint64_t time; uint32_t pid, tid; uint64_t vma, addr, code_size, index; } record =
        {0, (uint32_t)(56 + name_size + size), now(), (uint32_t)getpid(), (uint32_t)getpid(),
         (uint64_t)start, (uint64_t)start, size, index++};
    fwrite(&record, sizeof record, 1, dump);
    fwrite(name, name_size, 1, dump);
    fwrite(start, size, 1, dump);
}

/* ---- tiers ---- */

static void tier_up(Function *f) {
    static void (*const COMPILERS[])(Function *) = {compile_baseline, compile_optimised};
    static const char *const NAMES[] = {"baseline", "optimised"};
    uint8_t *start = code = code_next;
    line_count = 0;
    COMPILERS[f->tier](f);
    dump_code(f, NAMES[f->tier], start);
    f->entry = (Entry)(uintptr_t)start;
    f->tier++, f->calls_left = f->tier == 1 ? CALLS_TO_OPTIMISED : -1;
    code_next = (uint8_t *)(((uintptr_t)code + 63) & ~(uintptr_t)63);
    if (code_next > code_start + CODE_SIZE - 8192) die("no room for more code than", f->name);
}

static void write_stub(Function *f) {
    uint8_t *start = code = stubs_next;
    CODE(0x55, 0x48, 0x89, 0xe5);
    CODE(0x48, 0x89, 0xfe);       /* mov rsi, rdi */
    CODE(0x48, 0xbf), put64(f);   /* mov rdi, f */
    CODE(0x48, 0xb8), put64((void *)(uintptr_t)interpret);
    CODE(0xff, 0xd0, 0x5d, 0xc3); /* call rax; pop rbp; ret */
    line_count = 0;
    dump_code(f, "interpreted", start);
    f->stub = (Entry)(uintptr_t)start;
    stubs_next = start + 64;
}

static void read_source(const char *path) {
    static char text[1 << 16];
    FILE *file = fopen(path, "r");
    if (!file || !fread(text, 1, sizeof text - 1, file)) die("cannot read", path);
    fclose(file);
    source = text, source_path = path;
}

int main(int count, char **arguments) {
    if (count < 2) die("no program given", "");
    read_source(arguments[1]);
    seed = 4711;
    stubs_next = mmap(0, CODE_SIZE + 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stubs_next == MAP_FAILED) die("no memory for", "code");
    code_start = stubs_next + 4096;
    parse_program();
    dump_start();
    for (Function *f = functions; f < functions + function_count; f++) {
        if (!f->body) die("not defined:", f->name);
        to_bytecode(f, f->body, 0);
        add(f, f->body, RETURN, 0);
        write_stub(f);
    }
    flush(0);
    function("main")->entry(0);
    fclose(dump);
    return 0;
}
