// refuse ERRNO NUMBER... -- PROGRAM [ARGUMENT...]: starts the program with system calls refused, for which it gets the error.
// ERRNO 0: they end the process.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { MOST = 50, NO_FILTER = 99 };

int main(int argc, char **argv)
{
    struct sock_filter filter[2 * MOST + 2];
    unsigned short length = 0;
    unsigned error = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    unsigned refused = error > 0 ? SECCOMP_RET_ERRNO | error : SECCOMP_RET_KILL_PROCESS;
    struct sock_filter number = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    filter[length++] = number;
    int at = 2;
    for (; at < argc && at < 2 + MOST && strcmp(argv[at], "--") != 0; at++) {
        struct sock_filter compare = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)atoi(argv[at]), 0, 1);
        struct sock_filter refuse = BPF_STMT(BPF_RET | BPF_K, refused);
        filter[length++] = compare;
        filter[length++] = refuse;
    }
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[length++] = allow;
    struct sock_fprog program = {length, filter};
    if (argc <= at + 1 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return NO_FILTER;
    execv(argv[at + 1], argv + at + 1);
    return NO_FILTER - 1;
}
