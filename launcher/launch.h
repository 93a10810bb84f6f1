/* The launcher: it carries out a plan, step by step, and runs the command. It decides nothing.
 *
 * A plan is a list of words: operations with a fixed number of operands, then `--` and the command. The table
 * below is the whole language. The whole plan is checked against it before the first step is taken; the first
 * step that fails ends the run, and the command is never started with less than the plan.
 *
 * Operand kinds:  d  a slot that this step fills        s  a slot that an earlier step filled
 *                 a  such a slot, or / for the root     n  a number     N  a number, or - for "not checked"
 *                 o  such a slot, or - for "none"       w  a word taken as it is
 */
#ifndef CORRAL_LAUNCH_H
#define CORRAL_LAUNCH_H

#include "sys.h"

/*    operation     operands   carried out by      what it does */
#define OPERATIONS(X)                                                                                        \
    X("open",       "dawnnNN", op_open)       /* SLOT AT PATH RESOLVE TYPE DEV INO: open, then compare */    \
    X("fd",         "dn",      op_fd)         /* SLOT N: an inherited descriptor */                          \
    X("status",     "s",       op_status)     /* SLOT: where to report; its end of file means: end the run */\
    X("life",       "s",       op_life)       /* SLOT: pidfd of the caller; when it dies the run ends */     \
    X("parent",     "",        op_parent)     /* the same for whoever started us */                          \
    X("session",    "",        op_session)    /* a session of our own, without the caller's terminal */      \
    X("close",      "",        op_close)      /* every descriptor but 0-2 and the slots */                   \
    X("rlimit",     "nn",      op_rlimit)     /* RESOURCE VALUE: lower it to that, never raise */            \
    X("deadline",   "n",       op_deadline)   /* MILLISECONDS of wall clock for the run */                   \
    X("memory",     "n",       op_memory)     /* BYTES that the whole tree may keep resident */              \
    X("oom",        "n",       op_oom)        /* SCORE: who goes first when memory runs out */               \
    X("enter",      "sn",      op_enter)      /* SLOT KIND: join a namespace that the caller holds */         \
    X("namespaces", "n",       op_namespaces) /* CLONE_NEW… FLAGS: the child goes on, we supervise */        \
    X("supervise",  "n",       op_supervise)  /* SCOPED: the same without namespaces, as a subreaper */      \
    X("join",       "",        op_join)       /* the same inside namespaces that were entered; they outlive us */\
    X("group",      "s",       op_group)      /* SLOT: into a control group, by its open cgroup.procs */      \
    X("private",    "",        op_private)    /* what is mounted from here on is seen by nobody else */          \
    X("ids",        "nnnn",    op_ids)        /* UID-INSIDE UID GID-INSIDE GID */                            \
    X("loopback",   "",        op_loopback)   /* bring lo up */                                              \
    X("mount",      "dwwn",    op_mount)      /* SLOT TYPE OPTIONS ATTRS: a new file system, detached */     \
    X("overlay",    "dssn",    op_overlay)    /* SLOT TOP BOTTOM ATTRS: read-only, TOP hides in BOTTOM */    \
    X("copy",       "dossswn", op_copy)       /* SLOT TOP BOTTOM UPPER WORK OPTIONS ATTRS: UPPER takes what is written */\
    X("tree",       "dsn",     op_tree)       /* SLOT FROM ATTRS: a detached clone with all below it */      \
    X("idmap",      "ss",      op_idmap)      /* SLOT USERNS: owners of a detached tree as that namespace maps them */\
    X("readonly",   "",        op_readonly)   /* all that is mounted: read-only, nosuid, private */          \
    X("whiteout",   "sw",      op_whiteout)   /* AT NAME: hide a name that a layer below has */               \
    X("make",       "dswwn",   op_make)       /* SLOT AT NAME dir|file|dir?|file?|->TARGET MODE */           \
    X("attach",     "ss",      op_attach)     /* SLOT ONTO: put a detached mount on an open place */         \
    X("pivot",      "s",       op_pivot)      /* SLOT: the root is what is mounted there, the old one is gone */\
    X("attributes", "sn",      op_attributes) /* SLOT ATTRS: set them on one mount that is in place */       \
    X("pids",       "n",       op_pids)       /* N: pid_max of the new PID namespace (kernel 6.14) */        \
    X("init",       "",        op_init)       /* fork: the child goes on as PID 2, we are PID 1 */           \
    X("chdir",      "s",       op_chdir)      /* SLOT */                                                     \
    X("stdio",      "n",       op_stdio)      /* REOPEN: check 0-2; 1: reopen read-only files inside */      \
    X("keep",       "s",       op_keep)       /* SLOT: leave this descriptor to the command */               \
    X("become",     "nn",      op_become)     /* UID GID: that user and group, and no other group */          \
    X("nonewprivs", "",        op_nonewprivs) /* set-uid programs gain nothing */                            \
    X("ruleset",    "nnnn",    op_ruleset)    /* FS NET SCOPED SIZE: a Landlock ruleset */                   \
    X("allow",      "sn",      op_allow)      /* SLOT RIGHTS: a rule of it */                                \
    X("port",       "nn",      op_port)       /* PORT RIGHTS: a rule of it */                                \
    X("restrict",   "",        op_restrict)   /* enter it */                                                 \
    X("hand",       "",        op_hand)       /* give it to whoever reads our output, for later runs */       \
    X("rules",      "s",       op_rules)      /* SLOT: one that was made so */                               \
    X("nocaps",     "",        op_nocaps)     /* empty every capability set */                               \
    X("unset",      "w",       op_unset)      /* PATTERN: drop matching variables (last match decides) */    \
    X("retain",     "w",       op_retain)     /* PATTERN: keep them */                                       \
    X("seccomp",    "w",       op_seccomp)    /* HEX: a filter program, as the kernel takes it */

