# Writes one C++ source with the text of SQL files as string literals, so that the binary needs no files.
#   cmake -DOUTPUT=x.cpp -DNAMESPACE=a::b -DFILES=one.sql,two.sql -P embed_sql.cmake
# Each file becomes `extern const std::string_view NAME`, where NAME is its name with _ for . and -
# and without the ending .sql; a leading digit gets an m in front (m0001_create_limits_up).
string(REPLACE "," ";" FILES "${FILES}")
set(content "// Made by embed_sql.cmake; changes belong in the .sql files.\n#include <string_view>\n\n")
string(APPEND content "namespace ${NAMESPACE} {\n")
foreach(file IN LISTS FILES)
  get_filename_component(name "${file}" NAME)
  string(REGEX REPLACE "\\.sql$" "" name "${name}")
  string(REGEX REPLACE "[.-]" "_" name "${name}")
  if(name MATCHES "^[0-9]")
    string(PREPEND name "m")
  endif()
  # Read as hex and back, since a semicolon or a bracket means something to CMake in plain text.
  file(READ "${file}" text HEX)
  string(REGEX REPLACE "0d0a" "0a" text "${text}")
  string(REGEX REPLACE "(..)" "\\\\x\\1" text "${text}")
  # Short literals next to each other: compilers limit the length of one.
  string(REGEX REPLACE "(\\\\x0a)" "\\1\"\n    \"" text "${text}")
  string(APPEND content "extern const std::string_view ${name};\n")
  string(APPEND content "const std::string_view ${name} =\n    \"${text}\";\n")
endforeach()
string(APPEND content "}  // namespace ${NAMESPACE}\n")
file(WRITE "${OUTPUT}" "${content}")
