// For node, deno, bun, jsc and a page: this many seconds of work.
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
function sum(a) { let s = 0; for (let i = 0; i < 1e5; i++) s += a[i % 7] * i; return s }
const seconds = typeof process === 'object' ? process.argv[2] : typeof window === 'object' ? window.seconds : arguments[0]
const end = Date.now() + 1000 * +seconds
let x = 0
while (Date.now() < end) x += fib(20) + sum([1, 2, 3, 4, 5, 6, 7])
