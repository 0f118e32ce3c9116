/* Feeds the exec server frames, honest and spoilt, in this very process, for a number of seconds.

   It is built from the server's own sources, but for those that kill, with `main` as server_main and
   `_exit` as round_over: what ends the server ends one round. Rounds come from a seed, so that each
   can be had again. Run it in a sandbox: it writes wherever a spoilt path leads. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdbool.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 256 << 10, PIPE = 1 << 20, ROUNDS = 200, HELD_US = 15000, FIXED = 10 };

int server_main(int argc, char **argv);

static sigjmp_buf next_round;
static pid_t fuzzer;
static int feed = -1;
static uint64_t state;

/* What stands in for the parts that would kill or shut in the fuzzer itself. */

_Noreturn void round_over(int status) {
    if (syscall(SYS_getpid) == fuzzer) siglongjmp(next_round, 1 + (status == 70));
    syscall(SYS_exit_group, status);
    abort();
}

pid_t first_process(void) {
    pid_t pid = (pid_t)syscall(SYS_getpid);
    return pid == fuzzer ? 1 : pid;
}

int gentle_kill(pid_t pid, int number) {
    if (pid > 1) return (int)syscall(SYS_kill, pid, number);
    errno = ESRCH;
    return -1;
}

int filter_install(void) { return -1; }
void filter_owners(void) {}
void tree_kill(pid_t root) { gentle_kill(root, SIGKILL); }
size_t tree_population(void) { return 0; }
uint64_t tree_cpu_us(void) { return 0; }

/* Chance: the same for the same seed. */

static uint32_t chance(uint32_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16) % below;
}

#define ANY(...) ((const char *const[]){__VA_ARGS__})[chance(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))]
#define ANY_NUMBER(...) ((const uint32_t[]){__VA_ARGS__})[chance(sizeof((const uint32_t[]){__VA_ARGS__}) / 4)]

/* Longer than any name, and than any path. */
static char long_name[300], long_path[9000], longest_path[4096], long_parent[303];

static void fill_long(void) {
    memset(long_name, 'n', sizeof long_name - 1);
    snprintf(long_parent, sizeof long_parent, "%s/x", long_name);
    for (size_t i = 0; i + 1 < sizeof long_path; i++) long_path[i] = i % 100 ? 'p' : '/';
    memcpy(longest_path, long_path, sizeof longest_path - 1);
}

/* Frames. */

static uint8_t out[MOST + 4096];
static size_t filled;

static void put(const void *data, size_t size) {
    if (filled + size > sizeof out) return;
    memcpy(out + filled, data, size);
    filled += size;
}

static void put_u8(uint8_t value) { put(&value, 1); }
static void put_u32(uint32_t value) { put(&value, 4); }
static void put_u64(uint64_t value) { put(&value, 8); }

static void put_text(const char *text) {
    put_u32((uint32_t)strlen(text) + 1);
    put(text, strlen(text) + 1);
}

static void put_noise(size_t size) {
    while (size--) put_u8((uint8_t)chance(256));
}

static const char *any_path(void) {
    return ANY("/workspace", "/workspace/f", "/workspace/f/a", "/workspace/f/a/b/c", "/workspace/f/l", "/workspace/f/loop",
               "/workspace/f/l/../a/./b//c/", "/", "//", "/..", "/proc/self/fd/0", "/proc/self/root/workspace", "/dev/null",
               "/dev/pts", "relative", "", ".", long_name, long_path, longest_path, "/workspace/f/long", "/workspace/f/long/x",
               "/workspace/f/\xff\n", "/workspace/f/x");
}

/* A process that this round has spawned, or 0. */
static uint32_t spawned;

static uint32_t any_id(void) {
    if (spawned && chance(2)) return spawned;
    return ANY_NUMBER(1, 2, 3, 4, 5, 0, 0xffffffff);
}

static uint32_t any_size(void) { return ANY_NUMBER(0, 1, 2, 7, 64, 4096, 1 << 20, 128u << 20, 0x7fffffff, 0xffffffff); }

