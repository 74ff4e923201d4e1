// Makes functions, runs them until they are optimized, and drops them: memory for code is used again and again.
const end = Date.now() + 1000 * +process.argv[2]
let x = 0
for (let i = 0; Date.now() < end; i++) {
  const made = (0, eval)(`(function made${i}(n) { let s = ${i}; for (let k = 0; k < n; k++) s = (s * ${i % 13 + 2} + k) % 1000003; return s })`)
  for (let k = 0; k < 30; k++) x += made(3000)
  const pattern = new RegExp(`(a+)(b|c${i})+d`)
  for (let k = 0; k < 300; k++) x += pattern.test('aaaaaaaabbbbbbbbbbbbbbbbbbbbbe')
}
