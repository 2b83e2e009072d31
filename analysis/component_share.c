/* An observer sums up the variance of each term, by head, distance and kind of token. SPDX-License-Identifier: MIT */
#include "analysis/component_share.h"

#include <stdio.h>
#include <stdlib.h>

enum { SIDE_BINS = SHARE_DISTANCES / 2 };

/* -------------------------------------------------------------------------------------------------------- distances */

size_t share_distance_bin(ptrdiff_t distance)
{
    const size_t size = (size_t)(distance < 0 ? -distance : distance);
    size_t bin = 0; /* 1, 2, 3-4, 5-8 ... */
    while (bin < SIDE_BINS && size > (bin ? (size_t)1 << (bin - 1) : 0)) bin++;
    return distance < 0 ? SIDE_BINS - bin : SIDE_BINS + bin;
}

void share_distance_name(size_t bin, char name[SHARE_NAME_BYTES])
{
    const size_t side = bin < SIDE_BINS ? SIDE_BINS - bin : bin - SIDE_BINS;
    const char *where = bin < SIDE_BINS ? "right" : "left";
    const size_t low = side < 2 ? side : ((size_t)1 << (side - 2)) + 1, high = side ? (size_t)1 << (side - 1) : 0;
    if (side == 0)
        snprintf(name, SHARE_NAME_BYTES, "itself");
    else if (side == SIDE_BINS)
        snprintf(name, SHARE_NAME_BYTES, "%s %zu..", where, low);
    else if (low == high)
        snprintf(name, SHARE_NAME_BYTES, "%s %zu", where, low);
    else
        snprintf(name, SHARE_NAME_BYTES, "%s %zu..%zu", where, low, high);
}

/* ---------------------------------------------------------------------------------------------------------- summing */

static size_t groups_of(const component_share *share) { return share->heads + SHARE_DISTANCES + SHARE_CLASSES; }

double *component_share_at(const component_share *share, size_t sentence, size_t layer, share_group group, size_t index)
{
    const size_t before = group == SHARE_BY_HEAD ? 0 : share->heads + (group == SHARE_BY_CLASS ? SHARE_DISTANCES : 0);
    return share->squares + ((sentence * share->layers + layer) * groups_of(share) + before + index) * SHARE_TERMS;
}

deberta_status component_share_create(component_share *share, const deberta_model_info *model, size_t sentences,
                                      deberta_error *err)
{
    *share = (component_share){.sentences = sentences, .layers = model->layers, .heads = model->heads};
    size_t count;
    if (size_multiply(sentences, model->layers * groups_of(share) * SHARE_TERMS, &count))
        share->squares = calloc(count, sizeof *share->squares);
    if (!share->squares) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the shares of %zu sentences", sentences);
    return DEBERTA_OK;
}

void component_share_free(component_share *share)
{
    free(share->squares);
    *share = (component_share){0};
}

static int wants_attention(void *context, size_t layer, size_t head, deberta_component component)
{
    (void)context, (void)layer, (void)head;
    return component == DEBERTA_C2C || component == DEBERTA_C2P || component == DEBERTA_P2C;
}

/* One row of a block; `row` is where its sums go. */
typedef struct share_row {
    const component_share *share;
    size_t sentence, layer, head, query, keys, term;
} share_row;

/* values[j step]; step -1 walks a table of distances from i to i - (keys - 1). */
static void add_row(const share_row *row, const float *values, ptrdiff_t step)
{
    const component_share *share = row->share;
    double *distances = component_share_at(share, row->sentence, row->layer, SHARE_BY_DISTANCE, 0);
    double mean = 0, sum = 0;
    for (size_t j = 0; j < row->keys; j++) mean += (double)values[(ptrdiff_t)j * step];
    mean /= (double)row->keys;
    for (size_t j = 0; j < row->keys; j++) {
        const double rest = (double)values[(ptrdiff_t)j * step] - mean;
        distances[share_distance_bin((ptrdiff_t)row->query - (ptrdiff_t)j) * SHARE_TERMS + row->term] += rest * rest;
        sum += rest * rest;
    }
    const size_t class = share->classes ? share->classes[share->starts[row->sentence] + row->query] : 0;
    component_share_at(share, row->sentence, row->layer, SHARE_BY_HEAD, row->head)[row->term] += sum;
    component_share_at(share, row->sentence, row->layer, SHARE_BY_CLASS, class)[row->term] += sum;
}

static deberta_status on_attention(void *context, const deberta_attention_block *block)
{
    const component_share *share = context;
    share_row row = {.share = share,
                     .sentence = share->first_sentence + block->sequence,
                     .layer = block->layer,
                     .head = block->head,
                     .keys = block->keys};
    for (size_t i = 0; i < block->rows; i++) {
        row.query = block->first_query + i;
        row.term = block->component;
        add_row(&row, block->values + i * block->stride, 1);
        if (block->component != DEBERTA_C2C || !share->extra) continue;
        row.term = SHARE_P2P; /* a function of the distance: once for every row that is seen */
        add_row(&row, position_term_by_distance(share->extra, block->layer, block->head) + row.query, -1);
    }
    return DEBERTA_OK;
}

deberta_observer component_share_observer(component_share *share)
{
    return (deberta_observer){.struct_size = sizeof(deberta_observer),
                              .context = share,
                              .wants_attention = wants_attention,
                              .on_attention = on_attention};
}
