/* An OMPT tool that stores a time stamp per event: what libomp tells of regions, work-sharing, waits, mutexes and tasks. */
#define _GNU_SOURCE
#include "stamps.h"
#include <omp-tools.h>

static void on_parallel_begin(ompt_data_t *a, const ompt_frame_t *b, ompt_data_t *c, unsigned d, int e, const void *f)
{
    (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
    stamp(1);
}
static void on_parallel_end(ompt_data_t *a, ompt_data_t *b, int c, const void *d)
{
    (void)a, (void)b, (void)c, (void)d;
    stamp(2);
}
static void on_implicit_task(ompt_scope_endpoint_t a, ompt_data_t *b, ompt_data_t *c, unsigned d, unsigned e, int f)
{
    (void)b, (void)c, (void)d, (void)e, (void)f;
    stamp(2 + a);
}
static void on_work(ompt_work_t a, ompt_scope_endpoint_t b, ompt_data_t *c, ompt_data_t *d, uint64_t e, const void *f)
{
    (void)c, (void)d, (void)e, (void)f;
    stamp((uint64_t)a << 8 | b);
}
static void on_dispatch(ompt_data_t *a, ompt_data_t *b, ompt_dispatch_t c, ompt_data_t d)
{
    (void)a, (void)b, (void)d;
    stamp((uint64_t)c << 16);
}
static void on_sync(ompt_sync_region_t a, ompt_scope_endpoint_t b, ompt_data_t *c, ompt_data_t *d, const void *e)
{
    (void)c, (void)d, (void)e;
    stamp((uint64_t)a << 24 | b);
}
static void on_acquire(ompt_mutex_t a, unsigned b, unsigned c, ompt_wait_id_t d, const void *e)
{
    (void)a, (void)b, (void)c, (void)e;
    stamp(d);
}
static void on_mutex(ompt_mutex_t a, ompt_wait_id_t b, const void *c)
{
    (void)a, (void)c;
    stamp(b);
}
static void on_create(ompt_data_t *a, const ompt_frame_t *b, ompt_data_t *c, int d, int e, const void *f)
{
    (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
    stamp(3);
}
static void on_schedule(ompt_data_t *a, ompt_task_status_t b, ompt_data_t *c)
{
    (void)a, (void)c;
    stamp(4 + (uint64_t)b);
}
static void on_masked(ompt_scope_endpoint_t a, ompt_data_t *b, ompt_data_t *c, const void *d)
{
    (void)b, (void)c, (void)d;
    stamp(a);
}

static int start(ompt_function_lookup_t lookup, int device, ompt_data_t *data)
{
    (void)device, (void)data;
    ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
#define ON(event, function) set(ompt_callback_##event, (ompt_callback_t)(function))
    ON(parallel_begin, on_parallel_begin);
    ON(parallel_end, on_parallel_end);
    ON(implicit_task, on_implicit_task);
    ON(work, on_work);
    ON(dispatch, on_dispatch);
    ON(sync_region, on_sync);
    ON(sync_region_wait, on_sync);
    ON(mutex_acquire, on_acquire);
    ON(mutex_acquired, on_mutex);
    ON(mutex_released, on_mutex);
    ON(task_create, on_create);
    ON(task_schedule, on_schedule);
    ON(masked, on_masked);
    return 1;
}

static void end(ompt_data_t *data)
{
    (void)data;
    flush();
}

ompt_start_tool_result_t *ompt_start_tool(unsigned version, const char *runtime)
{
    (void)version, (void)runtime;
    static ompt_start_tool_result_t result = {start, end, {0}};
    return &result;
}
