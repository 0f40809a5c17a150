// FFTW with its OpenMP threads.
#include <fftw3.h>
#include <stdio.h>

int main(void) {
    int n = 1 << 14;
    fftw_init_threads();
    fftw_plan_with_nthreads(2);
    fftw_complex *data = fftw_malloc(sizeof *data * n);
    for (int i = 0; i < n; i++) {
        data[i][0] = i % 17;
        data[i][1] = 0;
    }
    fftw_plan plan = fftw_plan_dft_1d(n, data, data, FFTW_FORWARD, FFTW_ESTIMATE);
    for (int i = 0; i < 3; i++)
        fftw_execute(plan);
    printf("%.9e %.9e\n", data[1][0], data[n / 2][1]);
    return 0;
}
