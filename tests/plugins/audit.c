// A user's own auditing library.
#include <unistd.h>

unsigned la_version(unsigned version) {
    write(2, "audited\n", 8);
    return version;
}
