#include "postgres/conninfo.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "limitrow/errors.hpp"

namespace limitrow::postgres {
namespace {

std::map<std::string, std::string> as_map(const ConnectParameters& parameters) {
  return {parameters.begin(), parameters.end()};
}

TEST(Conninfo, settings_join_the_options_that_the_caller_gave) {
  const auto targets = connect_parameters("host=/run options='-c work_mem=1MB'",
                                          {{"search_path", ""}, {"isolation", "read committed"}});
  ASSERT_EQ(targets.size(), 1U);
  EXPECT_EQ(as_map(targets[0])["options"],
            "-c work_mem=1MB -c search_path= -c isolation=read\\ committed");
}

TEST(Conninfo, options_of_the_environment_are_kept) {
  ::setenv("PGOPTIONS", "-c geqo=off", 1);
  const auto targets = connect_parameters("host=/run", {{"jit", "off"}});
  ::unsetenv("PGOPTIONS");
  EXPECT_EQ(as_map(targets.at(0))["options"], "-c geqo=off -c jit=off");
}

TEST(Conninfo, several_hosts_are_several_targets_and_only_a_writable_one_will_do) {
  const auto targets = connect_parameters("postgresql://a:1,b:2/app", {});
  ASSERT_EQ(targets.size(), 2U);
  EXPECT_EQ(as_map(targets[0])["host"], "a");
  EXPECT_EQ(as_map(targets[0])["port"], "1");
  EXPECT_EQ(as_map(targets[1])["host"], "b");
  EXPECT_EQ(as_map(targets[1])["port"], "2");
  EXPECT_EQ(as_map(targets[1])["target_session_attrs"], "read-write");
  EXPECT_EQ(as_map(targets[1])["dbname"], "app");
}

TEST(Conninfo, one_port_serves_all_hosts) {
  const auto targets = connect_parameters("host=a,b port=7", {});
  ASSERT_EQ(targets.size(), 2U);
  EXPECT_EQ(as_map(targets[1])["port"], "7");
}

TEST(Conninfo, a_string_that_cannot_be_read_is_an_error_without_the_string) {
  for (const char* text :
       {"secret", "password='sesame", "postgresql://u:sesame@[::1", "hots=sesame"}) {
    try {
      (void)connect_parameters(text, {});
      FAIL() << text;
    } catch (const OptionError& error) {
      EXPECT_EQ(std::string{error.what()}.find("sesame"), std::string::npos);
      EXPECT_EQ(std::string{error.what()}.find("secret"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace limitrow::postgres
