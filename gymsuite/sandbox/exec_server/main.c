/* Two programs in one binary: the exec server inside a sandbox, and the keeper that starts sandboxes. */
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "forward.h"
#include "join.h"
#include "keeper.h"
#include "serve.h"

int main(int argc, char **argv) {
    if (argc >= 2 && !strcmp(argv[1], "keeper")) keep(argc - 2, argv + 2);
    if (argc >= 2 && !strcmp(argv[1], "forward")) forward(argc - 2, argv + 2);
    if (argc >= 3 && !strcmp(argv[1], "join")) {
        join(argv[2]);
        argc -= 2;
        argv += 2;
    }
    if (argc >= 3 && !strcmp(argv[1], "serve")) serve(argc - 2, argv + 2);
    die("usage: exec-server [join SOCKET] serve PROCESSES | exec-server keeper OWNER UID GID [CGROUP]...");
}
