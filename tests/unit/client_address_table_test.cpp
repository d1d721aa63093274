#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "limitrow/client_address.hpp"

namespace limitrow {
namespace {

using Row = std::vector<std::string>;

/// The lines of tests/data/NAME without the first, which names the fields.
std::vector<Row> table(const std::string& name) {
  std::ifstream file{std::string{LIMITROW_SOURCE} + "/tests/data/" + name};
  std::vector<Row> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    Row row{""};
    for (const char c : line) {
      if (c == '\t') {
        row.emplace_back();
      } else {
        row.back() += c;
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

void ignore_warning(const std::string&) {}

TEST(ClientAddressTable, every_case_gives_the_expected_address) {
  const std::vector<Row> rows = table("client_address.tsv");
  ASSERT_EQ(rows.size(), 107U);
  for (const Row& row : rows) {
    ASSERT_EQ(row.size(), 6U) << row[0];
    const auto headers =
        nlohmann::json::parse(row[2]).get<std::vector<std::pair<std::string, std::string>>>();
    std::vector<HeaderLine> lines;
    for (const auto& [name, value] : headers) lines.push_back({name, value});
    const AddressResolver resolver{
        {.header = row[3],
         .trusted = nlohmann::json::parse(row[4]).get<std::vector<std::string>>(),
         .on_warning = ignore_warning}};
    const ClientAddress client = resolver.resolve(row[1], lines);
    EXPECT_EQ(client.address.empty() ? "NONE" : client.address, row[5]) << row[0];
    EXPECT_EQ(client.address.empty(), client.key == ClientAddress::kUnknownKey) << row[0];
    EXPECT_EQ(resolver.explain(row[1], lines).client.address, client.address) << row[0];
  }
}

TEST(ClientAddressTable, every_address_gives_the_expected_key) {
  const std::vector<Row> rows = table("address_key.tsv");
  ASSERT_EQ(rows.size(), 11U);
  for (const Row& row : rows) {
    ASSERT_EQ(row.size(), 4U) << row[0];
    const AddressResolver resolver{
        {.ipv6_prefix = row[2] == "None" ? std::optional<int>{} : std::stoi(row[2])}};
    EXPECT_EQ(resolver.resolve(row[1], {}).key, row[3]) << row[0];
  }
}

}  // namespace
}  // namespace limitrow
