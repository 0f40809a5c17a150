/* Graphs of units whose work and span are known: each unit sleeps, so they hold on a busy machine. Prints the number of units, and
 * that of the longest chain.
 *
 *   graphs MODE [UNIT_US]
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 4 };

static long unit_us = 4000;
static char at[16][16];

static void unit(long units)
{
    struct timespec t = {0, unit_us * units * 1000};
    nanosleep(&t, NULL);
}

/* Each task writes what the one before has written. */
static int chain(void)
{
    #pragma omp parallel
    #pragma omp single
    for (int i = 0; i < 10; i++) {
        #pragma omp task depend(inout: at[0][0])
        unit(1);
    }
    return printf("10 10\n");
}

/* Two writers, and four readers between. */
static int readers(void)
{
    #pragma omp parallel
    #pragma omp single
    for (int round = 0; round < 3; round++) {
        #pragma omp task depend(out: at[0][0])
        unit(1);
        for (int i = 0; i < 4; i++) {
            #pragma omp task depend(in: at[0][0])
            unit(2);
        }
    }
    return printf("27 9\n");
}

static void below(int levels)
{
    unit(1);
    if (levels > 0) {
        #pragma omp task
        below(levels - 1);
        below(levels - 1);
        #pragma omp taskwait
    }
}

/* A tree of four levels. */
static int tree(void)
{
    #pragma omp parallel
    #pragma omp single
    below(3);
    return printf("15 4\n");
}

/* A taskgroup waits for what was created in it, and what comes of that, but not for the task before. */
static int group(void)
{
    #pragma omp parallel
    #pragma omp single
    {
        #pragma omp task
        unit(3);
        #pragma omp taskgroup
        {
            #pragma omp task
            {
                #pragma omp task
                unit(2);
                unit(1);
            }
            #pragma omp taskgroup
            unit(1);
        }
        unit(3);
    }
    return printf("10 5\n");
}

/* What depends on a task waits for its event as well. */
static int detach(void)
{
    #pragma omp parallel
    #pragma omp single
    {
        omp_event_handle_t event;
        #pragma omp task detach(event) depend(out: at[0][0])
        unit(1);
        #pragma omp task firstprivate(event)
        {
            unit(3);
            omp_fulfill_event(event);
            unit(1);
        }
        #pragma omp task depend(in: at[0][0])
        unit(2);
    }
    return printf("7 5\n");
}

/* Each unit waits for its neighbours above and on the left. */
static int wavefront(void)
{
    #pragma omp parallel
    #pragma omp single
    for (int i = 1; i <= N; i++)
        for (int j = 1; j <= N; j++) {
            #pragma omp task depend(in: at[i - 1][j], at[i][j - 1]) depend(out: at[i][j])
            unit(1);
        }
    return printf("16 7\n");
}

/* The tasks of a blocked factorisation: each step has one potrf, then trsm, then gemm and syrk. */
static int cholesky(void)
{
    #pragma omp parallel
    #pragma omp single
    for (int k = 0; k < N; k++) {
        #pragma omp task depend(inout: at[k][k])
        unit(1);
        for (int i = k + 1; i < N; i++) {
            #pragma omp task depend(in: at[k][k]) depend(inout: at[i][k])
            unit(1);
        }
        for (int i = k + 1; i < N; i++)
            for (int j = k + 1; j <= i; j++) {
                #pragma omp task depend(in: at[i][k], at[j][k]) depend(inout: at[i][j])
                unit(1);
            }
    }
    return printf("20 10\n");
}

/* Three stages, each of which takes one item at a time. */
static int pipeline(void)
{
    #pragma omp parallel
    #pragma omp single
    for (int item = 0; item < 6; item++)
        for (int stage = 0; stage < 3; stage++) {
            #pragma omp task depend(inout: at[0][stage]) depend(inout: at[1][item])
            unit(1);
        }
    return printf("18 8\n");
}

/* A task waits for some of the tasks before it goes on. */
static int some(void)
{
    #pragma omp parallel
    #pragma omp single
    {
        #pragma omp task depend(out: at[0][0])
        unit(2);
        #pragma omp task depend(out: at[0][1])
        unit(5);
        #pragma omp taskwait depend(in: at[0][0])
        unit(2);
    }
    return printf("9 5\n");
}

/* A stencil whose iterations wait for those above and on the left. */
static int doacross(void)
{
    #pragma omp parallel for ordered(2) schedule(static, 1)
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            #pragma omp ordered depend(sink: i - 1, j) depend(sink: i, j - 1)
            unit(1);
            #pragma omp ordered depend(source)
        }
    return printf("16 7\n");
}

/* A half of each iteration is in order. */
static int ordered(void)
{
    #pragma omp parallel for ordered schedule(dynamic, 1)
    for (int i = 0; i < 8; i++) {
        unit(1);
        #pragma omp ordered
        unit(1);
    }
    return printf("16 9\n");
}

/* Writers of a set wait for each other in libgomp. */
static int set(void)
{
    #pragma omp parallel
    #pragma omp single
    for (int i = 0; i < 5; i++) {
        #pragma omp task depend(mutexinoutset: at[0][0])
        unit(1);
    }
#ifdef __clang__
    return printf("5 1\n");
#else
    return printf("5 5\n");
#endif
}

/* Writers that may run at once, between two that may not. */
static int inoutset(void)
{
    #pragma omp parallel
    #pragma omp single
    {
        #pragma omp task depend(out: at[0][0])
        unit(1);
        for (int i = 0; i < 4; i++) {
#ifdef __clang__
            #pragma omp task depend(inoutset: at[0][0])
#else /* gcc knows the word from 13 on */
            #pragma omp task depend(in: at[0][0])
#endif
            unit(1);
        }
        #pragma omp task depend(inout: at[0][0])
        unit(1);
    }
    return printf("6 3\n");
}

/* Two loops, a block of one thread, and barriers between. */
static int loops(void)
{
    #pragma omp parallel
    {
        #pragma omp for schedule(dynamic, 1)
        for (int i = 0; i < 8; i++)
            unit(i == 3 ? 3 : 1);
        #pragma omp single
        unit(2);
        #pragma omp for schedule(static, 1)
        for (int i = 0; i < 4; i++)
            unit(1);
    }
    return printf("16 6\n");
}

static const struct {
    const char *name;
    int (*run)(void);
} modes[] = {
    {"chain", chain},       {"readers", readers},   {"tree", tree},       {"wavefront", wavefront},
    {"cholesky", cholesky}, {"pipeline", pipeline}, {"some", some},       {"doacross", doacross},
    {"ordered", ordered},   {"set", set},           {"loops", loops},
    {"inoutset", inoutset}, {"group", group},       {"detach", detach},
};

int main(int argc, char **argv)
{
    if (argc > 2)
        unit_us = atol(argv[2]);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (argc > 1 && !strcmp(argv[1], modes[i].name))
            return modes[i].run() < 0;
    return 2;
}
