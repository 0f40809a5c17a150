/* Preloaded: counts the tasks that libgomp may defer, by their `if` clause, and those that it must not. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>

typedef void (*Task)(void (*)(void *), void *, void (*)(void *, void *), long, long, bool, unsigned, void **, int, void *);

static Task real;
static long tasks[2];

static __attribute__((constructor)) void find(void)
{
    real = (Task)dlsym(RTLD_NEXT, "GOMP_task");
}

static __attribute__((destructor)) void tell(void)
{
    fprintf(stderr, "deferred %ld at once %ld\n", tasks[1], tasks[0]);
}

void GOMP_task(void (*function)(void *), void *data, void (*copy)(void *, void *), long size, long align, bool deferred,
               unsigned flags, void **depend, int priority, void *detach)
{
    __atomic_fetch_add(&tasks[deferred], 1, __ATOMIC_RELAXED);
    real(function, data, copy, size, align, deferred, flags, depend, priority, detach);
}
