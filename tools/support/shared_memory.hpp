/// limitrow/support: removes the System V shared memory of a PostgreSQL that was killed.
///
/// After a SIGKILL the segment stays in the kernel until the next start in the same directory;
/// where there will be none it has to be removed by hand. Allocates nothing, so that the guard may
/// use it.
///
/// Thread-safety: any thread.
///
///     remove_shared_memory("/tmp/limitrow-pg-0123456789ab/data/postmaster.pid");
#pragma once

namespace limitrow::support::detail {

/// Does nothing if there is no such file (an orderly shutdown removes it), or if the segment it
/// names is in use or is another's.
void remove_shared_memory(const char* postmaster_pid_file) noexcept;

}  // namespace limitrow::support::detail
