public class Loop {
    static long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    public static void main(String[] a) {
        long end = System.currentTimeMillis() + 1000 * Long.parseLong(a[0]), x = 0;
        while (System.currentTimeMillis() < end) x += fib(20);
        System.out.println(x);
    }
}
