# tenon_add_plugin(<name>
#   VERSION <x.y.z>
#   SOURCES <files>
#   [KIND device|operators|kernels|service] what the pre-load note says it is; default: device
#   [DEVICES <kinds>]                       device kinds it provides
#   [NAMESPACES <names>]                    operator namespaces it defines
#   [KERNELS_FOR <device kinds>]            devices of others for which it brings kernels of others' operators
#   [REQUIRES_CPU <features>]               e.g. avx2; the host refuses it elsewhere
#   [EAGER]                                 a device that every program needs at start, not at first use
#   [OPTIONAL]                              its KERNELS_FOR others run only where autotuning or the user chooses them
#   [OPENS <libraries>]                     libraries of which it opens one at run time; `tenon plugins doctor` warns
#                                           where there is none. A path is looked for in the folders above the plugin
#   [OPENS_VARIABLE <name>]                 environment variable that names one instead
#   [OPENS_HINT <text>]                     what to install
#   [LINK <libraries>]
#   [OUTPUT_DIRECTORY <folder>])            default: TENON_PLUGIN_OUTPUT_DIR, or the current binary folder
#
# Builds libtenon_<name>.so as the contract wants it: a pre-load note, one exported symbol, hidden
# visibility, no GNU_UNIQUE symbols, everything bound at load. Writes <name>.tenon.json beside it, for
# tools that look for plugins without reading libraries. Installs both if TENON_INSTALL_PLUGIN_DIR is set.

# Flags that every build of a plugin shares, this one and tenon.utils.cpp_extension.
function(_tenon_plugin_flags result key)
  file(READ "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin_flags.json" json)
  string(JSON type TYPE "${json}" "${key}")
  if(type STREQUAL "STRING")
    string(JSON text GET "${json}" "${key}")
    set(${result} "${text}" PARENT_SCOPE)
    return()
  endif()
  string(JSON count LENGTH "${json}" "${key}")
  math(EXPR last "${count} - 1")
  set(flags)
  foreach(i RANGE ${last})
    string(JSON flag GET "${json}" "${key}" ${i})
    list(APPEND flags "${flag}")
  endforeach()
  set(${result} "${flags}" PARENT_SCOPE)
endfunction()

# What the note says, as JSON; the text that the loader reads.
function(_tenon_note_json result kind eager optional)
  set(json "{\"kind\":\"${kind}\"")
  foreach(pair "devices=DEVICES" "namespaces=NAMESPACES" "kernels_for=KERNELS_FOR" "cpu=REQUIRES_CPU")
    string(REPLACE "=" ";" pair "${pair}")
    list(GET pair 0 key)
    list(GET pair 1 argument)
    list(JOIN arg_${argument} "\",\"" joined)  # arg_*: of the calling function
    if(joined)
      string(APPEND json ",\"${key}\":[\"${joined}\"]")
    endif()
  endforeach()
  if(eager)
    string(APPEND json ",\"eager\":true")
  endif()
  if(optional)
    string(APPEND json ",\"optional\":true")
  endif()
  string(APPEND json "}")
  string(LENGTH "${json}" length)
  if(length GREATER 431)
    message(FATAL_ERROR "tenon_add_plugin: the note holds 431 bytes, these lists need ${length}: ${json}")
  endif()
  set(${result} "${json}" PARENT_SCOPE)
endfunction()

# What the manifest says of libraries that are opened at run time. The loader does not read it.
function(_tenon_opens_json result)
  set(${result} "" PARENT_SCOPE)
  if(arg_OPENS)
    list(JOIN arg_OPENS "\",\"" joined)
    set(${result}
      ",\"opens\":{\"any_of\":[\"${joined}\"],\"variable\":\"${arg_OPENS_VARIABLE}\",\"hint\":\"${arg_OPENS_HINT}\"}"
      PARENT_SCOPE)
  endif()
endfunction()