static void put_command(void) {
    put_text(ANY("", "", "", "root", "0", "nobody", "1:1", "x:y", ":", long_name));
    put_text(any_path());
    put_u32(2);
    put_text(ANY("/bin/true", "true", "cat", "no-such", "/workspace", "/bin/sh"));
    put_text(ANY("-c", "/etc/passwd", "echo out; echo err >&2; exec cat", ""));
    put_u32(1);
    put_text(ANY("PATH=/usr/bin:/bin", "PATH=", "A=b"));
}

static void put_entries(void) {
    put_text(ANY("/workspace/f", "/workspace/f", "/workspace/f/a", "/workspace/f/l", "", "x"));
    for (uint32_t count = chance(12); count; count--) {
        uint32_t kind = 1 + chance(5);
        put_u8((uint8_t)kind);
        put_u32(ANY_NUMBER(0755, 0, 0644, 07777, 0xffffffff));
        put_text(ANY("a", "a/b", "a/b/c", "l", "loop", "..", "a/../b", "", "/", "a//b", "a/", "l/x", "f\xff", "long", long_name, long_parent, long_path + 1,
                     longest_path + 1));
        if (kind == 4) put_text(ANY("a", "..", "loop", "/", "", "/workspace/f/a/b", long_name, longest_path, long_path));
        if (kind != 2 && kind != 3) continue;
        uint32_t size = chance(300);
        put_u32(size);
        put_noise(size);
    }
}

static void put_payload(uint8_t type) {
    switch (type) {
        case 1: /* EXEC */
            put_u32(ANY_NUMBER(0, 1, 5, 1000, 0xffffffff));
            put_u32(any_size() >> 2);
            put_u32(ANY_NUMBER(0, 0, 1, 100, 1 << 18, 0xffffffff));
            put_command();
            put_noise(chance(4) ? 0 : chance(70000));
            break;
        case 8: /* SPAWN */
            put_u32(ANY_NUMBER(1, 100, 1 << 18, 0, 0xffffffff));
            put_command();
            break;
        case 9: put_noise(chance(4) ? chance(70000) : 0); break; /* INPUT */
        case 11:                                                 /* WINDOW */
            put_u8((uint8_t)chance(4));
            put_u32(ANY_NUMBER(0, 1, 2, 0xffffffff));
            break;
        case 13: put_u32(any_id()); break; /* KILL */
        case 2: put_u32(any_id()); break; /* CANCEL */
        case 3:                           /* READ */
        case 7:                           /* STATE */
            put_u32(any_size() >> 1);
            put_text(any_path());
            break;
        case 4: /* WRITE */
            put_u32(ANY_NUMBER(0644, 0, 07777, 0xffffffff));
            put_text(any_path());
            put_noise(chance(500));
            break;
        case 16: /* WALK */
        case 17: /* PACK */
            put_u32(any_size());
            put_u64((uint64_t)any_size() << chance(32));
            put_text(any_path());
            break;
        case 18: put_entries(); break;    /* UNPACK */
        case 19: put_u32(any_id()); break; /* NEXT */
        default: put_noise(chance(3) ? 0 : chance(40)); break;
    }
}

static void spoil(size_t start) {
    size_t body = start + 9;
    for (uint32_t count = chance(4); count && filled > body; count--)
        out[body + chance((uint32_t)(filled - body))] = (uint8_t)ANY_NUMBER(0, 1, 0x7f, 0x80, 0xff, chance(256));
    if (!chance(6)) filled = body + chance((uint32_t)(filled - body) + 1);
    if (!chance(6)) put_noise(chance(20));
}

static void put_frame(void) {
    static const uint8_t types[] = {2, 3, 3, 4, 4, 5, 6, 7, 7, 16, 16, 17, 17, 18, 18, 18, 19, 19, 19};
    size_t start = filled;
    bool runs = !chance(30);
    uint8_t type = runs ? (uint8_t)ANY_NUMBER(1, 8) : types[chance(sizeof types)];
    /* What is said of jobs mostly ends the server, so it comes seldom. */
    if (!chance(40)) type = (uint8_t)ANY_NUMBER(9, 11, 13, 14, 15);
    if (spawned && chance(2)) type = (uint8_t)ANY_NUMBER(2, 9, 9, 9, 11, 11, 13, 14, 15);
    put_u32(0);
    put_u32(spawned && (type == 9 || type == 11 || type == 14) && chance(20) ? spawned : any_id());
    put_u8(chance(60) ? type : (uint8_t)chance(256));
    put_payload(type);
    if (!chance(4)) spoil(start);
    uint32_t length = (uint32_t)(filled - start - 4);
    if (!chance(80)) length = any_size();
    memcpy(out + start, &length, sizeof length);
}

