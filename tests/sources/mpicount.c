/* Counts calls of MPI, and the bytes that they hand over, through its profiling interface, C's or Fortran's (whose functions may call
 * C's): at the end a line for each function into the file counts.RANK, NAME CALLS OUT IN ATMOST. What came is asked of the status; without one
 * it is at most what there was room for. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#ifndef COUNTS
#define COUNTS "counts"
#endif

static struct {
    const char *name;
    long calls, out, in, most;
} counted[128];
static char lock;

static void count(const char *name, long out, long in, long most) {
    while (__atomic_test_and_set(&lock, __ATOMIC_ACQUIRE))
        ;
    for (int at = 0; at < 128; at++) {
        if (!counted[at].name || !strcmp(counted[at].name, name)) {
            counted[at].name = name;
            counted[at].calls++;
            counted[at].out += out;
            counted[at].in += in;
            counted[at].most += most;
            break;
        }
    }
    __atomic_clear(&lock, __ATOMIC_RELEASE);
}

static void tell(void) {
    int rank;
    char file[32];
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(file, sizeof file, COUNTS ".%d", rank);
    FILE *out = fopen(file, "w");
    for (int at = 0; out && at < 128 && counted[at].name; at++)
        fprintf(out, "%s %ld %ld %ld %ld\n", counted[at].name, counted[at].calls, counted[at].out, counted[at].in, counted[at].most);
    if (out)
        fclose(out);
}

static long size(MPI_Datatype type) {
    int size;
    PMPI_Type_size(type, &size);
    return size;
}

static int rank_in(MPI_Comm comm) {
    int rank;
    PMPI_Comm_rank(comm, &rank);
    return rank;
}

static int ranks_of(MPI_Comm comm) {
    int ranks;
    PMPI_Comm_size(comm, &ranks);
    return ranks;
}

static long came(const MPI_Status *status) {
    int bytes;
    PMPI_Get_count(status, MPI_BYTE, &bytes);
    return bytes;
}

#ifndef WITH_FORTRAN
/* Behind the arguments: bytes that leave, that come, and that may have come. */
#define FUNCTION(name, parameters, arguments, ...)                                                                                         \
    int MPI_##name parameters {                                                                                                            \
        int result = PMPI_##name arguments;                                                                                                \
        count("MPI_" #name, __VA_ARGS__);                                                                                                  \
        return result;                                                                                                                     \
    }

#define STATUS(status, room)                                                                                                               \
    (status) == MPI_STATUS_IGNORE ? 0 : came(status), (status) == MPI_STATUS_IGNORE ? (room) : 0

FUNCTION(Send, (const void *a, int n, MPI_Datatype t, int d, int e, MPI_Comm f), (a, n, t, d, e, f), d == MPI_PROC_NULL ? 0 : n *size(t), 0,
         0)
FUNCTION(Isend, (const void *a, int n, MPI_Datatype t, int d, int e, MPI_Comm f, MPI_Request *g), (a, n, t, d, e, f, g), n *size(t), 0, 0)
FUNCTION(Irecv, (void *a, int n, MPI_Datatype t, int d, int e, MPI_Comm f, MPI_Request *g), (a, n, t, d, e, f, g), 0, 0, n *size(t))
FUNCTION(Recv, (void *a, int n, MPI_Datatype t, int d, int e, MPI_Comm f, MPI_Status *s), (a, n, t, d, e, f, s), 0, STATUS(s, n *size(t)))
FUNCTION(Sendrecv,
         (const void *a, int n, MPI_Datatype t, int d, int e, void *f, int m, MPI_Datatype u, int i, int j, MPI_Comm k, MPI_Status *s),
         (a, n, t, d, e, f, m, u, i, j, k, s), n *size(t), STATUS(s, m *size(u)))
FUNCTION(Waitall, (int a, MPI_Request b[], MPI_Status *c), (a, b, c), 0, 0, 0)
FUNCTION(Barrier, (MPI_Comm a), (a), 0, 0, 0)
FUNCTION(Allreduce, (const void *a, void *b, int n, MPI_Datatype t, MPI_Op e, MPI_Comm f), (a, b, n, t, e, f), n *size(t), n *size(t), 0)
FUNCTION(Bcast, (void *a, int n, MPI_Datatype t, int root, MPI_Comm c), (a, n, t, root, c), rank_in(c) == root ? n *size(t) : 0,
         rank_in(c) == root ? 0 : n *size(t), 0)
FUNCTION(Reduce, (const void *a, void *b, int n, MPI_Datatype t, MPI_Op o, int root, MPI_Comm c), (a, b, n, t, o, root, c), n *size(t),
         rank_in(c) == root ? n *size(t) : 0, 0)
FUNCTION(Gather, (const void *a, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, int root, MPI_Comm c), (a, n, t, b, m, u, root, c),
         a == MPI_IN_PLACE ? m *size(u) : n *size(t), rank_in(c) == root ? m *size(u) * ranks_of(c) : 0, 0)
FUNCTION(Scatter, (const void *a, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, int root, MPI_Comm c), (a, n, t, b, m, u, root, c),
         rank_in(c) == root ? n *size(t) * ranks_of(c) : 0, b == MPI_IN_PLACE ? n *size(t) : m *size(u), 0)

static long sum(const int counts[], MPI_Comm comm) {
    long sum = 0;
    for (int rank = 0; rank < ranks_of(comm); rank++)
        sum += counts[rank];
    return sum;
}

