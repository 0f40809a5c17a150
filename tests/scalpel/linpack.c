/* LINPACK's work in small: LU factorisations of diagonally dominant matrices of several orders, in panels of 16 columns. Each step updates
 * the rest of the matrix panel by panel with `dgemm_` of the BLAS library that is loaded, so that a factorisation calls it with many shapes.
 * Prints one line that is equal with every library, but for rounding. Usage: linpack ROUNDS */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PANEL = 16, LARGEST = 160 };

void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *, const int *,
            const double *, const int *, const double *, double *, const int *);

static double a[LARGEST * LARGEST];

static double entry(int i, int j, int n) {
    return i == j ? 2.0 * n : (i * 31 + j * 17) % 13 / 13.0 - 0.5;
}

/* The columns from k on, in a panel: below and above the diagonal. */
static void factor_panel(double *a, int n, int k) {
    for (int j = k; j < k + PANEL; j++)
        for (int i = j + 1; i < n; i++) {
            a[i + j * n] /= a[j + j * n];
            for (int c = j + 1; c < k + PANEL; c++) a[i + c * n] -= a[i + j * n] * a[j + c * n];
        }
}

/* The rows of a panel right of it. */
static void solve_rows(double *a, int n, int k, int from) {
    for (int c = from; c < from + PANEL; c++)
        for (int j = k; j < k + PANEL; j++)
            for (int i = j + 1; i < k + PANEL; i++) a[i + c * n] -= a[i + j * n] * a[j + c * n];
}

static void factor(double *a, int n) {
    const double minus = -1.0, one = 1.0;
    const int panel = PANEL;
    for (int k = 0; k < n; k += PANEL) {
        factor_panel(a, n, k);
        for (int c = k + PANEL; c < n; c += PANEL) {
            const int rows = n - k - PANEL;
            solve_rows(a, n, k, c);
            dgemm_("N", "N", &rows, &panel, &panel, &minus, a + k + PANEL + k * n, &n, a + k + c * n, &n, &one,
                   a + k + PANEL + c * n, &n);
        }
    }
}

/* Largest difference of L times U from the matrix. */
static double residual(int n) {
    double worst = 0;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            double sum = 0;
            for (int k = 0; k <= (i < j ? i : j); k++) sum += (k == i ? 1.0 : a[i + k * n]) * a[k + j * n];
            worst = fmax(worst, fabs(sum - entry(i, j, n)));
        }
    return worst;
}

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 1;
    double worst = 0, trace = 0;
    for (int round = 0; round < rounds; round++)
        for (int n = 2 * PANEL; n <= LARGEST; n += PANEL) {
            for (int j = 0; j < n; j++)
                for (int i = 0; i < n; i++) a[i + j * n] = entry(i, j, n);
            factor(a, n);
            for (int i = 0; i < n; i++) trace += a[i + i * n];
            if (round == 0) worst = fmax(worst, residual(n));
        }
    printf("%.6f %s\n", trace, worst < 1e-9 ? "right" : "wrong");
    return 0;
}
