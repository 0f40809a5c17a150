// Calls of every kind into the OpenMP runtime; the result doesn't depend on timing.
#include <omp.h>
#include <stdio.h>

static double table[64];

__attribute__((noinline)) static int sum_of(int n) {
    int sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(dynamic, 3)
    for (int i = 0; i < n; i++) sum += i * i;
    return sum;
}

__attribute__((noinline)) static double leaf(const double *p, int n) {
    double a[12], sum = 0; // in the red zone
    for (int i = 0; i < 12; i++) a[i] = p[(i + n) % 64] * i;
    for (int i = 0; i < 12; i++) sum += a[(i * 7 + n) % 12] - (n < i ? 1 : 2);
    return sum;
}

int main(int argc, char **argv) {
    int tasks = 0, singles = 0;
    double sum = 0;
#pragma omp parallel for schedule(static)
    for (int i = 0; i < 64; i++) table[i] = i / 3.0;
#pragma omp parallel
    {
#pragma omp single
        for (int i = 0; i < 20; i++)
#pragma omp task shared(tasks)
        {
#pragma omp atomic
            tasks += i;
        }
#pragma omp critical
        singles++;
#pragma omp barrier
#pragma omp master
        for (int i = 0; i < 40; i++) sum += leaf(table, i);
    }
    printf("%d %d %d %.12g\n", sum_of(1000), tasks, singles, sum);
    return 7;
}
