# What every kept revision of the contract promised, against what it says now, as the compiler sees
# both. layout_test says which member moved; this looks at all types behind it, and at nothing of ours.
find_program(ABIDIFF abidiff)
find_package(Python REQUIRED COMPONENTS Interpreter)

function(add_abi_tree name include)
  add_library(abi_tree_${name} SHARED abi_tree.c)
  target_include_directories(abi_tree_${name} PRIVATE "${include}")
  target_compile_options(abi_tree_${name} PRIVATE -g -O0)
  set_target_properties(abi_tree_${name} PROPERTIES NO_SONAME ON)
endfunction()

# ... : structs that grew before they were frozen
function(add_abidiff_test name old new)
  if(ABIDIFF)
    add_test(NAME abi.diff.${name} COMMAND Python::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/growth.py" "${ABIDIFF}"
      "${header}" $<TARGET_FILE:abi_tree_${old}> $<TARGET_FILE:abi_tree_${new}> ${ARGN})
  else()
    add_test(NAME abi.diff.${name} COMMAND "${CMAKE_COMMAND}" -E echo
      "abidiff is not installed: scripts/bootstrap.sh installs it (abigail-tools)")
    set_tests_properties(abi.diff.${name} PROPERTIES SKIP_REGULAR_EXPRESSION "not installed")
  endif()
endfunction()

add_abi_tree(today "${PROJECT_SOURCE_DIR}/sdk/include")
add_abi_tree(grown "${header_as_grown}")
add_abi_tree(broken "${header_as_broken}")
set(grew_after_revision0 tenon_device_info)
file(GLOB revisions RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}/kept" "${CMAKE_CURRENT_SOURCE_DIR}/kept/revision*")
foreach(revision ${revisions})
  add_abi_tree(${revision} "${CMAKE_CURRENT_SOURCE_DIR}/kept/${revision}/include")
  add_abidiff_test(${revision} ${revision} today ${grew_after_${revision}})
endforeach()

# That the guard lets growth pass and stops everything else.
add_abidiff_test(lets_growth_pass today grown)
add_abidiff_test(stops_a_swap today broken)
if(ABIDIFF)
  set_tests_properties(abi.diff.stops_a_swap PROPERTIES
    PASS_REGULAR_EXPRESSION "tenon_device_api: .*close' offset changed.*breaks every plugin")
endif()
