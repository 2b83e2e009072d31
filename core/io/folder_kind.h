/* Classifies the path given as a model, before anything is opened.
 *
 * Users pass the name of a model on a hub, a URL, an adapter, the folder above a model, or a model of another class.
 * Each is recognised by the files that it holds, and the refusal says what it is and what helps.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "core/base/text.h"
#include "include/deberta.h"

/* Returns DEBERTA_OK for a folder with a config.json, and for an unrecognised one, since opening it reports the
 * problem. DEBERTA_E_FILE where there is no such folder, where it is a file, or where the model lies in a folder
 * inside; DEBERTA_E_UNSUPPORTED for a model of another library. */
deberta_status folder_check_model(const char *path, deberta_error *err);
/* Checks like folder_check_model, for a folder in which no tokenizer was found: files of an unsupported tokenizer come
 * first. */
deberta_status folder_check_tokenizer(const char *path, deberta_error *err);
/* Adds a note for each file beside a model that other libraries follow and this one does not. */
deberta_status folder_note_rest(const char *path, kept_notes *list, deberta_error *err);
/* Names weights of an unsupported kind, for the refusal of a folder without others: "; NAME is ..., what helps", or
 * "". */
const char *folder_other_weights(const char *path, char *room, size_t room_bytes);

/* Comparison of files by device and inode, so that other spellings, links and mounts do not matter. */

/* Returns whether a place holds the file `path`. place: a file, which holds itself, or a folder, which holds its files
 * and those of its subfolders (generator/, 1_Pooling/), links included. False where either does not exist, or is no
 * regular file. */
bool place_holds(const char *place, const char *path);
/* Returns whether this open file, such as standard input, is the one that the path names. */
bool descriptor_is_file(int descriptor, const char *path);

/* Text that completes the sentence about a path that holds no model. */
#define EXPECTED_PLACE "MODEL is a folder with config.json and weights, or synthetic:<shape> such as synthetic:v3-base"
