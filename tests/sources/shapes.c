// Programs of one shape and any size: `shapes SHAPE N` meets some N units or regions. See the benchmark `shapes`.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long sum;
static char cells[1 << 16];

static void add(void) { __atomic_fetch_add(&sum, 1, __ATOMIC_RELAXED); }

static void fixed(long n)
{
    for (long r = 0; r < n; r++) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < 4; i++)
            add();
    }
}

static void dynamic(long n)
{
#pragma omp parallel
    for (long r = 0; r < n / 4; r++) {
#pragma omp for schedule(dynamic, 1)
        for (int i = 0; i < 8; i++)
            add();
    }
}

static void sections(long n)
{
    for (long r = 0; r < n / 4; r++) {
#pragma omp parallel sections
        {
#pragma omp section
            add();
#pragma omp section
            add();
#pragma omp section
            add();
#pragma omp section
            add();
        }
    }
}

static void flat(long n)
{
#pragma omp parallel
#pragma omp single
    for (long t = 0; t < n; t++) {
#pragma omp task
        add();
    }
}

static void branch(long n)
{
    if (n < 2)
        return add();
#pragma omp task
    branch(n / 2);
#pragma omp task
    branch(n - n / 2);
#pragma omp taskwait
}

static void tree(long n)
{
#pragma omp parallel
#pragma omp single
    branch(n / 2);
}

static void teams_of_tasks(long n)
{
    for (long r = 0; r < n / 8; r++) {
#pragma omp parallel
#pragma omp single
        for (int t = 0; t < 8; t++) {
#pragma omp task
            add();
        }
    }
}

static void depend(long n)
{
#pragma omp parallel
#pragma omp single
    for (long t = 0; t < n; t++) {
#pragma omp task depend(inout : cells[t % 65536])
        add();
    }
}

static void readers(long n)
{
#pragma omp parallel
#pragma omp single
    for (long t = 0; t < n; t++) {
        if (t == 0 || t == n - 1) {
#pragma omp task depend(out : cells[0])
            add();
        } else {
#pragma omp task depend(in : cells[0])
            add();
        }
    }
}

static void exclude(long n)
{
#pragma omp parallel
#pragma omp single
    for (long t = 0; t < n; t++) {
#pragma omp task depend(mutexinoutset : cells[t / 2 % 65536])
        add();
    }
}

static void criticals(long n)
{
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++) {
#pragma omp critical
        add();
    }
}

static void nested(long n)
{
#pragma omp parallel num_threads(2)
    for (long r = 0; r < n / 2; r++) {
#pragma omp parallel num_threads(1)
        add();
    }
}

static void inner(long n)
{
    if (n < 2)
        return;
#pragma omp parallel for
    for (int i = 0; i < 2; i++)
        inner(n / 2);
}

static void nested_tasks(long n)
{
#pragma omp parallel num_threads(2)
    for (long r = 0; r < n / 8; r++) {
#pragma omp parallel num_threads(1)
        for (int t = 0; t < 4; t++) {
#pragma omp task
            add();
        }
    }
}

static void nowait(long n)
{
#pragma omp parallel
    for (long r = 0; r < n / 4; r++) {
#pragma omp for schedule(static) nowait
        for (int i = 0; i < 4; i++)
            add();
    }
}

static void *own(void *of)
{
    (void)of;
#pragma omp parallel num_threads(2)
    add();
    return NULL;
}

static void threads(long n)
{
    for (long t = 0; t < n / 256; t++) {
        pthread_t thread;
        if (!pthread_create(&thread, NULL, own, NULL))
            pthread_join(thread, NULL);
    }
}

static void leaf(void)
{
#pragma omp parallel num_threads(2)
    add();
}

#define WAY(name) static __attribute__((noinline)) void name(long way, int depth);
WAY(left)
WAY(right)
#undef WAY
static void go(long way, int depth)
{
    if (!depth)
        leaf();
    else if (way & 1)
        left(way >> 1, depth - 1);
    else
        right(way >> 1, depth - 1);
}
static void left(long way, int depth) { go(way, depth); __asm__ volatile(""); }
static void right(long way, int depth) { go(way, depth); __asm__ volatile("nop"); }

static void paths(long n)
{
    for (long way = 0; way < n / 2; way++)
        go(way, 20);
}

static void singles(long n)
{
#pragma omp parallel
    for (long r = 0; r < n / 4; r++) {
#pragma omp single nowait
        add();
    }
}

static void ordered(long n)
{
#pragma omp parallel for ordered schedule(dynamic, 1)
    for (long i = 0; i < n / 2; i++) {
#pragma omp ordered
        add();
    }
}

static void doacross(long n)
{
#pragma omp parallel for ordered(1) schedule(static, 1)
    for (long i = 0; i < n / 2; i++) {
#pragma omp ordered depend(sink : i - 1)
        add();
#pragma omp ordered depend(source)
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*of)(long);
    } shapes[] = {
        {"static", fixed}, {"dynamic", dynamic}, {"sections", sections}, {"nowait", nowait}, {"singles", singles}, {"criticals", criticals},
        {"ordered", ordered}, {"doacross", doacross}, {"tasks", flat}, {"tree", tree}, {"small-teams", teams_of_tasks},
        {"depend", depend}, {"readers", readers}, {"exclude", exclude}, {"nested", nested}, {"recursive", inner},
        {"nested-tasks", nested_tasks}, {"threads", threads}, {"paths", paths},
    };
    long n = argc > 2 ? atol(argv[2]) : 0;
    for (unsigned s = 0; argc > 2 && s < sizeof shapes / sizeof *shapes; s++)
        if (!strcmp(argv[1], shapes[s].name))
            shapes[s].of(n);
    printf("%ld\n", sum);
    return 0;
}
