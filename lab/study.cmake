sgdph_room(study
  SOURCES compare.cpp live_table.cpp process.cpp run_record.cpp summary.cpp svg.cpp table.cpp
  LINK sgdph_lab_train)
