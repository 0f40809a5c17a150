/* Execution units that are much shorter than their probes: many ranges of a combined region, regions called again and again, tasks
   in tasks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 4000
static double a[N], b[N], c[N];

static void halve(void) {
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        a[i] = b[i] * 0.5 + c[i];
}

static void by_ones(int g) {
#pragma omp parallel for schedule(dynamic, 1)
    for (int i = 0; i < N; i++)
        c[i] = a[i] + b[i] * g;
}

static long fib(int n) {
    long x, y;
    if (n < 2)
        return n;
#pragma omp task shared(x)
    x = fib(n - 1);
#pragma omp task shared(y)
    y = fib(n - 2);
#pragma omp taskwait
    return x + y;
}

int main(int argc, char **argv) {
    int n = argc > 2 ? atoi(argv[2]) : 1;
    long r = 0;
    if (!strcmp(argv[1], "ranges"))
        for (int k = 0; k < n; k++)
            by_ones(k & 1);
    else if (!strcmp(argv[1], "kernels"))
        for (int k = 0; k < n; k++) {
            halve();
            by_ones(k & 1);
        }
    else
#pragma omp parallel
#pragma omp single
        r = fib(n);
    printf("%ld %g\n", r, a[7] + c[9]);
}
