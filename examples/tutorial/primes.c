/* Counts the primes below a number by trial division: the program of docs/tutorial.md.
 *
 * A larger number takes longer to test than a smaller one. So a loop that gives each thread an equal share of the numbers
 * gives the last thread most of the work. */
#include <stdio.h>
#include <stdlib.h>

static int is_prime(long n)
{
    for (long d = 2; d * d <= n; d++)
        if (n % d == 0)
            return 0;
    return n > 1;
}

int main(int argc, char **argv)
{
    long limit = argc > 1 ? atol(argv[1]) : 2000000;
    long primes = 0;

#pragma omp parallel for reduction(+ : primes)
    for (long n = 0; n < limit; n++)
        primes += is_prime(n);

    printf("%ld primes below %ld\n", primes, limit);
    return 0;
}
