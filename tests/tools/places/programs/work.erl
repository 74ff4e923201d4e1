-module(work). -export([main/1]).
main([S]) -> loop(erlang:monotonic_time(millisecond) + 1000 * list_to_integer(S)).
loop(E) -> fib(18), case erlang:monotonic_time(millisecond) < E of true -> loop(E); false -> ok end.
fib(N) when N < 2 -> N; fib(N) -> fib(N - 1) + fib(N - 2).
