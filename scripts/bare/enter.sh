#!/bin/sh
# enter.sh ROOT USER COMMAND: makes ROOT the root of this mount namespace, and runs the command as the user in a login
# shell. (After a mere chroot, users could not create namespaces.) See test-bare.sh.
set -eu
root=$1 user=$2 command=$3

mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
	touch "$root/dev/$device"
	mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
cd "$root"
pivot_root . mnt
# This shell keeps running, because it must reap orphaned processes.
# shellcheck disable=SC2016 # the inner shell expands $1 and $2
exec chroot . /bin/sh -c 'cd / && umount -l /mnt && su - "$1" -c "$2"; exit $?' sh "$user" "$command"
