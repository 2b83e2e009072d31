/* Writes a config.json from drawn sizes, in the spelling of a drawn dialect. SPDX-License-Identifier: MIT */
#include "tests/drawn/drawn_configuration.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/numbers.h"
#include "core/base/text.h"

typedef enum dialect { OF_V1, OF_V2, OF_MICROSOFT } dialect;

typedef struct shape {
    size_t heads, size, layers, intermediate, embedding, vocabulary, types, places;
} shape;

static bool one_in(uint64_t *state, size_t n) { return random_below(state, n) == 0; }

/* Draws a number from least to most. */
static size_t between(uint64_t *state, size_t least, size_t most)
{
    return least + random_below(state, most - least + 1);
}

#define ONE_OF(state, list) (list)[random_below(state, sizeof(list) / sizeof *(list))]

/* -------------------------------------------------------------------------------------------------------------- sizes */

/* A norm over fewer columns than five is all rounding, and hidden states pass many. Embeddings pass one, in a head. */
enum { LEAST_WIDTH = 5, LEAST_EMBEDDING = 3, SMALL_WIDTH = 24, MOST_WIDTH = 64 };

static void draw_width(const drawn_wish *wish, uint64_t *state, shape *s)
{
    const size_t most = wish->is_small ? SMALL_WIDTH : MOST_WIDTH;
    do {
        s->heads = between(state, 1, 4);
        s->size = between(state, 1, one_in(state, 4) ? 40 : 17);
    } while (s->heads * s->size < LEAST_WIDTH || s->heads * s->size > most);
    const size_t h = s->heads * s->size;
    s->embedding = h;
    if (!wish->decodes && one_in(state, 2))
        s->embedding = one_in(state, 2) ? between(state, LEAST_EMBEDDING, h) : between(state, h, h + 20);
}

static void draw_vocabulary(const drawn_wish *wish, uint64_t *state, shape *s)
{
    static const size_t edges[] = {16, 64, 256, 257};
    s->vocabulary = between(state, 7, 90);
    if (one_in(state, 5)) s->vocabulary = between(state, 2, 6);
    if (one_in(state, 6)) s->vocabulary = ONE_OF(state, edges);
    if (one_in(state, 12) && !wish->is_small) s->vocabulary = between(state, 900, 1600);
}

static shape draw_shape(const drawn_wish *wish, uint64_t *state)
{
    shape s = {.layers = one_in(state, 4) ? 3 : between(state, 1, 2)};
    draw_width(wish, state, &s);
    draw_vocabulary(wish, state, &s);
    s.intermediate = one_in(state, 5) ? between(state, 1, 8) : between(state, 9, 80);
    s.types = one_in(state, 2) ? random_below(state, 4) : 0;
    s.places = wish->places + random_below(state, 9);
    if (!wish->like) return s;
    s.vocabulary = wish->like->vocabulary_size;
    s.places = wish->like->max_positions;
    s.embedding = wish->like->embedding_size;
    s.types = wish->like->token_types;
    return s;
}

/* ----------------------------------------------------------------------------------------------------------- spellings */

static const char *flag(bool value) { return value ? "true" : "false"; }

/* The same terms in the ways that files write them. */
static const char *draw_terms(uint64_t *state)
{
    static const char *const both[] = {"\"c2p|p2c\"",      "[\"c2p\", \"p2c\"]", "\"p2c|c2p\"",
                                       "\" C2P | P2C \"",  "[\"p2c\", \"c2p\"]", "[\" c2p \", \"P2C\"]",
                                       "\"c2p|p2c|none\"", "\"c2p||p2c\""};
    static const char *const c2p[] = {"\"c2p\"", "[\"c2p\"]", "\" C2p\"", "\"c2p|\"", "[\"none\", \"c2p\"]"};
    static const char *const p2c[] = {"\"p2c\"", "[\"p2c\"]", "\"P2C \"", "\"none|p2c\""};
    static const char *const none[] = {"\"none\"", "[]", "\"\"", "null", "\" None \""};
    switch (random_below(state, 8)) {
    case 0: return ONE_OF(state, none);
    case 1: return ONE_OF(state, c2p);
    case 2: return ONE_OF(state, p2c);
    default: return ONE_OF(state, both);
    }
}

static const char *draw_activation(uint64_t *state)
{
#define SPELLED(NAME, function, ...) __VA_ARGS__,
    static const char *const names[] = {ACTIVATIONS(SPELLED) ACTIVATION_NONE_SPELLED};
#undef SPELLED
    return one_in(state, 3) ? "gelu" : ONE_OF(state, names);
}

/* ---------------------------------------------------------------------------------------------------------- positions */

/* Distances below the length of the texts are as good as any. Half of the buckets count single steps, the others go up
 * to the farthest distance: there must be some. */
