/* Preloaded: says what an OpenMP runtime is handed over, where `ompfuse --set` changes it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

typedef long (*Function)(long, long, long, long, long, long, long, long, long, long, long, long);

/* What a call says of an argument: its name, and its position. All calls hand over less than twelve words. */
#define SHIM(name, ...)                                                                                                       \
    long name(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l)                 \
    {                                                                                                                         \
        static Function real;                                                                                                 \
        if (!real) real = (Function)dlsym(RTLD_NEXT, #name);                                                                  \
        fprintf(stderr, #name " " __VA_ARGS__);                                                                               \
        return real(a, b, c, d, e, f, g, h, i, j, k, l);                                                                      \
    }

SHIM(GOMP_parallel, "threads %d\n", (int)c)
SHIM(GOMP_parallel_loop_nonmonotonic_dynamic, "threads %d chunk %ld\n", (int)c, g)
SHIM(GOMP_loop_ull_nonmonotonic_guided_start, "chunk %ld\n", e)
SHIM(GOMP_loop_ull_guided_start, "chunk %ld\n", e)
SHIM(GOMP_taskloop, "sized %d grain %ld\n", (int)(f >> 9 & 1), g)
SHIM(__kmpc_dispatch_init_4, "schedule %d modifiers %d chunk %d\n", (int)(c & 0x1fffffff), (int)(c >> 29 & 7), (int)g)
SHIM(__kmpc_dispatch_init_8u, "schedule %d modifiers %d chunk %ld\n", (int)(c & 0x1fffffff), (int)(c >> 29 & 7), g)
SHIM(__kmpc_taskloop, "sized %d grain %ld\n", (int)i == 1, j)
