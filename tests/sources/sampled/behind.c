// Causes of lost time whose work is in a function: `behind HOW N`.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static volatile double kept;

__attribute__((noinline)) static void hot(long n)
{
    double sum = 0;
    for (long i = 0; i < n; i++) sum += 1.0 / (1 + i); // HOT
    kept = sum;
}

int main(int count, char **words)
{
    if (count < 3) return 1;
    long n = atol(words[2]);
    if (strcmp(words[1], "serial") == 0) hot(40 * n);
    if (strcmp(words[1], "uneven") == 0) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < 40; i++)
            hot(i < 20 ? 1 : n);
    }
    if (strcmp(words[1], "critical") == 0) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < 40; i++) {
#pragma omp critical
            {
                hot(n);
            }
        }
    }
    if (strcmp(words[1], "own") == 0) {
        double sum = 0;
#pragma omp parallel for schedule(static, 1) reduction(+ : sum)
        for (long i = 0; i < 2; i++) for (long j = 0; j < (i ? 40 * n : 1); j++) sum += 1.0 / (1 + j);
        kept = sum;
    }
#pragma omp parallel
    kept = 0;
    puts("done");
    return 0;
}
