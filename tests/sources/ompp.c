/* Programs that know their own times: each function is a case of `tests/e2e/ompp.rs`. Threads sleep instead of working, so that it
 * doesn't matter how many processors there are, and read the clock where something begins and ends: how long they wait depends on how
 * busy a machine is. Prints a line NAME NS for each wait, of all threads together, and a line `critical NS` for each thread. */
#include <omp.h>
#include <stdio.h>
#include <time.h>

enum { UNIT = 20000000, TASKS = 2000 };

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static long critical_ns[4], locked_ns, imbalance_ns, uneven_ns, alone_ns, first_ns;

static void add(long *sum, long ns) {
    __atomic_fetch_add(sum, ns, __ATOMIC_RELAXED);
}

/* When this thread was last doing something. */
static _Thread_local long last;

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
        long begin = now();
#pragma omp critical
        {
            add(&critical_ns[omp_get_thread_num()], now() - begin);
            nap(3);
        }
    }
}

/* Thread t sleeps t + 1 units. */
__attribute__((noinline)) static void imbalance(void) {
#pragma omp parallel num_threads(4)
    {
#pragma omp for schedule(static)
        for (int i = 0; i < 4; i++) {
            nap(i + 1);
            last = now();
        }
        add(&imbalance_ns, now() - last);
        more();
    }
}

static void section(void) {
    nap(2);
    last = now();
}

/* Three sections for two threads: one of them executes two. */
__attribute__((noinline)) static void uneven(void) {
#pragma omp parallel num_threads(2)
    {
        last = now();
#pragma omp sections
        {
#pragma omp section
            section();
#pragma omp section
            section();
#pragma omp section
            section();
        }
        add(&uneven_ns, now() - last);
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
        last = now();
#pragma omp single
        {
            nap(3);
            last = now();
        }
        add(&alone_ns, now() - last);
        more();
    }
}

/* Likewise, at a barrier behind a block that the master executes. */
__attribute__((noinline)) static void first(void) {
#pragma omp parallel num_threads(4)
    {
#pragma omp barrier
        last = now();
#pragma omp master
        {
            nap(4);
            last = now();
        }
#pragma omp barrier
        add(&first_ns, now() - last);
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
        long begin = now();
        omp_set_lock(&lock);
        add(&locked_ns, now() - begin);
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
    for (int i = 0; i < 4; i++)
        printf("critical %ld\n", critical_ns[i]);
    printf("locked %ld\nimbalance %ld\nuneven %ld\nalone %ld\nfirst %ld\n", locked_ns, imbalance_ns, uneven_ns,
           alone_ns, first_ns);
    return 0;
}
