/* config.json: the dialects and their rules, and everything that must be refused.
 *
 * SPDX-License-Identifier: MIT */
#define TESTS_IN_LIMITED_MEMORY
#include "tests/unit/test.h"

#include "tests/unit/io_helpers.h"

#include "core/model/config.h"

static deberta_status parse(model_config *config, const char *text, deberta_error *error)
{
    FREED_BY(free_memory) char *copy = (char *)exact_copy((const uint8_t *)text, strlen(text));
    deberta_status status = config_parse(config, copy, strlen(text), "config.json", error);
    return status;
}

/* In place of what the configuration held before. */
static void parse_good(model_config *config, const char *text)
{
    config_free(config);
    deberta_error error;
    if (parse(config, text, &error) != DEBERTA_OK) fail_msg("%s", error.message);
}

/* A small config that is right in itself, followed by what a test adds or replaces. */
#define V1        "{\"model_type\":\"deberta\",\"vocab_size\":11,\"hidden_size\":8,\"num_attention_heads\":2"
#define V2        "{\"model_type\":\"deberta-v2\",\"vocab_size\":11,\"hidden_size\":8,\"num_attention_heads\":2"
#define MICROSOFT "{\"vocab_size\":11,\"hidden_size\":8,\"num_attention_heads\":2"

TEST(test_defaults)
{
    FREED_BY(config_free) model_config c = {0};
    parse_good(&c, "{\"model_type\":\"deberta\"}");
    assert_int_equal(c.version, 1);
    assert_true(c.vocabulary_size == 50265 && c.hidden_size == 768 && c.layers == 12 && c.heads == 12 &&
                c.head_size == 64);
    assert_true(c.intermediate_size == 3072 && c.max_positions == 512 && c.max_relative_positions == 512);
    assert_true(c.relative_span == 512 && c.position_buckets == 0 && c.embedding_size == 768 && c.token_types == 0);
    assert_true(!c.relative_attention && c.position_biased_input && !c.c2p && !c.p2c && c.position_terms == 0);
    assert_true(c.layer_norm_eps == 1e-7f && c.hidden_activation == ACTIVATION_GELU && c.labels == 2);
    assert_true(c.convolution_width == 0 && c.architecture == NULL && c.label_names[0] == NULL && c.pad_token_id == 0);
    config_free(&c);
    config_free(&c);

    parse_good(&c, "{\"model_type\":\"deberta-v2\"}");
    assert_int_equal(c.version, 2);
    assert_true(c.vocabulary_size == 128100 && c.hidden_size == 1536 && c.layers == 24 && c.heads == 24);
    assert_true(c.intermediate_size == 6144 && !c.share_att_key && !c.norm_relative &&
                c.convolution_activation == ACTIVATION_TANH);
    parse_good(&c, "{\"vocab_size\":5}");
    assert_int_equal(c.version, 0);
    assert_true(c.hidden_size == 768 && c.layers == 12 && c.position_terms == 1); /* Microsoft's pos_att_type is c2p */
}

