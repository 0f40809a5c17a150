/* Tasks in tasks. They count how many are created by each construct at each depth, which is handed down.
 *
 *   cutoff fib|queens|kept|chain|nested|trace N */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONSTRUCTS = 7, DEPTHS = 64 };
static long created[CONSTRUCTS][DEPTHS];

static void count(int construct, int depth)
{
    _Pragma("omp atomic") created[construct][depth]++;
}

static long fib(int n, int depth)
{
    long a = 0, b = 0;
    if (n < 2) return n;
    count(0, depth);
#pragma omp task shared(a) firstprivate(n, depth) /* left */
    a = fib(n - 1, depth + 1);
    count(1, depth);
#pragma omp task shared(b) firstprivate(n, depth) untied /* right */
    b = fib(n - 2, depth + 1);
#pragma omp taskwait
    return a + b;
}

/* Four bits for each row's column. */
static long queens(int n, int row, unsigned long placed)
{
    long sum = 0;
    if (row == n) return 1;
    for (int column = 0; column < n; column++) {
        int free = 1;
        for (int r = 0; r < row; r++) {
            int other = placed >> 4 * r & 15;
            free &= other != column && abs(other - column) != row - r;
        }
        if (!free) continue;
        unsigned long next = placed | (unsigned long)column << 4 * row;
        count(2, row + 1);
#pragma omp task shared(sum) firstprivate(next, row, n) mergeable /* queen */
        {
            long found = queens(n, row + 1, next);
            next = row = n = 0; /* its own copies */
            _Pragma("omp atomic") sum += found + (long)next;
        }
    }
#pragma omp taskwait
    return sum;
}

#ifdef __clang__
#define COPIED shared(values)
#else
#define COPIED firstprivate(values)
#endif
#define TEXT(x) #x
#define PRAGMA(x) _Pragma(TEXT(x))

/* Tasks that stay: those with dependences, and those whose data a function copies. */
static long kept(int n, int depth)
{
    long first = 0, second = 0, sum = 0;
    if (n == 0) return 1;
    long values[n];
    for (int i = 0; i < n; i++)
        values[i] = i;
    count(3, depth);
#pragma omp task shared(first) depend(out : first) /* depends */
    first = kept(n - 1, depth + 1);
    count(4, depth);
    PRAGMA(omp task shared(second) COPIED) /* copied */
    second = kept(n - 1, depth + 1) + values[n - 1];
    count(5, depth);
#pragma omp task shared(sum) /* plain */
    sum = kept(n - 1, depth + 1);
#pragma omp taskwait
    return first + second + sum;
}

static long total;

/* No task waits for the one that it creates. */
static void chain(int n, int depth)
{
    _Pragma("omp atomic") total += n;
    if (n == 0) return;
    count(6, depth);
#pragma omp task final(n == 7) priority(n) /* link */
    chain(n - 1, depth + 1);
}

/* Whether a task finds its way back to `main`. With one thread it is executed there. */
static void trace(int n)
{
    void *frames[256];
    count(0, 1);
    count(0, 2);
#pragma omp task /* outer */
    {
#pragma omp task /* inner */
        {
            int all = backtrace(frames, 256);
            for (int i = 0; i < all; i++) {
                Dl_info info;
                if (dladdr(frames[i], &info) && info.dli_sname && !strcmp(info.dli_sname, "main")) total += n;
            }
        }
    }
#pragma omp taskwait
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "fib";
    int n = argc > 2 ? atoi(argv[2]) : 12;
    long result = 0;
    if (!strcmp(what, "nested")) {
#pragma omp parallel num_threads(2) reduction(+ : result)
        {
            long mine = 0;
#pragma omp task shared(mine)
            {
#pragma omp parallel num_threads(2) reduction(+ : mine)
                mine += fib(n, 1) + kept(3, 1);
            }
#pragma omp taskwait
            result += mine;
        }
    } else {
#pragma omp parallel
#pragma omp single
        {
            if (!strcmp(what, "fib")) result = fib(n, 1);
            if (!strcmp(what, "queens")) result = queens(n, 0, 0);
            if (!strcmp(what, "kept")) result = kept(n, 1);
            if (!strcmp(what, "chain")) chain(n, 1);
            if (!strcmp(what, "trace")) trace(n);
        }
    }
    printf("%s %ld\n", what, result + total);
    for (int c = 0; c < CONSTRUCTS; c++)
        for (int d = 0; d < DEPTHS; d++)
            if (created[c][d]) printf("construct %d depth %d tasks %ld\n", c, d, created[c][d]);
    return 0;
}
