/* A loop with an inclusive scan, executed several times. gcc divides its iterations itself, and has the runtime prepare the
 * scan's memory: prints how often threads come there. */
#include <omp.h>
#include <stdio.h>

int main(void) {
    int a[100], b[100], right = 1, calls = 0;
    for (int i = 0; i < 100; i++)
        a[i] = i;
    for (int round = 0; round < 3; round++) {
        int sum = 0;
#pragma omp parallel
        {
#pragma omp atomic
            calls++;
#pragma omp for reduction(inscan, + : sum)
            for (int i = 0; i < 100; i++) {
                sum += a[i];
#pragma omp scan inclusive(sum)
                b[i] = sum;
            }
        }
        right &= sum == 4950 && b[50] == 1275;
    }
    printf("calls %d\n", calls);
    return !right;
}
