/* Limits: the kernel's, lowered and never raised, and the sum of what a tree keeps resident. */
#include "launch.h"

void op_rlimit(void)
{
    u64 resource = number(launch.operand[0]), value = number(launch.operand[1]);
    struct rlimit now;
    must(sys(NR_prlimit64, 0, resource, 0, &now));
    struct rlimit lower = {now.soft < value ? now.soft : value, now.hard < value ? now.hard : value};
    must(sys(NR_prlimit64, 0, resource, &lower, 0));
}

void op_deadline(void)
{
    launch.deadline = now_ms() + number(launch.operand[0]);
}

void op_memory(void)
{
    launch.memory = number(launch.operand[0]);
}

void op_oom(void)
{
    must(write_file("/proc/self/oom_score_adj", launch.operand[0]));
}

u64 now_ms(void)
{
    struct timespec now;
    sys(NR_clock_gettime, CLOCK_MONOTONIC, &now);
    return (u64)now.sec * 1000 + (u64)now.nsec / 1000000;
}

static u64 resident_pages(const char *statm)
{
    while (*statm && *statm != ' ')
        statm++;
    return number(*statm ? statm + 1 : statm);
}

enum { PROCESSES = 8192 };
static int queue[PROCESSES];
static int queued;

static char *put_pid_path(char *path, int pid)
{
    return put_number(put(path, "/proc/"), (u64)pid);
}

static void enqueue_children(const char *path)
{
    char text[256];
    long fd = sys(NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC), got;
    for (int child = 0; fd >= 0 && (got = sys(NR_read, fd, text, sizeof text)) > 0;)
        for (long i = 0; i < got; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                child = child * 10 + (text[i] - '0');
            } else if (child) {
                if (queued < PROCESSES)
                    queue[queued++] = child;
                child = 0;
            }
        }
    if (fd >= 0)
        sys(NR_close, fd);
}

/* The kernel lists a child under the thread that forked it. */
static void enqueue_children_of_threads(int pid)
{
    char path[64], entries[1024], *end = put(put_pid_path(path, pid), "/task/");
    long fd = sys(NR_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), got;
    while (fd >= 0 && (got = sys(NR_getdents64, fd, entries, sizeof entries)) > 0)
        for (long at = 0; at < got;) {
            struct dirent64 *entry = (struct dirent64 *)(entries + at);
            at += entry->reclen;
            if (entry->name[0] != '.') {
                put(put(end, entry->name), "/children");
                enqueue_children(path);
            }
        }
    if (fd >= 0)
        sys(NR_close, fd);
}

/* Of a process and all below it. Every orphan is reparented to PID 1 or to the subreaper, so the tree below either is
 * the whole run. More processes than the queue takes count as too much. */
u64 resident_bytes(int pid)
{
    char path[64], text[256];
    u64 pages = 0;
    queue[0] = pid;
    queued = 1;
    for (int next = 0; next < queued; next++) {
        put(put_pid_path(path, queue[next]), "/statm");
        if (read_file(path, text, sizeof text) > 0)
            pages += resident_pages(text);
        enqueue_children_of_threads(queue[next]);
    }
    return queued == PROCESSES ? ~0ull : pages * launch.page;
}
