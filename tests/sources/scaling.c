/* How a program scales, by construction: a serial part of four times the loop's work, or a critical section that is all of the work.
 * The work is processor time, which a busy machine doesn't change. `same`: the argument must be the number of threads. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void spin(long us) {
    long end = now() + 1000 * us;
    while (now() < end)
        ;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "serial";
    if (!strcmp(how, "serial")) {
        for (int i = 0; i < 3; i++) {
            spin(40000);
#pragma omp parallel for schedule(static)
            for (int j = 0; j < 20; j++)
                spin(500);
        }
    } else if (!strcmp(how, "critical")) {
#pragma omp parallel for schedule(dynamic, 1)
        for (int i = 0; i < 40; i++) {
#pragma omp critical(door)
            spin(3000);
        }
    } else if (!strcmp(how, "same")) {
        int threads = 0;
#pragma omp parallel
        {
            spin(1000);
#pragma omp atomic
            threads++;
        }
        return threads != atoi(argv[2]);
    } else if (!strcmp(how, "fixed")) {
#pragma omp parallel num_threads(2)
        spin(100);
    }
    return 0;
}
