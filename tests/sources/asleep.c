/* A loop whose chunk gives one thread all of its iterations, which sleep: another chunk helps on any machine. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    int n = 0;
    _Pragma("omp parallel for schedule(dynamic, 8) reduction(+ : n)") for (int i = 0; i < 8; i++) { usleep(20000); n++; } /* chunk */
    printf("iterations %d\n", n);
    return 0;
}
