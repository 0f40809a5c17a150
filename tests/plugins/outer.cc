// A C++ library with OpenMP in its constructors and destructors, that needs two others beside itself and one above.
#include <cstdio>
#include <stdexcept>

extern "C" long work(long);
extern "C" long leaf(void);

static long sum(long n) {
    long result = 0;
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : result) num_threads(2)
    for (long i = 0; i < n; i++)
        result += i;
    return result;
}

struct Noisy {
    Noisy() { std::printf("constructed %ld\n", sum(7)); }
    ~Noisy() { std::printf("destroyed %ld\n", sum(5)); }
};
static Noisy noisy;

extern "C" long outer(long n) {
    try {
        if (leaf() == 1)
            throw std::runtime_error("caught");
    } catch (const std::runtime_error &error) {
        std::printf("%s\n", error.what());
    }
    return work(n) + sum(n);
}
