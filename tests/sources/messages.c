/* Calls of MPI outside and inside of a parallel region, blocking and not, with and without a status. Links the library that counts them
 * (mpicount.c). */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

enum { ROUNDS = 7, INSIDE = 5, MOST = 8 };

static double of_all[100 * MOST], own[100 * MOST];

/* What arguments of collective operations tell: arrays of counts, a derived datatype, buffers in place, datatypes that MPI ignores. */
static void collectives(int rank, int ranks) {
    int parts[MOST], at[MOST];
    for (int r = 0; r < ranks; r++) {
        parts[r] = 3 + r;
        at[r] = 20 * r;
    }
    MPI_Datatype pairs;
    MPI_Type_contiguous(2, MPI_DOUBLE, &pairs);
    MPI_Type_commit(&pairs);
    MPI_Bcast(own, 11, pairs, 1, MPI_COMM_WORLD);
    MPI_Type_free(&pairs);
    MPI_Reduce(own, of_all, 5, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, of_all, 7, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        MPI_Scatter(own, 9, MPI_DOUBLE, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
    } else {
        MPI_Gather(own, 7, MPI_DOUBLE, NULL, 0, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
        MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, of_all, 9, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
    MPI_Allgatherv(own, parts[rank], MPI_INT, of_all, parts, at, MPI_INT, MPI_COMM_WORLD);
    int to[MOST], from[MOST];
    for (int r = 0; r < ranks; r++) {
        to[r] = parts[rank];
        from[r] = parts[r];
    }
    MPI_Alltoallv(own, to, at, MPI_INT, of_all, from, at, MPI_INT, MPI_COMM_WORLD);
    MPI_Reduce_scatter(own, of_all, parts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Win window;
    void *memory;
    MPI_Win_allocate(100, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_fence(0, window);
    MPI_Put(of_all, 6, MPI_INT, (rank + 1) % ranks, 0, 6, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Get(of_all, 13, MPI_CHAR, (rank + 1) % ranks, 0, 13, MPI_CHAR, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

int main(int argc, char **argv) {
    int level, rank, ranks;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int other = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
    double sum = 0, all = 0;
    for (int round = 0; round < ROUNDS; round++) {
#pragma omp parallel for reduction(+ : sum)
        for (int i = 0; i < 100000; i++)
            sum += 1.0 / (i + 1 + rank);
        double in[4];
        MPI_Request requests[2];
        MPI_Irecv(in, 4, MPI_DOUBLE, from, round, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&sum, 1, MPI_DOUBLE, other, round, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Allreduce(in, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        /* The first sender is late. One receive is of any source and has a status. */
        MPI_Status status;
        if (rank == 0) {
            usleep(round == 0 ? 50000 : 0);
            MPI_Send(&all, 1, MPI_DOUBLE, 1, 1000, MPI_COMM_WORLD);
        } else if (rank == 1 && round % 2) {
            MPI_Recv(in, 4, MPI_DOUBLE, MPI_ANY_SOURCE, 1000, MPI_COMM_WORLD, &status);
        } else if (rank == 1) {
            MPI_Recv(in, 4, MPI_DOUBLE, 0, 1000, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    MPI_Send(&all, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    collectives(rank, ranks);
    if (level == MPI_THREAD_MULTIPLE) {
#pragma omp parallel
        for (int i = 0; i < INSIDE; i++) {
            int tag = 2000 + omp_get_thread_num(), mine = i, others;
            MPI_Sendrecv(&mine, 1, MPI_INT, other, tag, &others, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks, %.6f, threads: %s\n", ranks, all, level == MPI_THREAD_MULTIPLE ? "multiple" : "fewer");
    MPI_Finalize();
    return 0;
}
