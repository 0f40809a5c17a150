/* Losses whose place is another one than where threads wait, or one that a compiler made several of: what `places CASE` does is what
 * its report must tell. Units sleep, so that a machine with fewer processors than threads, or with other work, makes them no longer. */
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct sum {
    double of[4];
};

/* So many microseconds. */
static void last(long us) {
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static omp_lock_t gate;

/* Holds the lock for most of the time. */
__attribute__((noinline)) static void writer(void) {
    omp_set_lock(&gate);
    last(6000);
    omp_unset_lock(&gate);
    last(500);
}

/* Waits for it. */
__attribute__((noinline)) static void reader(void) {
    omp_set_lock(&gate);
    last(200);
    omp_unset_lock(&gate);
    last(2000);
}

__attribute__((always_inline)) static inline void deposit(long *sum) {
#pragma omp critical(till)
    {
        last(2000);
        ++*sum;
    }
}

static void join(struct sum *all, const struct sum *part) {
    last(4000);
    for (int i = 0; i < 4; i++)
        all->of[i] += part->of[i];
}
#pragma omp declare reduction(slowly : struct sum : join(&omp_out, &omp_in)) initializer(omp_priv = (struct sum){{0}})

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    long sum = 0;
    struct sum all = {{0}};
    omp_init_lock(&gate);
    if (!strcmp(what, "holder")) {
#pragma omp parallel
        for (int i = 0; i < 20; i++) {
            if (omp_get_thread_num() == 0)
                writer();
            else
                reader();
        }
    } else if (!strcmp(what, "copies")) {
#pragma omp parallel
        {
            last(1000);
            deposit(&sum);
            last(3000);
            deposit(&sum);
            last(2000);
            deposit(&sum);
        }
    } else if (!strcmp(what, "turns")) {
#pragma omp parallel for ordered schedule(static, 1)
        for (int i = 0; i < 32; i++) {
            last(i % 8 ? 3000 : 24000);
#pragma omp ordered
            last(100);
        }
    } else if (!strcmp(what, "joins")) {
        for (int k = 0; k < 4; k++) {
#pragma omp parallel
#pragma omp for reduction(slowly : all)
            for (int i = 0; i < 8; i++) {
                last(1000);
                all.of[i % 4] += i;
            }
        }
    } else if (!strcmp(what, "once")) {
        for (int k = 0; k < 8; k++) {
#pragma omp parallel sections
            {
#pragma omp section
                last(2000);
#pragma omp section
                last(2000);
#pragma omp section
                last(k == 3 ? 100000 : 10000);
#pragma omp section
                last(2000);
            }
        }
    } else if (!strcmp(what, "alone")) {
#pragma omp parallel
        for (int k = 0; k < 6; k++) {
            last(2000);
            if (omp_get_thread_num() == 0) {
#pragma omp critical(log)
                {
                    sum++;
                    last(10000);
                }
            }
#pragma omp barrier
        }
    }
    printf("%s\n", sum < 0 || all.of[1] < 0 ? "never" : what);
    return 0;
}
