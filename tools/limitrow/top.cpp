#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <iostream>
#include <memory>
#include <thread>

#include "common.hpp"

namespace limitrow::cli {
namespace {

struct Options {
  std::int64_t limit = TopOptions{}.limit;
  std::string rule;
  std::string by = "fullness";
  bool watch = false;
  std::string interval = "2s";
};

/// In UTC, whatever the machine's time zone is.
std::string iso_time(Instant instant) {
  const std::time_t seconds =
      std::chrono::floor<std::chrono::seconds>(instant).time_since_epoch().count();
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text, length};
}

/// The parts with hashes cut to what a person compares: "hmac:1a2b3c4d5e6f...".
std::string readable(const std::string& key) {
  constexpr std::size_t kHash = 64;
  constexpr std::size_t kShown = 12;
  std::string shown;
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (key[i] != '#') {
      shown += key[i];
      continue;
    }
    const bool hmac = key.compare(i, 5, "#hmac") == 0;
    const std::size_t hash = i + (hmac ? 6 : 1);
    shown += (hmac ? "hmac:" : "digest:") + key.substr(std::min(hash, key.size()), kShown) + "...";
    i = hash + kHash - 1;
  }
  return shown;
}

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;  // Not the later bytes of UTF-8.
  }));
}

void print_table(const std::vector<TopEntry>& entries) {
  std::vector<std::vector<std::string>> rows{
      {"RULE", "KEY", "SPENT", "OF", "FULL", "EMPTY IN", "LAST CHARGE"}};
  for (const TopEntry& entry : entries) {
    rows.push_back({entry.rule + "/" + entry.algorithm, readable(entry.key),
                    std::to_string(entry.spent), std::to_string(entry.capacity),
                    std::to_string(std::lround(entry.fullness * 100)) + " %",
                    format_duration(std::chrono::ceil<std::chrono::seconds>(entry.empty_in)),
                    iso_time(entry.last_charge)});
  }
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - width_of(row[i]), ' ');
      const bool number = i >= 2 && i <= 4;
      const bool last = i + 1 == row.size();
      std::cout << (number ? blanks + row[i] : row[i] + (last ? "" : blanks))
                << (last ? "\n" : "  ");
    }
  }
}

void print_json(const std::vector<TopEntry>& entries) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const TopEntry& entry : entries) {
    nlohmann::ordered_json item{{"key", entry.key},
                                {"rule", entry.rule},
                                {"spent", entry.spent},
                                {"capacity", entry.capacity},
                                {"fullness", entry.fullness},
                                {"empty_in_us", entry.empty_in.count()},
                                {"last_charge", iso_time(entry.last_charge)},
                                {"algorithm", entry.algorithm}};
    item["hashed"] = nullptr;
    if (!entry.hashed.empty()) item["hashed"] = entry.hashed;
    list.push_back(std::move(item));
  }
  print(list);
}

TopOptions::By order(const std::string& word) {
  if (word == "spent") return TopOptions::By::spent;
  if (word == "recent") return TopOptions::By::recent;
  return TopOptions::By::fullness;
}

void run(const Options& options, Common& common) {
  Top top{{.database = common.database,
           .schema = common.schema,
           .role = common.role,
           .budget = common.budget_duration(),
           .limit = options.limit,
           .rule = options.rule,
           .by = order(options.by)}};
  const auto interval = duration_option("--interval", options.interval);
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  while (true) {
    const std::vector<TopEntry> entries = top.read();
    if (options.watch && terminal && !common.json) std::cout << "\033[H\033[2J";
    if (common.json) {
      print_json(entries);
    } else if (!common.quiet) {
      print_table(entries);
    }
    // A reader that went away ends the watch; main says so.
    if (!options.watch || !std::cout.flush()) return;
    std::this_thread::sleep_for(interval);
  }
}

}  // namespace

void add_top(CLI::App& app, Common& common) {
  const auto options = std::make_shared<Options>();
  CLI::App& command =
      add_command(app, common, "top", "The fullest limits, and when each is empty again",
                  [options, &common] { run(*options, common); });
  command.add_option("--limit", options->limit, "How many")->type_name("N")->capture_default_str();
  command.add_option("--rule", options->rule, "Only those of one rule")->type_name("NAME");
  command.add_option("--by", options->by, "fullness, spent (the busiest) or recent (the latest)")
      ->type_name("ORDER")
      ->check(CLI::IsMember({"fullness", "spent", "recent"}))
      ->capture_default_str();
  command.add_flag("--watch", options->watch, "Again and again, until ctrl-C");
  command.add_option("--interval", options->interval, "How often, when it watches")
      ->type_name("DURATION")
      ->capture_default_str();
}

}  // namespace limitrow::cli
