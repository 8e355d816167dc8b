sgdph_room(study
  SOURCES compare.cpp live_table.cpp process.cpp ranking.cpp run_plan.cpp run_record.cpp summary.cpp table.cpp
  LINK sgdph_lab_train)
