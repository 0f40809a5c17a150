/* Several locks taken at one place, and one lock taken at several. Prints a line for each lock, NAME ENTRIES ADDRESS, by
 * construction and from the program itself. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { DOORS = 3, ROUNDS = 60 };

omp_lock_t doors[DOORS];
static long total;

static void pass(omp_lock_t *lock) {
    omp_set_lock(lock);
    __atomic_fetch_add(&total, 1, __ATOMIC_RELAXED);
    omp_unset_lock(lock);
}

int main(void) {
    omp_lock_t *allocated = malloc(sizeof *allocated);
    omp_init_lock(allocated);
    for (int i = 0; i < DOORS; i++)
        omp_init_lock(&doors[i]);
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (int i = 0; i < ROUNDS; i++)
            pass(&doors[i % DOORS]);
#pragma omp for schedule(static)
        for (int i = 0; i < ROUNDS; i++) {
            omp_set_lock(allocated);
            __atomic_fetch_add(&total, 1, __ATOMIC_RELAXED);
            omp_unset_lock(allocated);
#pragma omp critical(update)
            __atomic_fetch_add(&total, 1, __ATOMIC_RELAXED);
#pragma omp critical(update)
            __atomic_fetch_add(&total, 2, __ATOMIC_RELAXED);
#pragma omp critical
            __atomic_fetch_add(&total, 1, __ATOMIC_RELAXED);
#pragma omp critical
            __atomic_fetch_add(&total, 2, __ATOMIC_RELAXED);
        }
    }
    for (int i = 0; i < DOORS; i++)
        printf("doors[%d] %d %p\n", i, ROUNDS / DOORS, (void *)&doors[i]);
    printf("allocated %d %p\n", ROUNDS, (void *)allocated);
    printf("update %d 0\n", 2 * ROUNDS);
    printf("unnamed %d 0\n", 2 * ROUNDS);
    free(allocated);
    return total != 8L * ROUNDS;
}
