#!/bin/sh
# Installs what the tests need: Debian packages (only as root, only what is missing) and the pinned npm
# packages of tests/node. Safe to run again and fast when all is there. Needs node and npm.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
say() { echo "setup: $*"; }

# A program that the tests run, and the Debian package that has it.
missing=
need() { command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }
need tmux tmux
need strace strace
need systemd-analyze systemd
need curl curl
need jq jq
need git git
need mkfs.ext4 e2fsprogs
need mkfs.xfs xfsprogs
need bindfs bindfs
need node nodejs
need npm npm
if [ -n "$missing" ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    say "installing Debian packages:$missing"
    apt-get update -qq
    # The list is meant to be split into words.
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
  else
    say "missing:$missing (install them; this script does it only as root with apt-get)" >&2
    exit 1
  fi
else
  say "programs are all there"
fi

node=$here/node
# What was installed last, and that it is still there.
want=$(cat "$node/package.json" "$node/package-lock.json" | cksum)
stamp=$node/node_modules/.installed
there=yes
for program in claude codex opencode pi; do
  [ -x "$node/node_modules/.bin/$program" ] || there=no
done
if [ $there = yes ] && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then
  say "npm packages are all there"
  exit 0
fi
if ! command -v npm >/dev/null 2>&1; then
  say "missing: node and npm (version 20 or newer)" >&2
  exit 1
fi
say "installing npm packages of tests/node (about 1.4 GB)"
# The engine wish of the package concerns its installer only; the program is one native executable.
# Not `npm ci`: it refuses a lock without the builds for other systems, which not every registry has. What the lock
# names is installed as it says, and the lock stays as it is.
npm install --no-save --prefix "$node" --no-audit --no-fund --loglevel=error
# With a home of its own: a program that is only looked at leaves nothing in the user's.
env -i HOME="$node/node_modules/.home" "$node/node_modules/.bin/claude" --version >/dev/null
echo "$want" >"$stamp"
say "npm packages are installed"
