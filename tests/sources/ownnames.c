/* Functions with names of the C library's, as programs and libraries of their own may have them: none of these names is reserved in
   ISO C. They do nothing of what the C library's would do. What calls them is counted.

   With -DNAMES='X(write) X(read) ...'; with -DLIBRARY: a library to be preloaded, which tells its counts at the end. */
#include <stdio.h>

#define X(name) static int calls_##name;
NAMES
#undef X

#define X(name)                                                                                                                \
    long own_##name(long a, long b) __asm__(#name);                                                                            \
    long own_##name(long a, long b)                                                                                            \
    {                                                                                                                          \
        calls_##name++;                                                                                                        \
        return a - b + 7;                                                                                                      \
    }
NAMES
#undef X

#ifdef LIBRARY
__attribute__((destructor))
#endif
static void tell(void)
{
#define X(name) printf(" %s:%d", #name, calls_##name);
    NAMES
#undef X
    printf("\n");
}

#ifndef LIBRARY
int main(void)
{
    int sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(dynamic, 10)
    for (int i = 0; i < 100; i++)
        sum += i;
    printf("sum %d", sum);
#define X(name) own_##name(1, 2);
    NAMES
#undef X
    tell();
    return 0;
}
#endif
