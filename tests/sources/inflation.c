/* Loops whose iterations take longer with more threads, or don't: the argument says why. Prints the mean processor time of an iteration in
 * nanoseconds, by the threads' own clocks. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EXECUTIONS = 200, ITERATIONS = 8, ROWS = 64, TURNS = 40000, ROW = 1 << 16 };

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static volatile long counters[64];
static long total;
static double *rows;
static volatile double sink;

static void one(int how, int n, int i) {
    if (how == 'f') { /* counters of several threads in one line of the cache */
        volatile long *mine = &counters[omp_get_thread_num()];
        for (int k = 0; k < TURNS; k++)
            ++*mine;
    } else if (how == 'a') {
        for (int k = 0; k < TURNS; k++) {
#pragma omp atomic
            total++;
        }
    } else if (how == 'b') { /* 512 KiB, of 32 MiB in turn */
        double *row = rows + (long)((n * ITERATIONS + i) % ROWS) * ROW;
        for (int k = 0; k < ROW; k++)
            row[k] += 1;
    } else { /* registers only */
        unsigned long x = i;
        for (int k = 0; k < TURNS; k++)
            x = x * 6364136223846793005UL + 1442695040888963407UL;
        sink = x;
    }
}

int main(int argc, char **argv) {
    int how = argc > 1 ? argv[1][0] : 'c';
    long time = 0;
    rows = malloc((size_t)ROWS * ROW * sizeof *rows);
    memset(rows, 1, (size_t)ROWS * ROW * sizeof *rows);
    for (int n = 0; n < EXECUTIONS; n++) {
#pragma omp parallel reduction(+ : time)
        {
#pragma omp for schedule(static)
            for (int i = 0; i < ITERATIONS; i++) {
                long begin = now();
                one(how, n, i);
                time += now() - begin;
            }
        }
    }
    printf("%.1f\n", (double)time / EXECUTIONS / ITERATIONS);
    free(rows);
    return 0;
}
