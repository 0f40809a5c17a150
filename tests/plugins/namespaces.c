/* A program (-DPROGRAM) and a library, which it opens in a link namespace of its own: there are two C libraries, each with the
 * library's or program's OpenMP runtime, and the same threads call both.
 *
 * Usage: namespaces LIBRARY
 * Both print the numbers that their C library gives to keys of theirs: two C libraries keep values of keys in the same places
 * of a thread, by number, so what works does so with the numbers that it has. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static pthread_key_t early;

__attribute__((constructor)) static void before_main(void)
{
    pthread_key_create(&early, NULL);
}

__attribute__((noinline)) static long region(int n)
{
    long sum = 0;
    #pragma omp parallel for schedule(static) num_threads(2) reduction(+: sum)
    for (int i = 0; i < n; i++)
        sum += i;
    return sum;
}

#ifndef PROGRAM

long work(int n)
{
    return region(n);
}

int key(void)
{
    return (int)early;
}

#else

static long (*work)(int);
static long total;

static void *in_thread(void *unused)
{
    long sum = region(50) + work(50) + region(50);
    __atomic_fetch_add(&total, sum, __ATOMIC_RELAXED);
    return unused;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    total = region(50);
    void *library = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    work = (long (*)(int))dlsym(library, "work");
    int (*key)(void) = (int (*)(void))dlsym(library, "key");
    in_thread(NULL);
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, in_thread, NULL);
        pthread_join(thread, NULL);
    }
    pthread_key_t late;
    pthread_key_create(&late, NULL);
    printf("total %ld, keys %d, %d, library's %d\n", total, (int)early, (int)late, key());
    return 0;
}

#endif
