/* waves: a swinging string, an example of a program whose performance a pipeline watches. Usage: waves [STEPS [CELLS]] */
#include "waves.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    const int steps = argc > 1 ? atoi(argv[1]) : 2, cells = argc > 2 ? atoi(argv[2]) : 4096;
    double *strings[2] = { calloc(cells, sizeof(double)), calloc(cells, sizeof(double)) };
    long bins[BINS] = { 0 };
    double energy = 0.0, sum = 0.0;

    if (steps < 1 || cells < BINS || !strings[0] || !strings[1])
        return 1;
    for (int cell = 0; cell < cells; cell++)
        strings[0][cell] = strings[1][cell] = 0.5 * sin(cell * 0.01);
    for (int at = 0; at < steps; at++) {
        double *now = strings[at % 2], *next = strings[(at + 1) % 2];
        energy = step(now, next, cells);
        sweep(next, cells);
        histogram(next, cells, bins);
#pragma omp parallel
#pragma omp single
        sum = total(next, cells, cells / 16);
    }
    printf("energy %.6f, sum %.6f, %ld cells in the last bin\n", energy, sum, bins[BINS - 1]);
    return 0;
}
