/* The kernels of waves. */
#include "waves.h"
#include <math.h>

/* Terms of the force on a cell. */
#define TERMS 100

/* The force on a cell: a polynomial, always of the same length. */
static double force(double height)
{
    double sum = 0.0;
    for (int term = 0; term < TERMS; term++)
        sum = sum * height + 1.0 / (term + 1);
    return sum;
}

double step(const double *now, double *before, int cells)
{
    double energy = 0.0;
#pragma omp parallel for schedule(static) reduction(+ : energy)
    for (int cell = 1; cell < cells - 1; cell++) {
        double bend = now[cell - 1] - 2.0 * now[cell] + now[cell + 1];
        before[cell] = 2.0 * now[cell] - before[cell] + 0.1 * bend - 1e-6 * force(0.5 * now[cell]);
        energy += bend * bend;
    }
    return energy;
}

/* Smooths a cell as often as it is told. */
static double smooth(double height, int times)
{
    for (int time = 0; time < times; time++)
        height = 0.5 * height + 0.25 - 0.25 * height * height;
    return height;
}

/* The left end: the first thread has most to do. */
static __attribute__((noinline)) void smooth_left(double *string, int cells)
{
#pragma omp for schedule(static) nowait
    for (int cell = 0; cell < cells; cell++)
        string[cell] = smooth(string[cell], 12 * (cells - cell) / cells);
}

/* The right end: the last thread has most to do. */
static __attribute__((noinline)) void smooth_right(double *string, int cells)
{
#pragma omp for schedule(static) nowait
    for (int cell = 0; cell < cells; cell++)
        string[cell] = smooth(string[cell], 6 * cell / cells);
}

void sweep(double *string, int cells)
{
#pragma omp parallel
    for (int round = 0; round < 16; round++) {
        smooth_left(string, cells / 3);
        /* Each thread has its own cells, so that nobody needs to wait. */
        smooth_right(string + cells / 3, cells - cells / 3);
    }
}

void histogram(const double *string, int cells, long *bins)
{
#pragma omp parallel
    {
        long own[BINS] = { 0 };
#pragma omp for schedule(dynamic, 128) nowait
        for (int cell = 0; cell < cells; cell++)
            own[(int)(fabs(smooth(string[cell], 50)) * BINS) % BINS]++;
#pragma omp critical(bins)
        for (int bin = 0; bin < BINS; bin++)
            bins[bin] += own[bin];
    }
}

double total(const double *string, int cells, int piece)
{
    double left, right;
    if (cells <= piece) {
        left = 0.0;
        for (int cell = 0; cell < cells; cell++)
            left += smooth(string[cell], 50);
        return left;
    }
#pragma omp task shared(left)
    left = total(string, cells / 2, piece);
    right = total(string + cells / 2, cells - cells / 2, piece);
#pragma omp taskwait
    return left + right;
}
