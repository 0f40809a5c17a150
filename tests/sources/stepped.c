// stepped RANGES -- PROGRAM [ARGUMENT...]: executes a program instruction by instruction, and prints on standard error how many of them lie
// in these ranges of its own file, which are lines `begin end` of link-time addresses in hexadecimal digits. Of an instruction with a
// repeat prefix all rounds are one. A second thread or process ends it with status 99.
#include <elf.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 20000, FAILED = 99 };

static unsigned long begins[MOST], ends[MOST];
static int ranges;

static int inside(unsigned long at)
{
    int low = 0, high = ranges;
    while (low < high) {
        int middle = (low + high) / 2;
        if (ends[middle] <= at) low = middle + 1;
        else high = middle;
    }
    return low < ranges && begins[low] <= at;
}

// Where the program's file begins in memory, less where it was linked to; and where the program itself begins.
static unsigned long bias(pid_t pid, unsigned long *entry)
{
    char path[64];
    unsigned long pair[2], headers = 0, count = 0;
    snprintf(path, sizeof path, "/proc/%d/auxv", pid);
    FILE *auxv = fopen(path, "r");
    if (!auxv) exit(FAILED);
    while (fread(pair, sizeof pair, 1, auxv) == 1 && pair[0] != AT_NULL) {
        if (pair[0] == AT_PHDR) headers = pair[1];
        if (pair[0] == AT_PHNUM) count = pair[1];
        if (pair[0] == AT_ENTRY) *entry = pair[1];
    }
    fclose(auxv);
    for (unsigned long n = 0; n < count; n++) {
        unsigned long at = headers + n * sizeof(Elf64_Phdr);
        unsigned long type = (unsigned long)ptrace(PTRACE_PEEKDATA, pid, (void *)at, 0) & 0xffffffff;
        if (type == PT_PHDR)
            return headers - (unsigned long)ptrace(PTRACE_PEEKDATA, pid, (void *)(at + offsetof(Elf64_Phdr, p_vaddr)), 0);
    }
    return 0;
}

// Whether a string instruction with a repeat prefix is there.
static int repeats(pid_t pid, unsigned long at)
{
    unsigned long bytes = (unsigned long)ptrace(PTRACE_PEEKTEXT, pid, (void *)at, 0);
    int repeated = 0;
    for (;; bytes >>= 8) {
        unsigned byte = bytes & 0xff;
        if (byte == 0xf2 || byte == 0xf3) repeated = 1;
        else if (byte != 0x66 && (byte & 0xf0) != 0x40) return repeated && ((byte >= 0xa4 && byte <= 0xa7) || (byte >= 0xaa && byte <= 0xaf));
    }
}

int main(int argc, char **argv)
{
    FILE *list = argc > 3 ? fopen(argv[1], "r") : 0;
    if (!list || strcmp(argv[2], "--") != 0) return FAILED;
    while (ranges < MOST && fscanf(list, "%lx %lx", &begins[ranges], &ends[ranges]) == 2) ranges++;
    fclose(list);
    setenv("LD_BIND_NOW", "1", 1); // not all symbols step by step
    pid_t pid = fork();
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        execv(argv[3], argv + 3);
        _exit(FAILED);
    }
    int status;
    if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) return FAILED;
    ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK);
    unsigned long entry = 0, loaded = bias(pid, &entry), before = 0;
    // Nothing of the file is executed before.
    unsigned long code = (unsigned long)ptrace(PTRACE_PEEKTEXT, pid, (void *)entry, 0);
    struct user_regs_struct first;
    ptrace(PTRACE_POKETEXT, pid, (void *)entry, (void *)((code & ~0xfful) | 0xcc));
    if (ptrace(PTRACE_CONT, pid, 0, 0) != 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) return FAILED;
    ptrace(PTRACE_POKETEXT, pid, (void *)entry, (void *)code);
    ptrace(PTRACE_GETREGS, pid, 0, &first);
    if (first.rip != entry + 1) return FAILED;
    first.rip = entry;
    ptrace(PTRACE_SETREGS, pid, 0, &first);
    unsigned long long steps = 0;
    int signal = 0;
    for (;;) {
        struct user_regs_struct at;
        ptrace(PTRACE_GETREGS, pid, 0, &at);
        if (signal == 0 && inside(at.rip - loaded) && !(at.rip == before && repeats(pid, at.rip))) steps++;
        before = at.rip;
        if (ptrace(PTRACE_SINGLESTEP, pid, 0, (void *)(long)signal) != 0 || waitpid(pid, &status, 0) != pid) return FAILED;
        if (!WIFSTOPPED(status)) break;
        if (status >> 16) return FAILED;
        signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
    }
    fprintf(stderr, "steps %llu\n", steps);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
