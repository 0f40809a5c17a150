/* Programs that don't scale, each for one reason: what `causes CASE` does is what its report must tell. Units sleep, so that a
 * machine with fewer processors than threads, or with other work, makes them no longer. */
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* So many microseconds. */
static void last(long us) {
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

/* A binary tree of tasks. */
static void tree(int levels) {
    last(300);
    if (levels == 0)
        return;
    for (int child = 0; child < 2; child++) {
#pragma omp task
        tree(levels - 1);
    }
#pragma omp taskwait
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    long sum = 0;
    if (!strcmp(what, "uneven")) {
#pragma omp parallel for schedule(dynamic, 1)
        for (int i = 0; i < 64; i++)
            last(i == 60 ? 100000 : 400);
    } else if (!strcmp(what, "static")) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < 256; i++)
            last(8 * i);
    } else if (!strcmp(what, "dynamic")) {
#pragma omp parallel for schedule(dynamic, 4)
        for (int i = 0; i < 256; i++)
            last(8 * i);
    } else if (!strcmp(what, "few")) {
#pragma omp parallel for schedule(dynamic, 1)
        for (int i = 0; i < 3; i++)
            last(60000);
    } else if (!strcmp(what, "sections")) {
#pragma omp parallel sections
        {
#pragma omp section
            last(2000);
#pragma omp section
            last(2000);
#pragma omp section
            last(150000);
#pragma omp section
            last(2000);
        }
    } else if (!strcmp(what, "critical")) {
#pragma omp parallel for schedule(dynamic, 1)
        for (int i = 0; i < 64; i++) {
#pragma omp critical(door)
            last(1000);
            sum++;
        }
    } else if (!strcmp(what, "single")) {
#pragma omp parallel
        {
#pragma omp single
            last(40000);
        }
    } else if (!strcmp(what, "tiny")) {
#pragma omp parallel
#pragma omp single
        for (int i = 0; i < 30000; i++) {
#pragma omp task
            sum++;
        }
    } else if (!strcmp(what, "serial")) {
        last(60000);
#pragma omp parallel for schedule(static)
        for (int i = 0; i < 64; i++)
            last(200);
    } else if (!strcmp(what, "chain")) {
#pragma omp parallel
#pragma omp single
        for (int i = 0; i < 32; i++) {
#pragma omp task
            last(500);
#pragma omp taskwait
        }
    } else if (!strcmp(what, "flat")) {
#pragma omp parallel
#pragma omp single
        for (int i = 0; i < 64; i++) {
#pragma omp task
            last(500);
        }
    } else if (!strcmp(what, "tree")) {
#pragma omp parallel
#pragma omp single
        tree(5);
    }
    printf("%s\n", sum < 0 ? "never" : what);
    return 0;
}
