/// limitrow/support: which processes are the children of another, read from /proc without
/// allocating, so that it may be used in a child forked from a program with threads.
///
/// Thread-safety: any thread.
///
///     for_each_child_of(::getpid(), [](pid_t child) { ::kill(child, SIGKILL); });
#pragma once

#include <sys/types.h>

namespace limitrow::support::detail {

void for_each_child_of(pid_t parent, void (*visit)(pid_t child)) noexcept;

}  // namespace limitrow::support::detail
