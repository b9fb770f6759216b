# Binaries of older revisions on the host of today, on one that has grown, and on one whose every
# internal name is gone: what was built once needs no rebuild.
#
# They are for Linux on x86-64 and have no sanitizer, so elsewhere the host rightly refuses them.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" OR TENON_SANITIZE)
  message(STATUS "tests/abi: kept plugins are not run in this configuration")
  return()
endif()

add_executable(kept_test kept_test.cpp)
target_link_libraries(kept_test PRIVATE Tenon::sdk GTest::gtest ${CMAKE_DL_LIBS})
add_dependencies(kept_test tenon cpu standard_ops)

# The next revision: the same core, with a table that has one slot more.
add_library(tenon_grown SHARED grown_host.cpp
  $<FILTER:$<TARGET_OBJECTS:tenon_core_objects>,EXCLUDE,abi/host\\.cpp>)
target_include_directories(tenon_grown BEFORE PRIVATE "${header_as_grown}" "${PROJECT_SOURCE_DIR}")
target_link_libraries(tenon_grown PRIVATE Tenon::sdk Threads::Threads ${CMAKE_DL_LIBS})
target_link_options(tenon_grown PRIVATE "-Wl,--version-script=${PROJECT_SOURCE_DIR}/kernel_core/exports.map" -Wl,-z,now)

# Internal symbols get names that no plugin can know, which changes more than any renaming.
set(nameless "${CMAKE_CURRENT_BINARY_DIR}/nameless/libtenon.so")
add_custom_command(OUTPUT "${nameless}"
  COMMAND "${CMAKE_COMMAND}" -E make_directory "${CMAKE_CURRENT_BINARY_DIR}/nameless"
  COMMAND "${CMAKE_STRIP}" --strip-all -o "${nameless}" $<TARGET_FILE:tenon>
  DEPENDS tenon VERBATIM)
add_custom_target(tenon_nameless ALL DEPENDS "${nameless}")
add_dependencies(kept_test tenon_grown tenon_nameless)

file(STRINGS "${header}" now REGEX "^#define TENON_ABI_REVISION ")
string(REGEX REPLACE "[^0-9]" "" now "${now}")
math(EXPR next "${now} + 1")
file(GLOB revisions RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}/kept" "${CMAKE_CURRENT_SOURCE_DIR}/kept/revision*")
foreach(revision ${revisions})
  set(kept "${CMAKE_CURRENT_SOURCE_DIR}/kept/${revision}")
  foreach(pair "today=$<TARGET_FILE:tenon>=${now}" "grown=$<TARGET_FILE:tenon_grown>=${next}" "nameless=${nameless}=${now}")
    string(REPLACE "=" ";" pair "${pair}")
    list(GET pair 0 name)
    list(GET pair 1 library)
    list(GET pair 2 number)
    foreach(test DeviceInC DeviceInRust OperatorsInCpp AllTogetherAndOutAgain)
      add_test(NAME abi.kept.${revision}.${name}.${test} COMMAND kept_test
        "${library}" "${TENON_PLUGIN_OUTPUT_DIR}" "${kept}" ${number} "--gtest_filter=KeptPlugins.${test}")
    endforeach()
  endforeach()
  # That they are what was shipped.
  add_test(NAME abi.kept.${revision}.unchanged COMMAND sha256sum --check --quiet SHA256SUMS WORKING_DIRECTORY "${kept}")
endforeach()
