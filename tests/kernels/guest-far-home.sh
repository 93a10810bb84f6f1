#!/bin/sh
# The user's home on NFS: the kernel's own server and client, over loopback. What mountd and exportfs would tell the
# server is told by hand: who asks, what is exported to them, and which file system the root of it stands for.
set -e
forever=2147483647
mkdir -p /srv/home /var/lib/nfs/v4recovery
chown 1000:1000 /srv/home
mount -t nfsd nfsd /proc/fs/nfsd
echo "-2 -3 +4 +4.1 +4.2" >/proc/fs/nfsd/versions
echo "nfsd 127.0.0.1 $forever here" >/proc/net/rpc/auth.unix.ip/channel
echo "here /srv/home $forever $((0x2402)) 65534 65534 0" >/proc/net/rpc/nfsd.export/channel # any port, no tree check, fsid
echo "here 1 \x00000000 $forever /srv/home" >/proc/net/rpc/nfsd.fh/channel
echo 10 >/proc/fs/nfsd/nfsv4leasetime
echo 10 >/proc/fs/nfsd/nfsv4gracetime # in which it waits for clients of an earlier life; the least there is
echo "tcp 2049" >/proc/fs/nfsd/portlist
echo 2 >/proc/fs/nfsd/threads
mount -i -t nfs4 -o vers=4.2,proto=tcp,addr=127.0.0.1,clientaddr=127.0.0.1 127.0.0.1:/ /home/user
