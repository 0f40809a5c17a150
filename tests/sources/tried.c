/* A region with a bad value, and the same source with a better one: -DVALUE=N. `tests/benches/trying.rs` looks for the best by building
 * again, and by `ompfuse try` on the bad one.
 *
 *   tried-short      dynamic ranges of one short iteration
 *   tried-coarse     chunks so large that a thread gets nothing
 *   tried-uneven     a triangle in chunks of a half
 *   tried-declining  guided ranges of which the first one has most of the work
 *   tried-tasks      a taskloop of tiny tasks
 *   tried-tiny       regions too short for a team
 *   tried-fib        a task for each call of a function that does nearly nothing
 *   tried-queens     a task for each place of a queen
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT(x) #x
#define PRAGMA(x) _Pragma(TEXT(x))

enum { N = 1 << 19 };
static double out[N];

static double work(long steps)
{
    double x = 1;
    for (long i = 0; i < steps; i++)
        x = sqrt(x + (double)i);
    return x;
}

#ifdef VALUE
#define CUTOFF if (depth < VALUE)
#else
#define CUTOFF
#endif

#if defined(FIB)
static long fib(int n, int depth)
{
    long a = 0;
    if (n < 2) return n;
    PRAGMA(omp task shared(a) CUTOFF) a = fib(n - 1, depth + 1); /* place */
    long b = fib(n - 2, depth);
    _Pragma("omp taskwait") return a + b;
}
#elif defined(QUEENS)
/* Four bits for each row's column. */
static long queens(int n, int depth, unsigned long board)
{
    long sum = 0;
    if (depth == n) return 1;
    for (int column = 0; column < n; column++) {
        int free = 1;
        for (int row = 0; row < depth; row++) {
            int other = board >> 4 * row & 15;
            free &= other != column && abs(other - column) != depth - row;
        }
        if (!free) continue;
        unsigned long next = board | (unsigned long)column << 4 * depth;
        PRAGMA(omp task shared(sum) CUTOFF) __atomic_fetch_add(&sum, queens(n, depth + 1, next), 0); /* place */
    }
    _Pragma("omp taskwait") return sum;
}
#endif

int main(void)
{
#if defined(SHORT)
#ifndef VALUE
#define VALUE 1
#endif
    for (int round = 0; round < 16; round++) {
        _Pragma("omp parallel for schedule(dynamic, VALUE)") for (int i = 0; i < N; i++) out[i] += work(2); /* place */
    }
#elif defined(COARSE)
#ifndef VALUE
#define VALUE 4096
#endif
    for (int round = 0; round < 40; round++) {
        _Pragma("omp parallel for schedule(dynamic, VALUE)") for (int i = 0; i < 4096; i++) out[i] += work(200); /* place */
    }
#elif defined(UNEVEN)
#ifndef VALUE
#define VALUE 1024
#endif
    for (int round = 0; round < 20; round++) {
        _Pragma("omp parallel for schedule(dynamic, VALUE)") for (int i = 0; i < 2048; i++) out[i] += work(i); /* place */
    }
#elif defined(DECLINING)
#ifdef VALUE
#define KIND schedule(dynamic, VALUE)
#else
#define KIND schedule(guided)
#endif
    for (int round = 0; round < 40; round++) {
        PRAGMA(omp parallel for KIND) for (int i = 0; i < 2048; i++) out[i] += work(i < 256 ? 4000 : 4); /* place */
    }
#elif defined(TASKS)
#ifndef VALUE
#define VALUE 1
#endif
    for (int round = 0; round < 32; round++) {
        #pragma omp parallel
        #pragma omp single
        _Pragma("omp taskloop grainsize(VALUE)") for (int i = 0; i < 20000; i++) out[i] += work(20); /* place */
    }
#elif defined(TINY)
#ifdef VALUE
#define TEAM num_threads(VALUE)
#else
#define TEAM
#endif
    for (int round = 0; round < 60000; round++) {
        PRAGMA(omp parallel for TEAM) for (int i = 0; i < 64; i++) out[i] += 1; /* place */
    }
#elif defined(FIB)
    _Pragma("omp parallel") _Pragma("omp single") out[0] = fib(27, 0);
#elif defined(QUEENS)
    _Pragma("omp parallel") _Pragma("omp single") out[0] = queens(11, 0, 0);
#endif
    double sum = 0;
    for (int i = 0; i < N; i++)
        sum += out[i];
    printf("%.6e\n", sum);
    return 0;
}
