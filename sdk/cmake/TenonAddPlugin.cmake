# tenon_add_plugin(<name>
#   VERSION <x.y.z>
#   SOURCES <files>
#   [KIND device|operators|service]        what the pre-load note says it is; default: device
#   [DEVICES <kinds>]                      device kinds it provides
#   [NAMESPACES <names>]                   operator namespaces it defines
#   [KERNELS_FOR <device kinds>]           devices of others for which it brings kernels
#   [REQUIRES_CPU <features>]              e.g. avx2; the host refuses it elsewhere
#   [LINK <libraries>])
#
# Builds lib<name>.so as the contract wants it: a pre-load note, one exported symbol, hidden visibility,
# no GNU_UNIQUE symbols, everything bound at load. Writes <name>.tenon.json beside it.
set(_TENON_ADD_PLUGIN_DIR "${CMAKE_CURRENT_LIST_DIR}")

function(tenon_add_plugin name)
  cmake_parse_arguments(arg "" "VERSION;KIND;OUTPUT_DIRECTORY"
    "SOURCES;DEVICES;NAMESPACES;KERNELS_FOR;REQUIRES_CPU;LINK" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tenon_add_plugin(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_VERSION OR NOT arg_SOURCES)
    message(FATAL_ERROR "tenon_add_plugin(${name}): expected VERSION and SOURCES")
  endif()
  if(NOT arg_KIND)
    set(arg_KIND device)
  endif()

  foreach(list DEVICES NAMESPACES KERNELS_FOR REQUIRES_CPU)
    list(JOIN arg_${list} "\",\"" joined)
    if(joined)
      set(json_${list} "[\"${joined}\"]")
    else()
      set(json_${list} "[]")
    endif()
  endforeach()
  set(json "{\"kind\":\"${arg_KIND}\",\"devices\":${json_DEVICES},\"namespaces\":${json_NAMESPACES},\"kernels_for\":${json_KERNELS_FOR},\"cpu\":${json_REQUIRES_CPU}}")
  string(LENGTH "${json}" json_length)
  if(json_length GREATER 431)
    message(FATAL_ERROR "tenon_add_plugin(${name}): the note holds 431 bytes, these lists need ${json_length}")
  endif()
  string(REPLACE "\"" "\\\"" json_c "${json}")

  set(dir "${CMAKE_CURRENT_BINARY_DIR}/${name}.tenon")
  file(CONFIGURE OUTPUT "${dir}/note.c" @ONLY CONTENT
"#include <tenon/abi.h>
TENON_PLUGIN_NOTE(\"@name@\", \"@arg_VERSION@\", \"@json_c@\");
")
  file(CONFIGURE OUTPUT "${dir}/exports.map" @ONLY CONTENT "{ global: tenon_plugin_query; local: *; };\n")

  add_library(${name} MODULE ${arg_SOURCES} "${dir}/note.c")
  target_link_libraries(${name} PRIVATE Tenon::sdk ${arg_LINK})
  set_target_properties(${name} PROPERTIES
    PREFIX "lib" OUTPUT_NAME "tenon_${name}"
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON
    BUILD_RPATH_USE_ORIGIN ON INSTALL_RPATH "$ORIGIN"
    LINK_DEPENDS "${dir}/exports.map")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-gnu-unique>)
  endif()
  target_link_options(${name} PRIVATE "-Wl,--version-script=${dir}/exports.map"
    -Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack -Wl,--exclude-libs,ALL)
  if(NOT TENON_SANITIZE)  # sanitizer runtimes are found at load time
    target_link_options(${name} PRIVATE -Wl,--no-undefined)
  endif()
  if(arg_OUTPUT_DIRECTORY)
    set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${arg_OUTPUT_DIRECTORY}")
  elseif(TENON_PLUGIN_OUTPUT_DIR)
    set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${TENON_PLUGIN_OUTPUT_DIR}")
  endif()
  get_target_property(output_dir ${name} LIBRARY_OUTPUT_DIRECTORY)
  if(NOT output_dir)
    set(output_dir "${CMAKE_CURRENT_BINARY_DIR}")
  endif()
  file(GENERATE OUTPUT "${output_dir}/${name}.tenon.json" CONTENT
    "{\"name\":\"${name}\",\"version\":\"${arg_VERSION}\",\"library\":\"libtenon_${name}.so\",\"epoch\":1,\"note\":${json}}\n")
endfunction()
