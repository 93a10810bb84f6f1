/* Starting the command: a child that borrows our memory until it execs, as vfork does, on a stack of its own. Copying
 * even this small an address space costs more than all of Landlock, and what failed needs no pipe to come back. */
#include "launch.h"

enum { STACK = 64 * 1024 };
static long watched_parent;

/* Runs in the child. */
__attribute__((used)) _Noreturn void command_begins(void)
{
    launch.sharing = 1;
    if (watched_parent) {
        must(sys(NR_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
        if (sys(NR_getppid) != watched_parent)
            leave(EXIT_REFUSED);
    }
    carry_on();
}

static long clone_onto(char *stack_top)
{
#if defined(__x86_64__)
    long ret;
    register long r10 __asm__("r10") = 0;
    register long r8 __asm__("r8") = 0;
    __asm__ volatile("syscall\n"
                     "test %%rax, %%rax\n"
                     "jnz 1f\n"
                     "xor %%ebp, %%ebp\n"
                     "call command_begins\n"
                     "1:\n"
                     : "=a"(ret)
                     : "a"(NR_clone), "D"(CLONE_VM | CLONE_VFORK | SIGCHLD), "S"(stack_top), "d"(0), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return ret;
#else
    register long x8 __asm__("x8") = NR_clone;
    register long x0 __asm__("x0") = CLONE_VM | CLONE_VFORK | SIGCHLD;
    register long x1 __asm__("x1") = (long)stack_top;
    register long x2 __asm__("x2") = 0;
    register long x3 __asm__("x3") = 0;
    register long x4 __asm__("x4") = 0;
    __asm__ volatile("svc 0\n"
                     "cbnz x0, 1f\n"
                     "mov x29, #0\n"
                     "mov x30, #0\n"
                     "bl command_begins\n"
                     "1:\n"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
                     : "x30", "memory");
    return x0;
#endif
}

/* Returns once the command has been exec'ed, or with launch.error set if it never will. `parent`: the pid whose
 * death is the command's too, or 0. */
long start_command(int parent)
{
    long stack = must(sys(NR_mmap, 0, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    watched_parent = parent;
    /* It may have given its capabilities up while we still hold ours: whoever could look into its memory, as others in
     * a jail that is joined can, would write into ours. The exec makes the command's own memory as any other. */
    must(sys(NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0));
    long child = must(clone_onto((char *)stack + STACK));
    launch.sharing = 0;
    sys(NR_munmap, stack, STACK);
    return child;
}
