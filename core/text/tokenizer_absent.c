/* The tokenizer interface in a build without text support: there is never a tokenizer, and opening one says why.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/tokenizer.h"

#include "core/text/workspace.h"

#define ABSENT "this build has no tokenizers (it was configured with -Dtext=disabled); give ids instead of text"

deberta_status tokenizer_open(tokenizer **t, const char *folder, deberta_error *err)
{
    (void)folder;
    *t = NULL;
    DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, ABSENT);
}

void tokenizer_free(tokenizer **t) { *t = NULL; }
void token_workspace_free(token_workspace **workspace) { *workspace = NULL; }

const char *tokenizer_kind_name(const tokenizer *t) { return (void)t, "none"; }
const char *tokenizer_file_name(const tokenizer *t) { return (void)t, ""; }
size_t tokenizer_vocabulary_size(const tokenizer *t) { return (void)t, 0; }
int32_t tokenizer_id(const tokenizer *t, tokenizer_special special) { return (void)t, (void)special, -1; }
const char *tokenizer_token(const tokenizer *t, int32_t id, size_t *bytes)
{
    return (void)t, (void)id, (void)bytes, NULL;
}
bool tokenizer_is_special(const tokenizer *t, int32_t id) { return (void)t, (void)id, false; }

deberta_status tokenizer_encode(const tokenizer *t, const char *text, size_t bytes, const char *pair, size_t pair_bytes,
                                const tokenizer_options *options, token_list *list, deberta_error *err)
{
    (void)t, (void)text, (void)bytes, (void)pair, (void)pair_bytes, (void)options;
    token_list_clear(list);
    DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, ABSENT);
}

deberta_status tokenizer_decode(const tokenizer *t, const int32_t *ids, size_t count, char **text, size_t *bytes,
                                deberta_error *err)
{
    (void)t, (void)ids, (void)count, (void)bytes;
    *text = NULL;
    DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, ABSENT);
}
