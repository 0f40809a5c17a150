// Paths of constructs four levels deep, reached by two functions, and a region of the program's own with a name full of what formats
// use as signs. `profiles kill` ends in the middle of it.
#include <ompfuse.h>
#include <signal.h>
#include <stdio.h>

static void work(int n) {
    volatile double sum = 0;
    for (int i = 0; i < n; i++)
        sum += i;
}

static void blocks(int n) {
#pragma omp for schedule(dynamic, 2)
    for (int i = 0; i < 32; i++) {
        work(n * (1 + i % 4));
#pragma omp critical(tally)
        {
            work(20);
        }
    }
}

static void solve(int n) {
#pragma omp parallel
    {
        blocks(n);
#pragma omp single
        {
            for (int t = 0; t < 6; t++) {
#pragma omp task
                {
                    work(n);
#pragma omp task
                    {
                        work(2 * n);
                    }
                }
            }
#pragma omp taskwait
        }
#pragma omp barrier
    }
}

static void forward(void) { solve(1000); }
static void backward(void) { solve(2000); }

int main(int count, char **arguments) {
    (void)arguments;
    ompfuse_region_begin("hostile; \"a\" => b->c <&> {d} [{e} {1,2}] \xc3\xa9\n#");
    forward();
    backward();
    ompfuse_region_end();
#pragma omp parallel
    {
        work(5000);
        if (count > 1) {
#pragma omp barrier
#pragma omp master
            raise(SIGKILL);
        }
    }
    puts("done");
    return 0;
}
