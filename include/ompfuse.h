/*
 * What a program can tell ompfuse, and ask it, while it is being recorded. Copy this file into the program: there is nothing
 * to link with, and no name in it needs anybody else's. In a program that is not recorded each call is a load and a test.
 *
 *     #include "ompfuse.h"
 *
 *     ompfuse_region_begin("assembly");      // a region of its own in labels and reports
 *     ...
 *     ompfuse_region_end();
 *
 * ompfuse's library finds the program's variable below through an ELF note, and stores the address of its functions there.
 * C99, C11 and C++ of gcc and clang, x86-64 Linux. May be copied, changed and passed on without conditions.
 */
#ifndef OMPFUSE_H
#define OMPFUSE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Most events that are counted at once. */
#define OMPFUSE_MAX_COUNTS 16

/* What a thread has counted since it began to be recorded. Differences of two readings tell something if `set` is the same. */
struct ompfuse_counts {
    uint64_t ticks;                       /* time stamp counter */
    uint32_t set;                         /* number of the event set */
    uint32_t events;                      /* how many follow; 0: times only */
    const char *names;                    /* of the events, separated by commas; where they take turns on the processor's
                                             counters, `running` after a group is the time that it was counted, in ns, of `enabled` */
    uint64_t values[OMPFUSE_MAX_COUNTS];
};

struct ompfuse_functions {
    uint64_t version; /* 1; later versions add functions at the end */
    void (*region_begin)(const char *name);
    void (*region_end)(void);
    void (*pause)(void);
    void (*resume)(void);
    int (*read)(struct ompfuse_counts *counts);
};

/* One for each program and library that uses this file; null unless ompfuse records it. */
__attribute__((weak, visibility("hidden"), used)) const struct ompfuse_functions *volatile ompfuse_functions_here;

__asm__(".pushsection .note.ompfuse.program,\"a\",@note\n"
        ".balign 4\n"
        ".long 10, 8, 1\n"
        ".asciz \"ompfuse.h\"\n"
        ".balign 4\n"
        ".quad ompfuse_functions_here - .\n"
        ".popsection\n");

/* Whether this program is being recorded. */
static inline int ompfuse_is_recording(void) { return ompfuse_functions_here != 0; }

/*
 * A region of this thread begins; it ends with the same thread's next ompfuse_region_end. Regions nest, and what is executed
 * in one is labelled as such. It may not begin in a work-sharing construct, task or parallel region and end outside of it.
 */
static inline void ompfuse_region_begin(const char *name) {
    const struct ompfuse_functions *functions = ompfuse_functions_here;
    if (functions)
        functions->region_begin(name);
}

static inline void ompfuse_region_end(void) {
    const struct ompfuse_functions *functions = ompfuse_functions_here;
    if (functions)
        functions->region_end();
}

/* No thread records anything that begins from now on, until ompfuse_resume has been called as often. */
static inline void ompfuse_pause(void) {
    const struct ompfuse_functions *functions = ompfuse_functions_here;
    if (functions)
        functions->pause();
}

static inline void ompfuse_resume(void) {
    const struct ompfuse_functions *functions = ompfuse_functions_here;
    if (functions)
        functions->resume();
}

/* Reads the calling thread's counters. 0 if it has none that can be read; then `counts` is left alone. */
static inline int ompfuse_read(struct ompfuse_counts *counts) {
    const struct ompfuse_functions *functions = ompfuse_functions_here;
    return functions ? functions->read(counts) : 0;
}

#ifdef __cplusplus
}
#endif

#endif
