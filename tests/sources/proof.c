/* Programs whose best value is known, because their time is sleep: what `ompfuse try` tells must hold it.
 *
 *   COARSE   a chunk that gives one thread all iterations; -DVALUE=N: another one
 *   RUNTIME  OMP_SCHEDULE decides, and its first iterations take long
 *   FILES    as COARSE, and it writes the number of its threads into a file
 *   EVEN     nothing can be gained
 */
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

#define PRAGMA(x) _Pragma(#x)
#define LOOP(...) PRAGMA(omp parallel for schedule(__VA_ARGS__) reduction(+ : n))
#ifndef VALUE
#define VALUE 8
#endif

int main(void)
{
    int n = 0;
#if defined(COARSE) || defined(FILES)
    LOOP(dynamic, VALUE) for (int i = 0; i < 8; i++) { usleep(20000); n++; } /* place */
#elif defined(RUNTIME)
    LOOP(runtime)
    for (int i = 0; i < 32; i++) { usleep(i < 8 ? 15000 : 100); n++; }
#else
    LOOP(static)
    for (int i = 0; i < 4; i++) { usleep(60000); n++; }
#endif
#ifdef FILES
    FILE *file = fopen("written.txt", "a");
    fprintf(file, "threads %d\n", omp_get_max_threads());
    fclose(file);
#endif
    printf("iterations %d\n", n);
    return 0;
}
