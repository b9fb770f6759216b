# Compiler settings of this repository. Nothing here is needed to build a plugin out of tree.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()

add_compile_options(-Wall -Wextra -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # These versions see an overlap in the library's own std::string (GCC bug 105651).
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
# What runs once, in this folder and below: the generator, tests and checks compile in two thirds of the time.
function(tenon_compile_quickly)
  add_compile_options($<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
endfunction()

# Most of the time of a small file goes into templates of the standard library; files that are compiled together
# instantiate them once. For targets of many small files: the generator takes a third of the time. Names in
# anonymous namespaces have to differ in such a target. Who works on one target may prefer files alone (OFF), and the
# presets "dev", "asan" and "tsan" compile them so: a file that lacks an include is found there.
option(TENON_UNITY_BUILD "Compile the small files of some targets in batches: clean builds are faster" ON)
function(tenon_compile_in_batches target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TENON_UNITY_BUILD} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

if(TENON_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Plugins are opened at run time and share one runtime with the process that opens them, which g++ does by itself. Each has
    # types of its own, hidden from the others, which these two checks would take for others.
    add_compile_options(-fno-sanitize=vptr,function)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libclang_rt.asan-${CMAKE_SYSTEM_PROCESSOR}.so
                    OUTPUT_VARIABLE runtime OUTPUT_STRIP_TRAILING_WHITESPACE)
    cmake_path(GET runtime PARENT_PATH runtime_folder)
    add_link_options(-shared-libasan "-Wl,-rpath,${runtime_folder}")
  endif()
elseif(TENON_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(TENON_SANITIZE)
  message(FATAL_ERROR "TENON_SANITIZE: expected address, thread or empty, got '${TENON_SANITIZE}'")
endif()

# Where a build tree keeps what an installation keeps: plugins beside one another, the Python package
# whole, so that tests and examples run without installing.
set(TENON_PACKAGE_DIR "${CMAKE_BINARY_DIR}/python/tenon")
set(TENON_PLUGIN_OUTPUT_DIR "${TENON_PACKAGE_DIR}/plugins")
set(TENON_LIBRARY_OUTPUT_DIR "${TENON_PACKAGE_DIR}/lib")
set(TENON_GENERATED_DIR "${CMAKE_BINARY_DIR}/gen")
