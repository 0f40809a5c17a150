/* Has the name of a sanitizer's function, and ends as such a program does where a library audits it: before `main`. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) void __msan_init(void)
{
    if (getenv("LD_AUDIT") != NULL)
        _exit(7);
}

int main(void)
{
    long sum = 0;
    #pragma omp parallel for reduction(+ : sum) schedule(static) num_threads(2)
    for (int i = 0; i < 100; i++)
        sum += i;
    printf("%ld\n", sum);
    return 0;
}
