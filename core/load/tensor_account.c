/* Refuses tensors of a checkpoint that nothing uses, among them those of adapters (LoRA and the like), and notes those
 * that config.json turns off. docs/followed.md shows the lists; a test compares them.
 *
 * SPDX-License-Identifier: MIT */
#include "core/load/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/io/quote.h"

typedef enum leftover_use {
    HARMLESS, /* no result depends on it */
    OFF       /* a part of DeBERTa that config.json turns off: a note */
} leftover_use;

/* Names below "encoder." and "embeddings."; those of a layer are without "encoder.layer.N.". A name that ends in a dot
 * stands for all that begin with it. */
#define LEFTOVERS(X)                                                                                                   \
    X(HARMLESS, "embeddings.position_ids", "0, 1, 2 ..., which transformers once saved")                               \
    X(HARMLESS, "embeddings.token_type_ids", "zeros, which transformers once saved")                                   \
    X(HARMLESS, "embeddings.word_embeddings._weight", "the difference to a generator's table, in the table already")   \
    X(HARMLESS, "embeddings.position_embeddings._weight", "the same of a decoder's table of positions")                \
    X(OFF, "embeddings.position_embeddings.weight", "position_biased_input, max_position_embeddings")                  \
    X(OFF, "embeddings.token_type_embeddings.weight", "type_vocab_size")                                               \
    X(OFF, "embeddings.embed_proj.weight", "embedding_size")                                                           \
    X(OFF, "encoder.rel_embeddings.weight", "relative_attention, pos_att_type")                                        \
    X(OFF, "encoder.LayerNorm.", "norm_rel_ebd")                                                                       \
    X(OFF, "encoder.conv.", "conv_kernel_size")                                                                        \
    X(OFF, "attention.self.pos_proj.", "pos_att_type")                                                                 \
    X(OFF, "attention.self.pos_q_proj.", "pos_att_type")                                                               \
    X(OFF, "attention.self.pos_key_proj.", "pos_att_type, share_att_key")                                              \
    X(OFF, "attention.self.pos_query_proj.", "pos_att_type, share_att_key")                                            \
    X(OFF, "attention.self.head_logits_proj.", "talking_head")                                                         \
    X(OFF, "attention.self.head_weights_proj.", "talking_head")

/* Parts of names that adapters of the known libraries have. */
#define ADAPTERS(X)                                                                                                    \
    X("lora")                                                                                                          \
    X("adapter")                                                                                                       \
    X("ia3") X("hada_") X("lokr_") X("loha_") X("oft_") X("vera_") X("dora") X("base_layer") X("prefix") X("prompt")

static const struct leftover {
    leftover_use use;
    const char *name, *why;
} leftovers[] = {
#define LEFTOVER(use, name, why) {use, name, why},
    LEFTOVERS(LEFTOVER)
#undef LEFTOVER
};

static const char *const adapters[] = {
#define ADAPTER(word) word,
    ADAPTERS(ADAPTER)
#undef ADAPTER
};

static int by_address(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return (*x > *y) - (*x < *y);
}

/* Name of a tensor in a file; in a packed file it has no terminator. */
typedef struct stored_name {
    const char *text;
    size_t bytes;
} stored_name;

static bool begins_with(stored_name name, const char *begin)
{
    return name.bytes >= strlen(begin) && memcmp(name.text, begin, strlen(begin)) == 0;
}

static bool is_of_adapter(stored_name name)
{
    for (size_t i = 0; i < sizeof adapters / sizeof *adapters; i++) {
        const size_t length = strlen(adapters[i]);
        for (size_t at = 0; at + length <= name.bytes; at++)
            if (memcmp(name.text + at, adapters[i], length) == 0) return true;
    }
    return false;
}

/* Removes "encoder.layer.3." from the beginning of a name and sets *layer. Returns false, without a change, for other
 * names. */
static bool take_layer(stored_name *name, size_t *layer)
{
    static const char begin[] = "encoder.layer.";
    size_t at = sizeof begin - 1, number = 0;
    if (!begins_with(*name, begin)) return false;
    for (; at < name->bytes && name->text[at] >= '0' && name->text[at] <= '9' && number < 1 << 20; at++)
        number = number * 10 + (size_t)(name->text[at] - '0');
    if (at == sizeof begin - 1 || at >= name->bytes || name->text[at] != '.') return false;
    *layer = number;
    *name = (stored_name){name->text + at + 1, name->bytes - at - 1};
    return true;
}

static const struct leftover *find_leftover(stored_name name)
{
    for (size_t i = 0; i < sizeof leftovers / sizeof *leftovers; i++) {
        const size_t length = strlen(leftovers[i].name);
        const bool whole = leftovers[i].name[length - 1] != '.';
        if (begins_with(name, leftovers[i].name) && (!whole || name.bytes == length)) return &leftovers[i];
    }
    return NULL;
}

