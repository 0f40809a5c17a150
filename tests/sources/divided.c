/* Loops and tasks whose division depends on the number of threads. They sleep, so that processors don't matter.
   usage: divided guided|auto|even|triangle|taskloop|grains|early|late|untied */
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void nap(int us) {
    struct timespec t = {us / 1000000, us % 1000000 * 1000L};
    nanosleep(&t, 0);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    if (!strcmp(mode, "guided")) {
#pragma omp parallel for schedule(guided)
        for (int i = 0; i < 96; i++) nap(10000);
    } else if (!strcmp(mode, "auto")) {
#pragma omp parallel for schedule(auto)
        for (int i = 0; i < 96; i++) nap(10000);
    } else if (!strcmp(mode, "even")) {
#pragma omp parallel for schedule(runtime)
        for (int i = 0; i < 96; i++) nap(10000);
    } else if (!strcmp(mode, "triangle")) {
#pragma omp parallel for schedule(runtime)
        for (int i = 0; i < 64; i++) nap(400 * i);
    } else if (!strcmp(mode, "taskloop")) {
#pragma omp parallel
#pragma omp single
#pragma omp taskloop
        for (int i = 0; i < 48; i++) nap(10000);
    } else if (!strcmp(mode, "grains")) {
#pragma omp parallel
#pragma omp single
#pragma omp taskloop grainsize(2)
        for (int i = 0; i < 48; i++) nap(10000);
    } else if (!strcmp(mode, "early")) {
#pragma omp parallel for schedule(dynamic)
        for (int i = 0; i < 32; i++) nap(i == 0 ? 400000 : 5000);
    } else if (!strcmp(mode, "late")) {
#pragma omp parallel for schedule(dynamic)
        for (int i = 0; i < 32; i++) nap(i == 31 ? 200000 : 10000);
    } else if (!strcmp(mode, "untied")) {
        int x[4];
#pragma omp parallel
#pragma omp single
        for (int i = 0; i < 16; i++) {
#pragma omp task untied depend(inout : x[i % 4])
            nap(20000);
        }
    }
    puts("done");
}
