/// limitrow/support: what this machine offers to a private PostgreSQL: binaries, a user to run as,
/// a directory to live under. Use PrivateServer instead.
///
/// Thread-safety: any thread (they read environment variables, as getenv does).
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace limitrow::support::detail {

/// The directory that holds both initdb and postgres: LIMITROW_PG_BINDIR if it is set, else the
/// highest version under /usr/lib/postgresql, else what pg_config says, else where the initdb of
/// PATH lives. Throws std::runtime_error that names the Debian package if there is none.
[[nodiscard]] std::string find_server_binaries();

struct ServerUser {
  std::string name;
  uid_t uid;
  gid_t gid;
};

/// PostgreSQL refuses to run as root: for root the user to run it as, `postgres` if there is one,
/// else `nobody`; nothing for anybody else, who runs it as themselves.
[[nodiscard]] std::optional<ServerUser> find_server_user();

/// TMPDIR, or /tmp where TMPDIR is unset, is no directory that `user` can enter, or is too long for
/// a Unix socket below it (a path of at most 107 bytes).
[[nodiscard]] std::string find_temporary_directory(const std::optional<ServerUser>& user);

}  // namespace limitrow::support::detail
