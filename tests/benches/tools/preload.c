/* Functions in front of libgomp's that store a time stamp before and after each call, and around the bodies of regions and
 * tasks, where they are executed. */
#define _GNU_SOURCE
#include "stamps.h"
#include <alloca.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#define ORIGINAL(result, name, ...) static result (*name)(__VA_ARGS__)
ORIGINAL(void, parallel, void (*)(void *), void *, unsigned, unsigned);
ORIGINAL(void, task, void (*)(void *), void *, void (*)(void *, void *), long, long, bool, unsigned, void **, int, void *);
ORIGINAL(void, barrier, void);
ORIGINAL(void, taskwait, void);
ORIGINAL(void, critical_start, void);
ORIGINAL(void, critical_end, void);
ORIGINAL(bool, single_start, void);
ORIGINAL(bool, dynamic_start, long, long, long, long, long *, long *);
ORIGINAL(bool, dynamic_next, long *, long *);
ORIGINAL(void, loop_end_nowait, void);

static __attribute__((constructor)) void find(void)
{
#define FIND(name, symbol) *(void **)&name = dlsym(RTLD_NEXT, symbol)
    FIND(parallel, "GOMP_parallel");
    FIND(task, "GOMP_task");
    FIND(barrier, "GOMP_barrier");
    FIND(taskwait, "GOMP_taskwait");
    FIND(critical_start, "GOMP_critical_start");
    FIND(critical_end, "GOMP_critical_end");
    FIND(single_start, "GOMP_single_start");
    FIND(dynamic_start, "GOMP_loop_nonmonotonic_dynamic_start");
    FIND(dynamic_next, "GOMP_loop_nonmonotonic_dynamic_next");
    FIND(loop_end_nowait, "GOMP_loop_end_nowait");
}

#define AROUND(number, ...) \
    stamp(number);          \
    __VA_ARGS__;            \
    stamp((number) + 1)

struct body {
    void (*function)(void *);
    void *data;
};

static void enter(void *at)
{
    struct body *body = at;
    AROUND(2, body->function(body->data));
}

/* The program's arguments follow. */
static void enter_task(void *at)
{
    struct body *body = at;
    AROUND(4, body->function(body + 1));
}

void GOMP_parallel(void (*function)(void *), void *data, unsigned threads, unsigned flags)
{
    struct body body = {function, data};
    AROUND(6, parallel(enter, &body, threads, flags));
}

void GOMP_task(void (*function)(void *), void *data, void (*copy)(void *, void *), long size, long align, bool deferred,
               unsigned flags, void **depend, int priority, void *detach)
{
    if (copy || align > 16) {
        AROUND(8, task(function, data, copy, size, align, deferred, flags, depend, priority, detach));
        return;
    }
    struct body *body = alloca(sizeof *body + (size_t)size);
    body->function = function;
    memcpy(body + 1, data, (size_t)size);
    AROUND(8, task(enter_task, body, 0, size + (long)sizeof *body, 16, deferred, flags, depend, priority, detach));
}

void GOMP_barrier(void)
{
    AROUND(10, barrier());
}

void GOMP_taskwait(void)
{
    AROUND(12, taskwait());
}

void GOMP_critical_start(void)
{
    AROUND(14, critical_start());
}

void GOMP_critical_end(void)
{
    AROUND(16, critical_end());
}

bool GOMP_single_start(void)
{
    AROUND(18, bool result = single_start());
    return result;
}

bool GOMP_loop_nonmonotonic_dynamic_start(long a, long b, long c, long d, long *e, long *f)
{
    AROUND(20, bool result = dynamic_start(a, b, c, d, e, f));
    return result;
}

bool GOMP_loop_nonmonotonic_dynamic_next(long *a, long *b)
{
    AROUND(22, bool result = dynamic_next(a, b));
    return result;
}

void GOMP_loop_end_nowait(void)
{
    AROUND(24, loop_end_nowait());
}
