# sgdph_embed(sgdph_lab_report page_files page.html chart.js=/usr/share/javascript/chart.js/chart.min.js):
# sgdph::lab::report::page_files() of lab/base/embedded.h's kind lists the files with their texts, so that the program needs none
# beside it. NAME=FILE gives a file another name.
function(sgdph_embed target function)
  string(REPLACE sgdph_lab_ "" room ${target})
  set(entries "")
  foreach(entry IN LISTS ARGN)
    if(entry MATCHES "^([^=/]+)=(.+)$")
      set(name ${CMAKE_MATCH_1})
      set(file ${CMAKE_MATCH_2})
    else()
      get_filename_component(name ${entry} NAME)
      set(file ${entry})
    endif()
    get_filename_component(file ${file} ABSOLUTE)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} text)
    string(APPEND entries "      {\"${name}\", R\"embedded(${text})embedded\"},\n")
  endforeach()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT "// Generated: files of the source tree.
#include \"base/embedded.h\"

namespace sgdph::lab::@room@ {

const std::vector<EmbeddedFile>& @function@() {
  static const std::vector<EmbeddedFile> files{
@entries@  };
  return files;
}

}  // namespace sgdph::lab::@room@
")
  target_sources(${target} PRIVATE ${source})
endfunction()
