/* The tokenizer interface in a build without text support: there is never a tokenizer, and opening one says why.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/tokenizer.h"

#include "core/text/workspace.h"

#define ABSENT "this build has no tokenizers (it was configured with -Dtext=disabled); give ids instead of text"

deberta_status deberta_tokenizer_open(deberta_tokenizer **t, const char *folder, deberta_error *err)
{
    (void)folder;
    if (t) *t = NULL;
    DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, ABSENT);
}

void deberta_tokenizer_free(deberta_tokenizer **t) { (void)t; }
void token_workspace_free(token_workspace **workspace) { *workspace = NULL; }

const char *deberta_tokenizer_kind_name(const deberta_tokenizer *t) { return (void)t, "none"; }
const char *tokenizer_file_name(const deberta_tokenizer *t) { return (void)t, ""; }
size_t deberta_tokenizer_vocabulary_size(const deberta_tokenizer *t) { return (void)t, 0; }
int32_t deberta_tokenizer_special_id(const deberta_tokenizer *t, deberta_special special)
{
    return (void)t, (void)special, -1;
}
const char *deberta_tokenizer_token(const deberta_tokenizer *t, int32_t id, size_t *bytes)
{
    return (void)t, (void)id, (void)bytes, NULL;
}
int deberta_tokenizer_is_special(const deberta_tokenizer *t, int32_t id) { return (void)t, (void)id, false; }

deberta_status tokenizer_encode(const deberta_tokenizer *t, const char *text, size_t bytes, const char *pair,
                                size_t pair_bytes, const tokenizer_options *options, token_list *list,
                                deberta_error *err)
{
    (void)t, (void)text, (void)bytes, (void)pair, (void)pair_bytes, (void)options;
    token_list_clear(list);
    DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, ABSENT);
}

deberta_status deberta_detokenize(char **text, size_t *bytes, const deberta_tokenizer *t, const int32_t *ids,
                                  size_t count, deberta_error *err)
{
    (void)t, (void)ids, (void)count, (void)bytes;
    if (text) *text = NULL;
    DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, ABSENT);
}
