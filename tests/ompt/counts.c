/* An OMPT tool that counts what libomp says it executes, for comparison with what ompfuse recorded: one line
 * "name count" per kind, written at the end to the file that COUNTS_FILE names. */
#include <omp-tools.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_long parallel, task, executed, single, masked, critical, ordered, taskwait, taskgroup, taskloop, taskloop_task, loop,
    sections, barrier, lock, teams;

static ompt_get_task_info_t task_info;

/* Work-sharing that every thread of a team does is counted once, where thread 0 does it. */
static int is_first(void)
{
    int number = -1;
    task_info(0, NULL, NULL, NULL, NULL, &number);
    return number == 0;
}

static void on_parallel(ompt_data_t *encountering, const ompt_frame_t *frame, ompt_data_t *region, unsigned int team,
                        int flags, const void *from)
{
    (void)encountering, (void)frame, (void)region, (void)team, (void)from;
    if (flags & ompt_parallel_team)
        parallel++;
    if (flags & ompt_parallel_league)
        teams++;
}

static void on_task(ompt_data_t *encountering, const ompt_frame_t *frame, ompt_data_t *new_task, int flags, int has_deps,
                    const void *from)
{
    (void)encountering, (void)frame, (void)new_task, (void)has_deps, (void)from;
    if (flags & ompt_task_explicit)
        task++;
}

static void on_schedule(ompt_data_t *prior, ompt_task_status_t status, ompt_data_t *next)
{
    (void)prior, (void)next;
    if (status == ompt_task_complete || status == ompt_task_cancel)
        executed++;
}

static void on_work(ompt_work_t kind, ompt_scope_endpoint_t endpoint, ompt_data_t *region, ompt_data_t *in_task,
                    uint64_t count, const void *from)
{
    (void)region, (void)in_task, (void)count, (void)from;
    if (endpoint != ompt_scope_begin)
        return;
    if (kind == ompt_work_taskloop)
        taskloop++;
    if (kind == ompt_work_single_executor)
        single++;
    else if (kind == ompt_work_sections)
        sections += is_first();
    else if (kind != ompt_work_single_other && kind != ompt_work_taskloop && kind != ompt_work_distribute)
        loop += is_first();
}

static void on_masked(ompt_scope_endpoint_t endpoint, ompt_data_t *region, ompt_data_t *in_task, const void *from)
{
    (void)region, (void)in_task, (void)from;
    if (endpoint == ompt_scope_begin)
        masked++;
}

/* libomp's tasks that only divide a taskloop among them are created as well, but dispatch no iterations. */
static void on_dispatch(ompt_data_t *region, ompt_data_t *in_task, ompt_dispatch_t kind, ompt_data_t instance)
{
    (void)region, (void)in_task, (void)instance;
    if (kind == ompt_dispatch_taskloop_chunk)
        taskloop_task++;
}

static void on_mutex(ompt_mutex_t kind, ompt_wait_id_t id, const void *from)
{
    (void)id, (void)from;
    if (kind == ompt_mutex_critical)
        critical++;
    if (kind == ompt_mutex_ordered)
        ordered++;
    if (kind == ompt_mutex_lock || kind == ompt_mutex_test_lock || kind == ompt_mutex_nest_lock || kind == ompt_mutex_test_nest_lock)
        lock++;
}

/* Nest locks that the thread holds already. */
static void on_nest_lock(ompt_scope_endpoint_t endpoint, ompt_wait_id_t id, const void *from)
{
    (void)id, (void)from;
    if (endpoint == ompt_scope_begin)
        lock++;
}

static void on_sync(ompt_sync_region_t kind, ompt_scope_endpoint_t endpoint, ompt_data_t *region, ompt_data_t *in_task,
                    const void *from)
{
    (void)region, (void)in_task, (void)from;
    if (endpoint != ompt_scope_begin)
        return;
    if (kind == ompt_sync_region_taskwait)
        taskwait++;
    if (kind == ompt_sync_region_taskgroup)
        taskgroup++;
    if (kind == ompt_sync_region_barrier_explicit)
        barrier++;
}

static int initialize(ompt_function_lookup_t lookup, int device, ompt_data_t *tool)
{
    (void)device, (void)tool;
    ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
    set(ompt_callback_parallel_begin, (ompt_callback_t)on_parallel);
    task_info = (ompt_get_task_info_t)lookup("ompt_get_task_info");
    set(ompt_callback_task_schedule, (ompt_callback_t)on_schedule);
    set(ompt_callback_task_create, (ompt_callback_t)on_task);
    set(ompt_callback_work, (ompt_callback_t)on_work);
    set(ompt_callback_dispatch, (ompt_callback_t)on_dispatch);
    set(ompt_callback_masked, (ompt_callback_t)on_masked);
    set(ompt_callback_mutex_acquired, (ompt_callback_t)on_mutex);
    set(ompt_callback_nest_lock, (ompt_callback_t)on_nest_lock);
    set(ompt_callback_sync_region, (ompt_callback_t)on_sync);
    return 1;
}

static void finalize(ompt_data_t *tool)
{
    (void)tool;
    const char *path = getenv("COUNTS_FILE");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file)
        return;
    fprintf(file, "parallel %ld\ntask %ld\nexecuted %ld\nsingle %ld\nmaster %ld\ncritical %ld\nordered %ld\n", parallel, task,
            executed, single, masked, critical, ordered);
    fprintf(file, "taskwait %ld\ntaskgroup %ld\nloop %ld\nsections %ld\nbarrier %ld\n", taskwait, taskgroup, loop,
            sections, barrier);
    fprintf(file, "taskloop %ld\ntaskloop-task %ld\nlock %ld\nteams %ld\n", taskloop, taskloop_task, lock, teams);
    fclose(file);
}

ompt_start_tool_result_t *ompt_start_tool(unsigned int version, const char *runtime)
{
    (void)version, (void)runtime;
    static ompt_start_tool_result_t result = {initialize, finalize, {0}};
    return &result;
}
