# chromium.sh SECONDS: a page at work in a renderer of headless Chromium.
printf '<script>window.seconds = %s</script><script>%s</script>' "$1" "$(cat "$(dirname "$0")/work.js")" > page.html
exec timeout "$1" chromium --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" --remote-debugging-port=0 \
  --js-flags='--perf-prof --interpreted-frames-native-stack' "file://$PWD/page.html"