/* Configs as published: v3-base of transformers and of Microsoft's code, v2-xlarge. */
TEST(test_published)
{
    FREED_BY(config_free) model_config c = {0};
    parse_good(
        &c,
        "{\"model_type\":\"deberta-v2\",\"attention_probs_dropout_prob\":0.1,\"hidden_act\":\"gelu\",\"hidden_dropout_"
        "prob\":0.1,"
        "\"hidden_size\":1536,\"initializer_range\":0.02,\"intermediate_size\":6144,\"max_position_embeddings\":512,"
        "\"relative_attention\":true,\"position_buckets\":256,\"norm_rel_ebd\":\"layer_norm\",\"share_att_key\":true,"
        "\"pos_att_type\":\"p2c|c2p\",\"layer_norm_eps\":1e-7,\"conv_kernel_size\":3,\"conv_act\":\"gelu\","
        "\"max_relative_positions\":-1,\"position_biased_input\":false,\"num_attention_heads\":24,"
        "\"attention_head_size\":64,\"num_hidden_layers\":24,\"type_vocab_size\":0,\"vocab_size\":128100}");
    assert_true(c.relative_attention && c.c2p && c.p2c && c.position_terms == 2 && c.share_att_key && c.norm_relative);
    assert_true(c.position_buckets == 256 && c.relative_span == 256 && c.max_relative_positions == 512);
    assert_true(c.convolution_width == 3 && c.convolution_groups == 1 && c.convolution_activation == ACTIVATION_GELU);
    assert_true(c.head_size == 64 && !c.position_biased_input);

    /* Microsoft's training config of a discriminator and its generator */
    parse_good(&c,
               "{\"model_type\":\"rtd\",\"embedding_sharing\":\"gdes\","
               "\"generator\":{\"vocab_size\":11,\"hidden_size\":8,\"num_attention_heads\":2,\"num_hidden_layers\":6},"
               "\"discriminator\":{\"vocab_size\":11,\"hidden_size\":8,\"num_attention_heads\":2,\"num_hidden_layers\":"
               "7,\"padding_idx\":3}}");
    assert_true(c.layers == 7 && c.version == 0 && c.pad_token_id == 3);
}

TEST(test_position_terms)
{
    static const struct {
        const char *value;
        bool c2p, p2c;
        size_t terms_v1, terms_others;
    } cases[] = {
        {"null", false, false, 0, 0},
        {"[]", false, false, 0, 0},
        {"\"c2p|p2c\"", true, true, 2, 2},
        {"\"p2c|c2p\"", true, true, 2, 2},
        {"\" P2C | C2P \"", true, true, 2, 2},
        {"[\"c2p\"]", true, false, 1, 1},
        {"[\"p2c\"]", false, true, 1, 1},
        {"\"none\"", false, false, 1, 0}, /* SPEC 1.2: the v1 class counts entries */
        {"\"\"", false, false, 1, 0},
        {"\"c2p|c2p\"", true, false, 2, 1},
        {"[\"c2p\",\"none\"]", true, false, 2, 1},
    };
    static const char *const heads[] = {V1, V2, MICROSOFT};
    FOR_ROWS(i, cases)
        for (size_t h = 0; h < 3; h++)
            for (int relative = 0; relative < 2; relative++) {
                char text[512];
                FREED_BY(config_free) model_config c = {0};
                snprintf(text, sizeof text, "%s,\"relative_attention\":%s,\"pos_att_type\":%s}", heads[h],
                         relative ? "true" : "false", cases[i].value);
                parse_good(&c, text);
                assert_int_equal(c.c2p, cases[i].c2p && relative);
                assert_int_equal(c.p2c, cases[i].p2c && relative);
                assert_int_equal(c.position_terms, h == 0 ? cases[i].terms_v1 : cases[i].terms_others);
            }
}

TEST(test_relative_span)
{
    static const struct {
        const char *fields;
        size_t distance, buckets, span, span_v1;
    } cases[] = {
        {"", 512, 0, 512, 512},
        {",\"max_relative_positions\":-1", 512, 0, 512, 512},
        {",\"max_relative_positions\":0", 512, 0, 512, 512},
        {",\"max_relative_positions\":16", 16, 0, 16, 16},
        {",\"max_position_embeddings\":64", 64, 0, 64, 64},
        {",\"position_buckets\":-1", 512, 0, 512, 512},
        {",\"position_buckets\":0", 512, 0, 512, 512},
        {",\"position_buckets\":null", 512, 0, 512, 512},
        {",\"position_buckets\":2", 512, 2, 2, 512},
        {",\"position_buckets\":256", 512, 256, 256, 512},
        {",\"max_relative_positions\":16,\"position_buckets\":4", 16, 4, 4, 16},
    };
    FOR_ROWS(i, cases) {
        char text[512];
        FREED_BY(config_free) model_config c = {0};
        snprintf(text, sizeof text, V2 "%s}", cases[i].fields);
        parse_good(&c, text);
        assert_true(c.max_relative_positions == cases[i].distance && c.position_buckets == cases[i].buckets);
        assert_int_equal(c.relative_span, cases[i].span);
        snprintf(text, sizeof text, V1 "%s}", cases[i].fields); /* no buckets in v1 */
        parse_good(&c, text);
        assert_true(c.position_buckets == 0 && c.relative_span == cases[i].span_v1);
    }
}

