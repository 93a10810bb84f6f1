/* The plan: read it, check all of it, carry it out in order, report the step that failed. */
#include "launch.h"

struct operation {
    const char *name, *kinds;
    void (*carry_out)(void);
};

#define X(name, kinds, function) {name, kinds, function},
static const struct operation operations[] = {OPERATIONS(X)};
#undef X

struct launch launch = {.status = -1, .life = -1, .step = -1, .control = -1, .ruleset = -1};

enum { COUNT = sizeof operations / sizeof *operations };

static const struct operation *find(const char *name)
{
    for (int i = 0; i < COUNT; i++)
        if (equal(operations[i].name, name))
            return &operations[i];
    return 0;
}

/* Once checked, the plan's operations are spelled by our own table, and its address says which one it is. */
static const struct operation *checked(const char *name)
{
    int i = 0;
    while (operations[i].name != name)
        i++;
    return &operations[i];
}

/* ---- failing ---- */

/* Where a step's words begin; for the exec, which is the step after the last operation, the `--`. */
static long word_of(long step)
{
    long at = 0;
    while (step-- && at < launch.command - 1)
        at += 1 + (long)length(checked(launch.word[at])->kinds);
    return at;
}

/* What a person who runs a command by hand meets most; error 0 stands for any. */
static const struct {
    const char *operation;
    int error;
    const char *text;
} explained[] = {
    {"stdio", ENOENT, "a file on a standard stream is not visible inside; use `cat FILE | corral run ...`"},
    {"stdio", ESTALE, "a file on a standard stream is another one inside; use `cat FILE | corral run ...`"},
    {"stdio", EISDIR, "a standard stream is a directory"},
    {"stdio", ENOTBLK, "a standard stream is a block device"},
    {"open", ENOENT, "this place is gone, or hidden inside"},
    {"open", 0, "this place was replaced since it was checked"},
    {"restrict", E2BIG, "too many Landlock layers; corral is nested too deeply"},
};

static const char *explanation(const char *operation, int error)
{
    for (size_t i = 0; i < sizeof explained / sizeof *explained; i++)
        if (equal(explained[i].operation, operation) && (!explained[i].error || explained[i].error == error))
            return explained[i].text;
    return "it failed";
}

static void say_step(long step, int error)
{
    char text[64];
    long at = word_of(step);
    long shown = (long)length(checked(launch.word[at])->kinds);
    put(put_number(put(text, "corral: refused: step "), (u64)step), " (");
    say(2, text);
    say_escaped(2, launch.word[at]);
    for (long i = 1; i <= shown && i < 4; i++) {
        say(2, " ");
        say_escaped(2, launch.word[at + i]);
    }
    say(2, "): ");
    say(2, explanation(launch.word[at], error));
    put(put_number(put(text, " (error "), (u64)error), "); nothing was run\n");
    say(2, text);
}

