# The contract in three states: as it is, as the next revision might grow it, and broken.
#   header_as_grown, header_as_broken: folders to include before the SDK's
file(READ "${header}" text)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${header}")

# A slot more at the end, and the next revision.
string(REGEX MATCH "#define TENON_ABI_REVISION ([0-9]+)u" line "${text}")
math(EXPR next "${CMAKE_MATCH_1} + 1")
string(REPLACE "${line}" "#define TENON_ABI_REVISION ${next}u" grown "${text}")
string(REPLACE "\n\nstruct tenon_host {" " \\\n  X(int32_t, of_tomorrow, (int32_t))\n\nstruct tenon_host {" grown "${grown}")
# Two members of the device table are swapped, which no revision may do.
string(REGEX REPLACE "(  void \\(\\*close\\)[^;]*;)(.*)(  tenon_status \\(\\*sync\\)[^;]*;)" "\\3\\2\\1" broken "${text}")
foreach(state grown broken)
  if("${${state}}" STREQUAL "${text}")
    message(FATAL_ERROR "tests/abi/headers.cmake: tenon/abi.h no longer looks as this expects; adapt it")
  endif()
  set(header_as_${state} "${CMAKE_CURRENT_BINARY_DIR}/${state}")
  file(CONFIGURE OUTPUT "${header_as_${state}}/tenon/abi.h" CONTENT "${${state}}" @ONLY)
endforeach()
