/* One result in every format. SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "output/result.h"
#include "tests/unit/test_rows.h"

static const result_column columns[] = {{"term", NULL, COLUMN_TEXT, NULL, 0},
                                        {"layer", NULL, COLUMN_INTEGER, NULL, 0},
                                        {"loss", "loss (nats)", COLUMN_REAL, "%.2f", 0},
                                        {"kept", NULL, COLUMN_FLAG, NULL, NOT_IN_TABLES},
                                        {NULL, NULL, COLUMN_TEXT, NULL, 0}};

static result *make(void)
{
    result *r = result_new("deberta-test/1");
    json_object_set_new(result_json(r), "seed", json_integer(3));
    result_say(r, "losses of %s", "a model");
    result_table *table = result_add_table(r, "losses", "by layer", columns);
    cell_text(table, "a|b,\"c\"");
    cell_none(table);
    cell_real(table, -0.0 / 0.0);
    cell_flag(table, false);
    cell_text(table, "%s", "0x10");
    cell_integer(table, 7);
    cell_real(table, 1.0 / 3);
    cell_flag(table, true);
    result_say(r, "that was all");
    return r;
}

/* To be freed. */
static char *written(result *r, result_format format)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    result_write(r, out, format);
    fclose(out);
    return text;
}

static void assert_writes(result *r, result_format format, const char *expected)
{
    FREED_BY(free_memory) char *text = written(r, format);
    assert_string_equal(text, expected);
}

/* Columns that only the data knows, of a table. */
TEST(test_columns_can_be_added)
{
    FREED_BY(result_free) result *r = result_new(NULL);
    result_table *table = result_add_table(r, "means", NULL, NULL);
    result_add_column(table, COLUMN_TEXT, NULL, "model");
    for (int k = 0; k < 2; k++) result_add_column(table, COLUMN_REAL, "%.1f", "layer %d", k);
    cell_text(table, "tiny");
    cell_real(table, 0.25);
    cell_text(table, "-");
    assert_int_equal(result_table_rows(table), 1);
    assert_writes(r, RESULT_CSV, "model,layer 0,layer 1\ntiny,0.2,-\n");
    json_t *means = NULL;
    FREED_BY(free_memory) char *text = written(r, RESULT_JSON);
    json_t *whole = json_loads(text, 0, NULL);
    assert_int_equal(json_unpack(whole, "{s:o}", "means", &means), 0);
    json_t *expected = json_pack("[{s:s, s:f, s:s}]", "model", "tiny", "layer 0", 0.25, "layer 1", "-");
    assert_true(json_equal(means, expected));
    json_decref(expected);
    json_decref(whole);
}

TEST(test_sentences_and_tables_stand_in_order)
{
    result *r = make();
    assert_writes(r, RESULT_TEXT,
                  "losses of a model\n\nby layer\n\nterm     layer  loss (nats)\n"
                  "a|b,\"c\"                    \n0x10         7         0.33\n\nthat was all\n");
    assert_writes(r, RESULT_MARKDOWN,
                  "losses of a model\n\nby layer\n\n| term | layer | loss (nats) |\n|---|--:|--:|\n"
                  "| a\\|b,\"c\" |  |  |\n| 0x10 | 7 | 0.33 |\n\nthat was all\n");
    result_free(&r);
    assert_null(r);
}

TEST(test_csv_has_names_and_every_column)
{
    FREED_BY(result_free) result *r = make();
    assert_writes(r, RESULT_CSV, "term,layer,loss,kept\n\"a|b,\"\"c\"\"\",,,no\n0x10,7,0.33,yes\n");
}

TEST(test_latex_has_tables_alone)
{
    FREED_BY(result_free) result *r = make();
    assert_writes(
        r, RESULT_LATEX,
        "% \\usepackage{booktabs}\n\\begin{tabular}{lrr}\n\\toprule\nterm & layer & loss (nats) \\\\\n\\midrule\n"
        "a\\textbar{}b,\\texttt{\\char34}c\\texttt{\\char34} &  &  \\\\\n0x10 & 7 & 0.33 "
        "\\\\\n\\bottomrule\n\\end{tabular}\n");
}

/* Types come from columns, not from what a text looks like, and numbers are not those that a table rounds. */
TEST(test_json_is_typed)
{
    FREED_BY(result_free) result *r = make();
    FREED_BY(free_memory) char *text = written(r, RESULT_JSON);
    json_t *whole = json_loads(text, 0, NULL), *rows = json_object_get(whole, "losses");
    const json_t *second = json_array_get(rows, 0), *first = json_array_get(rows, 1);
    assert_string_equal(json_string_value(json_object_get(whole, "schema")), "deberta-test/1");
    assert_int_equal(json_integer_value(json_object_get(whole, "seed")), 3);
    assert_string_equal(json_string_value(json_object_get(first, "term")), "0x10");
    assert_int_equal(json_integer_value(json_object_get(first, "layer")), 7);
    assert_true(json_real_value(json_object_get(first, "loss")) == 0.333333333);
    assert_true(json_is_true(json_object_get(first, "kept")));
    assert_true(json_is_null(json_object_get(second, "layer")));
    assert_true(json_is_null(json_object_get(second, "loss")));
    assert_true(json_is_false(json_object_get(second, "kept")));
    json_decref(whole);
}

