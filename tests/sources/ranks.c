/* An MPI program with an OpenMP loop: rank r executes ROUNDS times 1000 * (1 + 3 * r) iterations, rank 0 says how many all ranks
 * executed. With an argument: this rank kills itself. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 8, WORK = 400 };

static double work(int i) {
    double sum = i;
    for (int k = 1; k < WORK; k++)
        sum += sum / k;
    return sum;
}

int main(int argc, char **argv) {
    int level, rank, ranks;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    long executed = 0, all = 0;
    double sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
#pragma omp parallel for reduction(+ : executed, sum)
        for (int i = 0; i < 1000 * (1 + 3 * rank); i++) {
            sum += work(i);
            executed++;
        }
        if (argc > 1 && atoi(argv[1]) == rank && round == 1)
            raise(SIGKILL);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Reduce(&executed, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks, %ld iterations\n", ranks, all);
    if (sum < 0)
        puts("never");
    MPI_Finalize();
    return 0;
}
