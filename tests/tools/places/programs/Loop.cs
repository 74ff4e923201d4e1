public class Loop {
    static long Fib(int n) { return n < 2 ? n : Fib(n - 1) + Fib(n - 2); }
    public static void Main(string[] a) {
        long end = System.Environment.TickCount + 1000 * long.Parse(a[0]), x = 0;
        while (System.Environment.TickCount < end) x += Fib(20);
        System.Console.WriteLine(x);
    }
}
