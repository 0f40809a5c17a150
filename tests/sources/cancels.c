/* Cancellation points and cancels, which the program counts itself, with those that it goes on behind. */
#include <omp.h>
#include <stdio.h>

int main(void) {
    int points = 0, beyond = 0, cancels = 0, after = 0;
#pragma omp parallel
    {
#pragma omp for
        for (int i = 0; i < 100; i++) {
#pragma omp atomic
            points++;
#pragma omp cancellation point for
#pragma omp atomic
            beyond++;
            if (i % 10 == 5) {
#pragma omp atomic
                cancels++;
#pragma omp cancel for
#pragma omp atomic
                after++;
            }
        }
    }
    printf("points %d\nbeyond %d\ncancels %d\nafter %d\n", points, beyond, cancels, after);
    return 0;
}
