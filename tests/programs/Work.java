import java.util.Arrays;

// Recursion, and a function that the library calls back.
class Work {
    static int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

    static int byNumber(Integer a, Integer b) { return a.compareTo(b); }

    static Integer[] sorted(int count) {
        var list = new Integer[count];
        for (int i = 0; i < count; i++) list[i] = (int) ((long) i * 7919 % count);
        Arrays.sort(list, Work::byNumber);
        return list;
    }

    public static void main(String[] arguments) {
        int sum = 0;
        for (int round = 0; round < 100; round++) sum += fibonacci(26) + sorted(20000)[7];
        System.out.println(sum);
    }
}
