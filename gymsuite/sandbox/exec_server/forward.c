#define _GNU_SOURCE
#include "forward.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base.h"

/* As many as the proxy serves at once: the others wait in the kernel. */
#define MOST_PAIRS 64
#define CHUNK (64u << 10)

/* One direction of a connection: what was read and not yet written. Small enough to wait for. */
struct flow {
    int from, to;
    uint32_t begin, end;
    bool ended;
    uint8_t data[CHUNK];
};

struct pair {
    struct flow up, down;
};

static struct pair *pairs[MOST_PAIRS];

static int listen_at(const char *port) {
    char *rest;
    unsigned long number = strtoul(port, &rest, 10);
    if (*rest || number < 1 || number > UINT16_MAX) die("forward: the port is no number");
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), yes = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes)) die("forward: socket");
    if (bind(fd, (struct sockaddr *)&at, sizeof at)) die("forward: the port is taken");
    if (listen(fd, MOST_PAIRS)) die("forward: listen");
    return fd;
}

static int connect_to(const struct sockaddr_un *there) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    /* It blocks for as long as the proxy's queue is full; nothing could go on meanwhile anyway. */
    while (connect(fd, (const struct sockaddr *)there, sizeof *there)) {
        if (errno == EINTR) continue;
        close(fd);
        return -1;
    }
    return fd;
}

static void take(int listener, const struct sockaddr_un *there, struct pair **slot) {
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0) {
        poll(NULL, 0, 100); /* out of descriptors, say: the listener would be reported at once */
        return;
    }
    int proxy = connect_to(there);
    struct pair *pair = proxy < 0 ? NULL : malloc(sizeof *pair);
    if (!pair) {
        close(client);
        if (proxy >= 0) close(proxy);
        return;
    }
    pair->up = (struct flow){.from = client, .to = proxy};
    pair->down = (struct flow){.from = proxy, .to = client};
    *slot = pair;
}

static short wanted(const struct flow *flow) {
    if (flow->begin < flow->end) return 0;
    return flow->ended ? 0 : POLLIN;
}

/* Whether the connection can still be used. Calls never wait: MSG_DONTWAIT on every one. */
static bool fill(struct flow *flow) {
    if (flow->begin < flow->end || flow->ended) return true;
    ssize_t got = recv(flow->from, flow->data, CHUNK, MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    flow->begin = 0;
    flow->end = (uint32_t)got;
    flow->ended = got == 0;
    if (flow->ended) shutdown(flow->to, SHUT_WR);
    return true;
}

static bool empty(struct flow *flow) {
    while (flow->begin < flow->end) {
        const uint8_t *data = flow->data + flow->begin;
        ssize_t sent = send(flow->to, data, flow->end - flow->begin, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0) return errno == EAGAIN || errno == EINTR;
        flow->begin += (uint32_t)sent;
    }
    return true;
}

static bool move(struct pair *pair) {
    if (!fill(&pair->up)) return false;
    /* A proxy that takes no more may have said why: what the client still sends goes nowhere. */
    if (!empty(&pair->up)) pair->up.begin = pair->up.end;
    return fill(&pair->down) && empty(&pair->down);
}

static bool is_done(const struct flow *flow) {
    return flow->ended && flow->begin == flow->end;
}

static void drop(struct pair **slot) {
    close((*slot)->up.from);
    close((*slot)->up.to);
    free(*slot);
    *slot = NULL;
}

/* What to wait for on one end: to read for the flow away from it, to write for the flow to it. */
static short events(const struct flow *away, const struct flow *toward) {
    return (short)(wanted(away) | (toward->begin < toward->end ? POLLOUT : 0));
}

static void serve_pairs(int listener, const struct sockaddr_un *there) {
    struct pollfd polls[1 + 2 * MOST_PAIRS];
    struct pair **open = NULL;
    for (size_t i = 0; i < MOST_PAIRS; i++)
        if (!pairs[i]) open = &pairs[i];
    polls[0] = (struct pollfd){.fd = open ? listener : -1, .events = POLLIN};
    for (size_t i = 0; i < MOST_PAIRS; i++) {
        struct pair *pair = pairs[i];
        struct pollfd *two = &polls[1 + 2 * i];
        two[0] = two[1] = (struct pollfd){.fd = -1};
        if (!pair) continue;
        short client = events(&pair->up, &pair->down), proxy = events(&pair->down, &pair->up);
        /* An end that nothing is wanted of would be reported again and again once it hangs up. A proxy that has said
           all may hang up: its client need not know of it, and would keep others out. */
        if (client) two[0] = (struct pollfd){.fd = pair->up.from, .events = client};
        if (proxy || is_done(&pair->down)) two[1] = (struct pollfd){.fd = pair->up.to, .events = proxy};
    }
    if (poll(polls, 1 + 2 * MOST_PAIRS, -1) < 0) return;
    for (size_t i = 0; i < MOST_PAIRS; i++) {
        struct pair *pair = pairs[i];
        short client = polls[1 + 2 * i].revents, proxy = polls[2 + 2 * i].revents;
        if (!pair || !(client | proxy)) continue;
        bool usable = move(pair), over = is_done(&pair->up) || proxy & POLLHUP;
        if (!usable || (over && is_done(&pair->down))) drop(&pairs[i]);
    }
    if (polls[0].revents && open) take(listener, there, open);
}

_Noreturn void forward(int argc, char **argv) {
    struct sockaddr_un there = {.sun_family = AF_UNIX};
    if (argc != 2 || strlen(argv[1]) >= sizeof there.sun_path) die("usage: forward PORT SOCKET");
    strcpy(there.sun_path, argv[1]);
    signal(SIGPIPE, SIG_IGN);
    int listener = listen_at(argv[0]);
    if (write(STDOUT_FILENO, "ready\n", 6) != 6) die("forward: nobody waits for it");
    for (;;) serve_pairs(listener, &there);
}
