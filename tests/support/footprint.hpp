/// Footprint: the threads and descriptors of this process, to see that none is left behind.
#pragma once

#include <cstddef>
#include <filesystem>
#include <ostream>

namespace limitrow::test {

struct Footprint {
  std::size_t threads = entries_of("/proc/self/task");
  std::size_t descriptors = entries_of("/proc/self/fd");

  friend bool operator==(const Footprint&, const Footprint&) = default;
  friend std::ostream& operator<<(std::ostream& stream, const Footprint& footprint) {
    return stream << footprint.threads << " threads, " << footprint.descriptors << " descriptors";
  }

 private:
  static std::size_t entries_of(const char* directory) {
    const std::filesystem::directory_iterator all{directory};
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
};

}  // namespace limitrow::test
