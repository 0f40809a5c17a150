/* Calls of MPI without OpenMP: by the program, by a library that it is linked with (PART 1), and by one that it opens (PART 2). Links the
 * library that counts them (mpicount.c). */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

#define ROUNDS 5

#if PART == 1
double exchange(double mine, int other, int from) {
    double theirs;
    MPI_Sendrecv(&mine, 1, MPI_DOUBLE, other, 1, &theirs, 1, MPI_DOUBLE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return theirs;
}
#elif PART == 2
double total(double mine) {
    double all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    return all;
}
#else
double exchange(double mine, int other, int from);

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    void *plugin = dlopen(argv[1], RTLD_NOW);
    double (*total)(double) = plugin ? (double (*)(double))dlsym(plugin, "total") : NULL;
    if (!total) {
        fprintf(stderr, "%s\n", dlerror());
        MPI_Abort(MPI_COMM_WORLD, 1);
        return 1;
    }
    double value = rank + 1;
    for (int round = 0; round < ROUNDS; round++) {
        value += exchange(value, (rank + 1) % ranks, (rank + ranks - 1) % ranks);
        value += total(value);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("%d ranks, %.1f\n", ranks, value);
    MPI_Finalize();
    return 0;
}
#endif
