// Much static thread-local storage, as some sanitizers have.
__thread char big[100000] __attribute__((tls_model("initial-exec")));
long leaf(void) { return big[5] + 1; }
