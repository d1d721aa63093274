/// Fork: how a limiter finds out that its process is a copy.
///
/// After fork() the child has the parent's memory, but none of its threads; the connections are
/// the parent's, and a lock may be held by a thread that is not there. So the child must neither
/// use nor destroy what the parent made: it leaves it alone and makes its own.
#pragma once

#include <cstdint>

namespace limitrow::postgres {

/// How many forks this process is away from the first one that asked. Costs one read.
[[nodiscard]] std::uint64_t forks() noexcept;

}  // namespace limitrow::postgres
