# tenon_add_operators(<name>
#   VERSION <x.y.z>
#   OPERATORS <operator files>         one namespace; expressions may use Tenon's own operators
#   [SOURCES <files>]                  the functions of `kernels`, native shape rules and decompositions
#   [CUDA_SOURCES <files>]             those for device `cuda`, compiled by nvcc where there is one
#   [HIP_SOURCES <files>]              those for device `hip`, compiled by hipcc where there is one
#   [IMPORT <operator files>]          of other packages, whose operators expressions may use
#   [VENDOR <text>]                    who made it; default: <name>
#   [REQUIRES_CPU <features>]          as in tenon_add_plugin(); the compiler's own -m flags are yours
#   [PYTHON_PACKAGE <package>]         install the plugin and type stubs into this Python package
#   [LINK <libraries>] [OUTPUT_DIRECTORY <folder>])
#
# Builds libtenon_<name>.so from operator files, and one function for each kernel that they declare:
# schemas, shape and dtype rules, decompositions, gradients, the loops of `expr` and `reduce` for the
# processor, and the plugin itself are generated into ${CMAKE_CURRENT_BINARY_DIR}/gen, together with
# type stubs, reference pages and the examples as tests. Mistakes in an operator file end the
# configuration with their line; a change of the file configures again.

# Where the sources of the processor's loops lie: elementwise and reduction drivers, vector maths.
get_filename_component(_tenon_loops_dir "${CMAKE_CURRENT_LIST_DIR}/../../../share/tenon/loops" ABSOLUTE)
# What IEEE 754 code may assume, as in the CPU plugin. GCC alone has the first three; intrinsics of its
# versions before 13 are said to read uninitialised registers (GCC bug 105593).
set(_tenon_loops_flags -O3 -fno-math-errno -fno-trapping-math -fwrapv -ffp-contract=fast)
set(_tenon_loops_flags_gnu -fno-tree-pre -fno-thread-jumps -Wno-psabi -Wno-maybe-uninitialized)

# Runs tenon-codegen now. `files` receives what it wrote, with full paths.
function(_tenon_generate_now name out files)
  if(NOT Tenon_CODEGEN)
    message(FATAL_ERROR "tenon_add_operators(${name}): tenon-codegen was not installed with this SDK")
  endif()
  set(options --emit ops-hpp,signatures-h,ops-table,autograd-rules,cpu-kernels,kernels-hpp,plugin,pyi,docs,tests
    --out "${out}")
  file(GLOB standard "${Tenon_OPDEFS_DIR}/*.yaml")
  foreach(file IN LISTS standard arg_IMPORT)
    list(APPEND options --import "${file}")
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${arg_OPERATORS} ${arg_IMPORT})
  foreach(mode "" --list)
    execute_process(COMMAND "${Tenon_CODEGEN}" ${options} ${mode} ${arg_OPERATORS}
      RESULT_VARIABLE failed OUTPUT_VARIABLE written ERROR_VARIABLE problems)
    if(failed)
      string(REPLACE "\n" "\n  " problems "${problems}")  # indented text is printed as it is
      message(FATAL_ERROR "tenon_add_operators(${name}): what the operator files say is wrong:\n  ${problems}")
    endif()
  endforeach()
  string(REGEX REPLACE "\n$" "" written "${written}")
  string(REPLACE "\n" ";" written "${written}")
  list(TRANSFORM written PREPEND "${out}/")
  set(${files} ${written} PARENT_SCOPE)
endfunction()

# Languages are enabled where the project is configured, which a function is not.
macro(tenon_add_operators name)
  foreach(_tenon_language CUDA HIP)
    if("${ARGN}" MATCHES "(^|;)${_tenon_language}_SOURCES;")
      include(CheckLanguage)
      check_language(${_tenon_language})
      if(CMAKE_${_tenon_language}_COMPILER)
        enable_language(${_tenon_language})
      endif()
    endif()
  endforeach()
  _tenon_add_operators(${name} ${ARGN})
endmacro()