FUNCTION(Allgatherv, (const void *a, int n, MPI_Datatype t, void *b, const int m[], const int d[], MPI_Datatype u, MPI_Comm c),
         (a, n, t, b, m, d, u, c), n *size(t), sum(m, c) * size(u), 0)
FUNCTION(Alltoallv,
         (const void *a, const int n[], const int e[], MPI_Datatype t, void *b, const int m[], const int d[], MPI_Datatype u, MPI_Comm c),
         (a, n, e, t, b, m, d, u, c), sum(n, c) * size(t), sum(m, c) * size(u), 0)
FUNCTION(Reduce_scatter, (const void *a, void *b, const int n[], MPI_Datatype t, MPI_Op o, MPI_Comm c), (a, b, n, t, o, c),
         sum(n, c) * size(t), n[rank_in(c)] * size(t), 0)
FUNCTION(Win_allocate, (MPI_Aint a, int b, MPI_Info c, MPI_Comm d, void *e, MPI_Win *f), (a, b, c, d, e, f), 0, 0, 0)
FUNCTION(Win_fence, (int a, MPI_Win b), (a, b), 0, 0, 0)
FUNCTION(Win_free, (MPI_Win *a), (a), 0, 0, 0)
FUNCTION(Put, (const void *a, int n, MPI_Datatype t, int d, MPI_Aint e, int f, MPI_Datatype g, MPI_Win h), (a, n, t, d, e, f, g, h),
         n *size(t), 0, 0)
FUNCTION(Get, (void *a, int n, MPI_Datatype t, int d, MPI_Aint e, int f, MPI_Datatype g, MPI_Win h), (a, n, t, d, e, f, g, h), 0,
         n *size(t), 0)

int MPI_Finalize(void) {
    count("MPI_Finalize", 0, 0, 0);
    tell();
    return PMPI_Finalize();
}
#else

typedef void *P;
#define INT(p) (*(MPI_Fint *)(p))
#define BYTES(n, t) (INT(n) * size(MPI_Type_f2c(INT(t))))
#define IS_ROOT(root, c) (rank_in(MPI_Comm_f2c(INT(c))) == INT(root))
#define FUNCTION(name, lower, parameters, arguments, out, in, most)                                                                        \
    void pmpi_##lower##_ parameters;                                                                                                       \
    void mpi_##lower##_ parameters {                                                                                                       \
        pmpi_##lower##_ arguments;                                                                                                         \
        count("MPI_" name, out, in, most);                                                                                                 \
    }

static long told(P status) {
    MPI_Status own;
    if (status == MPI_F_STATUS_IGNORE)
        return -1;
    MPI_Status_f2c(status, &own);
    return came(&own);
}

FUNCTION("Irecv", irecv, (P a, P n, P t, P d, P e, P f, P g, P h), (a, n, t, d, e, f, g, h), 0, 0, BYTES(n, t))
FUNCTION("Isend", isend, (P a, P n, P t, P d, P e, P f, P g, P h), (a, n, t, d, e, f, g, h), BYTES(n, t), 0, 0)
FUNCTION("Send", send, (P a, P n, P t, P d, P e, P f, P g), (a, n, t, d, e, f, g), BYTES(n, t), 0, 0)
FUNCTION("Recv", recv, (P a, P n, P t, P d, P e, P f, P s, P h), (a, n, t, d, e, f, s, h), 0, told(s) < 0 ? 0 : told(s),
         told(s) < 0 ? BYTES(n, t) : 0)
FUNCTION("Sendrecv", sendrecv, (P a, P n, P t, P d, P e, P f, P m, P u, P i, P j, P k, P s, P h), (a, n, t, d, e, f, m, u, i, j, k, s, h),
         BYTES(n, t), told(s) < 0 ? 0 : told(s), told(s) < 0 ? BYTES(m, u) : 0)
FUNCTION("Waitall", waitall, (P a, P b, P c, P d), (a, b, c, d), 0, 0, 0)
FUNCTION("Allreduce", allreduce, (P a, P b, P n, P t, P e, P f, P g), (a, b, n, t, e, f, g), BYTES(n, t), BYTES(n, t), 0)
FUNCTION("Bcast", bcast, (P a, P n, P t, P r, P c, P e), (a, n, t, r, c, e), IS_ROOT(r, c) ? BYTES(n, t) : 0,
         IS_ROOT(r, c) ? 0 : BYTES(n, t), 0)
/* The root gathers in place. */
FUNCTION("Gather", gather, (P a, P n, P t, P b, P m, P u, P r, P c, P e), (a, n, t, b, m, u, r, c, e),
         IS_ROOT(r, c) ? BYTES(m, u) : BYTES(n, t), IS_ROOT(r, c) ? BYTES(m, u) * ranks_of(MPI_Comm_f2c(INT(c))) : 0, 0)
FUNCTION("Alltoall", alltoall, (P a, P n, P t, P b, P m, P u, P c, P e), (a, n, t, b, m, u, c, e),
         BYTES(n, t) * ranks_of(MPI_Comm_f2c(INT(c))), BYTES(m, u) * ranks_of(MPI_Comm_f2c(INT(c))), 0)
FUNCTION("Barrier", barrier, (P a, P b), (a, b), 0, 0, 0)

/* Of a program that has libraries in C. */
void tell_of_c(void) __attribute__((weak));

void pmpi_finalize_(P a);
void mpi_finalize_(P a) {
    if (tell_of_c)
        tell_of_c();
    count("MPI_Finalize", 0, 0, 0);
    tell();
    pmpi_finalize_(a);
}
#endif
