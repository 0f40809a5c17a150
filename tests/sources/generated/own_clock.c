/* Linked to each generated program, compiled without OpenMP. At exit it writes what happened to standard error, a line each, with times in
 * microseconds since the program began:
 *   OWNCLOCK U place step thread begin end processor-time
 *   OWNCLOCK W place 0 thread begin end 0
 *   OWNCLOCK P phase 0 thread begin end 0
 *   OWNCLOCK E 0 0 0 0 end 0
 * Its own time ends when it exits, or with the last of its units after that.
 */
#define _GNU_SOURCE
#include "own_clock.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1 << 17 };
struct event {
    char kind;
    int place, step, thread;
    double begin, end, processor;
};
static struct event events[MOST];
static int count, threads, computes;
static __thread int self;
static double begun, ended;
static volatile double sink;

static double of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

double at(void) { return of(CLOCK_MONOTONIC); }

static void add(char kind, int place, int step, double begin, double end, double processor)
{
    if (!self)
        self = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
    int slot = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    if (slot < MOST)
        events[slot] = (struct event){kind, place, step, self, begin, end, processor};
}

/* Not by a function whose calls are recorded. */
void pause_ms(double ms)
{
    struct timespec t = {(time_t)(ms / 1e3), (long)(1e6 * (ms - 1e3 * (long)(ms / 1e3)))};
    syscall(SYS_nanosleep, &t, NULL);
}

void unit(int place, int step, double ms)
{
    double begin = at(), processor = computes ? of(CLOCK_THREAD_CPUTIME_ID) : 0;
    if (computes) {
        double x = 1;
        for (long i = 0, n = (long)(ms * 250000); i < n; i++)
            x = x * 0.999999 + 1e-7;
        sink = x;
        processor = of(CLOCK_THREAD_CPUTIME_ID) - processor;
    } else {
        pause_ms(ms);
    }
    add('U', place, step, begin, at(), processor);
}

void waited(int place, double since) { add('W', place, 0, since, at(), 0); }

void phase(int number, double since) { add('P', number, 0, since, at(), 0); }

static void tell(void)
{
    double end = ended;
    for (int i = 0; i < count && i < MOST; i++)
        end = events[i].end > end ? events[i].end : end;
    for (int i = 0; i < count && i < MOST; i++) {
        struct event e = events[i];
        fprintf(stderr, "OWNCLOCK %c %d %d %d %.0f %.0f %.0f\n", e.kind, e.place, e.step, e.thread, 1e6 * (e.begin - begun),
                1e6 * (e.end - begun), 1e6 * e.processor);
    }
    fprintf(stderr, "OWNCLOCK E 0 0 0 0 %.0f 0\n", 1e6 * (end - begun));
    fflush(stderr);
}

static void end(void) { ended = at(); }

/* What is registered last is called first: before a recording takes its time at the end. */
void nearly_over(void) { atexit(end); }

/* What is registered first is called last. */
__attribute__((constructor(101))) static void start(void)
{
    static char buffer[1 << 16];
    setvbuf(stderr, buffer, _IOFBF, sizeof buffer);
    computes = getenv("COMPUTE") != NULL;
    /* Threads that sleep run as soon as they wake, if that is permitted: late ones would be the machine's. */
    if (getenv("IN_TIME"))
        sched_setscheduler(0, SCHED_RR, &(struct sched_param){.sched_priority = 1});
    begun = at();
    atexit(tell);
}