_Noreturn void report_failure(long step, int error)
{
    if (launch.status >= 0) {
        char line[64];
        put(put_number(put(put_number(put(line, "fail "), (u64)step), " "), (u64)error), "\n");
        say(launch.status, line);
        leave(EXIT_REFUSED);
    }
    if (word_of(step) < launch.command - 1) {
        say_step(step, error);
        leave(EXIT_REFUSED);
    }
    say(2, "corral: ");
    say_escaped(2, launch.word[launch.command]);
    say(2, error == ENOENT ? ": not found\n" : error == EACCES ? ": not executable\n" : ": cannot be run\n");
    leave(error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

/* In a child that shares its parent's memory the parent reads what failed; PID 1 tells the supervisor. */
_Noreturn void refuse(int error)
{
    if (launch.sharing) {
        launch.error = error;
        leave(EXIT_REFUSED);
    }
    if (launch.control >= 0) {
        tell((struct report){.kind = FAILED, .value = launch.step, .error = error});
        leave(EXIT_REFUSED);
    }
    report_failure(launch.step, error);
}

long must(long result)
{
    if (result < 0)
        refuse((int)-result);
    return result;
}

static _Noreturn void malformed(const char *why, const char *word)
{
    say(2, "corral: the plan is malformed: ");
    say(2, why);
    if (word) {
        say(2, " ");
        say_escaped(2, word);
    }
    say(2, "; nothing was run\n");
    leave(EXIT_REFUSED);
}

/* ---- operands ---- */

static int is_number(const char *word)
{
    size_t n = 0;
    for (; word[n]; n++)
        if (word[n] < '0' || word[n] > '9')
            return 0;
    return n > 0 && n < 20;
}

u64 number(const char *word)
{
    u64 value = 0;
    for (; *word >= '0' && *word <= '9'; word++)
        value = value * 10 + (u64)(*word - '0');
    return value;
}

int slot_of(int operand)
{
    return launch.slot[number(launch.operand[operand])];
}

void fill(int operand, int fd)
{
    launch.slot[number(launch.operand[operand])] = fd;
}

/* ---- reading and checking ---- */

static void check_operand(char kind, const char *word, char *filled)
{
    int is_slot = is_number(word) && number(word) < SLOTS;
    switch (kind) {
    case 'd':
        if (!is_slot || filled[number(word)])
            malformed("not a free slot:", word);
        filled[number(word)] = 1;
        return;
    case 'a':
        if (equal(word, "/"))
            return;
        /* fall through */
    case 'o':
        if (kind == 'o' && equal(word, "-"))
            return;
        /* fall through */
    case 's':
        if (!is_slot || !filled[number(word)])
            malformed("not a filled slot:", word);
        return;
    case 'N':
        if (equal(word, "-"))
            return;
        /* fall through */
    case 'n':
        if (!is_number(word))
            malformed("not a number:", word);
        return;
    }
}

static void check_plan(void)
{
    static char filled[SLOTS];
    long at = 0;
    while (at < launch.words && !equal(launch.word[at], "--")) {
        const struct operation *op = find(launch.word[at]);
        if (!op)
            malformed("unknown operation", launch.word[at]);
        long count = (long)length(op->kinds);
        if (at + count >= launch.words)
            malformed("it ends inside", launch.word[at]);
        for (long i = 0; i < count; i++)
            check_operand(op->kinds[i], launch.word[at + 1 + i], filled);
        launch.word[at] = (char *)op->name;
        at += 1 + count;
    }
    if (at + 1 >= launch.words)
        malformed("no -- and command at its end", 0);
    launch.command = at + 1;
}

/* From wherever the plan stands to the exec. Steps that fork call this again in the child. */
_Noreturn void carry_on(void)
{
    while (launch.at < launch.command - 1) {
        const struct operation *op = checked(launch.word[launch.at]);
        launch.operand = launch.word + launch.at + 1;
        launch.at += 1 + (long)length(op->kinds);
        launch.step++;
        op->carry_out();
    }
    launch.step++;
    run_command();
}

static int is_between(const char *word, u64 least, u64 most)
{
    return is_number(word) && number(word) >= least && number(word) <= most;
}

static void *map(size_t bytes, int fd)
{
    long at = sys(NR_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
    if (at < 0 && at > -4096)
        malformed("it does not fit in memory", 0);
    return (void *)at;
}

/* All that a sealed memfd has. */
static void map_plan(int fd)
{
    struct statx st;
    if (sys(NR_statx, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) < 0 || st.size == 0)
        malformed("nothing to read", 0);
    launch.text_bytes = st.size;
    launch.text = map(st.size, fd);
    sys(NR_close, fd);
}

/* So many bytes of a stream, which may go on: a status line is one too, and costs no file. */
static void receive_plan(int fd, size_t bytes)
{
    launch.text_bytes = bytes;
    launch.text = map(bytes, -1);
    for (size_t at = 0; at < bytes;) {
        long got = sys(NR_read, fd, launch.text + at, bytes - at);
        if (got <= 0)
            malformed("nothing to read", 0);
        at += (size_t)got;
    }
}

/* NUL-ended words; the command's own words end them. */
static void take_words(void)
{
    char *text = launch.text;
    if (text[launch.text_bytes - 1] != 0)
        malformed("its last word is cut off", 0);
    for (size_t i = 0; i < launch.text_bytes; i++)
        launch.words += text[i] == 0;
    launch.word = map((size_t)(launch.words + 1) * sizeof(char *), -1);
    for (long i = 0; i < launch.words; i++) {
        launch.word[i] = text;
        text += length(text) + 1;
    }
    launch.word[launch.words] = 0;
}

static void print_landlock_abi(void)
{
    long abi = sys(NR_landlock_create_ruleset, 0, 0, LANDLOCK_CREATE_RULESET_VERSION);
    char line[32], *end = put(line, abi < 0 ? "-" : "");
    end = put_number(end, (u64)(abi < 0 ? -abi : abi));
    put(end, "\n");
    say(1, line);
    leave(0);
}

/* Holds the namespaces it was started in until its input ends; says when they can be opened. */
static _Noreturn void wait_for_end(void)
{
    char byte;
    say(1, "\n");
    while (sys(NR_read, 0, &byte, 1) > 0)
        ;
    leave(0);
}

/* 0-2 must be something before anything is opened, or a slot would become the command's stdin. */
static void occupy_standard_descriptors(void)
{
    long fd;
    if (sys(NR_fcntl, 0, F_GETFD, 0) >= 0 && sys(NR_fcntl, 1, F_GETFD, 0) >= 0 && sys(NR_fcntl, 2, F_GETFD, 0) >= 0)
        return;
    do
        fd = sys(NR_openat, AT_FDCWD, "/dev/null", O_RDWR);
    while (fd >= 0 && fd < 3);
    if (fd >= 0)
        sys(NR_close, fd);
}

static void block_signals(void)
{
    u64 all = ~0ull;
    /* An inherited SIG_IGN for SIGCHLD would have the kernel reap our children for us. */
    struct kernel_sigaction by_default = {0};
    sys(NR_rt_sigaction, SIGCHLD, &by_default, 0, sizeof(u64));
    sys(NR_rt_sigprocmask, SIG_BLOCK, &all, &launch.mask, sizeof(u64));
}

/* The kernel's auxiliary vector lies behind the environment. */
static u64 page_size(char **env)
{
    while (*env)
        env++;
    for (u64 *aux = (u64 *)(env + 1); aux[0]; aux += 2)
        if (aux[0] == AT_PAGESZ)
            return aux[1];
    return 4096;
}

_Noreturn void launcher(long *stack)
{
    long argc = stack[0];
    char **argv = (char **)(stack + 1);
    launch.env = argv + argc + 1;
    launch.page = page_size(launch.env);
    occupy_standard_descriptors();
    if (argc == 2 && equal(argv[1], "--abi"))
        print_landlock_abi();
    if (argc == 2 && equal(argv[1], "--wait"))
        wait_for_end();
    if (argc >= 3 && argc <= 4 && equal(argv[1], "--plan-fd") && is_between(argv[2], 3, 1 << 30) &&
        (argc == 3 || is_between(argv[3], 1, 1 << 30))) {
        if (argc == 3)
            map_plan((int)number(argv[2]));
        else
            receive_plan((int)number(argv[2]), number(argv[3]));
        take_words();
    } else {
        launch.word = argv + 1;
        launch.words = argc - 1;
    }
    check_plan();
    block_signals();
    carry_on();
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start: xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call launcher\n");
#else
__asm__(".globl _start\n_start: mov x29, #0\n mov x30, #0\n mov x0, sp\n bl launcher\n");
#endif
