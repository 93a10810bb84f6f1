#!/bin/busybox sh
# shellcheck shell=dash
# PID 1 of the initial file system: load the modules, find the disk, go there.
busybox=/bin/busybox
$busybox mount -t proc proc /proc
$busybox mount -t sysfs sysfs /sys
$busybox mount -t devtmpfs devtmpfs /dev
lists=/modules
$busybox grep -q corral.far_home /proc/cmdline && lists="$lists /far-home-modules"
# shellcheck disable=SC2086 # a list of names
for module in $($busybox cat $lists); do
	$busybox insmod "/lib/modules/$module"
done
waited=0
while [ ! -b /dev/vda ] && [ $waited -lt 100 ]; do
	$busybox sleep 0.1
	waited=$((waited + 1))
done
$busybox mount -t ext4 /dev/vda /root || $busybox poweroff -f
for directory in proc sys dev; do
	$busybox mount -o move /$directory /root/$directory
done
exec $busybox switch_root /root /sbin/guest-init
