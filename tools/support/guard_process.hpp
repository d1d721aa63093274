/// limitrow/support: the guard, a small process between a program and its private PostgreSQL.
///
/// The guard, not the program, is the parent of initdb and of the postmaster. It lives until its
/// owner lets go of the socket between the two, which the kernel does for an owner that was killed;
/// then it ends whatever runs below it and removes the directory. It is immune to what usually ends
/// programs: it has a session of its own (a terminal's ctrl-C does not reach it), ignores SIGINT,
/// SIGTERM, SIGHUP, and is not among its owner's children, so that a test runner that kills a whole
/// tree of processes leaves it to its work.
///
/// This header is what server_guard.cpp (the owner's side) and guard_process.cpp (the guard's side)
/// share. Use PrivateServer instead.
///
/// The guard may be forked from a program with threads: run_guard and all below it keep to calls
/// that are safe there (no allocation, no stdio, no locale), which is why it is written in the
/// manner of C.
#pragma once

#include <sys/types.h>

namespace limitrow::support::detail {

/// All that the guard needs, made before the fork.
struct GuardPlan {
  const char* directory = nullptr;  ///< made by the guard, removed by the guard
  const char* initdb_log = nullptr;
  const char* server_log = nullptr;
  const char* pid_file = nullptr;  ///< postmaster.pid, which names the shared memory
  char* const* initdb = nullptr;   ///< argv; argv[0] is a path
  char* const* postgres = nullptr;
  char* const* environment = nullptr;
  bool change_user = false;  ///< initdb and postgres run as uid:gid
  uid_t uid = 0;
  gid_t gid = 0;
  int socket = -1;       ///< requests and replies, one packet each
  int owner_pidfd = -1;  ///< -1 where the kernel has none
};

enum class GuardVerb : char {
  make_directory,  ///< reply: an errno, 0 when made
  initdb,          ///< reply: wait status
  start,           ///< reply: the postmaster's process id, or minus an errno
  look,            ///< reply: 1 while the postmaster runs, else 0
  stop,            ///< fast shutdown, SIGKILL after bound_ms; reply: 0 when all are gone
  kill,            ///< SIGKILL to the postmaster and all below; reply: 0 when all are gone
};

struct GuardRequest {
  GuardVerb verb;
  int bound_ms;
};

struct GuardReply {
  int value;
};

/// The guard's whole life. To be called in the forked child, with all signals blocked.
[[noreturn]] void run_guard(const GuardPlan& plan) noexcept;

}  // namespace limitrow::support::detail
