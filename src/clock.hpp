/// The clock that options name, or the system's where they name none.
#pragma once

#include "limitrow/clock.hpp"

namespace limitrow {

[[nodiscard]] inline const Clock& clock_or_system(const Clock* clock) {
  static const SystemClock system_clock;
  return clock == nullptr ? system_clock : *clock;
}

}  // namespace limitrow
