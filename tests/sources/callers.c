/* A program that stands between everything and the C library: each of its functions goes on to the C library's of the same name,
   but for calls from libraries of ompfuse's, which end the program with status 99.

   With -DNAMES='X(0, write) X(1, read) ...' */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>

static struct {
    const char *name;
    void *real;
} own[] = {
#define X(number, name) {#name, NULL},
    NAMES
#undef X
};

static void leave(const char *name)
{
    long length = 0, written, number = 1;
    while (name[length])
        length++;
    __asm__ volatile("syscall" : "=a"(written) : "a"(number), "D"(2L), "S"(name), "d"(length) : "rcx", "r11", "memory");
    number = 231; /* exit_group */
    __asm__ volatile("syscall" : : "a"(number), "D"(99L) : "rcx", "r11", "memory");
    __builtin_unreachable();
}

/* A library's code lies between its beginning and its dynamic section. */
static int is_ompfuses(unsigned long address)
{
    for (struct link_map *map = _r_debug.r_map; map; map = map->l_next) {
        const char *at = map->l_name, *wanted = "libompfuse_";
        if (address < map->l_addr || address >= (unsigned long)map->l_ld)
            continue;
        for (; *at; at++) {
            int i = 0;
            while (wanted[i] && at[i] == wanted[i])
                i++;
            if (!wanted[i])
                return 1;
        }
    }
    return 0;
}

__attribute__((used)) void *own_called(long which, unsigned long caller)
{
    static void *(*find)(void *, const char *);
    if (is_ompfuses(caller))
        leave(own[which].name);
    if (!find)
        *(void **)&find = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34"); /* our own dlsym would ask for it again */
    if (!find)
        *(void **)&find = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    if (!own[which].real)
        own[which].real = find(RTLD_NEXT, own[which].name);
    if (!own[which].real)
        leave("not found: ");
    return own[which].real;
}

/* All registers of arguments stay as they are; the caller is who had called. */
#define X(number, name)                                                                                                     \
    __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"                                                       \
            "push %rax\npush %rdi\npush %rsi\npush %rdx\npush %rcx\npush %r8\npush %r9\n"                                       \
            "mov $" #number ", %edi\nmov 56(%rsp), %rsi\ncall own_called\nmov %rax, %r11\n"                                \
            "pop %r9\npop %r8\npop %rcx\npop %rdx\npop %rsi\npop %rdi\npop %rax\njmp *%r11\n");
NAMES
#undef X

int main(void)
{
    int sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(dynamic, 10)
    for (int i = 0; i < 100; i++)
        sum += i;
    printf("sum %d\n", sum);
    return 0;
}
