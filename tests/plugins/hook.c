/* An allocator with a variable of each thread, as those that count allocations have: it is asked for in `malloc`. */
#include <stddef.h>

#ifndef ALIGN
#define ALIGN 8
#endif

static __thread unsigned long calls __attribute__((aligned(ALIGN)));

extern void *__libc_malloc(size_t);

void *malloc(size_t size)
{
    calls++;
    return __libc_malloc(size);
}
