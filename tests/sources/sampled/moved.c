// A loop whose work is in this file, or (ELSEWHERE) in another one.
#include <stdio.h>
#include <stdlib.h>

double elsewhere(double x, long n);

__attribute__((noinline)) double here(double x, long n)
{
    for (long i = 0; i < n; i++) x = x * 0.999 + i;
    return x;
}

int main(int count, char **words)
{
    static double all[4096];
    long n = count > 1 ? atol(words[1]) : 1;
    for (int round = 0; round < 10; round++) {
#pragma omp parallel for schedule(dynamic, 256)
        for (int i = 0; i < 4096; i++)
#ifdef ELSEWHERE
            all[i] = elsewhere(i, n);
#else
            all[i] = here(i, n);
#endif
    }
    printf("%g\n", all[4095]);
    return 0;
}
