// One of eight functions that tasks call; compiled apart, so that none is inlined. NAME: the function's.
static volatile double kept;

__attribute__((noinline)) void NAME(int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += 1.0 / (1 + i);
    kept = sum;
}
