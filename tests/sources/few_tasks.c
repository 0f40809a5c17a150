/* Threads that have no task to execute, for a known reason. Units sleep, and the program's own clock tells what is lost.
 *
 *   few_tasks MODE
 *
 * Prints the seconds that the threads of its region had nothing to do.
 */
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long busy_ns;
static int threads;
static __attribute__((unused)) char x, wave[5][5];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void pause_ms(long ms)
{
    struct timespec t = {0, ms * 1000000};
    nanosleep(&t, NULL);
}

static void unit(long ms)
{
    double since = now();
    pause_ms(ms);
    __atomic_fetch_add(&busy_ns, (long)(1e9 * (now() - since)), __ATOMIC_RELAXED);
}

/* Every task is executed by who creates it. */
static void if_clause(int limit)
{
    for (int i = 0; i < 30; i++) {
        #pragma omp task if(i >= limit) /* here: if_clause */
        unit(10);
    }
}

/* Two tasks for all threads; those below are executed where they are created. */
static void if_tree(int levels, int limit)
{
    if (levels == 0) {
        unit(10);
        return;
    }
    #pragma omp task if(levels > limit) /* here: if_tree */
    if_tree(levels - 1, limit);
    #pragma omp task if(levels > limit) /* here: if_tree */
    if_tree(levels - 1, limit);
    #pragma omp taskwait
}

static void final_tree(int levels, int limit)
{
    if (levels == 0) {
        unit(10);
        return;
    }
    #pragma omp task final(levels <= limit) /* here: final_tree */
    final_tree(levels - 1, limit);
    #pragma omp task final(levels <= limit) /* here: final_tree */
    final_tree(levels - 1, limit);
    #pragma omp taskwait
}

/* Two tasks before each wait. */
static void pairs(void)
{
    for (int i = 0; i < 10; i++) {
        #pragma omp task /* here: pairs */
        unit(20);
        #pragma omp task /* here: pairs */
        unit(20);
        #pragma omp taskwait
    }
}

static void groups(void)
{
    for (int i = 0; i < 10; i++) {
        #pragma omp taskgroup
        for (int j = 0; j < 2; j++) {
            #pragma omp task /* here: groups */
            unit(20);
        }
    }
}

static void one_by_one(void)
{
    for (int i = 0; i < 20; i++) {
        #pragma omp task
        unit(10);
        #pragma omp taskwait /* here: one_by_one */
    }
}

static void exclusion(void)
{
    for (int i = 0; i < 20; i++) {
        #pragma omp task depend(mutexinoutset: x) /* here: exclusion */
        unit(10);
    }
}

static void wavefront(void)
{
    for (int round = 0; round < 3; round++) {
        for (int i = 1; i < 5; i++)
            for (int j = 1; j < 5; j++) {
                /* here: wavefront */
                #pragma omp task depend(in: wave[i - 1][j], wave[i][j - 1]) depend(out: wave[i][j])
                unit(10);
            }
        #pragma omp taskwait
    }
}

static void *fulfil(void *event)
{
    pause_ms(100);
    omp_fulfill_event((omp_event_handle_t)event);
    return NULL;
}

static void event(void)
{
    for (int i = 0; i < 3; i++) {
        omp_event_handle_t handle = (omp_event_handle_t)0;
        #pragma omp task detach(handle) /* here: event */
        {
            pthread_t thread;
            pthread_create(&thread, NULL, fulfil, (void *)handle);
            pthread_detach(thread);
        }
        #pragma omp taskwait
    }
}

/* More tasks than there is room for: their creator executes some, and nothing is lost by that. */
static void many(void)
{
    for (int i = 0; i < 2000; i++) {
        #pragma omp task /* here: many */
        unit(1);
    }
}

static void run(const char *mode)
{
    if (!strcmp(mode, "if_clause"))
        if_clause(1000);
    else if (!strcmp(mode, "if_tree"))
        if_tree(5, 4);
    else if (!strcmp(mode, "deep_if_tree"))
        if_tree(7, 2);
    else if (!strcmp(mode, "final_tree"))
        final_tree(5, 5);
    else if (!strcmp(mode, "pairs"))
        pairs();
    else if (!strcmp(mode, "groups"))
        groups();
    else if (!strcmp(mode, "one_by_one"))
        one_by_one();
    else if (!strcmp(mode, "exclusion"))
        exclusion();
    else if (!strcmp(mode, "wavefront"))
        wavefront();
    else if (!strcmp(mode, "event"))
        event();
    else if (!strcmp(mode, "many"))
        many();
    else
        exit(2);
}

int main(int argc, char **argv)
{
    double since = now();
    #pragma omp parallel
    #pragma omp single
    {
        threads = omp_get_num_threads();
        run(argc > 1 ? argv[1] : "");
    }
    printf("%f\n", threads * (now() - since) - 1e-9 * busy_ns);
    return 0;
}