enum { SLOTS = 1024, EXIT_REFUSED = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127, EXIT_TIMEOUT = 124 };

struct launch {
    char **word;          /* the plan, operations first */
    long words;
    long command;         /* index of the command's first word */
    long at;              /* index of the next operation */
    long step;            /* ordinal of the operation under way */
    int error;            /* why it failed, told to a parent that shares our memory */
    int sharing;          /* such a parent waits for us */
    char **operand;       /* its operands */
    char **env;
    int slot[SLOTS];
    int status;           /* descriptor for status lines, or -1: text on stderr */
    int life;             /* pidfd of the caller, or -1 */
    int control;          /* between supervisor and PID 1 */
    int ruleset;
    u64 mask;             /* the signal mask we were started with */
    u64 deadline;         /* monotonic milliseconds, 0: none */
    u64 memory;           /* bytes, 0: no limit */
    u64 page;             /* bytes in one */
    int is_grouped;       /* we are in the control group of this run, which its caller removes after us */
    char *text;           /* the plan as it was read, if it came by descriptor */
    size_t text_bytes;
};
extern struct launch launch;

/* What PID 1 tells the supervisor, in one message. */
struct report {
    enum { FAILED, RUNNING, STOPPED, CONTINUED, ENDED } kind;
    long value; /* the step that failed, or the command's wait status */
    int error;  /* or which stop it is, counted from 1, or whether PID 1 is all that is left */
    struct rusage usage;
};

/* What the supervisor asks of PID 1: pass this signal on, and if it answers a stop, only while that one lasts. */
struct order {
    int signal, stop;
};

#define X(name, kinds, function) void function(void);
OPERATIONS(X)
#undef X

/* plan.c */
u64 number(const char *word);
int slot_of(int operand);
void fill(int operand, int fd);
_Noreturn void refuse(int error);
_Noreturn void report_failure(long step, int error);
long must(long result);

/* slots.c */
long open_without_links(int at, const char *path, u64 flags, u64 resolve);

/* exec.c, environ.c */
_Noreturn void run_command(void);
void filter_environment(void);

_Noreturn void carry_on(void);

/* start.c, supervise.c, init.c, limits.c */
long start_command(int parent);
void tell(struct report report);
u64 now_ms(void);
int signals_descriptor(void);

/* tree.c */
void for_each_child(int pid, void (*each)(int));
u64 resident_bytes(int pid);

/* text.c */
size_t length(const char *text);
int equal(const char *a, const char *b);
char *put(char *end, const char *text);
char *put_number(char *end, u64 value);
long read_file(const char *path, char *into, size_t size);
long write_file(const char *path, const char *text);
void say(int fd, const char *text);
void say_escaped(int fd, const char *text);
_Noreturn void leave(int code);

#endif
