/* Networks of sites between network namespaces, for kernels without netem: a device "far" in each namespace, which is
 * a host of a site. Packets between hosts of one site take 0.05 ms, those to another site the delay of the WAN.
 *
 *     wan MILLISECONDS MBIT NAMESPACE SITE NAMESPACE SITE...      the sites are 0 to 15
 *
 * Prints "ready" once the devices are there; runs until it is ended. The n-th host (from 1) gets the packets for
 * addresses that end in n. Each host has a cable, and every two sites have a link each way, all of the same bandwidth.
 * They send one packet after the other, keep their order and lose none. The kernel hands over segments of TCP up to
 * 64 KiB together, which costs little time.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MOST_SITES = 16, MOST_HOSTS = 64, LARGEST = 1 << 17 };

static const int64_t NEAR = 50000; /* nanoseconds */

typedef struct Packet {
    struct Packet *next;
    int64_t due;
    int to;
    ssize_t length;
    char data[];
} Packet;

/* Times in nanoseconds. */
typedef struct {
    Packet *first, *last;
    int64_t delay;
    int64_t free;            /* when it will have sent everything */
} Link;

/* First the links between sites, then the cables of hosts. */
enum { CABLES = MOST_SITES * MOST_SITES, LINKS = CABLES + MOST_HOSTS };
static Link links[LINKS];
static int devices[MOST_HOSTS], site_of[MOST_HOSTS], hosts;
static double per_byte;

static void check(int code, const char *what)
{
    if (code < 0) {
        perror(what);
        exit(2);
    }
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int open_device(const char *name)
{
    char path[256];
    struct ifreq request = {.ifr_name = "far"};
    request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
    snprintf(path, sizeof path, "/run/netns/%s", name);
    int space = open(path, O_RDONLY);
    check(space, path);
    check(setns(space, CLONE_NEWNET), path);
    close(space);
    int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    check(device, "/dev/net/tun");
    check(ioctl(device, TUNSETIFF, &request), "TUNSETIFF");
    check(ioctl(device, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4), "TUNSETOFFLOAD");
    return device;
}

static void enqueue(int from, const char *data, ssize_t length)
{
    const struct iphdr *header = (const void *)(data + sizeof(struct virtio_net_hdr));
    bool whole = length > (ssize_t)(sizeof(struct virtio_net_hdr) + sizeof *header) && header->version == 4;
    int to = (int)(whole ? ntohl(header->daddr) & 255 : 0) - 1;
    Packet *packet = to >= 0 && to < hosts && to != from ? malloc(sizeof *packet + (size_t)length) : NULL;
    if (!packet)
        return;
    bool near = site_of[from] == site_of[to];
    Link *link = &links[near ? CABLES + from : site_of[from] * MOST_SITES + site_of[to]];
    int64_t time = now(), start = link->free > time ? link->free : time;
    link->free = start + (int64_t)((double)length * per_byte);
    *packet = (Packet){NULL, link->free + link->delay, to, length};
    memcpy(packet->data, data, (size_t)length);
    *(link->first ? &link->last->next : &link->first) = packet;
    link->last = packet;
}

/* Delivers the packets that are due. Returns the time of the next packet, or -1. */
static int64_t deliver(void)
{
    int64_t next = -1, time = now();
    for (Link *link = links; link < links + LINKS; link++) {
        for (Packet *packet = link->first; packet && packet->due <= time; packet = link->first) {
            if (write(devices[packet->to], packet->data, (size_t)packet->length) < 0)
                perror("far");
            link->first = packet->next;
            free(packet);
        }
        if (link->first && (next < 0 || link->first->due < next))
            next = link->first->due;
    }
    return next;
}

static void set_up(int count, char **words)
{
    per_byte = 8e3 / atof(words[2]);
    for (int link = 0; link < LINKS; link++)
        links[link].delay = link < CABLES ? (int64_t)(atof(words[1]) * 1e6) : NEAR;
    for (int word = 3; word + 1 < count; word += 2) {
        site_of[hosts] = atoi(words[word + 1]) % MOST_SITES;
        devices[hosts++] = open_device(words[word]);
    }
    /* Run ahead of everything else, so that the load of the machine does not change the delay. */
    sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 2});
    prctl(PR_SET_TIMERSLACK, 1);
}

int main(int count, char **words)
{
    static char data[LARGEST];
    struct pollfd polled[MOST_HOSTS];
    if (count < 5 || count > 3 + 2 * MOST_HOSTS) {
        fputs("usage: wan MILLISECONDS MBIT NAMESPACE SITE NAMESPACE SITE...\n", stderr);
        return 2;
    }
    set_up(count, words);
    for (int host = 0; host < hosts; host++)
        polled[host] = (struct pollfd){devices[host], POLLIN, 0};
    puts("ready");
    fflush(stdout);
    for (;;) {
        int64_t next = deliver(), left = next - now();
        struct timespec wait = {left > 0 ? left / 1000000000 : 0, left > 0 ? left % 1000000000 : 0};
        check(ppoll(polled, (nfds_t)hosts, next < 0 ? NULL : &wait, NULL), "ppoll");
        for (int host = 0; host < hosts; host++) {
            ssize_t length;
            while (polled[host].revents && (length = read(devices[host], data, sizeof data)) > 0)
                enqueue(host, data, length);
        }
    }
}
