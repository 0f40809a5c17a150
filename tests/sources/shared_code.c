/* Two loops without a wait between them and with the same bounds: gcc makes one of them. The second has its long iterations where the
   first has its short ones. */
#include <stdio.h>
#include <unistd.h>

int main(void) {
#pragma omp parallel num_threads(2)
    {
#pragma omp for schedule(static) nowait
        for (int i = 0; i < 4; i++)
            usleep(2000 * (i + 1));
#pragma omp for schedule(static)
        for (int i = 0; i < 4; i++)
            usleep(2000 * (4 - i));
    }
    puts("done");
}
