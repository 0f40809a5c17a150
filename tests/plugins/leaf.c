// Without OpenMP.
long leaf(void) { return 1; }
