/* The last steps, in the process that becomes the command. */
#include "launch.h"

void op_chdir(void)
{
    must(sys(NR_fchdir, slot_of(0)));
}

void op_session(void)
{
    must(sys(NR_setsid));
}

static const char *variable(const char *name)
{
    size_t n = length(name);
    for (char **entry = launch.env; *entry; entry++) {
        size_t i = 0;
        while (i < n && (*entry)[i] == name[i])
            i++;
        if (i == n && (*entry)[n] == '=')
            return *entry + n + 1;
    }
    return 0;
}

static int has_slash(const char *text)
{
    for (; *text; text++)
        if (*text == '/')
            return 1;
    return 0;
}

/* Looked up here, inside: what PATH finds in the jail is what runs, and whatever it is, it runs fenced. */
static long exec_from_path(char **argv, const char *path)
{
    long verdict = -ENOENT;
    for (;;) {
        char file[4096], *end = file;
        size_t n = 0;
        while (path[n] && path[n] != ':')
            n++;
        if (n + length(argv[0]) + 2 <= sizeof file) {
            for (size_t i = 0; i < n; i++)
                *end++ = path[i];
            if (n)
                *end++ = '/';
            put(end, argv[0]);
            long failed = sys(NR_execve, file, argv, launch.env);
            if (failed != -ENOENT && failed != -ENOTDIR && failed != -EACCES)
                return failed;
            if (failed == -EACCES)
                verdict = failed; /* found, not executable; a later directory may still have it */
        }
        if (!path[n])
            return verdict;
        path += n + 1;
    }
}

_Noreturn void run_command(void)
{
    char **argv = launch.word + launch.command;
    filter_environment();
    sys(NR_rt_sigprocmask, SIG_SETMASK, &launch.mask, 0, sizeof(u64));
    const char *path = variable("PATH");
    long failed = !*argv[0]           ? -ENOENT
                  : has_slash(argv[0]) ? sys(NR_execve, argv[0], argv, launch.env)
                                       : exec_from_path(argv, path ? path : "/usr/local/bin:/usr/bin:/bin");
    refuse((int)-failed);
}
