; SECONDS is replaced by a number: lli passes no arguments that would be read without a library.
declare i64 @time(i64*)
define i64 @fib(i64 %n) {
  %c = icmp slt i64 %n, 2
  br i1 %c, label %leaf, label %inner
leaf:
  ret i64 %n
inner:
  %n1 = sub i64 %n, 1
  %n2 = sub i64 %n, 2
  %x = call i64 @fib(i64 %n1)
  %y = call i64 @fib(i64 %n2)
  %s = add i64 %x, %y
  ret i64 %s
}
define i32 @main() {
  %start = call i64 @time(i64* null)
  %end = add i64 %start, SECONDS
  br label %loop
loop:
  %r = call i64 @fib(i64 20)
  %now = call i64 @time(i64* null)
  %more = icmp slt i64 %now, %end
  br i1 %more, label %loop, label %done
done:
  ret i32 0
}
