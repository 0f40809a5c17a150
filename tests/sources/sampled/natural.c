/* Programs in one file: each computes in several regions, so many rounds, of which each has the share of the work that stands beside it.
   tests/running.py compares these with what samples and records tell. Arguments: which one, rounds. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

static volatile double kept;

/* About so many microseconds. */
static __attribute__((noinline)) void work(long us)
{
    double x = 1;
    for (long i = 0; i < 400 * us; i++) x = x * 0.999 + 1;
    kept = x;
}

static void fixed(void)
{
#pragma omp parallel for schedule(static) /* 3 of 4 */
    for (int i = 0; i < 64; i++) work(60);
#pragma omp parallel for schedule(static) /* 1 of 4 */
    for (int i = 0; i < 64; i++) work(20);
}

static void dynamic(void)
{
#pragma omp parallel for schedule(dynamic, 2) /* 5 of 7 */
    for (int i = 0; i < 32; i++) work(100);
#pragma omp parallel for schedule(guided) /* 2 of 7 */
    for (int i = 0; i < 32; i++) work(40);
}

static void tasks(void)
{
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 8; i++) {
#pragma omp task /* 2 of 3 */
        work(300);
#pragma omp task /* 1 of 3 */
        work(150);
    }
}

static void taskloops(void)
{
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskloop num_tasks(8) /* 4 of 5 */
        for (int i = 0; i < 64; i++) work(40);
#pragma omp taskloop num_tasks(4) /* 1 of 5 */
        for (int i = 0; i < 32; i++) work(20);
    }
}

static void nested(void)
{
#pragma omp parallel num_threads(2) /* 1 of 4 */
    {
        work(500);
#pragma omp parallel num_threads(1) /* 3 of 4 */
        work(1500);
    }
}

static void sections(void)
{
#pragma omp parallel sections /* 2 of 3 */
    {
#pragma omp section
        work(1000);
#pragma omp section
        work(600);
    }
#pragma omp parallel /* 1 of 3 */
    work(400);
}

static void critical(void)
{
#pragma omp parallel /* 10 of 17 */
    for (int i = 0; i < 4; i++) {
        work(200);
#pragma omp critical
        work(50);
    }
#pragma omp parallel /* 7 of 17 */
    work(700);
}

static void tree(int depth)
{
    if (depth == 0) {
        work(200);
        return;
    }
    for (int i = 0; i < 2; i++) {
#pragma omp task /* 32 of 53 */
        tree(depth - 1);
    }
#pragma omp task /* 21 of 53 */
    work(150);
#pragma omp taskwait
}

static void recursive(void)
{
#pragma omp parallel
#pragma omp single
    tree(3);
}

static __attribute__((noinline)) void shared(long us)
{
#pragma omp for schedule(dynamic, 1)
    for (int i = 0; i < 16; i++) work(us);
}

static void orphaned(void)
{
#pragma omp parallel /* 5 of 7 */
    shared(100);
#pragma omp parallel /* 2 of 7 */
    shared(40);
}

static double from[1 << 16], to[2][1 << 16];

static void library(void)
{
#pragma omp parallel num_threads(2)
    for (int i = 0; i < 20; i++) memcpy(to[omp_get_thread_num()], from, sizeof from);
#pragma omp parallel num_threads(2)
    {
        double sum = 0;
        for (int i = 0; i < 20000; i++) sum += sin(i + from[0]);
        kept = sum;
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*round)(void);
    } all[] = {
        {"fixed", fixed},       {"dynamic", dynamic},     {"tasks", tasks},         {"taskloops", taskloops}, {"nested", nested},
        {"sections", sections}, {"critical", critical},   {"recursive", recursive}, {"orphaned", orphaned},   {"library", library},
    };
    if (argc < 3) return 2;
    omp_set_max_active_levels(2);
    for (size_t n = 0; n < sizeof all / sizeof *all; n++)
        if (!strcmp(argv[1], all[n].name))
            for (int i = atoi(argv[2]); i > 0; i--) all[n].round();
    return 0;
}
