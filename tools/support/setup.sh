# shellcheck shell=bash
# What tools/quickstart, tools/test and .ci/run share: timed steps and the packages of the set-up.
# To be sourced, with `set -euo pipefail` in force. Needs bash, coreutils, dpkg and apt alone.

# What building, testing and the demo need on Debian 12. The PostgreSQL server is apart, in
# server_is_there below: any version will do, and a server package wants care.
# shellcheck disable=SC2034  # used by those who source this
limitrow_packages=(
  build-essential cmake ninja-build pkgconf
  libpqxx-dev libpq-dev libssl-dev libutf8proc-dev libcli11-dev nlohmann-json3-dev libgtest-dev
)

# What some tests use besides: network namespaces, a pooler, pg_cron, systemd-analyze, man, zsh for its completions.
# shellcheck disable=SC2034
limitrow_test_packages=(iproute2 pgbouncer postgresql-15-cron systemd man-db zsh)

limitrow_step=''

now_us() { printf '%s' "${EPOCHREALTIME//[!0-9]/}"; }

# took START: the time since START (in microseconds) as "12.3 s".
took() {
  local tenths=$((($(now_us) - $1 + 50000) / 100000))
  printf '%d.%d s' $((tenths / 10)) $((tenths % 10))
}

# step NAME COMMAND...: says what is done, does it, says how long it took. A command that fails ends
# the script; it is not run as a condition, where bash would forget `set -e` inside functions.
step() {
  limitrow_step=$1
  limitrow_step_start=$(now_us)
  shift
  printf '==> %s\n' "$limitrow_step"
  "$@"
  printf '    %s: %s\n' "$limitrow_step" "$(took "$limitrow_step_start")"
  limitrow_step=''
}

report_failed_step() {
  if [[ -n $limitrow_step ]]; then
    printf '==> FAILED after %s: %s\n' "$(took "$limitrow_step_start")" "$limitrow_step" >&2
  fi
}
trap report_failed_step EXIT

as_root() {
  if [[ $(id -u) == 0 ]]; then "$@"; else sudo "$@"; fi
}

server_is_there() {
  local initdb
  [[ -z ${LIMITROW_PG_BINDIR:-} ]] || return 0
  for initdb in /usr/lib/postgresql/*/bin/initdb; do
    [[ ! -x $initdb || ! -x ${initdb%initdb}postgres ]] || return 0
  done
  return 1
}

# The server package of this release: postgresql-15 on Debian 12, elsewhere what the package
# "postgresql" stands for.
server_package() {
  local line
  if ! apt-cache show postgresql-15 >/dev/null 2>&1; then
    while read -r line; do
      if [[ $line =~ ^Depends:\ (postgresql-[0-9]+)$ ]]; then
        printf '%s' "${BASH_REMATCH[1]}"
        return
      fi
    done < <(apt-cache depends postgresql 2>/dev/null)
  fi
  printf 'postgresql-15'
}

# quietly COMMAND...: shows what the command said only if it fails.
quietly() {
  local said
  said=$("$@" 2>&1) || {
    printf '%s\n' "$said" >&2
    return 1
  }
}

apt_install() {
  # `sudo env`, since sudo drops variables.
  quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@"
}

# Installing a server package makes a cluster "main" and starts it on port 5432 (and again at each
# boot). limitrow wants the programs alone, so that is turned off for the length of the
# installation: postgresql-common reads its settings, this one too, from createcluster.d as well, a
# directory that may be filled before the package is there. An edited createcluster.conf would make a
# later upgrade ask about the change. Whoever wants a system-wide server later makes one with
# `pg_createcluster VERSION main --start`.
# PgBouncer, which some tests start for themselves, would be started too: policy-rc.d keeps services
# from it, unless the machine has a policy of its own.
apt_install_without_services() (
  directory=/etc/postgresql-common/createcluster.d
  # After every other file there, whose settings it has to win over.
  file=$directory/zz-limitrow-setup.conf
  made=()
  for path in "${directory%/*}" "$directory"; do
    [[ -d $path ]] || made=("$path" "${made[@]}")
  done
  policy=/usr/sbin/policy-rc.d
  [[ ! -e $policy ]] || policy=''
  # shellcheck disable=SC2317  # reached by the trap
  restore() {
    as_root rm -f "$file" ${policy:+"$policy"}
    for path in "${made[@]}"; do
      # By now the package may have put its own files there; then the directory is no longer ours.
      as_root rmdir --ignore-fail-on-non-empty "$path"
    done
  }
  trap restore EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  as_root mkdir -p "$directory"
  printf '# Temporary, from the set-up of limitrow.\ncreate_main_cluster = false\n' |
    as_root tee "$file" >/dev/null
  if [[ -n $policy ]]; then
    printf '#!/bin/sh\n# Temporary, from the set-up of limitrow.\nexit 101\n' |
      as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
  fi
  apt_install "$@"
)

# install_packages PACKAGE...: installs the server and those of the packages that are missing. If
# none is, apt is not called at all.
install_packages() {
  local package status installed=' ' missing=() server=()
  if ! command -v dpkg-query >/dev/null; then
    printf '    not a Debian system: nothing is installed. Needed: a PostgreSQL server and what\n'
    printf '    these packages hold: %s\n' "$*"
    return
  fi
  # dpkg-query fails if it does not know one of them, and prints the others.
  while read -r package status; do
    [[ $status != installed ]] || installed+="$package "
  done < <(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    [[ $installed == *" $package "* ]] || missing+=("$package")
  done
  server_is_there || server=(postgresql)
  if ((${#missing[@]} + ${#server[@]} == 0)); then
    printf '    all packages are there\n'
    return
  fi

  if [[ $(id -u) != 0 ]] && ! command -v sudo >/dev/null; then
    ((${#server[@]} == 0)) || missing+=("$(server_package)")
    {
      printf 'Packages are missing, and installing them takes root or sudo. As root, run\n\n'
      printf '  apt-get update && apt-get install -y --no-install-recommends %s\n\n' "${missing[*]}"
      printf 'and start this again.'
      ((${#server[@]} == 0)) ||
        printf ' (Debian then starts a PostgreSQL server on port 5432 too, which limitrow does not use.)'
      printf '\n'
    } >&2
    return 1
  fi
  # A foreign source that does not answer need not matter: what is missing is seen by install.
  quietly as_root apt-get update || printf '    apt-get update failed; going on with what is known\n' >&2
  # Only now are package names known for certain: a fresh machine has no lists.
  ((${#server[@]} == 0)) || server=("$(server_package)")
  missing+=("${server[@]}")
  printf '    installing, which may take some minutes: %s\n' "${missing[*]}"
  apt_install_without_services "${missing[@]}"
}
