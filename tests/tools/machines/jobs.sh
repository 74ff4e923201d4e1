# Runs inside the machine: each program by frame pointers and by copies of stacks, and what its own perf states about
# each.
set -x
uname -a
for program in /programs/deep-*; do
  for how in g dwarf; do
    name=$(basename "$program")-$how
    mkdir -p /out/"$name" && cd /out/"$name"
    case $how in g) options="-F 2999 -g" ;; dwarf) options="-F 499 --call-graph dwarf,4096" ;; esac
    perf record -q -k mono -e cpu-clock:u $options -o perf.data "$program" 10
    perf script -i perf.data --no-inline -F comm,tid,time,ip,sym,dso > perf.txt 2> perf.err
    echo "$name: $(grep -c '^[^[:space:]]' perf.txt) samples" > /dev/console
  done
done
