/* Constructs other than static loops. `make.sh` says what the files *.s are. The program prints what it counts itself. */
int printf(const char *, ...);

#define OWN __attribute__((noinline)) static

static int iterations, sections, tasks, criticals, masters, singles, values[200];

static void count(int *what) { __atomic_fetch_add(what, 1, __ATOMIC_RELAXED); }

OWN void dealt(long n) {
#pragma omp parallel for schedule(dynamic, 5)
  for (long i = 0; i < n; i++) values[i]++, count(&iterations);
}

OWN void one_thread(void) {
#pragma omp parallel
  {
#pragma omp master
    masters++;
#pragma omp barrier
#pragma omp single
    singles++;
#pragma omp critical
    criticals++;
#pragma omp single nowait
    count(&singles);
  }
}

OWN void pieces(void) {
#pragma omp parallel
  {
#pragma omp sections
    {
#pragma omp section
      values[0] = printf("%s", ""), count(&sections);
#pragma omp section
      values[1] = printf("%s", ""), count(&sections);
    }
#pragma omp single
    {
      singles++;
      for (int i = 0; i < 7; i++)
#pragma omp task
        values[i] = i, count(&tasks);
    }
  }
}

int main(void) {
  for (int round = 0; round < 3; round++) dealt(50 + round), one_thread(), pieces();
  printf("%s\n", iterations == 153 && tasks == 21 && sections == 6 ? "right" : "wrong");
  printf("range %d\nsection %d\ntask %d\n", iterations, sections, tasks);
  printf("critical %d\nmaster %d\nsingle %d\n", criticals, masters, singles);
  return 0;
}
