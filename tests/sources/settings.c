/* Regions whose values can be set; each loop on one line, which compilers agree on. Prints what must not depend on values, and the
 * sizes of teams.
 *
 *   settings [N [WORD [WORD]]]        with a word, sizes go to standard output, too; with another one, the time
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static long seen[1000];

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1000;
    long sum = 0;
    _Pragma("omp parallel for schedule(dynamic, 1)") for (int i = 0; i < 1000; i++) seen[i] += i; /* combined */
    for (int i = 0; i < 1000; i++)
        sum += seen[i];
    int team = 0;
    #pragma omp parallel num_threads(4) /* team */
    {
        #pragma omp single
        team = omp_get_num_threads();
        _Pragma("omp for schedule(guided, 2) reduction(+ : sum)") for (unsigned long i = 0; i < (unsigned long)n; i++) sum += i; /* guided */
        _Pragma("omp for schedule(static, 2) reduction(+ : sum)") for (int i = 0; i < n; i++) sum += i; /* static */
    }
    #pragma omp parallel
    #pragma omp single
    _Pragma("omp taskloop grainsize(1) reduction(+ : sum)") for (int i = 0; i < n; i++) sum += i; /* sized */
    #pragma omp parallel
    #pragma omp single
    _Pragma("omp taskloop num_tasks(3) reduction(+ : sum)") for (int i = 0; i < n; i++) sum += i; /* counted */
    int alone = 0;
    #pragma omp parallel if (n < 0) /* serial */
    #pragma omp single
    alone = omp_get_num_threads();
    printf("sum %ld\n", sum);
    if (argc > 2)
        printf("team %d\n", team);
    if (argc > 3)
        printf("at %.9f\n", omp_get_wtime());
    fprintf(stderr, "team %d, alone %d\n", team, alone);
    return 0;
}
