# php-fpm.sh PHP_FPM JIT_DEBUG SECONDS: a master with two workers, which belong to another user and work for two clients.
fpm=$1 debug=$2 seconds=$3 here=$PWD script=$(dirname "$0")/work.php
printf '[global]\ndaemonize=no\nerror_log=/dev/null\n[www]\nuser=www-data\ngroup=www-data\nlisten=%s/fpm.sock\npm=static\npm.max_children=2\n' "$here" > fpm.conf
for _ in 1 2; do
  (
    for _ in $(seq 50); do [ -S fpm.sock ] && break; sleep 0.1; done
    QUERY_STRING=seconds=$seconds REQUEST_METHOD=GET SCRIPT_FILENAME=$script exec cgi-fcgi -bind -connect "$here/fpm.sock" </dev/null
  ) &
done
exec timeout "$((seconds + 1))" "$fpm" -n -F -y fpm.conf -d zend_extension=opcache -d opcache.enable=1 -d opcache.file_update_protection=0 \
  -d opcache.jit_buffer_size=32M -d opcache.jit=tracing -d opcache.jit_debug="$debug"
