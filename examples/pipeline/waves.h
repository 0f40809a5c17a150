/* What waves.c and kernels.c share. */
#ifndef WAVES_H
#define WAVES_H

enum { BINS = 64 };

/* One step of a swinging string of so many cells. Gives its energy. */
double step(const double *now, double *before, int cells);
/* Smooths the ends of the string: first more of the left one, then more of the right one. */
void sweep(double *string, int cells);
/* Puts the cells into bins by their height. */
void histogram(const double *string, int cells, long *bins);
/* The sum of the cells, by tasks for pieces of this size. */
double total(const double *string, int cells, int piece);

#endif
