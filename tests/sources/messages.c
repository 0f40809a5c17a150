/* Calls of MPI outside and inside of a parallel region, blocking and not. Links the library that counts them (mpicount.c). */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>

enum { ROUNDS = 7, INSIDE = 5 };

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
        double in;
        MPI_Request requests[2];
        MPI_Irecv(&in, 1, MPI_DOUBLE, from, round, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&sum, 1, MPI_DOUBLE, other, round, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Allreduce(&in, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (rank % 2 == 0)
            MPI_Send(&all, 1, MPI_DOUBLE, other, 1000, MPI_COMM_WORLD);
        else
            MPI_Recv(&all, 1, MPI_DOUBLE, from, 1000, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
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
