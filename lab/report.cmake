# The page's files are compiled in, and so is Chart.js, so that the program needs no files beside it.
find_file(SGDPH_CHART_JS NAMES chart.min.js PATHS /usr/share/javascript/chart.js NO_DEFAULT_PATH
  DOC "Chart.js 3, one file, for the page of sgdph report")
if(NOT SGDPH_CHART_JS)
  message(WARNING "Chart.js was not found (Debian: libjs-chart.js; or set SGDPH_CHART_JS): sgdph report will write Markdown "
    "and figures, and no page")
endif()
set(SGDPH_PAGE_ENTRIES "")
foreach(name chart.js page.html task.html section.html page.css page.js)
  set(file ${CMAKE_CURRENT_SOURCE_DIR}/report/page/${name})
  if(name STREQUAL "chart.js")
    set(file ${SGDPH_CHART_JS})
  endif()
  set(text "")
  if(file)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} text)
  endif()
  string(APPEND SGDPH_PAGE_ENTRIES "      {\"${name}\", R\"page(${text})page\"},\n")
endforeach()
configure_file(report/page_files.cpp.in ${CMAKE_CURRENT_BINARY_DIR}/page_files.cpp @ONLY)

sgdph_room(report
  SOURCES collect.cpp curves.cpp experiment_table.cpp figure.cpp inspection_tables.cpp markdown.cpp notes.cpp page.cpp page_data.cpp
    reference.cpp report.cpp style.cpp tables.cpp task.cpp
  LINK sgdph_lab_cost)
target_sources(sgdph_lab_report PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/page_files.cpp)
