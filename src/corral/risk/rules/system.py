"""The machine: processes, services, users, disks, power."""

from __future__ import annotations

from collections.abc import Iterator

from corral.risk.levels import CAUTION, DANGEROUS, NETWORK, SAFE, Finding
from corral.risk.looks import every_operand
from corral.risk.table import Base, Call, Globals, Look, Sharp


def everything_killed(call: Call) -> Iterator[Finding]:
    if "-1" in call.words[1:]:
        yield Finding(DANGEROUS, "kills every process", (), hardline=True)


def killed_jobs(call: Call) -> Iterator[Finding]:
    operands = call.operands()
    if call.words[:1] in (["-l"], ["-L"], ["-0"]):
        return
    if not operands or not all(word.startswith("%") for word in operands):
        yield Finding(DANGEROUS, "kills processes")


def run_level(call: Call) -> Iterator[Finding]:
    if any(word in ("0", "6") for word in call.words):
        yield Finding(DANGEROUS, "stops the machine", (), hardline=True)


def disks(call: Call) -> Iterator[Finding]:
    for finding in every_operand(call):
        if finding.hardline:
            yield finding


MACHINE = (
    Base("kill", SAFE, "lists signals or asks whether a process lives", needs="-l -L -0", only="-l -L -0"),
    Base("kill", CAUTION, "signals jobs of this shell"),
    Base("killall pkill skill snice xkill", DANGEROUS, "kills processes"),
    Base("dd", DANGEROUS, "copies raw data over its target"),
    Base("mkfs mke2fs mkswap mkdosfs mkntfs newfs", DANGEROUS, "makes a file system"),
    Sharp("mkfs mke2fs mkdosfs mkntfs newfs", DANGEROUS, "makes a file system", hardline=True),
    Base(
        "fdisk parted sfdisk cfdisk gdisk sgdisk wipe wipefs blkdiscard fsck e2fsck tune2fs resize2fs "
        "hdparm nvme cryptsetup lvremove vgremove pvremove mdadm zpool zfs btrfs shred truncate swapon "
        "swapoff losetup dmsetup debugfs badblocks",
        DANGEROUS,
        "changes disks or destroys data",
    ),
    Base("reboot shutdown halt poweroff", DANGEROUS, "stops the machine"),
    Sharp("reboot shutdown halt poweroff", DANGEROUS, "stops the machine", hardline=True),
    Base("init telinit", DANGEROUS, "changes the run level"),
    Globals(
        "systemctl",
        "-q -a -l --user --system --no-pager --quiet --all --full --failed --now --no-legend --plain -t= "
        "-n= -o= -p= -H= -M= --type= --state= --property= --lines=",
    ),
    Base(
        "systemctl",
        SAFE,
        "reads services",
        sub="status|show|list-units|list-unit-files|list-timers|list-dependencies|list-sockets|"
        "list-jobs|is-active|is-enabled|is-failed|cat|help|get-default|show-environment",
    ),
    Base(
        "systemctl",
        DANGEROUS,
        "stops the machine",
        sub="poweroff|reboot|halt|kexec|suspend|hibernate|soft-reboot|rescue|emergency|exit",
    ),
    Sharp("systemctl", DANGEROUS, "stops the machine", sub="poweroff|reboot|halt|kexec", hardline=True),
    Base(
        "systemctl",
        DANGEROUS,
        "stops or changes services",
        sub="stop|restart|disable|mask|kill|isolate|reset-failed|try-restart|link|edit|revert|"
        "set-default|enable",
    ),
    Base("systemctl", CAUTION, "changes services"),
    Base("service rc-service rc-update launchctl initctl", CAUTION, "changes services"),
    Sharp("service rc-service", DANGEROUS, "stops services", args=r"stop|restart"),
    Base(
        "loginctl hostnamectl timedatectl localectl networkctl resolvectl busctl machinectl",
        CAUTION,
        "changes the system",
    ),
    Base("crontab", SAFE, "lists what runs later", needs="-l", only="-l -u=", most=0),
    Base("crontab at batch", DANGEROUS, "sets what runs later, outside any jail"),
    Base("atq", SAFE, "lists what runs later"),
    Base(
        "useradd userdel usermod groupadd groupdel groupmod adduser deluser passwd chpasswd chsh visudo "
        "vipw gpasswd newgrp sg setcap setfacl chattr",
        DANGEROUS,
        "changes users and rights",
    ),
    Base(
        "insmod rmmod modprobe kexec sysctl iptables ip6tables nft ufw firewall-cmd setenforce setprop "
        "grub-install update-grub efibootmgr",
        DANGEROUS,
        "changes the kernel or the firewall",
    ),
    Base("sysctl", DANGEROUS, "changes the kernel"),
    Base("mount", SAFE, "lists mounts", most=0),
    Base("mount umount", DANGEROUS, "mounts or unmounts a file system"),
    Base("gdb", CAUTION, "debugs a program"),
    Base("screen tmux dtach", CAUTION, "leaves programs running"),
    Base("xdg-open open start dbus-send gdbus notify-send xdotool", CAUTION, "asks another program to act"),
    Base(
        "nginx apachectl httpd",
        SAFE,
        "checks its settings",
        needs="-t -T -v -V",
        only="-t -T -v -V -q",
        most=0,
    ),
    Base("nginx apachectl httpd", CAUTION, "runs a server"),
    Base("gpg gpg2 openssl pass age", CAUTION, "works with keys"),
    Base("fc", CAUTION, "runs commands again"),
    Look("kill", everything_killed),
    Look("kill", killed_jobs),
    Look("init telinit", run_level),
    Look("shred wipe blkdiscard mkswap badblocks", disks),
    Sharp("wipefs", DANGEROUS, "wipes a raw disk", options="-a --all", args=r"/dev/.*", hardline=True),
    Sharp(
        "systemctl",
        DANGEROUS,
        "stops the machine",
        args=r"(?:poweroff|reboot|halt|kexec)\.target",
        hardline=True,
    ),
    Sharp(
        "systemctl", CAUTION, "acts on another machine", options="-H -M --host --machine", forms=(NETWORK,)
    ),
    Sharp("loginctl", DANGEROUS, "stops the machine", args=r"poweroff|reboot|halt", hardline=True),
)

OPENSSL = (
    Globals("openssl"),
    Base(
        "openssl",
        SAFE,
        "reads",
        sub="x509|verify|crl|req|rsa|pkey",
        only="-in= -noout -text -subject -issuer -dates -fingerprint -sha256 -pubkey -purpose -serial "
        "-modulus -enddate -startdate -check -verify -inform= -nameopt= -ext=",
    ),
    Base("openssl", SAFE, "prints its version", sub="version"),
    Base("openssl", SAFE, "measures speed", sub="speed"),
    Base("openssl", CAUTION, "works with keys"),
    Sharp("openssl", DANGEROUS, "loads foreign code", options="-engine -provider"),
)

TABLE = (*OPENSSL, *MACHINE)
