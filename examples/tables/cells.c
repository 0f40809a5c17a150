/* Integrates a function over cells, each in as many steps as it needs: the program of docs/guide/notebook.md.
 *
 * One cell is steep, and needs far more steps than the others. */
#include <stdio.h>

#define CELLS 64

/* The steps that a cell needs. */
static long steps(int cell)
{
    return cell == 41 ? 1000000 : 1000 + 50 * (cell % 7);
}

static double integrate(double from, double to, long steps)
{
    double sum = 0.0, width = (to - from) / steps;
    for (long step = 0; step < steps; step++) {
        double x = from + (step + 0.5) * width;
        sum += width / (1.0 + x * x);
    }
    return sum;
}

int main(void)
{
    double sum = 0.0;
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : sum)
    for (int cell = 0; cell < CELLS; cell++)
        sum += integrate((double)cell / CELLS, (cell + 1.0) / CELLS, steps(cell));
    printf("%.6f\n", 4.0 * sum);
    return 0;
}
