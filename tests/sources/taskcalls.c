/* Calls of libomp's task functions that clang doesn't make, but other compilers and older versions do: a taskloop with its
 * group inside the call, the newer taskloop, tasks in parts, affinity, and waiting for dependences. Written as a compiler
 * would write them. */
#include <stdint.h>
#include <stdio.h>

typedef struct ident {
    int32_t reserved, flags, more[2];
    const char *source;
} ident_t;

typedef struct task {
    void *shareds;
    int32_t (*routine)(int32_t, struct task *);
    int32_t part;
    void *destructors, *priority;
    uint64_t lower, upper;
    int64_t step;
    int32_t last;
    void *reductions;
} task_t;

typedef struct dependence {
    intptr_t address;
    size_t length;
    uint8_t flags;
} dependence_t;

int32_t __kmpc_global_thread_num(ident_t *);
task_t *__kmpc_omp_task_alloc(ident_t *, int32_t, int32_t, size_t, size_t, int32_t (*)(int32_t, task_t *));
int32_t __kmpc_omp_task(ident_t *, int32_t, task_t *);
int32_t __kmpc_omp_task_parts(ident_t *, int32_t, task_t *);
int32_t __kmpc_omp_task_with_deps(ident_t *, int32_t, task_t *, int32_t, dependence_t *, int32_t, dependence_t *);
void __kmpc_omp_wait_deps(ident_t *, int32_t, int32_t, dependence_t *, int32_t, dependence_t *);
int32_t __kmpc_omp_reg_task_with_affinity(ident_t *, int32_t, task_t *, int32_t, void *);
int32_t __kmpc_omp_taskwait(ident_t *, int32_t);
void __kmpc_taskloop(ident_t *, int32_t, task_t *, int32_t, uint64_t *, uint64_t *, int64_t, int32_t, int32_t, uint64_t,
                     void *);
void __kmpc_taskloop_5(ident_t *, int32_t, task_t *, int32_t, uint64_t *, uint64_t *, int64_t, int32_t, int32_t, uint64_t,
                       int32_t, void *);

static ident_t here = {0, 2, {0, 0}, ";unknown;unknown;0;0;;"};
static long n_tasks, sum, value;

static int32_t loop_entry(int32_t gtid, task_t *task)
{
    (void)gtid;
    long own = 0;
    for (int64_t i = (int64_t)task->lower; task->step > 0 ? i <= (int64_t)task->upper : i >= (int64_t)task->upper;
         i += task->step)
        own += i;
    #pragma omp atomic
    sum += own + **(long **)task->shareds;
    #pragma omp atomic
    n_tasks++;
    return 0;
}

static int32_t task_entry(int32_t gtid, task_t *task)
{
    (void)gtid;
    #pragma omp atomic
    value += **(long **)task->shareds;
    #pragma omp atomic
    n_tasks++;
    return 0;
}

static long one = 1;

static task_t *make(int32_t gtid, int32_t (*entry)(int32_t, task_t *))
{
    task_t *task = __kmpc_omp_task_alloc(&here, gtid, 1, sizeof(task_t), sizeof(long *), entry);
    *(long **)task->shareds = &one;
    return task;
}

static task_t *make_loop(int32_t gtid, int64_t lower, int64_t upper, int64_t step)
{
    task_t *task = make(gtid, loop_entry);
    task->lower = (uint64_t)lower;
    task->upper = (uint64_t)upper;
    task->step = step;
    task->reductions = 0;
    return task;
}

int main(void)
{
    int right = 1;
    #pragma omp parallel
    #pragma omp single
    {
        int32_t gtid = __kmpc_global_thread_num(&here);
        /* 100 iterations upwards in 5 tasks, and the group inside: all are done when the call returns. */
        task_t *task = make_loop(gtid, 0, 99, 1);
        __kmpc_taskloop(&here, gtid, task, 1, &task->lower, &task->upper, 1, 0, 2, 5, 0);
        right = right && sum == 4950 + 5 && n_tasks == 5;
        /* 20 iterations in tasks of 4. */
        task = make_loop(gtid, 3, 60, 3);
        __kmpc_taskloop_5(&here, gtid, task, 1, &task->lower, &task->upper, 3, 0, 1, 4, 0, 0);
        right = right && sum == 4955 + 630 + 5 && n_tasks == 10;
        /* At once, by this thread. */
        task = make_loop(gtid, 1, 9, 1);
        __kmpc_taskloop(&here, gtid, task, 0, &task->lower, &task->upper, 1, 0, 2, 3, 0);
        right = right && sum == 5590 + 45 + 3 && n_tasks == 13;

        task = make(gtid, task_entry);
        __kmpc_omp_reg_task_with_affinity(&here, gtid, task, 0, 0);
        __kmpc_omp_task_parts(&here, gtid, task);
        dependence_t on = {(intptr_t)&value, sizeof value, 3};
        task = make(gtid, task_entry);
        __kmpc_omp_task_with_deps(&here, gtid, task, 1, &on, 0, 0);
        __kmpc_omp_wait_deps(&here, gtid, 1, &on, 0, 0);
        __kmpc_omp_taskwait(&here, gtid);
        right = right && value == 2;
    }
    printf("tasks %ld\n%s\n", n_tasks, right ? "right" : "wrong");
    return !right;
}
