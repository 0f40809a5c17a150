/* Units of which one in twelve is slow, for a reason that the first argument names. Slow ones are some 15 times as long.
   slow REASON ROUNDS; with -DTASKS units are tasks. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { UNITS = 240, BASE = 20000 };
static volatile double kept;
static const char *reason;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static int *chain;
static const int LINKS = 1 << 22;

__attribute__((noinline)) static double base(int n)
{
    double x = 1;
    for (int i = 0; i < n; i++) x = x * 0.999 + 1.0 / (i + x);
    return x;
}

__attribute__((noinline)) static double refine(int n)
{
    double x = 2;
    for (int i = 0; i < n; i++) x = x * 0.998 + 1.0 / (i + x);
    return x;
}

__attribute__((noinline)) static double deep(int depth)
{
    double x = depth;
    for (int i = 0; i < 1000; i++) x = x * 0.997 + 1.0 / (i + x);
    return depth ? x + deep(depth - 1) : x;
}

__attribute__((noinline)) static int follow(int from, int n)
{
    for (int i = 0; i < n; i++) from = chain[from];
    return from;
}

static void pages(int n)
{
    for (int k = 0; k < n; k++) {
        size_t size = 8 << 20;
        char *p = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (size_t i = 0; i < size; i += 4096) p[i] = 1;
        munmap(p, size);
    }
}

static int is(const char *name) { return !strcmp(reason, name); }

static void unit(int i)
{
    int slow = i % 12 == 5;
    if (is("null")) kept = base(6 * BASE);
    else if (is("short")) kept = base(BASE); /* only a sample makes it longer */
    else if (is("trips")) kept = base(slow ? 15 * BASE : BASE);
    else if (is("branch")) {
        double x = 1;
        if (slow)
            for (int k = 0; k < 14 * BASE; k++) x = x * 0.996 + 1.0 / (k + x);
        for (int k = 0; k < BASE; k++) x = x * 0.995 + 1.0 / (k + x);
        kept = x;
    } else if (is("function")) kept = base(BASE) + (slow ? refine(14 * BASE) : refine(BASE / 10));
    else if (is("input")) {
        double x = 0;
        for (int k = 0; k < BASE / 2; k++) x += slow ? exp2(k * 1e-3) * refine(15) : exp2(k * 1e-3);
        kept = x;
    } else if (is("recursion")) kept = base(BASE) + deep(slow ? 14 * BASE / 1000 : 1);
    else if (is("memory")) kept = follow(slow ? i : LINKS + (i & 7), slow ? 20000 : 20000);
    else {
        kept = base(BASE);
        if (!slow) return;
        if (is("sleep")) usleep(6000);
        if (is("pages")) pages(2);
        if (is("calls")) for (int k = 0; k < 12000; k++) getppid();
        if (is("lock")) {
            pthread_mutex_lock(&held);
            usleep(4000);
            pthread_mutex_unlock(&held);
        }
        /* More than an allocator keeps. */
        if (is("allocation")) for (int k = 0; k < 60; k++) {
            size_t used = 1 << 20;
            char *p = malloc(40 * used);
            for (size_t at = 0; at < used; at += 4096) ((volatile char *)p)[at] = 1;
            free(p);
        }
    }
}

int main(int argc, char **argv)
{
    reason = argv[1];
    int rounds = argc > 2 ? atoi(argv[2]) : 10;
    if (is("memory")) {
        /* One long cycle through memory, and short ones that stay in the cache. */
        chain = malloc((LINKS + 8) * sizeof *chain);
        for (int i = 0; i < LINKS; i++) chain[i] = (int)((i + 1664525LL * 16 + 1) % LINKS);
        for (int i = 0; i < 8; i++) chain[LINKS + i] = LINKS + (i + 1) % 8;
    }
    for (int r = 0; r < rounds; r++) {
#ifdef TASKS
#pragma omp parallel
#pragma omp single
        for (int i = 0; i < UNITS; i++)
#pragma omp task firstprivate(i)
            unit(i);
#else
#pragma omp parallel for schedule(dynamic, 1)
        for (int i = 0; i < UNITS; i++) unit(i);
#endif
    }
    puts("done");
    return 0;
}
