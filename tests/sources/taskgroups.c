/* A taskgroup of the program's own inside a region whose `reduction(task, ...)` implies one: prints how many of each are
 * executed. */
#include <omp.h>
#include <stdio.h>

int main(void) {
    int sum = 0, own = 0, implied = 0;
#pragma omp parallel reduction(task, + : sum)
    {
#pragma omp atomic
        implied++;
#pragma omp single
        for (int round = 0; round < 3; round++) {
            own++;
#pragma omp taskgroup
            for (int i = 0; i < 4; i++)
#pragma omp task in_reduction(+ : sum)
                sum += i;
        }
    }
    printf("sum %d\nown %d\nimplied %d\n", sum, own, implied);
    return sum != 18;
}
