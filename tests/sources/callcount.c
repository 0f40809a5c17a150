/* Preloaded, counts calls of threads' and files' functions: at the end a line for each function into the file COUNTS (of the process that
 * began), NAME CALLS. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALL(X)                                                                                                                             \
    X(int, pthread_join, (pthread_t a, void **b), (a, b))                                                                                  \
    X(int, pthread_mutex_lock, (pthread_mutex_t * a), (a))                                                                                 \
    X(int, pthread_barrier_wait, (pthread_barrier_t * a), (a))                                                                             \
    X(int, sem_wait, (sem_t * a), (a))                                                                                                     \
    X(int, sched_yield, (void), ())                                                                                                        \
    X(ssize_t, read, (int a, void *b, size_t c), (a, b, c))                                                                                \
    X(ssize_t, pread, (int a, void *b, size_t c, off_t d), (a, b, c, d))                                                                   \
    X(ssize_t, write, (int a, const void *b, size_t c), (a, b, c))                                                                         \
    X(int, close, (int a), (a))                                                                                                            \
    X(int, fsync, (int a), (a))                                                                                                            \
    X(FILE *, fopen, (const char *a, const char *b), (a, b))                                                                               \
    X(size_t, fread, (void *a, size_t b, size_t c, FILE *d), (a, b, c, d))                                                                 \
    X(size_t, fwrite, (const void *a, size_t b, size_t c, FILE *d), (a, b, c, d))                                                          \
    X(int, fclose, (FILE * a), (a))                                                                                                        \
    X(int, fflush, (FILE * a), (a))                                                                                                        \
    X(int, puts, (const char *a), (a))                                                                                                     \
    X(int, poll, (struct pollfd * a, nfds_t b, int c), (a, b, c))

#define COUNTER(type, name, parameters, arguments) static atomic_long count_##name;
ALL(COUNTER)
static atomic_long count_open, count_pthread_cond_wait;
static pid_t own;

#define WRAPPER(type, name, parameters, arguments)                                                                                         \
    type name parameters {                                                                                                                 \
        static type(*next) parameters;                                                                                                     \
        if (!next)                                                                                                                         \
            next = (type(*) parameters)dlsym(RTLD_NEXT, #name);                                                                            \
        count_##name++;                                                                                                                    \
        return next arguments;                                                                                                             \
    }
ALL(WRAPPER)

int open(const char *path, int flags, ...) {
    static int (*next)(const char *, int, ...);
    va_list rest;
    va_start(rest, flags);
    int mode = flags & O_CREAT ? va_arg(rest, int) : 0;
    va_end(rest);
    if (!next)
        next = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    count_open++;
    return next(path, flags, mode);
}

int pthread_cond_wait(pthread_cond_t *a, pthread_mutex_t *b) {
    static int (*next)(pthread_cond_t *, pthread_mutex_t *);
    if (!next)
        next = (int (*)(pthread_cond_t *, pthread_mutex_t *))dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2");
    count_pthread_cond_wait++;
    return next(a, b);
}

__attribute__((constructor)) static void begin(void) {
    own = getpid();
}

__attribute__((destructor)) static void tell(void) {
    const char *file = getenv("COUNTS");
    char text[4096];
    int len = 0;
    if (!file || own != getpid())
        return;
#define LINE(type, name, parameters, arguments) len += snprintf(text + len, sizeof text - len, #name " %ld\n", count_##name);
    ALL(LINE)
    LINE(int, open, , )
    LINE(int, pthread_cond_wait, , )
    int out = syscall(SYS_openat, AT_FDCWD, file, O_CREAT | O_WRONLY | O_EXCL, 0644);
    if (out >= 0)
        syscall(SYS_write, out, text, len);
}
