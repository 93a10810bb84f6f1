/* How a run ends: the whole tree first, then word of it. */
#include "supervisor.h"

/* Children that were ours before we began: whoever exec'ed us had started them, and they are not part of the run. */
enum { EARLIER = 64 };
static int earlier[EARLIER], earlier_count, others;

static void note_earlier(int pid)
{
    if (earlier_count < EARLIER)
        earlier[earlier_count++] = pid;
}

void note_earlier_children(void)
{
    if (sys(NR_waitid, P_ALL, 0, 0, WEXITED | WNOHANG | WNOWAIT | WALL, 0) == -ECHILD)
        return; /* the usual case, found without /proc */
    for_each_child((int)sys(NR_getpid), note_earlier);
}

static int is_earlier(int pid)
{
    for (int i = 0; i < earlier_count; i++)
        if (earlier[i] == pid)
            return 1;
    return 0;
}

static void kill_one(int pid)
{
    others += !is_earlier(pid);
    if (!is_earlier(pid) && !run.may_kill_all)
        sys(NR_kill, pid, SIGKILL);
}

void note_end(long pid, int status, const struct rusage *usage)
{
    if (pid != run.child)
        return;
    if (!run.is_told)
        run.wait_status = status;
    run.usage = *usage;
    run.child = 0;
}

/* kill(-1) misses nobody: a fork under way fails with the signal that is pending for it. Killing children one by one
 * may, so we look again until there are none. */
static void end_orphans(void)
{
    int status;
    struct rusage usage;
    struct timespec moment = {0, 500000};
    for (;;) {
        long pid;
        while ((pid = sys(NR_wait4, -1, &status, WNOHANG, &usage)) > 0)
            note_end(pid, status, &usage);
        if (pid == -ECHILD)
            return; /* all orphans are ours, and there are none */
        if (run.may_kill_all)
            sys(NR_kill, -1, SIGKILL);
        others = 0;
        for_each_child((int)sys(NR_getpid), kill_one);
        if (!others)
            return;
        sys(NR_ppoll, 0, 0, &moment, 0, 8);
    }
}

void end_tree(void)
{
    int status;
    struct rusage usage;
    if (!run.has_init) {
        end_orphans();
    } else if (run.child) { /* PID 1 takes its namespace with it */
        sys(NR_kill, run.child, SIGKILL);
        if (sys(NR_wait4, run.child, &status, 0, &usage) > 0)
            note_end(run.child, status, &usage);
    }
}

static char *put_time(char *end, s64 sec, s64 usec)
{
    return put_number(put(end, " "), (u64)(sec * 1000000 + usec));
}

static const struct {
    const char *line, *text;
    int code;
} causes[] = {
    [BY_ITSELF] = {"", 0, 0},
    [OVER_DEADLINE] = {"over deadline\n", "corral: the time is up; the run was ended\n", EXIT_TIMEOUT},
    [MEMORY_PASSED] = {"over memory\n", "corral: the memory limit was passed; the run was ended\n", 128 + SIGKILL},
};

static void say_end(enum cause cause)
{
    char line[160], *end = put_number(put(put(line, causes[cause].line), "end "), (u64)run.wait_status);
    end = put_time(end, run.usage.user.sec, run.usage.user.usec);
    end = put_time(end, run.usage.system.sec, run.usage.system.usec);
    put(put_number(put(end, " "), (u64)run.usage.maxrss), "\n");
    say(launch.status, line);
}

/* Die as the command did, without a second core file. */
static _Noreturn void die_of(int signal)
{
    struct rlimit none = {0, 0};
    struct kernel_sigaction by_default = {0};
    u64 nothing = 0;
    long self = sys(NR_getpid);
    sys(NR_prlimit64, 0, RLIMIT_CORE, &none, 0);
    sys(NR_rt_sigaction, signal, &by_default, 0, sizeof(u64));
    sys(NR_kill, self, signal);
    sys(NR_rt_sigprocmask, SIG_SETMASK, &nothing, 0, sizeof(u64));
    leave(128 + signal);
}

_Noreturn void finish(enum cause cause)
{
    if (!run.is_empty && (run.child || !run.leaves_rest))
        end_tree();
    if (run.wait_status < 0)
        run.wait_status = SIGKILL; /* PID 1 went down before it could tell, and the command with it */
    if (launch.status >= 0) {
        say_end(cause);
        sys(NR_sched_yield); /* the caller has waited long enough, and what is left to do is not short */
    }
    if (run.is_empty)
        end_tree();
    if (launch.status >= 0)
        leave(0);
    if (cause != BY_ITSELF) {
        say(2, causes[cause].text);
        leave(causes[cause].code);
    }
    if (run.wait_status & 0x7f)
        die_of(run.wait_status & 0x7f);
    leave(run.wait_status >> 8 & 0xff);
}
