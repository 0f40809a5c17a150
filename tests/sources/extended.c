// Loops for instructions that not every decoder knows (clang's -mapxf).
#include <stdio.h>

void axpy(unsigned long n, float a, const float *restrict x, float *restrict y) {
#pragma omp parallel for schedule(static, 64)
  for (unsigned long i = 0; i < n; i++)
    y[i] += a * x[i] * (x[i] > 0 ? x[i] : 1);
}

long count(unsigned long n, const int *x, int t) {
  long c = 0;
#pragma omp parallel for reduction(+ : c) schedule(static)
  for (unsigned long i = 0; i < n; i++)
    if (x[i] > t && (x[i] & 7) < 5)
      c += x[i] * 3;
  return c;
}

int main(void) {
  static float x[5000], y[5000];
  static int z[5000];
  for (int i = 0; i < 5000; i++) {
    x[i] = i % 3 - 1;
    z[i] = i;
  }
  axpy(5000, 2, x, y);
  printf("%g %ld\n", y[7], count(5000, z, 100));
}