/* What one class knows and the other ignores. */
TEST(test_dialects)
{
    static const char fields[] =
        ",\"share_att_key\":true,\"norm_rel_ebd\":\" none | Layer_Norm \",\"talking_head\":true,"
        "\"conv_kernel_size\":5,\"conv_groups\":4,\"hidden_act\":\"relu\"}";
    char text[512];
    FREED_BY(config_free) model_config c = {0};
    snprintf(text, sizeof text, V1 "%s", fields);
    parse_good(&c, text);
    assert_true(!c.share_att_key && !c.norm_relative && c.talking_heads && c.convolution_width == 0);
    assert_int_equal(c.pooler_activation, ACTIVATION_GELU);
    snprintf(text, sizeof text, V2 "%s", fields);
    parse_good(&c, text);
    assert_true(c.share_att_key && c.norm_relative && !c.talking_heads && c.convolution_width == 5 &&
                c.convolution_groups == 4);
    assert_int_equal(c.pooler_activation, ACTIVATION_GELU);
    snprintf(text, sizeof text, MICROSOFT "%s", fields);
    parse_good(&c, text);
    assert_true(c.share_att_key && c.norm_relative && c.talking_heads); /* the tensors decide */
    assert_int_equal(c.pooler_activation, ACTIVATION_RELU);             /* without `pooling` the encoder's own */
    parse_good(&c, MICROSOFT ",\"hidden_act\":\"relu\",\"pooling\":{\"dropout\":0,\"hidden_act\":\"tanh\"}}");
    assert_int_equal(c.pooler_activation, ACTIVATION_TANH);
    parse_good(&c, V2 ",\"pooler_hidden_act\":\"tanh\",\"embedding_size\":5}");
    assert_true(c.pooler_activation == ACTIVATION_TANH && c.embedding_size == 5);
}

TEST(test_activations)
{
    static const struct {
        const char *name;
        activation value;
    } cases[] = {
        {"gelu", ACTIVATION_GELU},
        {"gelu_new", ACTIVATION_GELU_TANH},
        {"gelu_fast", ACTIVATION_GELU_TANH},
        {"gelu_pytorch_tanh", ACTIVATION_GELU_TANH},
        {"quick_gelu", ACTIVATION_GELU_QUICK},
        {"relu", ACTIVATION_RELU},
        {"silu", ACTIVATION_SILU},
        {"swish", ACTIVATION_SILU},
        {"tanh", ACTIVATION_TANH},
        {"sigmoid", ACTIVATION_SIGMOID},
        {"linear", ACTIVATION_NONE},
    };
    FOR_ROWS(i, cases) {
        char text[512];
        FREED_BY(config_free) model_config c = {0};
        snprintf(text, sizeof text, V2 ",\"hidden_act\":\"%s\"}", cases[i].name);
        parse_good(&c, text);
        assert_int_equal(c.hidden_activation, cases[i].value);
    }
}

