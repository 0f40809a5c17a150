// What costs most to record, each in one way: `fib N` recursive tasks without cut-off, `ranges N` a dynamic loop of N ranges,
// `kernels N` three short loops N times; `rows N` sums over the rows of a sparse matrix, as in CG, and `smooth N` a stencil in two
// dimensions, N times. Prints the milliseconds that this took, and the processor time of all threads.
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

enum { ROWS = 20000, FULL = 13, SIDE = 512 };
static int begins[ROWS + 1], column[ROWS * FULL];
static double value[ROWS * FULL], from[ROWS], to[ROWS], old[SIDE][SIDE], new[SIDE][SIDE];

static void fill(void) {
    for (int i = 0; i < ROWS; i++) {
        begins[i + 1] = begins[i] + FULL;
        from[i] = i;
        for (int j = 0; j < FULL; j++) {
            column[i * FULL + j] = (i * 7919 + j * 104729) % ROWS;
            value[i * FULL + j] = j;
        }
    }
}

static void rows(void) {
    #pragma omp parallel for
    for (int i = 0; i < ROWS; i++) {
        double sum = 0;
        for (int j = begins[i]; j < begins[i + 1]; j++)
            sum += value[j] * from[column[j]];
        to[i] = sum;
    }
    __asm__ volatile("" : : "r"(to) : "memory"); // somebody reads it
}

static void smooth(void) {
    #pragma omp parallel for
    for (int i = 1; i < SIDE - 1; i++)
        for (int j = 1; j < SIDE - 1; j++) {
            double here = old[i][j], d = old[i - 1][j] + old[i + 1][j] + old[i][j - 1] + old[i][j + 1] - 4 * here;
            new[i][j] = here + 0.1 * d + 0.01 * d * d - 0.003 * here * d;
        }
    __asm__ volatile("" : : "r"(new), "r"(old) : "memory"); // and somebody else writes it
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
    } else if (strcmp(what, "rows") == 0) {
        fill();
        for (long step = 0; step < n; step++)
            rows();
    } else if (strcmp(what, "smooth") == 0) {
        for (long step = 0; step < n; step++)
            smooth();
    } else {
        for (long step = 0; step < n; step++)
            kernels(step);
    }
    printf("%.3f %.3f\n", now(CLOCK_MONOTONIC) - wall, now(CLOCK_PROCESS_CPUTIME_ID) - processor);
    return a[0] < -1;
}
