/* Counts calls of MPI through its profiling interface, C's or Fortran's (whose functions may call C's): at the end a line for each function into the file
 * counts.RANK, NAME CALLS. */
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static struct {
    const char *name;
    atomic_long calls;
} counted[32];

static void count(const char *name) {
    for (int at = 0; at < 32; at++) {
        if (!counted[at].name || !strcmp(counted[at].name, name)) {
            counted[at].name = name;
            counted[at].calls++;
            return;
        }
    }
}

static void tell(void) {
    int rank;
    char file[32];
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(file, sizeof file, "counts.%d", rank);
    FILE *out = fopen(file, "w");
    for (int at = 0; out && at < 32 && counted[at].name; at++)
        fprintf(out, "%s %ld\n", counted[at].name, counted[at].calls);
    if (out)
        fclose(out);
}

#define C(name, parameters, ...)                                                                                                           \
    int MPI_##name parameters {                                                                                                            \
        count("MPI_" #name);                                                                                                               \
        return PMPI_##name(__VA_ARGS__);                                                                                                   \
    }

#ifndef WITH_FORTRAN
C(Irecv, (void *a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Request *g), a, b, c, d, e, f, g)
C(Isend, (const void *a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Request *g), a, b, c, d, e, f, g)
C(Waitall, (int a, MPI_Request b[], MPI_Status *c), a, b, c)
C(Allreduce, (const void *a, void *b, int c, MPI_Datatype d, MPI_Op e, MPI_Comm f), a, b, c, d, e, f)
C(Send, (const void *a, int b, MPI_Datatype c, int d, int e, MPI_Comm f), a, b, c, d, e, f)
C(Recv, (void *a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Status *g), a, b, c, d, e, f, g)
C(Sendrecv,
  (const void *a, int b, MPI_Datatype c, int d, int e, void *f, int g, MPI_Datatype h, int i, int j, MPI_Comm k, MPI_Status *l), a, b, c, d,
  e, f, g, h, i, j, k, l)
C(Barrier, (MPI_Comm a), a)

int MPI_Finalize(void) {
    count("MPI_Finalize");
    tell();
    return PMPI_Finalize();
}
#else

typedef void *P;
#define FORTRAN(name, lower, parameters, ...)                                                                                              \
    void pmpi_##lower##_ parameters;                                                                                                       \
    void mpi_##lower##_ parameters {                                                                                                       \
        count("MPI_" name);                                                                                                                \
        pmpi_##lower##_(__VA_ARGS__);                                                                                                      \
    }

FORTRAN("Irecv", irecv, (P a, P b, P c, P d, P e, P f, P g, P h), a, b, c, d, e, f, g, h)
FORTRAN("Isend", isend, (P a, P b, P c, P d, P e, P f, P g, P h), a, b, c, d, e, f, g, h)
FORTRAN("Waitall", waitall, (P a, P b, P c, P d), a, b, c, d)
FORTRAN("Allreduce", allreduce, (P a, P b, P c, P d, P e, P f, P g), a, b, c, d, e, f, g)
FORTRAN("Barrier", barrier, (P a, P b), a, b)

void pmpi_finalize_(P a);
void mpi_finalize_(P a) {
    count("MPI_Finalize");
    tell();
    pmpi_finalize_(a);
}
#endif
