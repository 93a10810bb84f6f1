/* Namespaces: who we are inside, and a network of our own. */
#include "launch.h"

/* A user or network namespace made for an earlier run of the same caller, empty since. */
void op_enter(void)
{
    must(sys(NR_setns, slot_of(0), number(launch.operand[1])));
}

static void map_id(const char *file, const char *inside, const char *outside)
{
    char line[64], *end = put(line, inside);
    end = put(end, " ");
    end = put(end, outside);
    put(end, " 1");
    must(write_file(file, line));
}

void op_ids(void)
{
    char **word = launch.operand;
    must(write_file("/proc/self/setgroups", "deny")); /* the kernel's condition for an unprivileged gid_map */
    map_id("/proc/self/uid_map", word[0], word[1]);
    map_id("/proc/self/gid_map", word[2], word[3]);
}

void op_loopback(void)
{
    struct ifreq lo = {.name = "lo"};
    int fd = (int)must(sys(NR_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    must(sys(NR_ioctl, fd, SIOCGIFFLAGS, &lo));
    lo.flags |= IFF_UP;
    must(sys(NR_ioctl, fd, SIOCSIFFLAGS, &lo));
    sys(NR_close, fd);
}

/* RLIMIT_NPROC does not bind kernel uid 0; the PID namespace's own ceiling does. */
void op_pids(void)
{
    must(write_file("/proc/sys/kernel/pid_max", launch.operand[0]));
}
