// A processor with counters, for machines that have none: loaded before the C library, it opens the kernel's clock in the
// place of each hardware event, so that all of them count something. The numbers of those in FAKE_PMU_DEAD (as
// perf_event_attr.config has them, a digit each) open too, but count nothing: in every process, or, with
// FAKE_PMU_DEAD_IN=program, where a program is recorded only.
//
// With FAKE_PMU_USER_ONLY nobody may count what the kernel does, as where perf_event_paranoid is 2. FAKE_PMU_COUNTERS is how many
// hardware events a group can have.
//
// With FAKE_PMU_TURN_US it has counters for one group of events only: where a program is recorded, a thread of its own has the
// groups of each other thread take turns of so many microseconds. Their clocks and counts stand still meanwhile, as the
// kernel's do for events that have no counter.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 256 };

// Groups that have hardware events: the leader as it was opened, a descriptor of our own, and the thread.
static struct {
    int leader, own, thread, enabled;
} groups[MOST];
static int known;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int is_dead(unsigned long config) {
    const char *dead = getenv("FAKE_PMU_DEAD"), *where = getenv("FAKE_PMU_DEAD_IN");
    if (where && strcmp(where, "program") == 0 && !getenv("OMPFUSE_DIR"))
        return 0;
    return dead && strchr(dead, '0' + (int)config) != NULL;
}

static int real_ioctl(int fd, unsigned long request, void *argument) {
    static int (*real)(int, unsigned long, ...);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "ioctl");
    return real(fd, request, argument);
}

static void *take_turns(void *period) {
    for (unsigned turn = 0;; turn++) {
        usleep((unsigned)(long)period);
        pthread_mutex_lock(&lock);
        for (int i = 0; i < known; i++) {
            unsigned before = 0, all = 0;
            for (int k = 0; k < known; k++)
                if (groups[k].own >= 0 && groups[k].enabled && groups[k].thread == groups[i].thread) {
                    before += k < i;
                    all++;
                }
            if (groups[i].own >= 0 && groups[i].enabled && all > 1)
                real_ioctl(groups[i].own, turn % all == before ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, NULL);
        }
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

// The group whose leader has this descriptor still, or -1: recorded ones move theirs away unseen, and the number is used again.
static int group_of(int leader) {
    for (int i = 0; i < known; i++) {
        unsigned long there = 0, own = 1;
        if (groups[i].own < 0 || groups[i].leader != leader)
            continue;
        real_ioctl(leader, PERF_EVENT_IOC_ID, &there);
        real_ioctl(groups[i].own, PERF_EVENT_IOC_ID, &own);
        if (there == own)
            return i;
        groups[i].leader = -1;
    }
    return -1;
}

static void enter(int leader) {
    const char *period = getenv("FAKE_PMU_TURN_US");
    if (!period || !getenv("OMPFUSE_DIR"))
        return;
    pthread_mutex_lock(&lock);
    if (group_of(leader) < 0) {
        pthread_t turns;
        if (known == 0 && pthread_create(&turns, NULL, take_turns, (void *)atol(period)) != 0)
            abort();
        if (known == MOST)
            abort();
        groups[known].leader = leader;
        groups[known].own = fcntl(leader, F_DUPFD_CLOEXEC, 1000);
        groups[known].thread = gettid();
        groups[known++].enabled = 0;
    }
    pthread_mutex_unlock(&lock);
}

// A group takes part from when its leader is told to begin until that is closed. Those that are recorded with stay open.
int ioctl(int fd, unsigned long request, ...) {
    va_list list;
    va_start(list, request);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (request == PERF_EVENT_IOC_ENABLE && known > 0) {
        pthread_mutex_lock(&lock);
        int at = group_of(fd);
        if (at >= 0)
            groups[at].enabled = 1;
        pthread_mutex_unlock(&lock);
    }
    return real_ioctl(fd, request, argument);
}

static int real_close(int fd) {
    static int (*real)(int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "close");
    return real(fd);
}

int close(int fd) {
    if (known > 0) {
        pthread_mutex_lock(&lock);
        int at = group_of(fd);
        if (at >= 0) {
            real_close(groups[at].own);
            groups[at].own = -1;
        }
        pthread_mutex_unlock(&lock);
    }
    return real_close(fd);
}

// Whether the kernel would refuse an event: the error, or 0.
static int refused(const struct perf_event_attr *wanted, int leader) {
    static int members[1 << 16];
    const char *most = getenv("FAKE_PMU_COUNTERS");
    if (getenv("FAKE_PMU_USER_ONLY") && !wanted->exclude_kernel)
        return EACCES;
    if (wanted->type != PERF_TYPE_SOFTWARE && most && leader >= 0 && leader < 1 << 16) {
        if (members[leader] >= atoi(most))
            return EINVAL;
        members[leader]++;
    } else if (leader < 0) {
        // It gets the lowest number that is free.
        int next = dup(0);
        real_close(next);
        if (next >= 0 && next < 1 << 16)
            members[next] = 0;
    }
    return 0;
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
        if ((errno = refused(wanted, (int)a[3])) != 0)
            return -1;
        if (wanted->type == PERF_TYPE_HW_CACHE || wanted->type == PERF_TYPE_RAW) {
            changed.config = PERF_COUNT_SW_TASK_CLOCK;
            changed.type = PERF_TYPE_SOFTWARE;
        }
        if (wanted->type == PERF_TYPE_HARDWARE) {
            changed.config = is_dead(wanted->config) ? PERF_COUNT_SW_DUMMY : PERF_COUNT_SW_TASK_CLOCK;
            changed.type = PERF_TYPE_SOFTWARE;
            if ((int)a[3] >= 0)
                enter((int)a[3]);
        }
        a[0] = (long)&changed;
    }
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
