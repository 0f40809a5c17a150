// What costs most to record, each in one way: `fib N` recursive tasks without cut-off, `ranges N` a dynamic loop of N ranges,
// `kernels N` three short loops N times. Prints the milliseconds that this took, and the processor time of all threads.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZE = 4000 };
static double a[SIZE], b[SIZE], c[SIZE];

static long fib(int n) {
    if (n < 2)
        return n;
    long x, y;
    #pragma omp task shared(x)
    x = fib(n - 1);
    #pragma omp task shared(y)
    y = fib(n - 2);
    #pragma omp taskwait
    return x + y;
}

static void ranges(long n) {
    #pragma omp parallel for schedule(dynamic, 1)
    for (long i = 0; i < n; i++)
        a[i % SIZE] += i;
}

static void kernels(int step) {
    #pragma omp parallel for
    for (int i = 0; i < SIZE; i++)
        a[i] = b[i] * 0.5 + c[i];
    #pragma omp parallel for
    for (int i = 0; i < SIZE; i++)
        b[i] = a[i] * 0.25;
    #pragma omp parallel for schedule(dynamic, 1)
    for (int i = 0; i < SIZE; i++)
        c[i] = a[i] + b[i] * (step & 1);
}

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "fib";
    long n = argc > 2 ? atol(argv[2]) : 20;
    double wall = now(CLOCK_MONOTONIC), processor = now(CLOCK_PROCESS_CPUTIME_ID);
    if (strcmp(what, "fib") == 0) {
        #pragma omp parallel
        #pragma omp single
        a[0] = fib(n);
    } else if (strcmp(what, "ranges") == 0) {
        ranges(n);
    } else {
        for (long step = 0; step < n; step++)
            kernels(step);
    }
    printf("%.3f %.3f\n", now(CLOCK_MONOTONIC) - wall, now(CLOCK_PROCESS_CPUTIME_ID) - processor);
    return a[0] < -1;
}
