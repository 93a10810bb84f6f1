/* The supervisor: it stays outside, holds three descriptors, and ends the whole tree when the command ends, when
 * time or memory is up, when it is told to, and when its caller is gone. */
#include "supervisor.h"

struct run run = {.wait_status = -1};

static _Noreturn void supervise(int child, int has_init, int may_kill_all);

/* ---- starting ---- */

/* Not a standard stream: those are the command's, and closed here. */
static int own_descriptor(void)
{
    int fd = slot_of(0);
    if (fd < 3)
        refuse(EBADF);
    return fd;
}

void op_status(void)
{
    launch.status = own_descriptor();
}

void op_life(void)
{
    launch.life = own_descriptor();
}

/* The parent may die, and its pid be taken over, between the two calls: only a pid that is still our parent
 * after its descriptor is open is the one we mean. */
void op_parent(void)
{
    long parent = sys(NR_getppid);
    launch.life = (int)must(sys(NR_pidfd_open, parent, 0));
    if (sys(NR_getppid) != parent)
        refuse(ESRCH);
}

int signals_descriptor(void)
{
    u64 all = ~0ull;
    return (int)must(sys(NR_signalfd4, -1, &all, sizeof all, SFD_CLOEXEC | SFD_NONBLOCK));
}

static int is_readable(int fd)
{
    struct pollfd one = {fd, POLLIN, 0};
    struct timespec at_once = {0, 0};
    return fd >= 0 && sys(NR_ppoll, &one, 1, &at_once, 0, 8) > 0;
}

/* One process keeps a run: a plan that makes a second one would have two stories of how it ended. */
void check_first_keeper(void)
{
    if (launch.sharing || launch.control >= 0)
        refuse(EINVAL);
    note_earlier_children();
}

/* Taking a mount namespace down is slow, and the last one out does it: that shall be us, once the caller knows how
 * the run ended. If it cannot be held nothing is lost but that time. */
