/* Makes a function while it runs, and tells profilers its name in /tmp/perf-PID.map. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
    /* mov ecx, edi; again: dec ecx; jnz again; ret */
    static const unsigned char code[] = {0x89, 0xf9, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
    void *made = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(made, code, sizeof code);
    mprotect(made, 4096, PROT_READ | PROT_EXEC);
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(path, "w");
    fprintf(map, "%lx %zx made while it ran\n", (unsigned long)made, sizeof code);
    fclose(map);
    void (*function)(int) = (void (*)(int))made;
#pragma omp parallel for schedule(dynamic, 1)
    for (int i = 0; i < 200; i++) function(5000000);
    printf("%s\n", path);
    return 0;
}
