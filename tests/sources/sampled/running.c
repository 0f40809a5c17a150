/* A process that goes on until it is killed: what it does, or what it waits for, is its argument. */
#include <fcntl.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static volatile double kept;

static void locks(int thread)
{
    pthread_mutex_lock(thread ? &first : &second);
    usleep(200000);
    pthread_mutex_lock(thread ? &second : &first); /* here: locks */
    kept += 1;
}

static __attribute__((noinline)) void compute(long n)
{
    double x = 1;
    for (long i = 0; i < n; i++) x = x * 0.999 + 1; /* here: spin */
    kept = x;
}

static void reading(void)
{
    int ends[2];
    char byte;
    if (pipe(ends)) abort();
    kept += read(ends[0], &byte, 1); /* here: pipe */
}

static void *sleeper(void *nothing)
{
    for (;;) pause();
    return nothing;
}

/* As many threads as some servers have. */
static void many(void)
{
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 16);
    for (int i = 0; i < 499; i++) pthread_create(&thread, &small, sleeper, NULL);
    sleeper(NULL);
}

static double cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* Three parts of four in one region, one in another. What each has by its own clock is printed again and again. */
static void shares(void)
{
    double large = 0, small = 0;
    for (;;) {
#pragma omp parallel num_threads(2) reduction(+ : large)
        {
            double t = cpu();
            compute(1500000); /* here: large */
            large += cpu() - t;
        }
#pragma omp parallel num_threads(2) reduction(+ : small)
        {
            double t = cpu();
            compute(500000);
            small += cpu() - t;
        }
        printf("%.6f %.6f\n", large, small);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "shares")) shares();
    if (!strcmp(how, "many")) many();
    if (!strcmp(how, "spin")) compute(1L << 60);
    if (!strcmp(how, "jumps")) {
#pragma omp parallel num_threads(2)
        compute(1L << 60);
    }
    if (!strcmp(how, "pipe")) reading();
    if (!strcmp(how, "locks")) {
#pragma omp parallel num_threads(2)
        {
            locks(omp_get_thread_num());
            kept += 1;
        }
    }
    if (!strcmp(how, "barrier")) {
#pragma omp parallel num_threads(2)
        {
            if (omp_get_thread_num() == 0)
                for (;;) pause(); /* here: pause */
#pragma omp barrier /* here: barrier */
            kept += 1;
        }
    }
    if (!strcmp(how, "task")) {
        omp_lock_t lock;
        omp_init_lock(&lock);
        omp_set_lock(&lock);
#pragma omp parallel num_threads(2)
#pragma omp single
        {
#pragma omp task
            {
                omp_set_lock(&lock); /* here: task */
                kept += 1;
            }
#pragma omp taskwait
            kept += 1;
        }
    }
    return 0;
}
