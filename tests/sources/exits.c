/* Several threads end the program at once, inside a parallel region; with ONE the first thread alone does. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
#pragma omp parallel
    {
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 50; i++)
            if (i == 49)
                printf("last\n");
#ifdef ONE
        if (omp_get_thread_num() == 0)
            exit(3);
#else
        if (omp_get_num_threads() > 2)
            exit(3);
#endif
    }
    return 0;
}
