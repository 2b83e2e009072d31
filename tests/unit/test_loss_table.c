/* Tables of losses, and what is wrong with some. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/test.h"

#include "analysis/loss_table.h"

static deberta_status read_text(loss_table *table, const char *text, deberta_error *err)
{
    char path[] = "/tmp/loss-table-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    close(file);
    const deberta_status status = loss_table_read(table, path, err);
    unlink(path);
    return status;
}

TEST(test_columns)
{
    loss_table table;
    assert_int_equal(read_text(&table, "# made up\n\na,b/1@64\n1,2.5\n# between\n3,-4e-1\n5,6", NULL), DEBERTA_OK);
    assert_int_equal(table.texts, 3);
    assert_int_equal(table.columns, 2);
    assert_string_equal(table.names[1], "b/1@64");
    const double expected[] = {1, 3, 5, 2.5, -0.4, 6};
    for (size_t k = 0; k < 6; k++) assert_true(table.losses[k] == expected[k]);
    loss_table_free(&table);
}

/* Seeds of a cell need not stand side by side. */
TEST(test_cells)
{
    loss_table table;
    loss_cells cells;
    assert_int_equal(read_text(&table, "a#1,ab#1,a#2,b\n1,10,5,7\n3,10,3,8\n", NULL), DEBERTA_OK);
    assert_int_equal(loss_cells_make(&cells, &table, NULL), DEBERTA_OK);
    assert_int_equal(cells.count, 3);
    const loss_cell *a = loss_cells_find(&cells, "a");
    assert_true(a && a->seeds == 2 && a->losses[0] == 3 && a->losses[1] == 3);
    assert_true(a->lowest == 2 && a->highest == 4);
    const loss_cell *b = loss_cells_find(&cells, "b");
    assert_true(b && b->seeds == 1 && b->losses[1] == 8);
    assert_null(loss_cells_find(&cells, "a#1"));
    loss_cells_free(&cells);
    loss_table_free(&table);
}

TEST(test_what_is_wrong)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"# nothing else\n", "expected a table of losses, found no row"},
        {"a,b\n", "expected a table of losses, found no row"},
        {"a,b\n1,2\n3\n", "line 3: expected 2 losses, found 1"},
        {"#\na,b\n1,2,3\n", "line 3: expected 2 losses, found 3"},
        {"a,b\n1,\n", "line 2: expected a number, found ''"},
        {"a\n1x\n", "line 2: expected a number, found '1x'"},
        {"a\nnan\n", "line 2: expected a number, found 'nan'"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        loss_table table;
        deberta_error error;
        assert_int_equal(read_text(&table, cases[k].text, &error), DEBERTA_E_FORMAT);
        if (!strstr(error.message, cases[k].message)) fail_msg("%s: %s", cases[k].message, error.message);
        assert_null(table.names);
    }
    loss_table table;
    assert_int_equal(loss_table_read(&table, "/no/such/table.csv", NULL), DEBERTA_E_FILE);
}
