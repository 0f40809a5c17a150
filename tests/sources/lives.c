/* Processes beside the one that was started: `daemon` goes on in the background and computes there, `workers` has children that compute at
   the same time. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile double sink;

static void compute(int rounds) {
    for (int k = 0; k < rounds; k++) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < 200000; i++)
            if (i % 1000 == 0)
                sink = sink + i;
    }
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "daemon")) {
        if (fork())
            return 0;
        setsid();
        if (fork())
            _exit(0);
        usleep(100000);
        compute(100);
        return 0;
    }
    for (int w = 0; w < 3; w++) {
        if (!fork()) {
            compute(100);
            return 0;
        }
    }
    while (wait(NULL) > 0)
        ;
    return 0;
}
