// Very many units of one kind: `loop N` ranges, `tasks N` levels of a recursion, `regions N` parallel regions; `pause N`: a loop in
// which all threads sleep for a while after N ranges, and then go on with thirty times as many.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long sum;

static long fib(int n)
{
    long a, b;
    if (n < 2)
        return n;
#pragma omp task shared(a)
    a = fib(n - 1);
#pragma omp task shared(b)
    b = fib(n - 2);
#pragma omp taskwait
    return a + b;
}

int main(int argc, char **argv)
{
    const char *kind = argc > 2 ? argv[1] : "loop";
    long n = argc > 2 ? atol(argv[2]) : 1000;
    if (!strcmp(kind, "loop")) {
#pragma omp parallel for schedule(dynamic, 1)
        for (long i = 0; i < n; i++)
            __atomic_fetch_add(&sum, 1, __ATOMIC_RELAXED);
    } else if (!strcmp(kind, "tasks")) {
#pragma omp parallel
#pragma omp single
        sum = fib(n);
    } else if (!strcmp(kind, "regions")) {
        for (long r = 0; r < n; r++) {
#pragma omp parallel for
            for (int i = 0; i < 4; i++)
                __atomic_fetch_add(&sum, 1, __ATOMIC_RELAXED);
        }
    } else {
        long first = n, all = 31 * n;
#pragma omp parallel for schedule(dynamic, 1)
        for (long i = 0; i < all; i++) {
            // All threads of a team of two.
            if (i == first || i == first + 1)
                usleep(2000000);
            __atomic_fetch_add(&sum, 1, __ATOMIC_RELAXED);
        }
    }
    printf("%ld\n", sum);
    return 0;
}