TEST(test_labels)
{
    FREED_BY(config_free) model_config c = {0};
    parse_good(
        &c,
        V2 ",\"architectures\":[\"X\",\"Y\"],\"id2label\":{\"10\":\"k\",\"2\":\"c\",\"0\":\"a\",\"1\":null,\"3\":7}}");
    static const char *const names[11] = {"a", NULL, "c", "7", [10] = "k"};
    assert_int_equal(c.labels, 11);
    for (int i = 0; i < 11; i++)
        if (names[i])
            assert_string_equal(c.label_names[i], names[i]);
        else
            assert_null(c.label_names[i]);
    assert_string_equal(c.architecture, "X");
    /* Each name where its number says, not by its rank: class 0 has none here. */
    parse_good(&c, V2 ",\"id2label\":{\"1\":\"A\",\"2\":\"B\"}}");
    assert_true(c.labels == 3 && !c.label_names[0]);
    assert_string_equal(c.label_names[1], "A");
    assert_string_equal(c.label_names[2], "B");
    parse_good(&c, V2 ",\"num_labels\":7,\"architectures\":[],\"id2label\":null,\"pad_token_id\":null}");
    assert_true(c.labels == 7 && !c.label_names[6] && !c.architecture);
    parse_good(&c, V2 ",\"pad_token_id\":-1}"); /* none: rows are padded with 0 all the same */
    assert_int_equal(c.pad_token_id, 0);
    parse_good(&c, V2 ",\"num_labels\":7,\"id2label\":{}}");
    assert_int_equal(c.labels, 0);
}

