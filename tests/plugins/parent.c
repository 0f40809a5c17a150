// Opens a library while another thread reaps every child of the process, and counts what it sees of them.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

static volatile int signals, stop;

static void count(int number) { signals++; }

static void *reap(void *unused) {
    long reaped = 0;
    while (!stop)
        if (waitpid(-1, NULL, WNOHANG) > 0)
            reaped++;
    return (void *)reaped;
}

int main(int argc, char **argv) {
    signal(SIGCHLD, count);
    pthread_t thread;
    pthread_create(&thread, NULL, reap, NULL);
    void *library = dlopen(argv[1], RTLD_NOW);
    long (*work)(long) = (long (*)(long))dlsym(library, "work");
    long sum = work(10);
    stop = 1;
    void *reaped;
    pthread_join(thread, &reaped);
    int left = waitpid(-1, NULL, 0) < 0 && errno == ECHILD ? 0 : 1;
    printf("sum %ld, %d signals, %ld reaped, %d left\n", sum, signals, (long)reaped, left);
    return 0;
}
