// A program with OpenMP of its own: opens `outer` after its first region, by name or by path.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    long sum = 0;
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : sum) num_threads(2)
    for (long i = 0; i < 4; i++)
        sum += i;
    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_LAZY);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        long (*outer)(long) = (long (*)(long))dlsym(library, "outer");
        sum += outer(6);
        dlclose(library);
    }
    printf("sum %ld\n", sum);
    return 0;
}
