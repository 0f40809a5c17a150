// behaviour HOW: what a program can see of how it was started, and what its starter can see of its end.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void region(void)
{
    int sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < 100; i++) sum += i;
    printf("sum %d\n", sum);
    fflush(stdout);
}

// Its variables, descriptors, signals, limits, group and name; not the variables that name a run's own folders.
static void state(char **argv)
{
    for (char **v = environ; *v; v++)
        if (strncmp(*v, "OMPFUSE_DIR=", 12) != 0 && strncmp(*v, "OMPFUSE_LIBRARIES=", 18) != 0) printf("env %s\n", *v);
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(folder));) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd != dirfd(folder)) printf("fd %d flags %d\n", fd, fcntl(fd, F_GETFD));
    }
    closedir(folder);
    FILE *status = fopen("/proc/self/status", "r");
    for (char line[256]; fgets(line, sizeof line, status);)
        if ((strncmp(line, "Sig", 3) == 0 && line[3] != 'Q') || strncmp(line, "Shd", 3) == 0 || strncmp(line, "Cpus_allowed:", 13) == 0) fputs(line, stdout);
    fclose(status);
    struct rlimit limit;
    for (int which = 0; which < RLIM_NLIMITS; which++)
        if (getrlimit(which, &limit) == 0) printf("limit %d %lu %lu\n", which, (unsigned long)limit.rlim_cur, (unsigned long)limit.rlim_max);
    char parent[64], name[64] = "";
    snprintf(parent, sizeof parent, "/proc/%d/comm", getppid());
    FILE *comm = fopen(parent, "r");
    if (comm && fgets(name, sizeof name, comm)) printf("parent %s", name);
    printf("group %d session %d name %s\n", getpgrp() == getpgid(getppid()), getsid(0) == getsid(getppid()), argv[0]);
}

static void *idle(void *of) { return of; }

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "state") == 0) state(argv);
    region();
    if (strcmp(how, "status") == 0) return 77;
    if (strcmp(how, "signal") == 0) raise(SIGTERM);
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "fork") == 0) {
        pid_t child = fork();
        if (child == 0) { puts("child"); exit(3); }
        int status;
        waitpid(child, &status, 0);
        printf("child's status %d\n", WEXITSTATUS(status));
    }
    if (strcmp(how, "exec") == 0) execl(argv[0], argv[0], "again", (char *)0);
    if (strcmp(how, "threads") == 0) {
        static pthread_t all[500];
        int made = 0;
        for (; made < 500; made++)
            if (pthread_create(&all[made], 0, idle, 0) != 0) break;
        for (int i = 0; i < made; i++) pthread_join(all[i], 0);
        printf("%d threads\n", made);
    }
    return 0;
}