static void write_positions(FILE *file, const drawn_wish *wish, dialect of, const shape *s, uint64_t *state)
{
    static const char *const norms[] = {"\"layer_norm\"", "\"none\"", "\" Layer_Norm \"", "\"none|layer_norm\"",
                                        "\"\""};
    const bool relative = !one_in(state, 8), has_buckets = of != OF_V1 && !one_in(state, 4);
    const size_t buckets = has_buckets ? between(state, 2, one_in(state, 3) ? 40 : 14) : 0;
    const size_t distance = buckets / 2 + between(state, 2, one_in(state, 3) ? 6 : 40);
    fprintf(file, ", \"relative_attention\": %s, \"position_biased_input\": %s", flag(relative),
            flag(!wish->decodes && one_in(state, 2)));
    if (!one_in(state, 12) || of != OF_MICROSOFT) fprintf(file, ", \"pos_att_type\": %s", draw_terms(state));
    if (!one_in(state, 4) || s->places > 100 || s->places < buckets / 2 + 2)
        fprintf(file, ", \"max_relative_positions\": %zu", distance);
    else
        fprintf(file, ", \"max_relative_positions\": -1");
    if (buckets || one_in(state, 2)) fprintf(file, ", \"position_buckets\": %ld", buckets ? (long)buckets : -1L);
    if (!one_in(state, 3)) fprintf(file, ", \"share_att_key\": %s", flag(one_in(state, 2)));
    if (!one_in(state, 3)) fprintf(file, ", \"norm_rel_ebd\": %s", ONE_OF(state, norms));
    if (of != OF_V2 && !wish->is_trained && one_in(state, 3)) fprintf(file, ", \"talking_head\": true");
}

static void write_convolution(FILE *file, const shape *s, uint64_t *state)
{
    static const size_t widths[] = {1, 3, 3, 5, 7};
    const size_t h = s->heads * s->size, groups = one_in(state, 2) ? 1 : between(state, 1, 4);
    if (one_in(state, 2)) return;
    fprintf(file, ", \"conv_kernel_size\": %zu, \"conv_groups\": %zu", ONE_OF(state, widths), h % groups ? 1 : groups);
    if (one_in(state, 2)) fprintf(file, ", \"conv_act\": \"%s\"", draw_activation(state));
}

/* -------------------------------------------------------------------------------------------------------------- heads */

static void write_heads(FILE *file, const drawn_wish *wish, dialect of, uint64_t *state)
{
    fprintf(file, ", \"num_labels\": %zu", wish->labels);
    if (wish->heads & DRAWN_SEQUENCE && one_in(state, 2))
        fprintf(file, ", \"architectures\": [\"DebertaV2ForSequenceClassification\"]");
    if (of == OF_MICROSOFT && one_in(state, 2))
        fprintf(file, ", \"pooling\": {\"hidden_act\": \"%s\"}", draw_activation(state));
    else if (!one_in(state, 3))
        fprintf(file, ", \"pooler_hidden_act\": \"%s\"", draw_activation(state));
}

static void write_configuration(FILE *file, const drawn_wish *wish, uint64_t *state)
{
    static const char *const types[] = {"\"model_type\": \"deberta\", ", "\"model_type\": \"deberta-v2\", ", ""};
    static const char *const epsilons[] = {"1e-07", "1e-7", "1e-12", "1e-5", "0.001"};
    static const dialect dialects[] = {OF_V1, OF_V1, OF_V2, OF_V2, OF_V2, OF_MICROSOFT};
    const dialect of = ONE_OF(state, dialects);
    const shape s = draw_shape(wish, state);
    fprintf(file,
            "{%s\"vocab_size\": %zu, \"hidden_size\": %zu, \"num_hidden_layers\": %zu, \"num_attention_heads\": %zu, "
            "\"intermediate_size\": %zu, \"max_position_embeddings\": %zu, \"type_vocab_size\": %zu",
            types[of], s.vocabulary, s.heads * s.size, s.layers, s.heads, s.intermediate, s.places, s.types);
    if (s.embedding != s.heads * s.size || one_in(state, 2)) fprintf(file, ", \"embedding_size\": %zu", s.embedding);
    if (!one_in(state, 6)) fprintf(file, ", \"hidden_act\": \"%s\"", draw_activation(state));
    if (!one_in(state, 6)) fprintf(file, ", \"layer_norm_eps\": %s", ONE_OF(state, epsilons));
    fprintf(file, ", \"%s\": %zu", one_in(state, 4) ? "padding_idx" : "pad_token_id",
            one_in(state, 2) ? 0 : random_below(state, s.vocabulary));
    write_positions(file, wish, of, &s, state);
    if (of != OF_V1) write_convolution(file, &s, state);
    write_heads(file, wish, of, state);
    fprintf(file, "}\n");
}

char *drawn_configuration(const drawn_wish *wish, uint64_t *state)
{
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    if (!file) return NULL;
    write_configuration(file, wish, state);
    if (stream_close(file)) return text;
    free(text);
    return NULL;
}
