# tenon_generate(<target>
#   OUT <folder>
#   FILES <operator files>
#   EMIT <what>...                     see tenon-codegen --help
#   [NAMES <file of names>]            of what is no operator, and keywords: for `spellings`
#   [IMPORT <operator files>]          operators that expressions may use; nothing is generated for them
#   [NAMESPACE <C++ namespace>]        of the operator tables; default: <namespace of the files>::<folder>
#   [OPERATOR_FOLDER <name>]           subfolder of the operator tables; default: operators
#   [SOURCES <variable>]               receives the C++ files of `ops-table` and `autograd-rules`
#   [CPU_SOURCES <variable>])          receives the C++ files of `cpu-kernels`
#
# Runs tenon-codegen when an operator file changes. It leaves files alone that would not change, so that
# only what changed is compiled again. Targets that use the files depend on <target>.
#
# A package of operators needs none of this: tenon_add_operators() does it all.
if(NOT TARGET Tenon::codegen AND Tenon_CODEGEN)
  add_executable(Tenon::codegen IMPORTED)
  set_target_properties(Tenon::codegen PROPERTIES IMPORTED_LOCATION "${Tenon_CODEGEN}")
endif()

function(tenon_generate target)
  cmake_parse_arguments(arg "" "OUT;NAMESPACE;NAMES;OPERATOR_FOLDER;SOURCES;CPU_SOURCES" "FILES;EMIT;IMPORT" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_OUT OR NOT arg_FILES OR NOT arg_EMIT)
    message(FATAL_ERROR "tenon_generate(${target}): expected OUT, FILES and EMIT; got ${ARGN}")
  endif()
  if(NOT TARGET Tenon::codegen)
    message(FATAL_ERROR "tenon_generate(${target}): tenon-codegen was not installed with this SDK")
  endif()
  if(NOT arg_OPERATOR_FOLDER)
    set(arg_OPERATOR_FOLDER operators)
  endif()
  foreach(list arg_FILES arg_IMPORT)
    set(absolute)
    foreach(file IN LISTS ${list})
      get_filename_component(file "${file}" ABSOLUTE)
      list(APPEND absolute "${file}")
    endforeach()
    set(${list} ${absolute})
  endforeach()

  # Headers too are named, so that what includes them waits for a change to have been written.
  list(GET arg_FILES 0 first)
  file(STRINGS "${first}" line REGEX "^namespace:" LIMIT_COUNT 1)
  string(REGEX REPLACE "^namespace: *([a-z0-9_]+).*" "\\1" namespace "${line}")
  set(sources)
  set(cpu_sources)
  set(headers)
  if("ops-hpp" IN_LIST arg_EMIT)
    list(APPEND headers "${arg_OUT}/${namespace}/ops.hpp")
  endif()
  if("functions-hpp" IN_LIST arg_EMIT)
    list(APPEND headers "${arg_OUT}/${namespace}/functions.hpp")
  endif()
  if("signatures-h" IN_LIST arg_EMIT)
    list(APPEND headers "${arg_OUT}/${namespace}/op_signatures.h")
  endif()
  if("cpu-kernels" IN_LIST arg_EMIT)
    list(APPEND headers "${arg_OUT}/cpu/tables.inc")
  endif()
  if("kernel-c" IN_LIST arg_EMIT)
    list(APPEND headers "${arg_OUT}/kernel_c/generated.cpp")
  endif()
  if("spellings" IN_LIST arg_EMIT)
    list(APPEND headers "${arg_OUT}/python/spellings.hpp")
  endif()
  if("ops-table" IN_LIST arg_EMIT)
    list(APPEND sources "${arg_OUT}/${arg_OPERATOR_FOLDER}/ops_table.cpp")
  endif()
  if("autograd-rules" IN_LIST arg_EMIT)
    list(APPEND sources "${arg_OUT}/autograd/rules.cpp")
  endif()
  foreach(file IN LISTS arg_FILES)
    get_filename_component(stem "${file}" NAME_WE)
    if("signatures-h" IN_LIST arg_EMIT)
      list(APPEND headers "${arg_OUT}/${namespace}/signatures/${stem}.h")
    endif()
    if("ops-table" IN_LIST arg_EMIT)
      list(APPEND sources "${arg_OUT}/${arg_OPERATOR_FOLDER}/decompose_${stem}.cpp")
    endif()
    if("cpu-kernels" IN_LIST arg_EMIT)
      list(APPEND cpu_sources "${arg_OUT}/cpu/elementwise_${stem}.cpp" "${arg_OUT}/cpu/reduction_${stem}.cpp")
    endif()
  endforeach()

  list(JOIN arg_EMIT "," emit)
  set(options --emit ${emit} --out "${arg_OUT}" --folder "${arg_OPERATOR_FOLDER}")
  foreach(file IN LISTS arg_IMPORT)
    list(APPEND options --import "${file}")
  endforeach()
  if(arg_NAMESPACE)
    list(APPEND options --namespace "${arg_NAMESPACE}")
  endif()
  if(arg_NAMES)
    get_filename_component(arg_NAMES "${arg_NAMES}" ABSOLUTE)
    list(APPEND options --names "${arg_NAMES}")
  endif()
  set(stamp "${CMAKE_CURRENT_BINARY_DIR}/${target}.stamp")
  add_custom_command(OUTPUT "${stamp}" BYPRODUCTS ${headers} ${sources} ${cpu_sources}
    COMMAND Tenon::codegen ${options} ${arg_FILES}
    COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
    DEPENDS Tenon::codegen ${arg_FILES} ${arg_IMPORT} ${arg_NAMES}
    COMMENT "Generating ${target}" VERBATIM)
  add_custom_target(${target} DEPENDS "${stamp}")

  if(arg_SOURCES)
    set(${arg_SOURCES} ${sources} PARENT_SCOPE)
  endif()
  if(arg_CPU_SOURCES)
    set(${arg_CPU_SOURCES} ${cpu_sources} PARENT_SCOPE)
  endif()