function(tenon_add_plugin name)
  cmake_parse_arguments(arg "EAGER;OPTIONAL" "VERSION;KIND;OUTPUT_DIRECTORY;OPENS_VARIABLE;OPENS_HINT"
    "SOURCES;DEVICES;NAMESPACES;KERNELS_FOR;REQUIRES_CPU;LINK;OPENS" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tenon_add_plugin(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_VERSION OR NOT arg_SOURCES)
    message(FATAL_ERROR "tenon_add_plugin(${name}): expected VERSION and SOURCES")
  endif()
  if(NOT name MATCHES "^[a-z][a-z0-9_]*$")
    message(FATAL_ERROR "tenon_add_plugin(${name}): expected a name like [a-z][a-z0-9_]*")
  endif()
  if(NOT arg_KIND)
    set(arg_KIND device)
  elseif(NOT arg_KIND MATCHES "^(device|operators|kernels|service)$")
    message(FATAL_ERROR "tenon_add_plugin(${name}): expected KIND device, operators, kernels or service, "
                        "got ${arg_KIND}")
  endif()
  _tenon_note_json(json "${arg_KIND}" "${arg_EAGER}" "${arg_OPTIONAL}")
  string(REPLACE "\"" "\\\"" json_c "${json}")
  _tenon_opens_json(opens)

  # The note and the list of exports. The note compiles as C and as C++.
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  set(suffix "cpp")
  if("C" IN_LIST languages)
    set(suffix "c")
  endif()
  set(dir "${CMAKE_CURRENT_BINARY_DIR}/${name}.tenon")
  file(CONFIGURE OUTPUT "${dir}/note.${suffix}" @ONLY CONTENT
"#include <tenon/abi.h>
TENON_PLUGIN_NOTE(\"@name@\", \"@arg_VERSION@\", \"@json_c@\");
")
  _tenon_plugin_flags(exports exports)
  file(CONFIGURE OUTPUT "${dir}/exports.map" @ONLY CONTENT "@exports@\n")

  add_library(${name} MODULE ${arg_SOURCES} "${dir}/note.${suffix}")
  target_link_libraries(${name} PRIVATE Tenon::sdk ${arg_LINK})
  set_target_properties(${name} PROPERTIES
    PREFIX "lib" OUTPUT_NAME "tenon_${name}"
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON
    # The same in the build tree: an RPATH to be changed at installation ends in an empty entry, which the
    # system takes for the current folder. CMAKE_INSTALL_RPATH_USE_LINK_PATH adds the folders of what it links.
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN"
    LINK_DEPENDS "${dir}/exports.map")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    _tenon_plugin_flags(flags compile_gnu)
    target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${flags}>")
  endif()
  # The export list is what lets the library be unmapped again: without it, inline functions of the
  # C++ library are exported, the process binds to them, and they pin it.
  _tenon_plugin_flags(flags link)
  target_link_options(${name} PRIVATE "-Wl,--version-script=${dir}/exports.map" ${flags})
  # A missing symbol is an error of the build and not of the first call. Sanitizer runtimes are found
  # when the program is loaded.
  if(NOT TENON_SANITIZE AND NOT "${CMAKE_C_FLAGS} ${CMAKE_CXX_FLAGS}" MATCHES "-fsanitize=")
    _tenon_plugin_flags(flags link_unsanitized)
    target_link_options(${name} PRIVATE ${flags})
  endif()

  if(NOT arg_OUTPUT_DIRECTORY)
    set(arg_OUTPUT_DIRECTORY "${TENON_PLUGIN_OUTPUT_DIR}")
  endif()
  if(NOT arg_OUTPUT_DIRECTORY)
    set(arg_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
  endif()
  set(manifest "${arg_OUTPUT_DIRECTORY}/${name}.tenon.json")
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${arg_OUTPUT_DIRECTORY}")
  file(GENERATE OUTPUT "${manifest}" CONTENT
    "{\"name\":\"${name}\",\"version\":\"${arg_VERSION}\",\"library\":\"libtenon_${name}.so\",\"epoch\":1,\"note\":${json}${opens}}\n")

  if(TENON_INSTALL_PLUGIN_DIR)
    install(TARGETS ${name} LIBRARY DESTINATION "${TENON_INSTALL_PLUGIN_DIR}")
    install(FILES "${manifest}" DESTINATION "${TENON_INSTALL_PLUGIN_DIR}")
  endif()
endfunction()
