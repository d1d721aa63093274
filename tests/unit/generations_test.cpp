#include "memory/generations.hpp"

#include <gtest/gtest.h>

namespace limitrow::memory {
namespace {

algorithm::State open_state(std::int64_t tokens) {
  algorithm::State state;
  state.tokens = tokens;
  state.expires_at = 1'000'000;
  return state;
}

TEST(Generations, a_key_in_use_survives_any_number_of_turns_with_its_count_whole) {
  Generations<algorithm::State> generations{4};
  generations.insert("kept", open_state(7), 0);
  for (int i = 0; i < 100; ++i) {
    generations.insert("other" + std::to_string(i), open_state(1), 0);
    if (i % 3 == 0) {
      const algorithm::State* state = generations.use("kept", 0);
      ASSERT_NE(state, nullptr) << i;
      EXPECT_EQ(state->tokens, 7);
    }
  }
}

TEST(Generations, a_key_is_kept_while_fewer_others_than_a_generation_holds_were_used) {
  Generations<algorithm::State> generations{4};
  generations.insert("kept", open_state(7), 0);
  for (int i = 0; i < 3; ++i) generations.insert("other" + std::to_string(i), open_state(1), 0);
  EXPECT_NE(generations.find("kept"), nullptr);
  for (int i = 3; i < 8; ++i) generations.insert("other" + std::to_string(i), open_state(1), 0);
  EXPECT_EQ(generations.find("kept"), nullptr) << "a flood of new keys can make it forget";
}

TEST(Generations, never_more_than_two_generations_of_keys) {
  Generations<algorithm::State> generations{8};
  for (int i = 0; i < 1000; ++i) {
    generations.insert("key" + std::to_string(i), open_state(1), 0);
    EXPECT_LE(generations.size(), 16U);
  }
}

TEST(Generations, closed_keys_go_before_a_live_one_does) {
  Generations<algorithm::State> generations{4};
  constexpr std::int64_t kNow = 100'000'000;
  algorithm::State live = open_state(7);
  live.expires_at = kNow + 1;
  algorithm::State closed = open_state(1);
  closed.expires_at = kNow - 60'000'000;
  generations.insert("live", live, kNow);
  for (int i = 0; i < 50; ++i) generations.insert("closed" + std::to_string(i), closed, kNow);
  EXPECT_NE(generations.find("live"), nullptr);
}

TEST(Generations, a_key_that_has_just_closed_is_kept_for_a_clock_that_steps_back) {
  Generations<algorithm::State> generations{4};
  generations.insert("closed", open_state(7), 0);
  for (int i = 0; i < 4; ++i)
    generations.insert("other" + std::to_string(i), open_state(1), 1'000'001);
  EXPECT_NE(generations.find("closed"), nullptr);
}

TEST(Generations, a_single_key_per_generation_works) {
  Generations<algorithm::State> generations{1};
  generations.insert("a", open_state(1), 0);
  generations.insert("b", open_state(2), 0);
  EXPECT_NE(generations.use("a", 0), nullptr);
  EXPECT_NE(generations.use("b", 0), nullptr);
  EXPECT_EQ(generations.use("b", 0)->tokens, 2);
}

TEST(Generations, erase_tells_whether_there_was_anything) {
  Generations<algorithm::State> generations{2};
  generations.insert("a", open_state(1), 0);
  EXPECT_TRUE(generations.erase("a"));
  EXPECT_FALSE(generations.erase("a"));
}

}  // namespace
}  // namespace limitrow::memory
