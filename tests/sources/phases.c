/* Three phases of the same length: loop A, loop B, loop A again. The work is processor time, which a busy machine doesn't change.
 * With an argument it begins with a serial phase. */
#include <omp.h>
#include <stdio.h>
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

static void __attribute__((noinline)) loop_a(void) {
#pragma omp parallel for schedule(static)
    for (int i = 0; i < 4; i++)
        spin(500);
}

static void __attribute__((noinline)) loop_b(void) {
#pragma omp parallel for schedule(static)
    for (int i = 0; i < 4; i++)
        spin(500);
}

enum { TIMES = 100 };

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1)
        spin(200000);
    for (int i = 0; i < TIMES; i++)
        loop_a();
    for (int i = 0; i < TIMES; i++)
        loop_b();
    for (int i = 0; i < TIMES; i++)
        loop_a();
    printf("%d\n", 3 * TIMES);
}
