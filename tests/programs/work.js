// Recursion, and a function that the runtime calls back.
function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
function sorted(count) {
  const list = Array.from({ length: count }, (_, i) => (i * 7919) % count);
  return list.sort(function byNumber(a, b) { return a - b; });
}
for (let round = 0; round < 20; round++) { fibonacci(24); sorted(20000); }
