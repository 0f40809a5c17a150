// Only asks the runtime and sets it: a program that uses the library it is linked with, or the one it is given; or a library.
#include <dlfcn.h>
#include <omp.h>
#include <stdio.h>

long asked(long n) { return n + omp_get_max_threads() - omp_get_max_threads(); }

#ifdef LINKED
long work(long n);
#endif

int main(int argc, char **argv) {
    omp_set_num_threads(2);
    long sum = 0;
    for (int i = 0; i < 10; i++) {
#ifdef LINKED
        sum += work(10);
#else
        void *library = dlopen(argv[1], RTLD_NOW);
        long (*work)(long) = (long (*)(long))dlsym(library, "work");
        if (!work)
            work = (long (*)(long))dlsym(library, "asked");
        sum += work ? work(10) : 0;
#endif
    }
    printf("sum %ld\n", sum);
    return (int)(omp_get_wtime() < 0);
}
