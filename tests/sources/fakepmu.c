// A processor with counters, for machines that have none: loaded before the C library, it opens the kernel's clock in the
// place of each hardware event, so that all of them count something. The numbers of those in FAKE_PMU_DEAD (as
// perf_event_attr.config has them, a digit each) open too, but count nothing: in every process, or, with
// FAKE_PMU_DEAD_IN=program, where a program is recorded only.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static int is_dead(unsigned long config) {
    const char *dead = getenv("FAKE_PMU_DEAD"), *where = getenv("FAKE_PMU_DEAD_IN");
    if (where && strcmp(where, "program") == 0 && !getenv("OMPFUSE_DIR"))
        return 0;
    return dead && strchr(dead, '0' + (int)config) != NULL;
}

long syscall(long number, ...) {
    static long (*real)(long, ...);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    va_list list;
    va_start(list, number);
    long a[6];
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    struct perf_event_attr changed;
    if (number == SYS_perf_event_open) {
        const struct perf_event_attr *wanted = (const void *)a[0];
        memset(&changed, 0, sizeof changed);
        memcpy(&changed, wanted, wanted->size < sizeof changed ? wanted->size : sizeof changed);
        changed.size = sizeof changed;
        if (wanted->type == PERF_TYPE_HARDWARE) {
            changed.config = is_dead(wanted->config) ? PERF_COUNT_SW_DUMMY : PERF_COUNT_SW_TASK_CLOCK;
            changed.type = PERF_TYPE_SOFTWARE;
        }
        a[0] = (long)&changed;
    }
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
