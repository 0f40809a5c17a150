// See moved.c.
double elsewhere(double x, long n)
{
    for (long i = 0; i < n; i++) x = x * 0.999 + i;
    return x;
}
