/* Sections of a model's packed file (packed_file.h): their sizes from the model's shapes, and the word tables.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/load/model.h"

/* Computes the sizes of the sections of a measured model; bytes are NULL. */
packed_sections model_sections(const deberta_model *model);
/* Writes the word tables as integers into memory as large as their section. */
deberta_status model_store_words(const deberta_model *model, void *memory, deberta_error *err);
/* Makes the model read words from there from now on. */
void model_view_words(deberta_model *model, const void *memory);
