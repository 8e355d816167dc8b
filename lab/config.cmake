# The recipes are compiled in, so that the binary needs no files beside it.
find_package(tomlplusplus REQUIRED)
set(SGDPH_RECIPE_ENTRIES "")
foreach(recipe cifar10 cifar100 fashion-mnist imagenet mini-imagenet)
  set(file ${CMAKE_CURRENT_SOURCE_DIR}/recipes/${recipe}.toml)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  string(APPEND SGDPH_RECIPE_ENTRIES "      {\"${recipe}\", R\"toml(${text})toml\"},\n")
endforeach()
configure_file(config/builtin_recipes.cpp.in ${CMAKE_CURRENT_BINARY_DIR}/builtin_recipes.cpp @ONLY)

sgdph_room(config
  SOURCES fields.cpp optimizer_table.cpp recipe.cpp settings.cpp toml_reader.cpp
  LINK sgdph_lab_base nlohmann_json::nlohmann_json tomlplusplus::tomlplusplus)
target_sources(sgdph_lab_config PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/builtin_recipes.cpp)
