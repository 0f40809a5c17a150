/* How long threads wait for critical sections and locks, have them, and take to release them, by the program's own clock: a
 * line for each, NAME ENTRIES HELD TOTAL, in nanoseconds of all threads. The body of `long_one` spins three times as long as
 * that of `short_one`. */
#include <omp.h>
#include <stdio.h>
#include <time.h>

enum { ROUNDS = 40 };

struct own {
    const char *name;
    long entries, held, total;
};

static struct own short_one = {"short_one"}, long_one = {"long_one"}, locked = {"door"}, in_turn = {"in_turn"};
omp_lock_t door;

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

/* Returns how long it took. */
static long spin(long ns) {
    long begin = now();
    while (now() - begin < ns)
        ;
    return now() - begin;
}

static void note(struct own *own, long held, long total) {
#pragma omp atomic
    own->entries++;
#pragma omp atomic
    own->held += held;
#pragma omp atomic
    own->total += total;
}

int main(void) {
    omp_init_lock(&door);
#pragma omp parallel
    for (int i = 0; i < ROUNDS; i++) {
        long held, begin = now();
#pragma omp critical(short_one)
        held = spin(200000);
        note(&short_one, held, now() - begin);
        begin = now();
#pragma omp critical(long_one)
        held = spin(600000);
        note(&long_one, held, now() - begin);
        begin = now();
        omp_set_lock(&door);
        held = spin(200000);
        omp_unset_lock(&door);
        note(&locked, held, now() - begin);
    }
#pragma omp parallel for ordered schedule(static, 1)
    for (int i = 0; i < ROUNDS; i++) {
        long held, begin = now();
#pragma omp ordered
        held = spin(200000);
        note(&in_turn, held, now() - begin);
    }
    struct own all[] = {short_one, long_one, locked, in_turn};
    for (int i = 0; i < 4; i++)
        printf("%s %ld %ld %ld\n", all[i].name, all[i].entries, all[i].held, all[i].total);
    return 0;
}