TEST(test_refusals)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", "line 1"},
        {"[]", "holds an array"},
        {"7", "line 1"},
        {"{} {}", "line 1"},
        {"{\"model_type\":\"deberta-v2\",", "line 1"},
        {"\xef\xbb\xbf{}", "vocab_size is missing"}, /* a byte order mark is no damage */
        {"\xff\xfe{\0}", "line 1"},
        {"{}", "vocab_size is missing"},
        {"{\"model_type\":\"deberta-v2\",\"base_model\":\"microsoft/deberta-v3-base\",\"fc_dropout\":0.2}",
         "base_model is the text 'microsoft/deberta-v3-base'"},
        {"{\"model_type\":\"bert\"}", "model_type is the text 'bert'"},
        {"{\"model_type\":\"DeBERTa\"}", "model_type is the text 'DeBERTa'"},
        {"{\"model_type\":2}", "model_type is 2"},
        {"{\"model_type\":\"de\\u001b[31mberta\"}", "'de\\x1b[31mberta'"},
        {"{\"discriminator\":{\"model_type\":\"bert\",\"vocab_size\":5}}", "'bert'"},
        {V2 ",\"hidden_size\":8}", "'hidden_size' occurs twice"},
        {V2 ",\"num_hidden_layers\":0}", "num_hidden_layers is 0"},
        {V2 ",\"num_hidden_layers\":1000000000}", "num_hidden_layers is 1000000000"},
        {V2 ",\"num_hidden_layers\":true}", "num_hidden_layers is true"},
        {V2 ",\"num_hidden_layers\":[2]}", "num_hidden_layers is an array"},
        {V2 ",\"num_hidden_layers\":2.0}", "num_hidden_layers is 2.0, expected an integer"},
        {V2 ",\"num_hidden_layers\":99999999999999999999}", "line 1"},
        {V2 ",\"num_hidden_layers\":1e999}", "line 1"},
        {V2 ",\"num_hidden_layers\":NaN}", "line 1"},
        {V2 ",\"intermediate_size\":-1}", "intermediate_size is -1"},
        {V2 ",\"intermediate_size\":9223372036854775807}", "intermediate_size is 9223372036854775807"},
        {V2 ",\"max_position_embeddings\":0}", "max_position_embeddings is 0"},
        {V2 ",\"max_relative_positions\":1000000000}", "max_relative_positions is 1000000000"},
        {V2 ",\"max_relative_positions\":\"-1\"}", "max_relative_positions is the text"},
        {V2 ",\"position_buckets\":1}", "position_buckets is 1"},
        {V2 ",\"position_buckets\":256.0}", "position_buckets is 256.0"},
        {V2 ",\"position_buckets\":4294967552}", "position_buckets is 4294967552"},
        {V2 ",\"type_vocab_size\":-1}", "type_vocab_size is -1"},
        {V2 ",\"embedding_size\":0}", "embedding_size is 0"},
        {V2 ",\"attention_head_size\":5}",
         "attention_head_size is 5, expected hidden_size / num_attention_heads = 8 / 2 = 4"},
        {V2 ",\"layer_norm_eps\":0}", "layer_norm_eps is 0"},
        {V2 ",\"layer_norm_eps\":-1e-7}", "layer_norm_eps is -"},
        {V2 ",\"layer_norm_eps\":1e-60}", "layer_norm_eps is 1e-60,"},
        {V2 ",\"layer_norm_eps\":1e60}", "layer_norm_eps is 1e+60,"},
        {V2 ",\"layer_norm_eps\":\"1e-7\"}", "layer_norm_eps is the text '1e-7'"},
        {V2 ",\"hidden_act\":\"swoosh\"}", "hidden_act is the text 'swoosh'"},
        {V2 ",\"hidden_act\":\"GELU\"}", "hidden_act is the text 'GELU'"},
        {V2 ",\"hidden_act\":[\"gelu\"]}", "hidden_act is an array"},
        {V2 ",\"conv_act\":\"x\"}", "conv_act is the text 'x'"},
        {V2 ",\"pooler_hidden_act\":\"x\"}", "pooler_hidden_act is the text 'x'"},
        {MICROSOFT ",\"pooling\":{\"hidden_act\":\"x\"}}", "hidden_act is the text 'x'"},
        {MICROSOFT ",\"pooling\":3}", "pooling is 3"},
        {V2 ",\"pos_att_type\":\"c2p|p2p\"}", "contains 'p2p'"},
        {V2 ",\"pos_att_type\":\"c2p,p2c\"}", "contains 'c2p,p2c'"},
        {V2 ",\"pos_att_type\":[\"c2p\",7]}", "an entry of pos_att_type is 7"},
        {V2 ",\"pos_att_type\":true}", "pos_att_type is true"},
        {V2 ",\"norm_rel_ebd\":true}", "norm_rel_ebd is true"},
        {V2 ",\"norm_rel_ebd\":null}", "norm_rel_ebd is null"},
        {V2 ",\"quantization_config\":{\"bits\":4}}", "expected none: quantized models are not read"},
        {V1 ",\"quantization_config\":{\"bits\":4}}", "expected none: quantized models are not read"},
        {MICROSOFT ",\"quantization_config\":{\"bits\":4}}", "expected none: quantized models are not read"},
        {V2 ",\"relative_attention\":\"true\"}", "relative_attention is the text 'true'"},
        {V2 ",\"relative_attention\":1}", "relative_attention is 1"},
        {V2 ",\"conv_kernel_size\":2}", "conv_kernel_size is 2"},
        {V2 ",\"conv_kernel_size\":-3}", "conv_kernel_size is -3"},
        {V2 ",\"conv_kernel_size\":3,\"conv_groups\":3}", "not a multiple of conv_groups 3"},
        {V2 ",\"conv_kernel_size\":3,\"conv_groups\":0}", "conv_groups is 0"},
        {V2 ",\"pad_token_id\":11}", "pad_token_id is 11"},
        {V2 ",\"pad_token_id\":-2}", "pad_token_id is -2"},
        {MICROSOFT ",\"padding_idx\":4294967296}", "padding_idx is 4294967296"},
        {V2 ",\"num_labels\":-1}", "num_labels is -1"},
        {V2 ",\"id2label\":[\"a\"]}", "id2label is an array"},
        {V2 ",\"id2label\":{\"x\":\"a\"}}", "the key 'x', expected integers from 0 to 1048575"},
        {V2 ",\"id2label\":{\"-1\":\"a\"}}", "the key '-1'"},
        {V2 ",\"id2label\":{\"0\":\"a\",\"00\":\"b\"}}", "the key '00'"},
        {V2 ",\"id2label\":{\"99999999999999999999\":\"a\"}}", "the key '9999"},
        {V2 ",\"id2label\":{\"\":\"a\"}}", "the key ''"},
        {V2 ",\"id2label\":{\"0\":[]}}", "a value of id2label is an array"},
        {V2 ",\"architectures\":\"X\"}", "architectures is the text 'X'"},
        {V2 ",\"architectures\":[1]}", "architectures is an array"},
    };
    FOR_ROWS(i, cases) {
        model_config c;
        deberta_error error = {0};
        deberta_status status = parse(&c, cases[i].text, &error);
        if (status == DEBERTA_OK || !strstr(error.message, cases[i].expected) ||
            strncmp(error.message, "config.json: ", 13) != 0)
            fail_msg("case %zu: %d '%s', expected '%s'", i, status, status ? error.message : "", cases[i].expected);
        model_config empty = {0};
        assert_memory_equal(&c, &empty, sizeof c);
    }
}

