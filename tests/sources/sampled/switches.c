// switches switches|threads: for two seconds two threads wait for each other, or threads begin and end. It says how often.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void *nothing(void *of) { return of; }

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    int to[2], from[2];
    double end = now() + 2;
    long rounds = 0;
    if (pipe(to) != 0 || pipe(from) != 0) return 1;
    if (argc > 1 && strcmp(argv[1], "threads") == 0)
        while (now() < end)
            for (int i = 0; i < 100; i++, rounds++) {
                pthread_t thread;
                if (pthread_create(&thread, 0, nothing, 0) == 0) pthread_join(thread, 0);
            }
#pragma omp parallel num_threads(2)
    {
        int is_first = 0;
#pragma omp master
        is_first = 1;
        char x = 0;
        if (is_first) {
            while (now() < end)
                for (int i = 0; i < 100; i++, rounds++)
                    if (write(to[1], &x, 1) != 1 || read(from[0], &x, 1) != 1) break;
            close(to[1]);
        } else
            while (read(to[0], &x, 1) == 1 && write(from[1], &x, 1) == 1) {
            }
    }
    printf("%ld\n", rounds);
    return 0;
}
