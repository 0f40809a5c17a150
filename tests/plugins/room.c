/* A library with thread-local variables in static memory, as allocators that are preloaded have them. */
__attribute__((tls_model("initial-exec"))) __thread char room[2700];

__attribute__((constructor)) static void use(void)
{
    room[1] = 1;
}
