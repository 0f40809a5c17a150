/* Calls of a library that need each other's results: from three lines of a loop, as 6:3:1, behind two functions of the program's own. */
#include <math.h>
#include <stdio.h>

#define ITERATIONS 2000000

static double often(double x) {
    for (int i = 0; i < 6; i++) x += sin(x + i);
    return x;
}

static double sometimes(double x) {
    for (int i = 0; i < 3; i++) x += sin(x + i);
    return x;
}

__attribute__((noinline)) static double both(double x) {
    x = often(x) + 1;
    return sometimes(x) + 1;
}

int main(void) {
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < ITERATIONS; i++) {
        double x = both(i);
        sum += x + sin(x + 1);
    }
    printf("%d\n", sum == sum);
    return 0;
}
