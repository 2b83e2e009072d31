/* Sections of a model's packed file (packed_file.h): their sizes from the model's shapes, and the word tables.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/load/model.h"

/* Sizes of the sections of a measured model; bytes are NULL. */
packed_sections model_sections(const deberta_model *model);
/* The words' tables as integers, into memory as large as their section. */
deberta_status model_store_words(const deberta_model *model, void *memory, deberta_error *err);
/* From now on words are read from there. */
void model_view_words(deberta_model *model, const void *memory);
