// A library that divides a loop: N ranges of one iteration per call.
long work(long n) {
    long sum = 0;
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : sum) num_threads(2)
    for (long i = 0; i < n; i++)
        sum += i;
    return sum;
}