/* An honest process, so that what is said of one is of something. */
static void put_spawned(void) {
    size_t start = filled;
    spawned = 77;
    put_u32(0);
    put_u32(spawned);
    put_u8(8);
    put_u32(ANY_NUMBER(1, 100, 1 << 18));
    put_text("");
    put_text("/");
    put_u32(3);
    put_text("/bin/sh");
    put_text("-c");
    put_text(ANY("echo out; echo err >&2; exec cat", "exec cat", "seq 1000; sleep 1", "exec sleep 1", "exit 3"));
    put_u32(0);
    uint32_t length = (uint32_t)(filled - start - 4);
    memcpy(out + start, &length, sizeof length);
}

/* Rounds. */

static void hang_up(int number) {
    (void)number;
    close(feed);
}

/* The server finds its channel on 0 and 1; held rounds leave it time to see commands end. */
static void connect_server(bool held) {
    int pipes[2];
    syscall(SYS_close_range, FIXED, ~0U, 0);
    for (int fd = 3; fd < FIXED; fd++) close(fd);
    if (pipe2(pipes, O_CLOEXEC) || fcntl(pipes[1], F_SETPIPE_SZ, PIPE) < 0) abort();
    if (write(pipes[1], out, filled) != (ssize_t)filled) abort();
    dup2(pipes[0], STDIN_FILENO);
    close(pipes[0]);
    feed = pipes[1];
    struct itimerval timer = {.it_value = {.tv_usec = HELD_US}};
    if (held) setitimer(ITIMER_REAL, &timer, NULL);
    else close(feed);
    /* A pipe that nobody reads fills up, and replies have to queue. */
    int sink = -1;
    if (!chance(4) && !pipe2(pipes, O_CLOEXEC)) sink = pipes[1];
    if (sink < 0) sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(sink, STDOUT_FILENO);
    close(sink);
}

static void one_round(void) {
    char *arguments[] = {"exec-server", "serve", "0", NULL};
    filled = 0;
    spawned = 0;
    if (!chance(8)) put_spawned();
    for (uint32_t count = 1 + chance(20); count && filled < MOST / 2; count--) put_frame();
    connect_server(!chance(spawned ? 2 : 16));
    server_main(3, arguments);
    abort();
}

static volatile uint32_t refused, ended;

/* Frees nothing that the server held, so it does not last long. */
static _Noreturn void batch(uint64_t seed) {
    struct sigaction action = {.sa_handler = hang_up};
    struct itimerval none = {0};
    static volatile uint32_t round;
    fuzzer = (pid_t)syscall(SYS_getpid);
    sigaction(SIGALRM, &action, NULL);
    for (round = 0; round < ROUNDS; round++) {
        state = (seed * ROUNDS + round + 1) * 0x9e3779b97f4a7c15u;
        int how = sigsetjmp(next_round, 1);
        if (!how) one_round();
        setitimer(ITIMER_REAL, &none, NULL);
        if (how == 2) refused++;
        else ended++;
        while (waitpid(-1, NULL, WNOHANG) > 0) continue;
    }
    syscall(SYS_exit_group, refused && ended ? 0 : 1);
    abort();
}

/* fuzz SEED SECONDS, or fuzz SEED 0 for one batch. */
int main(int argc, char **argv) {
    if (argc != 3) return 2;
    uint64_t seed = strtoull(argv[1], NULL, 10);
    fill_long();
    time_t end = time(NULL) + atoi(argv[2]);
    for (unsigned count = 1;; count++, seed++) {
        pid_t child = fork();
        int status = 1;
        if (!child) batch(seed);
        if (child < 0 || waitpid(child, &status, 0) < 0 || status) {
            printf("seed %llu: status %#x\n", (unsigned long long)seed, (unsigned)status);
            return 1;
        }
        if (time(NULL) >= end) {
            printf("%u rounds\n", count * ROUNDS);
            return 0;
        }
    }
}
