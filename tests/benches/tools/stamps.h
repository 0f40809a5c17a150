/* What the two tools do per event: a time stamp and the event's number, 16 bytes, into a buffer of the thread, which is
 * written to a file when it is full. The time is the processor's counter, or with -DCLOCK what clock_gettime says. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define EVENTS 4096

struct trace {
    int fd;
    struct {
        uint64_t time, event;
    } events[EVENTS];
};

/* Few bytes: a library that is opened late finds little room for such variables. */
static __thread __attribute__((tls_model("initial-exec"))) struct trace *trace;
static __thread __attribute__((tls_model("initial-exec"))) unsigned used;

static __attribute__((noinline, cold)) void flush(void)
{
    if (!trace) {
        char path[4096];
        snprintf(path, sizeof path, "%s/trace.%d", getenv("STAMPS_DIR"), gettid());
        trace = malloc(sizeof *trace);
        trace->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        return;
    }
    if (write(trace->fd, trace->events, used * sizeof trace->events[0]) < 0)
        abort();
    used = 0;
}

static inline void stamp(uint64_t event)
{
    if (!trace || used == EVENTS)
        flush();
#ifdef CLOCK
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    trace->events[used].time = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
#else
    trace->events[used].time = __rdtsc();
#endif
    trace->events[used++].event = event;
}
