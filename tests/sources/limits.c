/* What settings must leave as it is, each on one line, which compilers agree on.
 *
 *   limits [pair]        with the word, two threads wait for each other
 */
#include <omp.h>
#include <stdio.h>

#ifdef __clang__
#define SIZE 8
#else
#define SIZE n /* gcc copies what has no constant size by a function */
#endif

static void taskloops(int n)
{
    int values[SIZE], tasks = 0, fresh = 1;
    long sum = 0;
    for (int i = 0; i < n; i++)
        values[i] = i;
    #pragma omp parallel
    #pragma omp single
    {
#ifndef __clang__
        _Pragma("omp taskloop grainsize(strict: 10) firstprivate(fresh)") for (int i = 0; i < 1000; i++) { _Pragma("omp atomic") tasks += fresh; fresh = 0; } /* strict */
#endif
        _Pragma("omp taskloop grainsize(100000) firstprivate(values)") for (int i = 0; i < 1000000; i++) { _Pragma("omp atomic") sum += values[i % n]; } /* copied */
    }
    printf("tasks %d, sum %ld\n", tasks, sum);
}

int main(int argc, char **argv)
{
    long n = 0;
    _Pragma("omp parallel for schedule(dynamic) reduction(+ : n)") for (unsigned long h = 255UL << 56; h > 0; h -= 1UL << 56) n++; /* steps */
    printf("steps %ld\n", n);
    int beyond = 0;
    _Pragma("omp parallel num_threads(2) reduction(+ : beyond)") beyond += omp_get_thread_num() >= 2; /* team */
    int most = omp_get_max_threads();
    _Pragma("omp parallel reduction(+ : beyond)") beyond += omp_get_thread_num() >= most; /* default */
    printf("beyond %d\n", beyond);
    taskloops(8);
    volatile int come = 0;
    if (argc > 1) {
        #pragma omp parallel num_threads(2) /* pair */
        {
            if (omp_get_thread_num() == 1)
                come = 1;
            while (!come)
                ;
        }
    }
    return 0;
}
