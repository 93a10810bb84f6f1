"""Programs that run another program, each with its own option grammar. `corral.risk.wrappers` reads these rows."""

from __future__ import annotations

from corral.record import Record
from corral.risk.levels import CAUTION, DANGEROUS, EXEC, NETWORK, SAFE, Level

ARGV, TEXT, ARGS, PARALLEL, FIRST, NONE = "argv", "text", "args", "parallel", "first", "none"


class Wrapper(Record):
    """A row. `skip`: operands before the inner command. `rest`: how the inner words are read:

    ``argv`` as they are; ``text`` joined and read by a shell; ``args`` as they are plus unknown words behind them;
    ``first`` only the first, as shell text. `text_option`: an option whose value is shell text. `alone`: the level of
    the bare program. `lookup`: options with which it runs nothing. `writes`: options whose value is a file it writes.
    """

    verb: str
    options: str = ""
    sub: str = ""
    skip: int = 0
    rest: str = ARGV
    text_option: str = ""
    assignments: bool = False
    level: Level = SAFE
    reason: str = "runs another program"
    forms: tuple[str, ...] = ()
    alone: Level = CAUTION
    lookup: str = ""
    writes: str = ""


_DOCKER = (
    "-i -t -d -P -q --rm --privileged --init --read-only --detach --interactive --tty --publish-all --quiet "
    "--no-healthcheck "
    "--sig-proxy -a= -c= -e= -h= -l= -m= -p= -u= -v= -w= --name= --network= --net= --entrypoint= --mount= "
    "--env= --env-file= "
    "--label= --memory= --cpus= --platform= --restart= --hostname= --add-host= --volumes-from= --user= "
    "--workdir= --publish= "
    "--volume= --gpus= --ipc= --pid= --shm-size= --ulimit= --cap-add= --cap-drop= --security-opt= --device= "
    "--log-driver= "
    "--log-opt= --tmpfs= --dns= --expose= --link= --pull= --runtime= --userns= --uts= --cgroupns= "
    "--health-cmd= --detach-keys= "
    "--ip= --mac-address= --memory-swap= --pids-limit= --stop-signal= --stop-timeout= --sysctl= "
    "--cpu-shares= --index= -T"
)
_KUBECTL = (
    "-i -t -q --stdin --tty --quiet -n= -c= -f= --namespace= --container= --context= --kubeconfig= "
    "--cluster= --user="
)
_SSH = (
    "-4 -6 -A -a -C -f -G -g -K -k -M -N -n -q -s -T -t -V -v -X -x -Y -y -B= -b= -c= -D= -E= -e= -F= -I= "
    "-i= -J= -L= -l= "
    "-m= -O= -o= -P= -p= -Q= -R= -S= -W= -w="
)
_SUDO = (
    "-A -b -B -E -e -H -i -K -k -l -N -n -P -S -s -v -V --askpass --background --edit --preserve-env "
    "--set-home --login "
    "--remove-timestamp --reset-timestamp --list --non-interactive --stdin --shell --validate -C= -D= -g= "
    "-h= -p= -R= -r= -T= -t= "
    "-U= -u= --user= --group= --host= --prompt= --chdir= --chroot= --close-from= --role= --type= "
    "--other-user= --command-timeout="
)
_XARGS = (
    "-0 -r -t -p -x -o --null --no-run-if-empty --verbose --interactive --exit --open-tty --show-limits -e "
    "-i -l -a= -d= -E= -I= "
    "-J= -L= -n= -P= -R= -s= -S= --arg-file= --delimiter= --eof --replace --max-lines --max-args= "
    "--max-procs= --max-chars= "
    "--process-slot-var="
)
_PARALLEL = (
    "-k -X -m -0 -q -t -u --keep-order --dry-run --bar --eta --progress --no-notice --will-cite --null "
    "--quote --verbose --line-buffer "
    "--lb --ungroup --group --pipe --shuf --resume --tag --halt-on-error= --colsep= -C= -I= -a= -d= -j= -n= "
    "-N= -L= -P= -S= --jobs= "
    "--arg-file= --delimiter= --max-args= --joblog= --results= --retries= --timeout= --delay= --halt= "
    "--sshlogin= --workdir= --tmpdir= "
    "--load= --memfree= --nice= --block="
)

