// Three loops with the same instructions, which take 60, 30 and 10 % of a region's work, and serial code before it.
#include <stdio.h>
static volatile double kept;
enum { ROUNDS = 1000000 };

__attribute__((noinline)) static void before(int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += 1.0 / (1 + i);
    kept = sum;
}

int main(void)
{
    before(50 * ROUNDS);
#pragma omp parallel for schedule(static)
    for (int at = 0; at < 40; at++) {
        double sum = 0;
        for (int i = 0; i < 6 * ROUNDS; i++) sum += 1.0 / (1 + i);
        kept = sum;
        sum = 0;
        for (int i = 0; i < 3 * ROUNDS; i++) sum += 1.0 / (1 + i);
        kept = sum;
        sum = 0;
        for (int i = 0; i < 1 * ROUNDS; i++) sum += 1.0 / (1 + i);
        kept = sum;
    }
    puts("done");
    return 0;
}