/* The findings of one walk over the names. */
typedef struct leftover_sums {
    size_t first_layer, last_layer; /* layers in the file beyond those that config.json has; first 0: none */
    size_t off[sizeof leftovers / sizeof *leftovers];
    bool adapter_outside;
    quoted outside;
} leftover_sums;

static deberta_status tensor_account_refuse(const deberta_model *model, stored_name name, deberta_error *err)
{
    DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: tensor '%s' is no part of DeBERTa, and would be passed over: %s",
                 model->files.name, QUOTE_N(name.text, name.bytes),
                 is_of_adapter(name)
                     ? "merge the adapter into the weights first (peft: merge_and_unload)"
                     : "the model computes something else; take it out of the file if it is not needed");
}

/* Judges a name below "encoder." or "embeddings." that nothing has used. */
static deberta_status tensor_account_judge(const deberta_model *model, stored_name name, leftover_sums *sums,
                                           deberta_error *err)
{
    stored_name inner = name;
    size_t layer = 0;
    const bool of_layer = take_layer(&inner, &layer);
    if (of_layer && layer >= model->stored_layers) {
        if (!sums->first_layer || layer < sums->first_layer) sums->first_layer = layer;
        if (layer > sums->last_layer) sums->last_layer = layer;
        return DEBERTA_OK;
    }
    if (of_layer && layer >= model->config.layers) return DEBERTA_OK; /* The caller asked for fewer layers. */
    const struct leftover *known = find_leftover(inner);
    if (!known) return tensor_account_refuse(model, name, err);
    /* transformers creates this tensor without reading it where no term of attention needs the table, whose own note
     * says so. */
    const bool spare = strcmp(known->name, "encoder.LayerNorm.") == 0 && model->config.norm_relative;
    if (known->use == OFF && !spare) sums->off[known - leftovers]++;
    return DEBERTA_OK;
}

static deberta_status add_notes(deberta_model *model, const leftover_sums *sums, deberta_error *err)
{
    const char *where = model->files.name;
    if (sums->first_layer)
        DEBERTA_TRY(notes_add(&model->notes, err,
                              "%s: layers %zu to %zu are not used: config.json says num_hidden_layers %zu", where,
                              sums->first_layer, sums->last_layer, model->stored_layers));
    for (size_t i = 0; i < sizeof leftovers / sizeof *leftovers; i++) {
        const char *name = leftovers[i].name, *rest = name[strlen(name) - 1] == '.' ? "*" : "";
        /* A position table of another shape is left out; load_layers.c adds the note. */
        if (sums->off[i] && strcmp(name, "embeddings.position_embeddings.weight") != 0)
            DEBERTA_TRY(notes_add(&model->notes, err, "%s: %s%s is not used: config.json turns it off (%s)", where,
                                  name, rest, leftovers[i].why));
    }
    if (sums->adapter_outside)
        DEBERTA_TRY(
            notes_add(&model->notes, err,
                      "%s: tensor '%s' lies beside the model and is not used: if it is a part of an adapter or a "
                      "prefix, the model computes something else with it",
                      where, sums->outside.text));
    return DEBERTA_OK;
}

static deberta_status go_through(const tensor_account *account, deberta_model *model, bool opened, deberta_error *err)
{
    const weight_source *files = &model->files;
    leftover_sums sums = {0};
    stored_name name;
    bool is_outside = false;
    for (size_t cursor = 0; (name.text = files->next(files->context, &cursor, &name.bytes, &is_outside));) {
        const bool inside = !is_outside && (begins_with(name, "encoder.") || begins_with(name, "embeddings."));
        if (!opened) {
            if (inside && is_of_adapter(name)) return tensor_account_refuse(model, name, err);
            continue;
        }
        if (account->count && bsearch(&name.text, account->names, account->count, sizeof *account->names, by_address))
            continue;
        if (inside)
            DEBERTA_TRY(tensor_account_judge(model, name, &sums, err));
        else if (!sums.adapter_outside && is_of_adapter(name)) {
            sums.adapter_outside = true;
            sums.outside = quote_bytes(name.text, name.bytes);
        }
    }
    return opened ? add_notes(model, &sums, err) : DEBERTA_OK;
}

deberta_status tensor_account_close(tensor_account *account, deberta_model *model, deberta_status opened,
                                    deberta_error *err)
{
    deberta_status status = opened;
    if (account->count) qsort(account->names, account->count, sizeof *account->names, by_address);
    if (opened == DEBERTA_OK || opened == DEBERTA_E_FORMAT) {
        status = go_through(account, model, opened == DEBERTA_OK, err);
        if (status == DEBERTA_OK) status = opened;
    }
    free(account->names);
    *account = (tensor_account){0};
    return status;
}
