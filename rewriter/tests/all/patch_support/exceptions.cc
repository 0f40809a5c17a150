// Exceptions from below and through functions whose calls are led elsewhere.
#include <cstdio>
#include <stdexcept>
#include <string>

struct Guard {
    const char *name;
    ~Guard() { std::printf("leaving %s\n", name); }
};

__attribute__((noinline)) int deep(int n) {
    Guard guard{"deep"};
    if (n == 0) throw std::runtime_error("bottom");
    return deep(n - 1) + 1;
}

__attribute__((noinline)) int inside(int n) {
    int caught = 0;
#pragma omp parallel for reduction(+ : caught) num_threads(3)
    for (int i = 0; i < n; i++) {
        try {
            if (i % 5 == 0) throw i;
        } catch (int) {
            caught++;
        }
    }
    return caught;
}

int main() {
    try {
        Guard guard{"main"};
        std::printf("%d\n", deep(4));
    } catch (const std::exception &e) {
        std::printf("caught %s, %d\n", std::string(e.what()).c_str(), inside(100));
    }
    return 3;
}