static void hold_mounts(int child)
{
    char path[64];
    long pidfd = sys(NR_pidfd_open, child, 0), held = sys(NR_ioctl, pidfd, PIDFD_GET_MNT_NAMESPACE, 0);
    sys(NR_close, pidfd);
    if (held >= 0)
        return;
    put(put_number(put(path, "/proc/"), (u64)child), "/ns/mnt"); /* before 6.11 */
    sys(NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

/* The child is PID 1 of what is new. The death signal alone leaves a window between the clone and the call; the
 * hang-up of the control socket closes it. */
void op_namespaces(void)
{
    int pair[2];
    check_first_keeper();
    must(sys(NR_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
    long child = must(sys(NR_clone, number(launch.operand[0]) | SIGCHLD, 0));
    sys(NR_close, pair[child != 0]);
    launch.control = pair[child == 0];
    if (child) {
        hold_mounts((int)child); /* now: PID 1 will not be looked into for long */
        sys(NR_sched_yield);     /* it has more to do than we */
        supervise((int)child, 1, 0);
    }
    must(sys(NR_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
    if (is_readable(launch.control))
        leave(EXIT_REFUSED);
}

static void say_running(void)
{
    if (launch.status >= 0)
        say(launch.status, "run\n");
}

/* Without a PID namespace the tree is ended by kill(-1). That is safe only inside a Landlock domain that keeps
 * signals in, and it is called only if that is seen: the parent could be signalled before and cannot be now. */
static int enter_signal_scope(void)
{
    struct landlock_ruleset_attr scope = {LANDLOCK_FS_REFER, 0, LANDLOCK_SCOPE_SIGNAL};
    long parent = sys(NR_getppid);
    if (parent <= 0 || sys(NR_kill, parent, 0) != 0)
        return 0;
    int ruleset = (int)must(sys(NR_landlock_create_ruleset, &scope, sizeof scope, 0));
    /* A layer that says nothing of renames between directories forbids them for all below it. */
    int root = (int)must(sys(NR_openat, AT_FDCWD, "/", O_PATH | O_CLOEXEC));
    struct landlock_path_beneath anywhere = {LANDLOCK_FS_REFER, root};
    must(sys(NR_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &anywhere, 0));
    sys(NR_close, root);
    must(sys(NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    must(sys(NR_landlock_restrict_self, ruleset, 0));
    sys(NR_close, ruleset);
    return sys(NR_kill, parent, 0) == -EPERM;
}

_Noreturn void supervise_command(int may_kill_all)
{
    long child = start_command((int)sys(NR_getpid));
    if (launch.error) {
        sys(NR_wait4, child, 0, 0, 0);
        report_failure(launch.step, launch.error);
    }
    say_running();
    supervise((int)child, 0, may_kill_all);
}

void op_supervise(void)
{
    check_first_keeper();
    must(sys(NR_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
    supervise_command(number(launch.operand[0]) ? enter_signal_scope() : 0);
}

/* ---- watching ---- */

static void pass_on(int signal, int stop)
{
    struct order order = {signal, stop};
    if (run.has_init)
        sys(NR_sendto, launch.control, &order, sizeof order, MSG_NOSIGNAL, 0, 0);
    else if (run.child)
        sys(NR_kill, run.child, signal);
}

static int is_time_up(void)
{
    return launch.deadline && now_ms() >= launch.deadline;
}

/* While we are stopped nobody watches the clock or the caller; the kernel wakes us for either. */
static void set_alarms(int on)
{
    static int timer = -1;
    sys(NR_prctl, PR_SET_PDEATHSIG, on && launch.life >= 0 ? SIGCONT : 0, 0, 0, 0);
    if (!launch.deadline)
        return;
    struct sigevent wake = {.signal = SIGCONT};
    if (timer < 0 && sys(NR_timer_create, CLOCK_MONOTONIC, &wake, &timer) < 0)
        return;
    u64 at = on ? launch.deadline : 0;
    struct itimerspec when = {{0, 0}, {(s64)(at / 1000), (s64)(at % 1000 * 1000000)}};
    sys(NR_timer_settime, timer, TIMER_ABSTIME, &when, 0);
}

/* What woke us is pending for us as well; passed on, it would undo the next stop. */
static void swallow_continue(void)
{
    u64 only = 1ull << (SIGCONT - 1);
    struct timespec at_once = {0, 0};
    sys(NR_rt_sigtimedwait, &only, 0, &at_once, sizeof only);
}

/* Whether the command, our own child, is still in the stop we mirrored: nothing new to be told of it. What there is stays
 * to be reaped. */
static int is_still_stopped(void)
{
    int info[32] = {0};
    sys(NR_waitid, P_PID, run.child, info, WNOHANG | WUNTRACED | WCONTINUED | WNOWAIT, 0);
    return info[0] == 0;
}

/* The command stopped. A caller that reads status lines is told, if it has room for it; otherwise we stop as it did, and
 * the shell that started us notices. Whoever continues us has most likely continued the whole group, so the command is
 * continued only if it is still in that stop: a second SIGCONT would undo the next one. */
static void mirror_stop(int status, int stop)
{
    if (launch.status >= 0) {
        char line[32];
        put(put_number(put(line, "stop "), (u64)(status >> 8 & 0xff)), "\n");
        sys(NR_sendto, launch.status, line, length(line), MSG_DONTWAIT, 0, 0);
        return;
    }
    long self = sys(NR_getpid);
    struct timespec moment = {0, 10000000};
    set_alarms(1);
    if (!is_readable(launch.life)) /* it may have ended before we could be woken for it */
        sys(NR_kill, self, SIGSTOP);
    set_alarms(0);
    swallow_continue();
    if (run.has_init)
        sys(NR_ppoll, 0, 0, &moment, 0, 8); /* for PID 1 to see what became of the command */
    if (!is_time_up() && !is_readable(launch.life) && (run.has_init || is_still_stopped()))
        pass_on(SIGCONT, stop);
}

static void reap_children(void)
{
    int status;
    long pid;
    struct rusage usage;
    while ((pid = sys(NR_wait4, -1, &status, WNOHANG | WUNTRACED, &usage)) > 0) {
        if ((status & 0xff) == 0x7f) {
            if (pid == run.child && !run.has_init)
                mirror_stop(status, 0);
            continue;
        }
        note_end(pid, status, &usage);
    }
}

/* What the terminal sends reaches the command by itself, as a member of the foreground group; what a process
 * sends to us is meant for the command. */
static void read_signals(int signals)
{
    struct signalfd_siginfo info;
    while (sys(NR_read, signals, &info, sizeof info) == sizeof info) {
        if (info.signo == SIGCHLD)
            reap_children();
        else if (info.code <= 0)
            pass_on((int)info.signo, 0);
    }
}

static void read_report(void)
{
    struct report report;
    long got = sys(NR_read, launch.control, &report, sizeof report);
    if (got == -ECONNRESET)
        return; /* PID 1 left with a signal of ours unread; what it told comes next */
    if (got != sizeof report) {
        sys(NR_close, launch.control);
        launch.control = -1;
        return;
    }
    switch (report.kind) {
    case FAILED:
        end_tree();
        report_failure(report.value, report.error);
    case RUNNING:
        run.is_told = 1;
        say_running();
        return;
    case STOPPED:
        run.stop = report.error;
        run.stop_status = (int)report.value;
        return;
    case CONTINUED:
        run.stop = 0;
        return;
    case ENDED:
        run.wait_status = (int)report.value;
        run.is_empty = report.error;
        run.usage = report.usage;
        return;
    }
}

/* All of them before anything is done about a stop: it may be over by now. */
static void read_reports(void)
{
    while (is_readable(launch.control))
        read_report();
    int stop = run.stop;
    run.stop = 0;
    if (stop)
        mirror_stop(run.stop_status, stop);
}

/* PID 1 may have told how it went just before it left. */
static _Noreturn void finish_by_itself(void)
{
    while (is_readable(launch.control))
        read_report();
    finish(BY_ITSELF);
}

static int milliseconds_to_wait(void)
{
    u64 wait = launch.memory ? 250 : ~0ull, now = now_ms();
    if (launch.deadline) {
        u64 left = launch.deadline > now ? launch.deadline - now : 0;
        wait = left < wait ? left : wait;
    }
    return wait > 1000000 ? 1000000 : (int)wait;
}

void keep_only_ours(void)
{
    for (int i = 0; i < SLOTS; i++)
        if (launch.slot[i] > 2 && launch.slot[i] != launch.status && launch.slot[i] != launch.life)
            sys(NR_close, launch.slot[i]);
    /* Standard error stays where it is the only way to say something; a pipe read by the caller must end. */
    sys(NR_close, 0);
    sys(NR_close, 1);
    if (launch.status >= 0)
        sys(NR_close, 2);
}

static _Noreturn void supervise(int child, int has_init, int may_kill_all)
{
    run.child = child, run.has_init = has_init, run.may_kill_all = may_kill_all;
    keep_only_ours(); /* first: slots that a child sharing our memory filled are numbers of its own table */
    int signals = signals_descriptor();
    for (;;) {
        struct pollfd watched[] = {{signals, POLLIN, 0},
                                   {launch.control, POLLIN, 0},
                                   {launch.life, POLLIN, 0},
                                   {launch.status, POLLIN | POLLRDHUP, 0}};
        int timed = launch.deadline || launch.memory, ms = timed ? milliseconds_to_wait() : 0;
        struct timespec wait = {ms / 1000, ms % 1000 * 1000000L};
        sys(NR_ppoll, watched, 4, timed ? &wait : 0, 0, 8);
        if (watched[1].revents)
            read_reports();
        if (watched[0].revents)
            read_signals(signals);
        if (!run.child || run.is_empty)
            finish_by_itself();
        if (watched[2].revents || watched[3].revents)
            finish(BY_ITSELF);
        if (is_time_up())
            finish(OVER_DEADLINE);
        if (launch.memory && resident_bytes(has_init ? run.child : (int)sys(NR_getpid)) > launch.memory)
            finish(MEMORY_PASSED);
    }
}