TEST(test_hidden_data_is_what_csv_shows)
{
    FREED_BY(result_free) result *r = make();
    static const result_column one[] = {{"x", NULL, COLUMN_INTEGER, NULL, 0}, {NULL, NULL, COLUMN_TEXT, NULL, 0}};
    result_table *data = result_add_table(r, "data", NULL, one);
    result_set_data(r, data, true);
    cell_integer(data, 5);
    assert_int_equal(result_table_rows(data), 1);
    assert_writes(r, RESULT_CSV, "x\n5\n");
    assert_writes(
        r, RESULT_LATEX,
        "% \\usepackage{booktabs}\n\\begin{tabular}{lrr}\n\\toprule\nterm & layer & loss (nats) \\\\\n\\midrule\n"
        "a\\textbar{}b,\\texttt{\\char34}c\\texttt{\\char34} &  &  \\\\\n0x10 & 7 & 0.33 "
        "\\\\\n\\bottomrule\n\\end{tabular}\n");
}

/* Members that are no table, a table inside one of them, a sentence in pieces, a column that CSV calls as people do,
 * and a table that one format leaves out. */
TEST(test_members_and_what_is_left_out)
{
    static const result_column scores[] = {{"f1", "F1", COLUMN_REAL, "%.1f", CSV_SAYS_TITLE}, {.name = NULL}};
    FREED_BY(result_free) result *r = result_new(NULL);
    result_set(r, "per_token", json_pack("{s:i}", "seen", 4));
    result_say(r, "tier %s", "avx2");
    result_say_more(r, ", %d kernels", 3);
    result_table *table = result_add_table(r, "per_token.scores", NULL, scores);
    cell_real(table, 0.125);
    result_leave_out(table, NOT_IN_TEXT);
    result_say_more(r, "behind a table there is no sentence to go on with");
    assert_writes(r, RESULT_TEXT, "tier avx2, 3 kernels\n");
    assert_writes(r, RESULT_MARKDOWN, "tier avx2, 3 kernels\n\n| F1 |\n|--:|\n| 0.1 |\n");
    assert_writes(r, RESULT_CSV, "F1\n0.1\n");
    for (int twice = 0; twice < 2; twice++) /* writing leaves the result as it was */
        assert_writes(r, RESULT_JSON,
                      "{\n  \"per_token\": {\n    \"seen\": 4,\n    \"scores\": [\n      {\n        \"f1\": "
                      "0.125\n      }\n    ]\n  }\n}\n");
    assert_int_equal(json_object_size(json_object_get(result_json(r), "per_token")), 1);
}

/* Names of users have anything in them: a row stays one line, a cell one cell, and no terminal is given commands. */
TEST(cells_of_any_text)
{
    static const result_column one[] = {
        {"name", NULL, COLUMN_TEXT, NULL, 0}, {"n", NULL, COLUMN_INTEGER, NULL, 0}, {.name = NULL}};
    static const char *const names[] = {"two\nlines", "[neg] \\| a", "\033[31mred", "*star"};
    FREED_BY(result_free) result *r = result_new(NULL);
    result_table *table = result_add_table(r, "names", NULL, one);
    FOR_ROWS(k, names) {
        cell_text(table, "%s", names[k]);
        cell_integer(table, (int64_t)k);
    }
    assert_writes(r, RESULT_TEXT,
                  "name        n\ntwo\u00b7lines   0\n[neg] \\| a  1\n\u00b7[31mred    2\n*star       3\n");
    assert_writes(
        r, RESULT_MARKDOWN,
        "| name | n |\n|---|--:|\n| two lines | 0 |\n| [neg] \\\\\\| a | 1 |\n| \033[31mred | 2 |\n| *star | 3 "
        "|\n");
    assert_writes(r, RESULT_LATEX,
                  "% \\usepackage{booktabs}\n\\begin{tabular}{lr}\n\\toprule\nname & n \\\\\n\\midrule\ntwo lines & 0 "
                  "\\\\\n{}[neg] \\textbackslash{}\\textbar{} a & 1 \\\\\n{} [31mred & 2 \\\\\n{}*star & 3 "
                  "\\\\\n\\bottomrule\n\\end{tabular}\n");
}
