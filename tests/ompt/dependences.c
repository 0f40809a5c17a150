/* An OMPT tool that writes which tasks wait for which, as libomp says: a line for each pair, with the tasks' numbers in the order of
 * creation (by one thread). libomp names only predecessors that have not ended when the task is created. */
#include <omp-tools.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *file;
static unsigned long tasks;

static void on_task(ompt_data_t *around, const ompt_frame_t *frame, ompt_data_t *task, int flags, int depends, const void *from)
{
    (void)around, (void)frame, (void)depends, (void)from;
    if (flags & ompt_task_explicit)
        task->value = ++tasks;
}

static void on_pair(ompt_data_t *before, ompt_data_t *after)
{
    if (before->value && after->value)
        fprintf(file, "%lu %lu\n", (unsigned long)before->value, (unsigned long)after->value);
}

static int initialize(ompt_function_lookup_t lookup, int device, ompt_data_t *tool)
{
    (void)device, (void)tool;
    const char *path = getenv("PAIRS_FILE");
    file = path ? fopen(path, "w") : NULL;
    if (!file)
        return 0;
    ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
    set(ompt_callback_task_create, (ompt_callback_t)on_task);
    set(ompt_callback_task_dependence, (ompt_callback_t)on_pair);
    return 1;
}

static void finalize(ompt_data_t *tool)
{
    (void)tool;
    fclose(file);
}

ompt_start_tool_result_t *ompt_start_tool(unsigned int version, const char *runtime)
{
    (void)version, (void)runtime;
    static ompt_start_tool_result_t result = {initialize, finalize, {0}};
    return &result;
}
