// Loops, and tasks in a parallel region, on three threads. As a program (-DPROGRAM) it computes by itself, then with each
// library that it is given, opened so that it prefers what it brings along.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

enum { N = 100, TASKS = 4 };

long work(void) {
    long sum = 0;
#pragma omp parallel num_threads(3) reduction(+ : sum)
    {
#pragma omp for schedule(static)
        for (int i = 0; i < N; i++)
            sum += i;
#pragma omp for schedule(static, 5)
        for (int i = 0; i < N; i++)
            sum += i;
#pragma omp for schedule(dynamic, 4)
        for (int i = 0; i < N; i++)
            sum += i;
        for (int k = 0; k < TASKS; k++) {
#pragma omp task shared(sum)
#pragma omp atomic
            sum++;
        }
#pragma omp taskwait
    }
    return sum;
}

#ifdef PROGRAM
int main(int argc, char **argv) {
    long sum = work();
    for (int n = 1; n < argc; n++) {
        void *library = dlopen(argv[n], RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        long (*works)(void) = (long (*)(void))dlsym(library, "work");
        sum += works();
    }
    printf("sum %ld\n", sum);
    return 0;
}
#endif
