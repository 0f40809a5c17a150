/* Calls of threads and files in all the ways that programs make them, without OpenMP. What it prints is the same each time; callcount.c
 * counts its calls. ARGUMENT: a folder for its files. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static int cleaned, turns, waiting, ends[2], handled;
static sigjmp_buf env;

static void clean(void *what) {
    (void)what;
    cleaned++;
    pthread_mutex_unlock(&mutex);
}

/* Cancelled in a wait: its frames are unwound. */
static void *forever(void *none) {
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(clean, NULL);
    waiting = 1;
    for (;;)
        pthread_cond_wait(&cond, &mutex);
    pthread_cleanup_pop(0);
    return none;
}

/* Cancelled in a read. */
static void *reader(void *fd) {
    char byte;
    sem_post(&semaphore);
    while (read(*(int *)fd, &byte, 1) == 1)
        ;
    return NULL;
}

static void *worker(void *number) {
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&mutex);
        turns++;
        pthread_mutex_unlock(&mutex);
        if (i % 10 == 0)
            sched_yield();
    }
    pthread_barrier_wait(&barrier);
    pthread_exit(number);
}

static void on_alarm(int signal) {
    int before = errno;
    if (write(ends[1], "x", 1) != 1 || signal == SIGUSR2)
        _exit(9);
    handled++;
    errno = before;
}

static void leap(int signal) {
    siglongjmp(env, signal);
}

static void check(int holds, const char *what) {
    if (!holds)
        printf("wrong: %s, errno %d\n", what, errno);
}

int main(int argc, char **argv) {
    pthread_t threads[4];
    char path[4096], bytes[64] = "";
    void *result;
    long sum = 0;
    if (argc < 2 || chdir(argv[1]) || pipe(ends) || sem_init(&semaphore, 0, 0))
        return 1;
    umask(0);
    pthread_barrier_init(&barrier, NULL, 4);
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &result);
        sum += (long)result;
    }
    printf("%ld of %d turns\n", sum, turns);

    pthread_create(&threads[0], NULL, forever, NULL);
    for (int seen = 0; !seen;) {
        pthread_mutex_t *unseen = &mutex; /* not by a counted call: how often isn't known */
        while (pthread_mutex_trylock(unseen))
            usleep(100);
        seen = waiting;
        pthread_mutex_unlock(unseen);
    }
    pthread_cancel(threads[0]);
    pthread_join(threads[0], &result);
    check(result == PTHREAD_CANCELED && cleaned == 1, "cancelled in a condition");
    int idle[2];
    if (pipe(idle))
        return 1;
    pthread_create(&threads[0], NULL, reader, &idle[0]);
    sem_wait(&semaphore);
    pthread_cancel(threads[0]);
    pthread_join(threads[0], &result);
    check(result == PTHREAD_CANCELED, "cancelled in a read");

    /* A third argument, and none; errno of what fails, and that of what doesn't. */
    int fd = open("made", O_CREAT | O_RDWR | O_TRUNC, 0640);
    struct stat status;
    check(fd >= 0 && !fstat(fd, &status) && (status.st_mode & 0777) == 0640, "mode");
    errno = 0;
    check(write(fd, "one two three\n", 14) == 14 && errno == 0, "write");
    check(pread(fd, bytes, 3, 4) == 3 && !strcmp(bytes, "two"), "pread");
    check(read(-1, bytes, 1) == -1 && errno == EBADF, "read of nothing");
    check(open("absent", O_RDONLY) == -1 && errno == ENOENT, "open of nothing");
    check(fsync(fd) == 0 && close(fd) == 0 && close(fd) == -1 && errno == EBADF, "close");
    snprintf(path, sizeof path, "%s/made", argv[1]);
    FILE *file = fopen("made", "r+");
    check(file && fread(bytes, 1, 13, file) == 13 && !memcmp(bytes, "one two three", 13), "fread");
    check(file && fwrite("!", 1, 1, file) == 1 && fclose(file) == 0, "fwrite");

    /* By an address: nobody but a counter of the library sees these. */
    ssize_t (*by_address)(int, const void *, size_t) = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_DEFAULT, "write");
    check(by_address(ends[1], "abc", 3) == 3 && read(ends[0], bytes, 3) == 3, "address");

    /* In a signal handler that interrupts calls; what it interrupts goes on. */
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    for (int i = 0; i < 50; i++) {
        struct itimerval soon = {{0, 0}, {0, 1000}};
        setitimer(ITIMER_REAL, &soon, NULL);
        check(read(ends[0], bytes, 1) == 1 && bytes[0] == 'x', "a byte of the handler");
    }
    check(handled == 50, "handled");

    /* A jump out of a read, again and again. */
    action.sa_handler = leap;
    sigaction(SIGALRM, &action, NULL);
    int jumps = 0;
    for (int i = 0; i < 20; i++) {
        if (sigsetjmp(env, 1)) {
            jumps++;
            continue;
        }
        struct itimerval once = {{0, 0}, {0, 1000}};
        setitimer(ITIMER_REAL, &once, NULL);
        check(read(idle[0], bytes, 1) == 1, "never");
    }
    check(jumps == 20, "jumps");

    /* Children of both kinds. */
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        check(write(idle[1], "fork", 4) == 4, "fork");
        _exit(3);
    }
    int code;
    check(waitpid(child, &code, 0) == child && WEXITSTATUS(code) == 3, "child");
    child = vfork();
    if (!child) {
        close(idle[1]); /* its own copy */
        execle("/bin/true", "true", (char *)NULL, (char *[]){NULL});
        _exit(4);
    }
    check(waitpid(child, &code, 0) == child && WEXITSTATUS(code) == 0, "vfork");
    struct pollfd ready = {idle[0], POLLIN, 0};
    check(poll(&ready, 1, 1000) == 1 && read(idle[0], bytes, 8) == 4, "poll");
    check(write(idle[1], "y", 1) == 1, "still open");
    puts("end");
    return 0;
}