/* Every prefix of a good config is an error, and no byte of it makes the reader crash whatever it becomes. */
TEST(test_damage)
{
    char text[] =
        V2 ",\"pos_att_type\":[\"c2p\",\"p2c\"],\"id2label\":{\"0\":\"a\",\"1\":\"b\"},\"architectures\":[\"X\"],"
           "\"layer_norm_eps\":1e-7,\"pooling\":{\"hidden_act\":\"gelu\"},\"norm_rel_ebd\":\"layer_norm\"}";
    model_config c;
    deberta_error error;
    for (size_t length = 0; length + 1 < sizeof text; length++) {
        FREED_BY(free_memory) char *copy = (char *)exact_copy((const uint8_t *)text, length);
        assert_int_equal(config_parse(&c, copy, length, "config.json", &error), DEBERTA_E_FORMAT);
    }
    for (size_t bit = 0; bit < 8 * (sizeof text - 1); bit++) {
        text[bit / 8] ^= (char)(1 << bit % 8);
        if (config_parse(&c, text, sizeof text - 1, "config.json", &error) == DEBERTA_OK) config_free(&c);
        text[bit / 8] ^= (char)(1 << bit % 8);
    }
}

TEST(test_files)
{
    char *folder = make_folder(), path[256];
    model_config c;
    deberta_error error;
    check_refused(config_read(&c, folder, &error), &error, DEBERTA_E_FILE, "config.json: cannot be opened");
    write_text(folder, "config.json", "");
    check_refused(config_read(&c, folder, &error), &error, DEBERTA_E_FORMAT, "config.json: is empty");
    write_text(folder, "config.json", "version https://git-lfs.github.com/spec/v1\n");
    check_refused(config_read(&c, folder, &error), &error, DEBERTA_E_FORMAT, "git-lfs pointer");
    write_text(folder, "config.json", "{\"model_type\":\"deberta\"}");
    assert_ok(config_read(&c, folder, &error));
    config_free(&c);
    snprintf(path, sizeof path, "%s/config.json", folder);
    unlink(path);
    write_text(folder, "gliner_config.json", "{\"model_name\":\"microsoft/deberta-v3-base\"}");
    check_refused(config_read(&c, folder, &error), &error, DEBERTA_E_UNSUPPORTED,
                  "model_name is the text 'microsoft/deberta-v3-base'): put the config.json of that model");
    write_text(folder, "gliner_config.json", "{}");
    check_refused(config_read(&c, folder, &error), &error, DEBERTA_E_UNSUPPORTED, "model_name is missing");
    write_text(folder, "config.json", "{\"model_type\":\"deberta\"}"); /* the encoder's own settings count */
    assert_ok(config_read(&c, folder, &error));
    config_free(&c);
    unlink(path);
    snprintf(path, sizeof path, "%s/gliner_config.json", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/config.json", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    check_refused(config_read(&c, folder, &error), &error, DEBERTA_E_FORMAT, "is a folder");
    remove_folder(&folder);
}
