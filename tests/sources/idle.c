/* One thread executes a block while the others wait for it, in each way that OpenMP has for that; and a loop whose last iteration is
   long. The times are those of `usleep`, so they are known. */
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 60000

static void pause_here(void) {
    usleep(BLOCK);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "master";
    if (!strcmp(how, "master")) {
#pragma omp parallel
        {
#pragma omp master
            pause_here();
#pragma omp barrier
            usleep(100);
        }
    } else if (!strcmp(how, "single")) {
#pragma omp parallel
        {
#pragma omp single
            pause_here();
            usleep(100);
        }
    } else if (!strcmp(how, "nowait")) {
#pragma omp parallel
        {
#pragma omp single nowait
            pause_here();
#pragma omp barrier
            usleep(100);
        }
    } else if (!strcmp(how, "end")) {
#pragma omp parallel
        {
#pragma omp master
            pause_here();
        }
    } else if (!strcmp(how, "worked")) {
        /* They had something to do before: the wait is one of synchronization. */
#pragma omp parallel
        {
            usleep(BLOCK / 2);
#pragma omp master
            pause_here();
#pragma omp barrier
            usleep(100);
        }
    } else if (!strcmp(how, "loop")) {
#pragma omp parallel
        {
#pragma omp master
            usleep(10);
#pragma omp for schedule(dynamic, 1)
            for (int i = 0; i < 4; i++)
                usleep(i == 3 ? 2 * BLOCK : BLOCK / 2);
        }
    }
    printf("%s\n", how);
}
