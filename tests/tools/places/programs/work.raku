sub fib(int $n) { $n < 2 ?? $n !! fib($n - 1) + fib($n - 2) }
my $end = now + @*ARGS[0];
my $x = 0;
while now < $end { $x += fib(12) }
