// What a page shows: loops that are even and uneven, tasks, a critical section, waiting. It takes some 50 ms.
#include <stdio.h>

static double a[4096];
static long inside;

static double work(int n) {
    double x = 1;
    for (int k = 0; k < n; k++) x = x * 0.999 + k;
    return x;
}

static void divide(int depth) {
    if (depth == 0) {
        a[inside & 1023] += work(2000);
        return;
    }
    for (int half = 0; half < 2; half++) {
        #pragma omp task
        divide(depth - 1);
    }
    #pragma omp taskwait
}

int main(void) {
    for (int round = 0; round < 4; round++) {
        #pragma omp parallel for schedule(dynamic, 16)
        for (int i = 0; i < 1024; i++) a[i] += work(i * 4);
        #pragma omp parallel for schedule(static)
        for (int i = 0; i < 1024; i++) a[i] += work(800);
    }
    #pragma omp parallel
    {
        #pragma omp single
        divide(6);
        #pragma omp critical(counting)
        inside += (long)work(1000) & 1;
    }
    printf("%g %ld\n", a[17], inside);
}
