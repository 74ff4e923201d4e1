<?php
// On the command line, or in a worker of PHP-FPM, that gets its seconds in the query.
function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
set_time_limit(0);
$end = microtime(true) + (float)($argv[1] ?? $_GET['seconds']); $x = 0;
while (microtime(true) < $end) { $x += fib(18); for ($i = 0; $i < 10000; $i++) { $x += $i % 7; } }