# Adds the sources for a device with a compiler of its own, or says that they are left out.
function(_tenon_add_device_sources name language device)
  if(NOT arg_${language}_SOURCES)
    if(device IN_LIST package_written)
      message(FATAL_ERROR "tenon_add_operators(${name}): the operator files declare kernels for ${device}; "
                          "name their sources after ${language}_SOURCES")
    endif()
    return()
  endif()
  if(NOT device IN_LIST package_written)
    message(FATAL_ERROR "tenon_add_operators(${name}): ${language}_SOURCES are given, but no operator declares "
                        "`kernels: {${device}: ...}`")
  endif()
  if(NOT CMAKE_${language}_COMPILER)
    message(STATUS "tenon_add_operators(${name}): no ${language} compiler found; the kernels for ${device} are left "
                   "out, and the operators run there by their decompositions. Set CMAKE_${language}_COMPILER to "
                   "build them")
    return()
  endif()
  target_sources(${name} PRIVATE ${arg_${language}_SOURCES})
  string(TOUPPER ${device} upper)
  target_compile_definitions(${name} PRIVATE TENON_WITH_${upper})
  # As an option, because older versions of CMake do not pass this standard to these compilers.
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:${language}>:-std=c++20>)
  set_target_properties(${name} PROPERTIES ${language}_VISIBILITY_PRESET hidden)
  if(language STREQUAL "CUDA")
    # Constexpr functions of the C++ library in kernels; the runtime inside, so that none must be found.
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
    set_target_properties(${name} PROPERTIES CUDA_RUNTIME_LIBRARY Static)
  endif()
endfunction()

function(_tenon_add_operators name)
  cmake_parse_arguments(arg "" "VERSION;VENDOR;PYTHON_PACKAGE;OUTPUT_DIRECTORY"
    "OPERATORS;SOURCES;CUDA_SOURCES;HIP_SOURCES;IMPORT;REQUIRES_CPU;LINK" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tenon_add_operators(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_VERSION OR NOT arg_OPERATORS)
    message(FATAL_ERROR "tenon_add_operators(${name}): expected VERSION and OPERATORS")
  endif()
  if(NOT arg_VENDOR)
    set(arg_VENDOR "${name}")
  endif()
  foreach(list arg_OPERATORS arg_IMPORT)
    list(TRANSFORM ${list} REPLACE "^([^/].*)$" "${CMAKE_CURRENT_SOURCE_DIR}/\\1")
  endforeach()

  set(gen "${CMAKE_CURRENT_BINARY_DIR}/gen")
  _tenon_generate_now(${name} "${gen}" files)
  include("${gen}/package.cmake")  # package_*
  set(sources ${files})
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  set(loops ${sources})
  list(FILTER sources EXCLUDE REGEX "/gen/cpu/")
  list(FILTER loops INCLUDE REGEX "/gen/cpu/")
  if(package_has_loops)
    file(GLOB drivers "${_tenon_loops_dir}/*.cpp" "${_tenon_loops_dir}/*/*.cpp")
    list(APPEND loops ${drivers})
    set_property(SOURCE ${loops} PROPERTY COMPILE_OPTIONS ${_tenon_loops_flags})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      set_property(SOURCE ${loops} APPEND PROPERTY COMPILE_OPTIONS ${_tenon_loops_flags_gnu})
    endif()
    list(APPEND sources ${loops})
  endif()
  # Strict warnings of the package are meant for its own sources.
  set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS -Wno-missing-field-initializers)
  tenon_add_plugin(${name} VERSION ${arg_VERSION} KIND operators NAMESPACES ${package_namespace}
    KERNELS_FOR ${package_devices} REQUIRES_CPU ${arg_REQUIRES_CPU} LINK ${arg_LINK}
    OUTPUT_DIRECTORY "${arg_OUTPUT_DIRECTORY}" SOURCES ${sources} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE "${gen}")
  target_compile_definitions(${name} PRIVATE TENON_PACKAGE_NAME="${name}"
    TENON_PACKAGE_VERSION="${arg_VERSION}" TENON_PACKAGE_VENDOR="${arg_VENDOR}")
  if(package_has_loops)
    target_include_directories(${name} PRIVATE "${_tenon_loops_dir}")
  endif()
  _tenon_add_device_sources(${name} CUDA cuda)
  _tenon_add_device_sources(${name} HIP hip)

  if(arg_PYTHON_PACKAGE)
    get_target_property(library_dir ${name} LIBRARY_OUTPUT_DIRECTORY)
    install(TARGETS ${name} LIBRARY DESTINATION "${arg_PYTHON_PACKAGE}")
    install(FILES "${library_dir}/${name}.tenon.json" DESTINATION "${arg_PYTHON_PACKAGE}"
      RENAME tenon_plugin.json)
    install(FILES "${gen}/python/_operators.pyi" DESTINATION "${arg_PYTHON_PACKAGE}" RENAME __init__.pyi)
  endif()
endfunction()
