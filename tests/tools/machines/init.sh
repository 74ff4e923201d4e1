#!/bin/sh
# PID 1 of the emulated machine: mounts what perf needs, runs the jobs, writes /out as a packed tar onto the disk, powers off.
export PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LC_ALL=C
/bin/busybox mkdir -p /proc /sys /dev /tmp /out /root /run
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox --install -s /bin
mount -t tmpfs tmp /tmp
mount -t tracefs t /sys/kernel/tracing
echo -1 > /proc/sys/kernel/perf_event_paranoid
echo 0 > /proc/sys/kernel/kptr_restrict
echo 0 > /proc/sys/kernel/perf_cpu_time_max_percent
# They depend on each other, in an order that changes with the kernel.
for round in 1 2 3; do for module in /modules/*.ko; do insmod "$module" 2>/dev/null; done; done
[ -e /dev/vda ] || { sleep 1; mdev -s; }
cd /programs && sh ./jobs.sh > /out/log.txt 2>&1
cd /out && tar cf - . | zstd -3 -q > /tmp/out.zst
{ printf '%-512s' "$(stat -c %s /tmp/out.zst)"; cat /tmp/out.zst; } | dd of=/dev/vda bs=65536 conv=fsync 2>/dev/null
sync
poweroff -f
