// Regions of one thread, forked at so many calls below `main`: nanoseconds of a region, the least of many rounds.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define REGIONS 1000
#define ROUNDS 300
static volatile long executed;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * t.tv_sec + t.tv_nsec;
}

__attribute__((noinline)) static double regions(void) {
    double begin = now();
    for (int i = 0; i < REGIONS; i++) {
#pragma omp parallel num_threads(1)
        executed++;
    }
    return (now() - begin) / REGIONS;
}

__attribute__((noinline)) static double below(int calls) {
    return calls ? below(calls - 1) + 0.0 : regions();
}

int main(int argc, char **argv) {
    int calls = argc > 1 ? atoi(argv[1]) : 10;
    double least = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double ns = below(calls);
        if (ns < least) least = ns;
    }
    printf("%.1f\n", least);
    return 0;
}
