# tenon_generate(<target>
#   OUT <folder>
#   FILES <operator files>
#   EMIT <what>...                     see tenon-codegen --help
#   [IMPORT <operator files>]          operators that expressions may use; nothing is generated for them
#   [NAMESPACE <C++ namespace>]        of the operator tables
#   [OPERATOR_FOLDER <name>]           subfolder of the operator tables; default: operators
#   [SOURCES <variable>]               receives the C++ files of `ops-table` and `autograd-rules`
#   [CPU_SOURCES <variable>])          receives the C++ files of `cpu-kernels`
#
# Runs tenon-codegen when an operator file changes. It leaves files alone that would not change, so that
# only what changed is compiled again. Targets that use the files depend on <target>.
function(tenon_generate target)
  cmake_parse_arguments(arg "" "OUT;NAMESPACE;OPERATOR_FOLDER;SOURCES;CPU_SOURCES" "FILES;EMIT;IMPORT" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_OUT OR NOT arg_FILES OR NOT arg_EMIT)
    message(FATAL_ERROR "tenon_generate(${target}): expected OUT, FILES and EMIT; got ${ARGN}")
  endif()
  if(NOT arg_OPERATOR_FOLDER)
    set(arg_OPERATOR_FOLDER operators)
  endif()

  set(sources)
  set(cpu_sources)
  if("ops-table" IN_LIST arg_EMIT)
    list(APPEND sources "${arg_OUT}/${arg_OPERATOR_FOLDER}/ops_table.cpp")
  endif()
  if("autograd-rules" IN_LIST arg_EMIT)
    list(APPEND sources "${arg_OUT}/autograd/rules.cpp")
  endif()
  foreach(file IN LISTS arg_FILES)
    get_filename_component(stem "${file}" NAME_WE)
    if("ops-table" IN_LIST arg_EMIT)
      list(APPEND sources "${arg_OUT}/${arg_OPERATOR_FOLDER}/decompose_${stem}.cpp")
    endif()
    if("cpu-kernels" IN_LIST arg_EMIT)
      list(APPEND cpu_sources "${arg_OUT}/cpu/elementwise_${stem}.cpp" "${arg_OUT}/cpu/reduction_${stem}.cpp")
    endif()
  endforeach()

  list(JOIN arg_EMIT "," emit)
  set(options --emit ${emit} --out "${arg_OUT}")
  foreach(file IN LISTS arg_IMPORT)
    list(APPEND options --import "${file}")
  endforeach()
  if(arg_NAMESPACE)
    list(APPEND options --namespace "${arg_NAMESPACE}")
  endif()
  set(stamp "${CMAKE_CURRENT_BINARY_DIR}/${target}.stamp")
  add_custom_command(OUTPUT "${stamp}" BYPRODUCTS ${sources} ${cpu_sources}
    COMMAND Tenon::codegen ${options} ${arg_FILES}
    COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
    DEPENDS Tenon::codegen ${arg_FILES} ${arg_IMPORT}
    COMMENT "Generating ${target}" VERBATIM)
  add_custom_target(${target} DEPENDS "${stamp}")

  if(arg_SOURCES)
    set(${arg_SOURCES} ${sources} PARENT_SCOPE)
  endif()
  if(arg_CPU_SOURCES)
    set(${arg_CPU_SOURCES} ${cpu_sources} PARENT_SCOPE)
  endif()
endfunction()
