// Half of the time's work, then the same program again in its place, which does the rest: exec (node from 23.11 on).
function first(n) { return n < 2 ? n : first(n - 1) + first(n - 2) }
function second(n) { return n < 2 ? n : second(n - 1) + second(n - 2) }
const again = process.argv[3] === 'again'
const end = Date.now() + 500 * +process.argv[2]
while (Date.now() < end) (again ? second : first)(20)
if (!again) process.execve(process.execPath, [process.execPath, ...process.execArgv, ...process.argv.slice(1), 'again'])
