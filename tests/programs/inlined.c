/* A function with two calls that the compiler expands. */
static inline __attribute__((always_inline)) int innermost(int x) {
    int sum = 0;
    for (int i = 0; i < x; i++) sum += i * x;
    return sum ^ 5;
}

static inline __attribute__((always_inline)) int middle(int x) {
    return innermost(x + 1) * 3;
}

__attribute__((noinline)) int hidden(int x) { return middle(x) - 1; }

int main(int count, char **arguments) {
    (void)arguments;
    return hidden(count);
}