WRAPPERS = (
    Wrapper(
        "env",
        "-i -0 -v --ignore-environment --null --debug -u= -C= -a= -P= --unset= --chdir= --argv0= "
        "--default-signal --ignore-signal --block-signal",
        assignments=True,
        alone=SAFE,
    ),
    Wrapper(
        "sudo",
        _SUDO,
        assignments=True,
        level=DANGEROUS,
        reason="runs as another user",
        forms=(EXEC,),
        alone=DANGEROUS,
    ),
    Wrapper(
        "doas",
        "-L -n -s -a= -C= -u=",
        level=DANGEROUS,
        reason="runs as another user",
        forms=(EXEC,),
        alone=DANGEROUS,
    ),
    Wrapper(
        "pkexec",
        "--disable-internal-agent --keep-cwd --user=",
        level=DANGEROUS,
        reason="runs as another user",
        forms=(EXEC,),
        alone=DANGEROUS,
    ),
    Wrapper(
        "su runuser",
        "-l -m -p -P -f --login --preserve-environment --pty -s= -g= -G= -u= -w= --shell= --group= "
        "--supp-group=",
        skip=1,
        text_option="-c --command",
        level=DANGEROUS,
        reason="runs as another user",
        forms=(EXEC,),
        alone=DANGEROUS,
    ),
    Wrapper(
        "timeout gtimeout",
        "-v -f -p --foreground --preserve-status --verbose -k= -s= --kill-after= --signal=",
        skip=1,
    ),
    Wrapper("nice", "-n= --adjustment= -#", alone=SAFE),
    Wrapper("ionice", "-t --ignore -c= -n= --class= --classdata=", alone=SAFE),
    Wrapper(
        "chrt", "-a -b -f -i -o -r -R -v --all-tasks --batch --fifo --idle --other --rr -T= -P= -D=", skip=1
    ),
    Wrapper("taskset", "-a --all-tasks -c --cpu-list", skip=1),
    Wrapper("nohup setarch linux32 linux64 catchsegv", "-R -L -X -Z -3"),
    Wrapper("setsid", "-c -f -w --ctty --fork --wait"),
    Wrapper("stdbuf", "-i= -o= -e= --input= --output= --error="),
    Wrapper("unbuffer", "-p"),
    Wrapper(
        "time gtime",
        "-p -v -a -q -V --append --portability --verbose --quiet -f= -o= --format= --output=",
        alone=SAFE,
        writes="-o --output",
    ),
    Wrapper("coproc", "", level=CAUTION, reason="leaves a program running"),
    Wrapper("command", "-p", alone=SAFE, lookup="-v -V"),
    Wrapper("builtin", "", alone=SAFE),
    Wrapper("exec", "-c -l -a=", alone=SAFE, level=CAUTION, reason="replaces the shell"),
    Wrapper("noglob nocorrect - then do else elif if while until !", ""),
    Wrapper("busybox toybox", "", level=SAFE),
    Wrapper("xargs gxargs", _XARGS, rest=ARGS, alone=SAFE),
    Wrapper(
        "parallel", _PARALLEL, rest=PARALLEL, level=CAUTION, reason="runs a program many times", forms=(EXEC,)
    ),
    Wrapper(
        "watch",
        "-b -c -C -d -e -g -p -r -t -w -x --beep --color --differences --errexit --chgexit --precise "
        "--no-title --exec -n= -q= --interval= --equexit=",
        rest=TEXT,
        level=CAUTION,
        reason="runs a program again and again",
    ),
    Wrapper(
        "flock",
        "-e -x -n -o -s -u -F --exclusive --nonblock --nb --close --shared --unlock --no-fork --verbose -E= "
        "-w= --timeout= --wait= --conflict-exit-code=",
        skip=1,
        text_option="-c --command",
        level=CAUTION,
        reason="takes a lock",
    ),
    Wrapper(
        "script",
        "-a -e -f -q -h -V --append --flush --quiet --return --force -B= -E= -I= -m= -o= -O= -T= -t= "
        "--echo= --log-io= --log-in= --log-out= --log-timing=",
        rest=NONE,
        text_option="-c --command",
        level=CAUTION,
        reason="records into a file",
    ),
    Wrapper(
        "chroot",
        "--skip-chdir --userspec= --groups=",
        skip=1,
        level=DANGEROUS,
        reason="runs in another root",
        forms=(EXEC,),
    ),
    Wrapper(
        "unshare",
        "-c -f -i -m -n -p -r -u -U -C -T --fork --ipc --mount --net --pid --user --uts --cgroup --time "
        "--map-root-user --map-current-user --keep-caps --map-users= --map-groups= --mount-proc "
        "--propagation= -R= -w= -S= -G= --root= --wd= --setuid= --setgid= --kill-child",
        level=CAUTION,
        reason="makes namespaces",
        forms=(EXEC,),
    ),
    Wrapper(
        "nsenter",
        "-a -F -m -u -i -n -p -C -U -T -r -w -t= -S= -G= --target= --all --mount --uts --ipc --net --pid "
        "--user",
        level=DANGEROUS,
        reason="enters other namespaces",
        forms=(EXEC,),
    ),
    Wrapper(
        "systemd-run",
        "-d -G -P -q -r -t -S --user --system --scope --pty --pipe --wait --quiet --collect --shell "
        "--no-block --remain-after-exit --no-ask-password --same-dir -E= -M= -p= -u= -H= --unit= "
        "--property= --description= --slice= --uid= --gid= --nice= --working-directory= --setenv= "
        "--on-calendar= --on-active=",
        level=DANGEROUS,
        reason="has the system's manager run it, outside any jail",
        forms=(EXEC,),
    ),
    Wrapper(
        "bwrap firejail proot fakeroot fakechroot strace ltrace valgrind perf rr dbus-run-session xvfb-run",
        "-f -q -v -c -a -o= -e= -p= -s= -S= -w= -n=",
        level=CAUTION,
        reason="runs a program in a special way",
    ),
    Wrapper(
        "ssh", _SSH, skip=1, rest=TEXT, level=CAUTION, reason="runs on another machine", forms=(NETWORK,)
    ),
    Wrapper("docker podman nerdctl", _DOCKER, sub="run", skip=1, level=CAUTION, reason="runs in a container"),
    Wrapper(
        "docker podman nerdctl", _DOCKER, sub="exec", skip=1, level=CAUTION, reason="runs in a container"
    ),
    Wrapper(
        "docker podman nerdctl",
        _DOCKER,
        sub="container run",
        skip=1,
        level=CAUTION,
        reason="runs in a container",
    ),
    Wrapper(
        "docker podman nerdctl",
        _DOCKER,
        sub="container exec",
        skip=1,
        level=CAUTION,
        reason="runs in a container",
    ),
    Wrapper(
        "docker podman",
        _DOCKER + " --no-deps",
        sub="compose run",
        skip=1,
        level=CAUTION,
        reason="runs in a container",
    ),
    Wrapper(
        "docker podman", _DOCKER, sub="compose exec", skip=1, level=CAUTION, reason="runs in a container"
    ),
    Wrapper(
        "docker-compose",
        _DOCKER + " --no-deps",
        sub="run",
        skip=1,
        level=CAUTION,
        reason="runs in a container",
    ),
    Wrapper("docker-compose", _DOCKER, sub="exec", skip=1, level=CAUTION, reason="runs in a container"),
    Wrapper("kubectl oc", _KUBECTL, sub="exec", skip=1, level=CAUTION, reason="runs in a container"),
    Wrapper(
        "poetry pdm hatch pipenv rye",
        "",
        sub="run",
        level=CAUTION,
        reason="runs in the project's environment",
    ),
    Wrapper(
        "uv",
        "--no-sync --frozen --locked --isolated --no-project -q --quiet -v --extra= --group= --with= "
        "--python= -p= --project= --directory=",
        sub="run",
        level=CAUTION,
        reason="runs in the project's environment",
    ),
    Wrapper(
        "bundle",
        "--keep-file-descriptors --gemfile=",
        sub="exec",
        level=CAUTION,
        reason="runs in the project's environment",
    ),
    Wrapper(
        "conda mamba micromamba",
        "--no-capture-output --live-stream -n= -p= --name= --prefix= --cwd=",
        sub="run",
        level=CAUTION,
        reason="runs in the project's environment",
    ),
    Wrapper("direnv", "", sub="exec", skip=1, level=CAUTION, reason="runs in a directory's environment"),
    Wrapper("rustup", "--install", sub="run", skip=1, level=CAUTION, reason="runs in a tool chain"),
    Wrapper(
        "eval", "", rest=TEXT, level=DANGEROUS, reason="runs text as a command", forms=(EXEC,), alone=SAFE
    ),
    Wrapper(
        "trap",
        "",
        rest=FIRST,
        level=DANGEROUS,
        reason="runs text as a command later",
        forms=(EXEC,),
        alone=SAFE,
        lookup="-l -p",
    ),
)