endfunction()

# tenon_generate_bindings(<target> OUT <folder> FILES <binding files> IMPORT <operator files>)
#
# Writes <folder>/bindings.hpp and bindings.cpp: kernels that call a vendor's library. See docs/bindings.md.
function(tenon_generate_bindings target)
  cmake_parse_arguments(arg "" "OUT" "FILES;IMPORT" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_OUT OR NOT arg_FILES OR NOT arg_IMPORT)
    message(FATAL_ERROR "tenon_generate_bindings(${target}): expected OUT, FILES and IMPORT; got ${ARGN}")
  endif()
  set(options --bindings --out "${arg_OUT}")
  foreach(file IN LISTS arg_IMPORT)
    list(APPEND options --import "${file}")
  endforeach()
  set(stamp "${CMAKE_CURRENT_BINARY_DIR}/${target}.stamp")
  add_custom_command(OUTPUT "${stamp}" BYPRODUCTS "${arg_OUT}/bindings.hpp" "${arg_OUT}/bindings.cpp"
    COMMAND Tenon::codegen ${options} ${arg_FILES}
    COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
    DEPENDS Tenon::codegen ${arg_FILES} ${arg_IMPORT}
    COMMENT "Generating ${target}" VERBATIM)
  add_custom_target(${target} DEPENDS "${stamp}")
endfunction()

# tenon_generate_rewrites(<target> OUT <folder> FILES <files of rewrites>)
#
# Writes <folder>/rewrites.hpp: the rewrites as a table. See docs/rewrites.md.
function(tenon_generate_rewrites target)
  cmake_parse_arguments(arg "" "OUT" "FILES" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_OUT OR NOT arg_FILES)
    message(FATAL_ERROR "tenon_generate_rewrites(${target}): expected OUT and FILES; got ${ARGN}")
  endif()
  add_custom_command(OUTPUT "${arg_OUT}/rewrites.hpp"
    COMMAND Tenon::codegen --rewrites --out "${arg_OUT}" ${arg_FILES}
    COMMAND "${CMAKE_COMMAND}" -E touch "${arg_OUT}/rewrites.hpp"
    DEPENDS Tenon::codegen ${arg_FILES}
    COMMENT "Generating ${target}" VERBATIM)
  add_custom_target(${target} DEPENDS "${arg_OUT}/rewrites.hpp")
endfunction()

# tenon_generate_bridge(<target> OUT <folder> SIGNATURES <file> FILES <files of calls> IMPORT <operator files>)
#
# Writes <folder>/python/_<library>_calls.py: another library's calls in terms of operators. See docs/torch.md.
function(tenon_generate_bridge target)
  cmake_parse_arguments(arg "" "OUT;SIGNATURES" "FILES;IMPORT" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_OUT OR NOT arg_SIGNATURES OR NOT arg_FILES OR NOT arg_IMPORT)
    message(FATAL_ERROR "tenon_generate_bridge(${target}): expected OUT, SIGNATURES, FILES and IMPORT; got ${ARGN}")
  endif()
  set(options --bridge --signatures "${arg_SIGNATURES}" --out "${arg_OUT}")
  foreach(file IN LISTS arg_IMPORT)
    list(APPEND options --import "${file}")
  endforeach()
  set(stamp "${CMAKE_CURRENT_BINARY_DIR}/${target}.stamp")
  add_custom_command(OUTPUT "${stamp}"
    COMMAND Tenon::codegen ${options} ${arg_FILES}
    COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
    DEPENDS Tenon::codegen ${arg_FILES} ${arg_SIGNATURES} ${arg_IMPORT}
    COMMENT "Generating ${target}" VERBATIM)
  add_custom_target(${target} ALL DEPENDS "${stamp}")
endfunction()

# tenon_generate_onnx(<target> OUT <folder> SCHEMAS <list of ONNX's operators> FILES <files of imports> IMPORT <operator files>)
#
# Writes <folder>/onnx_lines.hpp: what imports operators of ONNX. See opdefs/onnx/README.md.
function(tenon_generate_onnx target)
  cmake_parse_arguments(arg "" "OUT;SCHEMAS" "FILES;IMPORT" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_OUT OR NOT arg_SCHEMAS OR NOT arg_FILES)
    message(FATAL_ERROR "tenon_generate_onnx(${target}): expected OUT, SCHEMAS and FILES; got ${ARGN}")
  endif()
  set(options --onnx "${arg_SCHEMAS}" --out "${arg_OUT}")
  foreach(file IN LISTS arg_IMPORT)
    list(APPEND options --import "${file}")
  endforeach()
  add_custom_command(OUTPUT "${arg_OUT}/onnx_lines.hpp"
    COMMAND Tenon::codegen ${options} ${arg_FILES}
    COMMAND "${CMAKE_COMMAND}" -E touch "${arg_OUT}/onnx_lines.hpp"
    DEPENDS Tenon::codegen ${arg_SCHEMAS} ${arg_FILES} ${arg_IMPORT}
    COMMENT "Generating ${target}" VERBATIM)
  add_custom_target(${target} DEPENDS "${arg_OUT}/onnx_lines.hpp")
endfunction()
