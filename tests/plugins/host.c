// A program without OpenMP that opens a library, uses it and closes it again, from several threads.
// host LIBRARY local|global TIMES THREADS
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char **args;

static void *run(void *unused) {
    long sum = 0;
    int flags = RTLD_NOW | (strcmp(args[2], "global") ? RTLD_LOCAL : RTLD_GLOBAL);
    for (int i = 0; i < atoi(args[3]); i++) {
        void *library = dlopen(args[1], flags);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            exit(1);
        }
        long (*work)(long) = (long (*)(long))dlsym(library, "work");
        sum += work(10);
        dlclose(library);
    }
    return (void *)sum;
}

int main(int argc, char **argv) {
    // The original's own race: libgomp is unloaded while its threads are still running in it.
    if (getenv("KEEP_OPEN"))
        dlopen(getenv("KEEP_OPEN"), RTLD_NOW);
    args = argv;
    int threads = argc > 4 ? atoi(argv[4]) : 1;
    pthread_t thread[16];
    long sum = 0;
    for (int i = 1; i < threads; i++)
        pthread_create(&thread[i], NULL, run, NULL);
    sum += (long)run(NULL);
    for (int i = 1; i < threads; i++) {
        void *result;
        pthread_join(thread[i], &result);
        sum += (long)result;
    }
    printf("sum %ld\n", sum);
    return 3;
}
