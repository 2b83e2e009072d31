/* Finds the zeros of a Legendre polynomial by Newton's method. SPDX-License-Identifier: MIT */
#include "train/attribution/gauss_legendre.h"

enum { NEWTON_STEPS = 20, COSINE_TERMS = 16 };

/* Returns cos(x) for |x| <= pi / 2, accurately enough for Newton's method to find the zero. */
static double cosine(double x)
{
    double term = 1, sum = 1;
    for (int k = 1; k <= COSINE_TERMS; k++) {
        term *= -x * x / (double)((2 * k - 1) * (2 * k));
        sum += term;
    }
    return sum;
}

/* Computes P_n(x) and its derivative by the recurrence of three terms. */
static double legendre(size_t n, double x, double *slope)
{
    double before = 1, at = x;
    for (size_t k = 2; k <= n; k++) {
        const double next = ((double)(2 * k - 1) * x * at - (double)(k - 1) * before) / (double)k;
        before = at;
        at = next;
    }
    *slope = (double)n * (x * at - before) / (x * x - 1);
    return at;
}

/* The points are symmetric about 1/2. */
void gauss_legendre(size_t count, double *points, double *weights)
{
    const double pi = 3.14159265358979323846;
    for (size_t i = 0; i < (count + 1) / 2; i++) {
        double x = cosine(pi * ((double)i + 0.75) / ((double)count + 0.5)), slope = 1;
        for (int step = 0; step < NEWTON_STEPS; step++) x -= legendre(count, x, &slope) / slope;
        legendre(count, x, &slope);
        points[i] = (1 - x) / 2;
        points[count - 1 - i] = (1 + x) / 2;
        weights[i] = weights[count - 1 - i] = 1 / ((1 - x * x) * slope * slope);
    }
}
