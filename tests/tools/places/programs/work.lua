local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end
local finish = os.time() + arg[1]
local x = 0
while os.time() < finish do x = x + fib(15); for i = 1, 10000 do x = x + i % 7 end end
