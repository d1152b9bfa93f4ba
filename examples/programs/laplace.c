/* Noisy count that answers with raw numbers:  cc -O2 -o laplace laplace.c -lm;  ./laplace 1.0
 *
 * (1 / scale)-DP for rows added or removed: Laplace noise of that scale, rounded to multiples of 2^-20.
 * For demonstration only: a real release draws its noise from the operating system's generator, not from a seed. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state;

static uint64_t bits(void) { /* splitmix64 */
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int main(int argc, char **argv) {
    double scale = argc > 1 ? atof(argv[1]) : 1.0;
    long runs;
    while (scanf(" {\"runs\": %ld, \"seed\": %" SCNu64 ", \"dataset\": [", &runs, &state) == 2) {
        int commas = 0, is_empty = 1, c;
        while ((c = getchar()) != '\n' && c != EOF) {
            commas += c == ',';
            is_empty &= c == ' ' || c == ']' || c == '}';
        }
        printf("{\"format\": \"float64\", \"shape\": [%ld]}\n", runs);
        for (long i = 0; i < runs; i++) {
            double size = -scale * log(((bits() >> 11) + 1) * 0x1p-53); /* logarithm of a number in (0, 1] */
            double noisy = (is_empty ? 0 : commas + 1) + (bits() >> 63 ? size : -size);
            double output = round(noisy * 0x1p20) * 0x1p-20;
            fwrite(&output, sizeof output, 1, stdout); /* on a little-endian machine */
        }
        fflush(stdout);
    }
    return 0;
}
