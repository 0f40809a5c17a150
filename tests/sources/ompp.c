/* Programs whose times are known by construction: each function is a case of `tests/e2e/ompp.rs`. Threads sleep instead of working,
 * so that it doesn't matter how many processors there are. */
#include <omp.h>
#include <time.h>

enum { UNIT = 20000000, TASKS = 2000 };

static void nap(int units) {
    struct timespec t = {0, (long)units * UNIT};
    nanosleep(&t, 0);
}

static volatile long sink;
/* No compiler knows how many, and makes copies of what creates them. */
static volatile int tasks = 4;

/* Behind a construct: where nothing follows, the region's end is the construct's. */
static void more(void) {
    __asm__ volatile("" ::: "memory");
}

/* ompP's Figure 2: four threads, and a critical section in which each sleeps. */
__attribute__((noinline)) static void critical(void) {
#pragma omp parallel num_threads(4)
    {
#pragma omp barrier
#pragma omp critical
        nap(3);
    }
}

/* Thread t sleeps t + 1 units. */
__attribute__((noinline)) static void imbalance(void) {
#pragma omp parallel num_threads(4)
    {
#pragma omp for schedule(static)
        for (int i = 0; i < 4; i++)
            nap(i + 1);
        more();
    }
}

/* Three sections for two threads: one of them executes two. */
__attribute__((noinline)) static void uneven(void) {
#pragma omp parallel num_threads(2)
    {
#pragma omp sections
        {
#pragma omp section
            nap(2);
#pragma omp section
            nap(2);
#pragma omp section
            nap(2);
        }
        more();
    }
}

/* Two sections for four threads: gcc makes one construct of both. */
__attribute__((noinline)) static void few(void) {
#pragma omp parallel num_threads(4)
    {
#pragma omp sections
        {
#pragma omp section
            nap(2);
#pragma omp section
            nap(2);
        }
    }
}

/* One thread sleeps, three wait. */
__attribute__((noinline)) static void alone(void) {
#pragma omp parallel num_threads(4)
    {
#pragma omp single
        nap(3);
        more();
    }
}

/* Likewise, at a barrier behind a block that the master executes. */
__attribute__((noinline)) static void first(void) {
#pragma omp parallel num_threads(4)
    {
#pragma omp barrier
#pragma omp master
        nap(4);
#pragma omp barrier
    }
}

/* Many tasks that do next to nothing; all wait for them at the end of `single`. */
__attribute__((noinline)) static void flood(void) {
#pragma omp parallel num_threads(2)
    {
#pragma omp single
        for (int i = 0; i < TASKS; i++) {
#pragma omp task
            sink += i;
        }
    }
}

/* One thread creates four tasks that sleep; both execute them, one while it waits at the end of `single`. */
__attribute__((noinline)) static void meanwhile(void) {
#pragma omp parallel num_threads(2)
    {
#pragma omp single
        for (int i = 0; i < tasks; i++) {
#pragma omp task
            nap(1);
        }
        more();
    }
}

/* A region that is entered inside of another one, by both of its threads, and outside. */
__attribute__((noinline)) static void inner(int units) {
#pragma omp parallel num_threads(2)
    nap(units);
}

__attribute__((noinline)) static void outer(void) {
#pragma omp parallel num_threads(2)
    inner(2);
}

/* One thread has the lock for four units, then the other. */
__attribute__((noinline)) static void locked(void) {
    static omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel num_threads(2)
    {
#pragma omp barrier
        omp_set_lock(&lock);
        nap(4);
        omp_unset_lock(&lock);
    }
}

int main(void) {
    omp_set_max_active_levels(2);
    critical();
    imbalance();
    uneven();
    few();
    alone();
    first();
    flood();
    meanwhile();
    outer();
    inner(1);
    locked();
    nap(5);
    return 0;
}
