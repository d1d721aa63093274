#include "limitrow/clock.hpp"

namespace limitrow {

Clock::~Clock() = default;

Instant SystemClock::now() const {
  return std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
}

Instant ManualClock::now() const { return Instant{std::chrono::microseconds{now_.load()}}; }

void ManualClock::set(Instant instant) { now_.store(instant.time_since_epoch().count()); }

void ManualClock::advance(std::chrono::microseconds step) { now_.fetch_add(step.count()); }

}  // namespace limitrow
