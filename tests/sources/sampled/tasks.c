// tasks N LENGTH: N tasks of eight places in turn, each of which calls a function of its own with LENGTH.
#include <stdlib.h>
void f0(int), f1(int), f2(int), f3(int), f4(int), f5(int), f6(int), f7(int);

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 8, length = argc > 2 ? atoi(argv[2]) : 1;
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < n; i += 8) {
#pragma omp task
        f0(length);
#pragma omp task
        f1(length);
#pragma omp task
        f2(length);
#pragma omp task
        f3(length);
#pragma omp task
        f4(length);
#pragma omp task
        f5(length);
#pragma omp task
        f6(length);
#pragma omp task
        f7(length);
    }
    return 0;
}
