// Loops whose bounds are computed by inlined functions, of the standard library and of the program's own, in functions that
// are inlined themselves. A line with a mark is one that the construct of this name may be at.
#include "mesh.h"
#include <cstdio>

static double heat(std::vector<double> &v) {
  double sum = 0;
#pragma omp parallel for schedule(dynamic, 10) reduction(+ : sum) // MARK heat
  for (size_t i = 0; i < v.size(); i++)                           // MARK heat
    sum += v[i];                                                  // MARK heat
  return sum;
}

static void cool(Mesh &mesh) {
#pragma omp parallel for schedule(dynamic, 10) // MARK cool
  for (long i = 0; i < mesh.count(); i++)      // MARK cool
    mesh.cells[i] *= 0.5;                      // MARK cool
}

static void spread(Mesh &mesh) {
#pragma omp parallel for schedule(static) // MARK spread
  for (long i = 0; i < mesh.count(); i++) // MARK spread
    mesh.cells[i] += 1;                   // MARK spread
}

template <class T> __attribute__((noinline)) void scale(T *p, long n, T f) {
#pragma omp parallel for schedule(static) // MARK scale
  for (long i = 0; i < n; i++)            // MARK scale
    p[i] = p[i] * f;                      // MARK scale
}

int main() {
  Mesh mesh;
  mesh.cells.assign(1000, 1);
  std::vector<long> a(5000, 3);
  std::vector<unsigned long> b(5000, 3);
  cool(mesh); // CALL cool
  spread(mesh);
  scale(a.data(), 5000, 2L);
  scale(b.data(), 5000, 5UL);
  std::printf("%g %ld %lu\n", heat(mesh.cells), a[1], b[1]);
}
