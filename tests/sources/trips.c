// Loops in all the forms in which one may count its turns: by indices and pointers, up and down, with several exits and branches,
// over structures, and with registers that begin again at 0.
#include <stdio.h>
#include <stdlib.h>
#define KEPT __attribute__((noinline))

enum { ROWS = 200, CHARACTERS = 5000, BODIES = 1000, SIDE = 40 };
static int begins[ROWS + 2], column[2700];
static double value[2700], from[ROWS], to[ROWS], matrix[SIDE][SIDE];
static unsigned char text[CHARACTERS];
static struct { double a, b, c; } body[BODIES];

KEPT static void fill(void) {
    for (int i = 0; i < ROWS; i++) {
        begins[i + 1] = begins[i] + i % 17;
        from[i] = i;
        for (int j = begins[i]; j < begins[i + 1]; j++) {
            column[j] = (i * 7919 + j * 104729) % ROWS;
            value[j] = j;
        }
    }
    for (int i = 0; i < CHARACTERS; i++) text[i] = "abcdefghij\n"[i * 7 % 11];
    for (int i = 0; i < BODIES; i++) body[i].a = i, body[i].b = i * 2, body[i].c = i * 3;
}

KEPT static void rows(void) {
    for (int i = 0; i < ROWS; i++) {
        double sum = 0;
        for (int j = begins[i]; j < begins[i + 1]; j++) sum += value[j] * from[column[j]];
        to[i] = sum;
    }
}

KEPT static long lines(void) {
    long n = 0;
    for (int i = 0; i < CHARACTERS; i++)
        if (text[i] == '\n') n++;
    return n;
}

KEPT static int find(int c, int nth) {
    for (int i = 0; i < CHARACTERS; i++) {
        if (text[i] == c && --nth == 0) return i;
        if (text[i] == 255) break;
    }
    return -1;
}

KEPT static double structures(int first, int behind) {
    double sum = 0;
    for (int i = first; i < behind; i++) sum += body[i].a * body[i].c;
    return sum;
}

KEPT static double down(int n) {
    double sum = 0;
    for (int i = n - 1; i >= 0; i--) sum = sum * 0.5 + body[i].b;
    return sum;
}

KEPT static unsigned wraps(unsigned first, unsigned last) {
    unsigned sum = 0;
    for (unsigned i = first; i != last; i++) sum += i ^ sum;
    return sum;
}

KEPT static unsigned long wraps_far(unsigned long first, unsigned long last) {
    unsigned long sum = 0;
    for (unsigned long i = first; i != last; i += 8) sum += i ^ sum;
    return sum;
}

KEPT static long one_after_the_other(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) sum += i * 3 ^ sum;
    for (int i = 0; i < n; i += 2) sum -= i * 5 ^ sum;
    for (long i = n; i > 0; i -= 3) sum ^= i * sum + 1;
    return sum;
}

KEPT static long nested(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = i; j < n; j++) {
            if ((i ^ j) & 1) sum += i * j ^ sum;
            else sum -= j;
            if (sum == 12345) return 1;
        }
    return sum;
}

KEPT static long bits(unsigned long x) {
    long n = 0;
    for (; x; x >>= 1) n += x & 1;
    return n;
}

KEPT static long length(const char *s) {
    const char *p = s;
    while (*p) p++;
    return p - s;
}

KEPT static void copy(char *to, const char *from) {
    while ((*to++ = *from++)) continue;
}

KEPT static int eliminate(int n) {
    for (int k = 0; k < n; k++) {
        int pivot = k;
        for (int i = k + 1; i < n; i++)
            if (matrix[i][k] > matrix[pivot][k]) pivot = i;
        for (int j = 0; j < n && pivot != k; j++) {
            double t = matrix[k][j];
            matrix[k][j] = matrix[pivot][j];
            matrix[pivot][j] = t;
        }
        for (int i = k + 1; i < n; i++) {
            double factor = matrix[i][k] / (matrix[k][k] + 1);
            for (int j = k; j < n; j++) matrix[i][j] -= factor * matrix[k][j];
        }
    }
    return matrix[n - 1][n - 1] > 0;
}

KEPT static long round_of(int k) {
    char copied[32];
    rows();
    long sum = lines() + find('j', k + 1) + find('z', 1) + (long)structures(k, 700 + k) + (long)down(900 + k);
    sum += wraps(-k * 3 - 5, k * 5) + wraps(0x7ffffff0u - k, 0x80000010u + k);
    sum += wraps_far(-8L * k - 80, 16L * k) + wraps_far(0x7ffffffffffffff8ul - 80 * k, 0x8000000000000000ul + 8 * k);
    sum += one_after_the_other(50 + k) + nested(30 + k) + bits(sum) + bits(k);
    copy(copied, "some text to copy" + k % 9);
    sum += length(copied);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) matrix[i][j] = (i * 37 + j * 91 + k) % 53;
    return sum + eliminate(SIDE - k % 3);
}

int main(void) {
    long sum = 0;
    fill();
#pragma omp parallel num_threads(1)
    for (int k = 0; k < 20; k++) sum += round_of(k);
    printf("%ld %f\n", sum, to[7]);
}
