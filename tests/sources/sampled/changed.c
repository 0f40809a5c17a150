/* A loop that calls two functions; MORE says how much longer the second one takes. */
#include <stdio.h>

#ifndef MORE
#define MORE 1
#endif
static volatile double kept;

__attribute__((noinline)) static double same(int n)
{
    double x = 1;
    for (int i = 0; i < n; i++) x = x * 0.999 + 1.0 / (i + x);
    return x;
}

__attribute__((noinline)) static double other(int n)
{
    double x = 2;
    for (int i = 0; i < MORE * n; i++) x = x * 0.998 + 1.0 / (i + x);
    return x;
}

int main(void)
{
    for (int round = 0; round < 20; round++) {
#pragma omp parallel for schedule(dynamic, 4)
        for (int i = 0; i < 200; i++) kept = same(10000) + other(10000);
    }
    puts("done");
    return 0;
}
