// Regions that are called from several places. A line per call says what the C library's `backtrace` tells: how often the region is
// executed so, and the callers from inside outwards, as file and link-time address.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 300
static double sum;

__attribute__((noinline)) static void tell(const char *what, int times) {
    void *all[MOST];
    int n = backtrace(all, MOST);
    printf("%s %d", what, times);
    // 0: here; 1: in `work`, where the region is called from another place.
    for (int i = 2; i < n; i++) {
        Dl_info info;
        struct link_map *map = NULL;
        if (!dladdr1((char *)all[i] - 1, &info, (void **)&map, RTLD_DL_LINKMAP)) break;
        const char *name = strrchr(info.dli_fname, '/');
        printf(" %s:%lx", name ? name + 1 : info.dli_fname, (unsigned long)((char *)all[i] - (char *)map->l_addr));
    }
    printf("\n");
}

__attribute__((noinline)) static double work(const char *what, int times) {
    if (what) tell(what, times);
    double s = 0;
#pragma omp parallel for reduction(+ : s) num_threads(2)
    for (int i = 0; i < 100; i++) s += i;
    return s;
}

__attribute__((noinline)) double one(int told) { return work(told ? "call" : NULL, 3) + 1; }
__attribute__((noinline)) double two(int told) { return work(told ? "call" : NULL, 5) + 2; }
__attribute__((noinline)) double deep(int calls, int told) {
    return calls ? deep(calls - 1, told) + 1 : work(told ? "call" : NULL, 1);
}

// A frame that is found through the frame pointer only, and one whose stack is aligned anew.
__attribute__((noinline)) double sized(int n, int told) {
    volatile char room[n];
    room[0] = 1;
    return work(told ? "call" : NULL, 1) + room[0];
}
__attribute__((noinline)) double aligned(int told) {
    volatile double room[8] __attribute__((aligned(64)));
    room[0] = 1;
    return work(told ? "call" : NULL, 1) + room[0];
}

static void handler(int number) {
    (void)number;
    sum += work(NULL, 1);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "calls";
    if (!strcmp(mode, "calls")) {
        // No compiler makes several calls of one.
        volatile int ones = 3, twos = 5, deeps = 4;
        for (int i = 0; i < ones; i++) sum += one(i == 0);
        for (int i = 0; i < twos; i++) sum += two(i == 0);
        for (int i = 0; i < deeps; i++) sum += deep(5 * i, 1);
        sum += sized(argc + 100, 1);
        sum += aligned(1);
    } else if (!strcmp(mode, "deep")) {
        sum += deep(100, 1);
    } else {
        static char stack[1 << 16];
        stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
        struct sigaction action = {.sa_handler = handler};
        if (!strcmp(mode, "elsewhere")) {
            sigaltstack(&other, NULL);
            action.sa_flags = SA_ONSTACK;
        }
        sigaction(SIGUSR1, &action, NULL);
        raise(SIGUSR1);
    }
    printf("sum %.0f\n", sum);
    return 0;
}
