/* Executes what its arguments say, one step per letter: most are a parallel region of their own. What is executed in several regions,
   outside of all, or at a region's end is the same code. `p` and `r` pause and resume the recording. */
#include "ompfuse.h"
#include <omp.h>
#include <stdio.h>

static volatile double sink;

static void spin(int n) {
    for (int i = 0; i < n; i++)
        sink = sink + i;
}

static long tree(int n) {
    long a, b;
    if (n < 2)
        return n;
#pragma omp task shared(a)
    a = tree(n - 1);
#pragma omp task shared(b)
    b = tree(n - 2);
#pragma omp taskwait
    return a + b;
}

/* Tasks that nobody waits for. */
static void loose(int n) {
    for (int i = 0; i < n; i++) {
#pragma omp task
        {
            spin(50 * (i % 7));
            if (n > 2)
                loose(2);
        }
    }
}

static void dynamic_loop(int n) {
#pragma omp for schedule(dynamic, 1) nowait
    for (int i = 0; i < n; i++)
        spin(i % 50);
}

static void step(char what) {
    switch (what) {
    case 't':
#pragma omp parallel
#pragma omp single
        sink = sink + tree(11);
        break;
    case 'q':
#pragma omp parallel
        tree(8);
        break;
    case 's':
        sink = sink + tree(6);
        break;
    case 'l':
#pragma omp parallel
        loose(30);
        break;
    case 'd':
#pragma omp parallel
        dynamic_loop(2000);
        break;
    case 'x':
#pragma omp parallel for schedule(dynamic, 3)
        for (int i = 0; i < 500; i++)
            spin(i);
        break;
    case 'n':
#pragma omp parallel num_threads(2)
        {
            spin(1000);
#pragma omp parallel num_threads(2)
            {
                dynamic_loop(50);
                loose(5);
            }
            loose(3);
        }
        break;
    case 'c':
#pragma omp parallel
        for (int i = 0; i < 50; i++) {
#pragma omp critical
            spin(100);
        }
        break;
    case 'm':
#pragma omp parallel
        {
            dynamic_loop(20);
#pragma omp master
            spin(5000);
#pragma omp barrier
            spin(100 * omp_get_thread_num());
        }
        break;
    case 'o':
#pragma omp parallel
#pragma omp single
#pragma omp taskloop grainsize(1)
        for (int i = 0; i < 100; i++)
            spin(i);
        break;
    case 'g':
#pragma omp parallel
#pragma omp single
        {
#pragma omp taskgroup
            loose(20);
            loose(4);
        }
        break;
    case 'e':
#pragma omp parallel sections
        {
#pragma omp section
            spin(3000);
#pragma omp section
            loose(6);
#pragma omp section
            spin(100);
        }
        break;
    case 'p':
        ompfuse_pause();
        break;
    case 'r':
        ompfuse_resume();
        break;
    }
}

int main(int argc, char **argv) {
    omp_set_max_active_levels(2);
    for (int i = 1; i < argc; i++)
        for (const char *c = argv[i]; *c; c++)
            step(*c);
    printf("%d\n", sink >= 0);
}
