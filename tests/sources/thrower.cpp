// A task is not created after all: copying a variable for it throws. What the program computes then is its own time.
#include <cstdio>

static volatile long sink;

static void compute(long n) {
  for (long i = 0; i < n; i++) sink = sink + i;
}

struct Odd {
  int number;
  explicit Odd(int n) : number(n) {}
  Odd(const Odd &other) : number(other.number) {
    if (number % 2) throw number;
  }
};

int main() {
  int caught = 0;
#pragma omp parallel num_threads(1)
  for (int i = 0; i < 200; i++) {
    Odd odd(i);
    try {
#pragma omp task firstprivate(odd)
      sink = odd.number;
    } catch (int) {
      caught++;
      compute(1000000);
    }
  }
  std::printf("tasks %d\n", 200 - caught);
}
