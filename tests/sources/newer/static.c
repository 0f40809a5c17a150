/* Static loops, of which compilers compute a thread's share in line (gcc) or ask the runtime for it (clang). `make.sh` says what the
 * files *.s are. The program prints what it counts itself. */
int printf(const char *, ...);

#define OWN __attribute__((noinline)) static

static int iterations, values[200];
static double sum;

static void count(int *what) { __atomic_fetch_add(what, 1, __ATOMIC_RELAXED); }

/* The second loop has the bounds of the first one. */
OWN void two(int n) {
#pragma omp parallel
  {
#pragma omp for
    for (int i = 0; i < n; i++) values[i] = i, count(&iterations);
#pragma omp for nowait
    for (int i = 0; i < n; i++) values[i] *= 3, count(&iterations);
  }
}

/* What is done behind such a loop exists twice since gcc 14. */
OWN int last(int n) {
  int last = 0;
#pragma omp parallel for lastprivate(last)
  for (int i = 0; i < n; i++) last = values[i], count(&iterations);
  return last;
}

OWN void chunks(int n, int chunk) {
#pragma omp parallel for schedule(static, chunk)
  for (int i = 0; i < n; i++) values[i]++, count(&iterations);
}

/* The atomic addition is a cycle that ends by cmpxchg. */
OWN void added(int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
#pragma omp atomic
    sum += 0.5;
    count(&iterations);
  }
}

int main(void) {
  int expected = 0;
  for (int round = 0; round < 3; round++) {
    int few = round == 2 ? 1 : 31; /* one: most threads have no iteration */
    two(100 + round), chunks(97, 4 + round), added(41), values[0] = last(few);
    expected += 2 * (100 + round) + 97 + 41 + few;
  }
  printf("%s\n", sum == 61.5 && iterations == expected ? "right" : "wrong");
  printf("range %d\n", iterations);
  return 0;
}
