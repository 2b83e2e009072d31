/* Classifies the path given as a model, before anything is opened.
 *
 * Users pass the name of a model on a hub, a URL, an adapter, the folder above a model, or a model of another class.
 * Each is recognised by the files that it holds, and the refusal says what it is and what helps.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "core/base/notes.h"

/* DEBERTA_OK for a folder with a config.json, and for what nothing is known of: opening it says what is wrong.
 * DEBERTA_E_FILE where there is no such folder, where it is a file, or where the model lies in a folder inside;
 * DEBERTA_E_UNSUPPORTED for what another library would open. */
deberta_status folder_check_model(const char *path, deberta_error *err);
/* As folder_check_model, of a folder in which no tokenizer was found: files of one that is not read come first. */
deberta_status folder_check_tokenizer(const char *path, deberta_error *err);
/* A sentence for each thing that lies beside a model, that other libraries follow, and that is not followed here. */
deberta_status folder_note_rest(const char *path, notes *list, deberta_error *err);
/* Weights of a kind that is not read, for the refusal of a folder without others: "; NAME is ..., what helps", or "".
 */
const char *folder_other_weights(const char *path, char *room, size_t room_bytes);

/* Is a file one of those that a place holds? By device and inode, so other spellings, links and mounts do not matter.
 */

/* place: a file, which holds itself, or a folder, which holds its files and those of the folders in it (generator/,
 * 1_Pooling/), whatever links they are. False where either does not exist, and for what is no regular file. */
bool place_holds(const char *place, const char *path);
/* Is this open file, such as standard input, the one that the path names? */
bool descriptor_is_file(int descriptor, const char *path);
