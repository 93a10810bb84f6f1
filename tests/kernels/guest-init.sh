#!/bin/sh
# PID 1 of the guest: an ordinary small host, then the job of the second disk, its output on the second serial line.
export PATH=/usr/local/bin:/usr/bin:/usr/sbin LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/opt/corral
[ "$(stat -c %u /usr)" = 0 ] || chown -hR 0:0 /etc /opt /root /usr /var # the image was made by an ordinary user
chown 1000:1000 /home/user
mkdir -p /dev/pts /dev/shm
mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t securityfs securityfs /sys/kernel/security
ln -s /proc/self/fd /dev/fd
busybox ip link set lo up
tar -xf /dev/vdb -C /opt --no-same-owner
if grep -q corral.far_home /proc/cmdline; then
	guest-far-home || busybox poweroff -f
fi
# As systemd does for a user: groups of one's own, with the controllers, and oneself in one of them.
mkdir -p /sys/fs/cgroup/user/session
echo "+memory +pids" >/sys/fs/cgroup/cgroup.subtree_control
echo "+memory +pids" >/sys/fs/cgroup/user/cgroup.subtree_control
chown -R 1000:1000 /sys/fs/cgroup/user
busybox stty -F /dev/ttyS1 raw
echo "guest: up"
if [ -e /opt/as-user ]; then
	cd /home/user || exit
	echo $$ >/sys/fs/cgroup/user/session/cgroup.procs
	HOME=/home/user setpriv --reuid 1000 --regid 1000 --clear-groups bash /opt/job >/dev/ttyS1 2>&1 </dev/null
else
	cd /root || exit
	HOME=/root bash /opt/job >/dev/ttyS1 2>&1 </dev/null
fi
echo "guest: status $?"
busybox poweroff -f
