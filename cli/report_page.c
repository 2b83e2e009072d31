/* SPDX-License-Identifier: MIT */
#include "cli/report_page.h"

#include <string.h>
#include <unistd.h>

#include "cli/run.h"

static const char style[] =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 "
    "1rem;color:#1a1a1a;background:#fff}"
    "h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem;border-bottom:1px solid #ddd}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:.15rem "
    ".7rem;text-align:right;border-bottom:1px solid #eee}"
    "th:first-child,td:first-child{text-align:left}pre{background:#f6f6f6;padding:.6rem;overflow-x:auto;font-size:13px}"
    "img{max-width:100%}.bad{color:#b00020;font-weight:600}.note{color:#555}"
    "@media print{body{margin:0;max-width:none}pre{white-space:pre-wrap}}";

static void put_text(FILE *out, const char *text)
{
    for (; text && *text; text++) switch (*text) {
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '&': fputs("&amp;", out); break;
        case '"': fputs("&quot;", out); break;
        default: fputc(*text, out);
        }
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}
static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void put_sweep(FILE *out, const json_t *sweep)
{
    const json_t *environment = json_object_get(sweep, "environment"), *result, *note;
    size_t k;
    fputs("<p class=note>", out);
    put_text(out, text_of(environment, "cpu"));
    fputs("</p>\n<table><tr><th>isa<th>threads<th>layers<th>tokens<th>median ms<th>min ms<th>GFLOP/s<th>% of "
          "peak<th>tokens/s"
          "<th>peak memory MB</tr>\n",
          out);
    json_array_foreach(json_object_get(sweep, "results"), k, result)
        fprintf(out, "<tr><td>%s<td>%.0f<td>%.0f<td>%.0f<td>%.3f<td>%.3f<td>%.1f<td>%.1f<td>%.0f<td>%.0f</tr>\n",
                text_of(result, "isa"), number_of(result, "threads"), number_of(result, "layers"),
                number_of(result, "n"), 1e3 * number_of(result, "median_s"), 1e3 * number_of(result, "min_s"),
                number_of(result, "gflops"), 100 * number_of(result, "peak_fraction"),
                number_of(result, "tokens_per_s"), number_of(result, "peak_rss_bytes") / 1e6);
    fputs("</table>\n", out);
    json_array_foreach(json_object_get(environment, "notes"), k, note)
    {
        fputs("<p class=note>not quiet: ", out);
        put_text(out, json_string_value(note));
        fputs("</p>\n", out);
    }
}

static void put_verification(FILE *out, const json_t *verify)
{
    const json_t *row;
    size_t k;
    const double failures = number_of(verify, "failures");
    fprintf(out,
            "<p>%.0f checks, <span%s>%.0f failed</span>. Bits are compared with the scalar tier; errors against "
            "float64 are in eps times "
            "the largest magnitude.</p>\n<table><tr><th>what<th>isa<th>values<th>bits "
            "differ<th>worst<th>p99.9<th>limit</tr>\n",
            number_of(verify, "checks"), failures > 0 ? " class=bad" : "", failures);
    json_array_foreach(json_object_get(verify, "results"), k, row)
    {
        fprintf(out, "<tr%s><td>", json_is_true(json_object_get(row, "passed")) ? "" : " class=bad");
        put_text(out, text_of(row, "subject"));
        fprintf(out, "<td>%s<td>%.0f<td>%.0f<td>%.3g<td>%.3g<td>%g</tr>\n", text_of(row, "isa"),
                number_of(row, "values"), number_of(row, "differing"), number_of(row, "worst"), number_of(row, "p999"),
                number_of(row, "limit"));
    }
    fputs("</table>\n", out);
}

static void put_figure(FILE *out, const char *path, const char *alternative)
{
    if (access(path, R_OK) == 0) fprintf(out, "<p><img src=\"%s\" alt=\"%s\"></p>\n", base_name(path), alternative);
}

int report_page_write(const parsed_options *options, const char *page, const char *model, const char *input,
                      const report_step *steps, size_t step_count, char *const paths[6])
{
    text_output output;
    const int status = text_output_open(options, page, &output);
    if (status != EXIT_OK) return status;
    FILE *out = output.file;
    json_t *sweep = json_load_file(paths[1], 0, NULL), *verify = json_load_file(paths[2], 0, NULL);
    fprintf(out, "<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport "
                 "content=\"width=device-width\">\n<title>");
    put_text(out, model);
    fprintf(out, "</title>\n<style>%s</style>\n<h1>", style);
    put_text(out, model);
    fputs("</h1>\n<p>Input of the figure and the verification: <q>", out);
    put_text(out, input);
    fputs("</q></p>\n<h2>Attention components</h2>\n", out);
    put_figure(out, paths[4], "attention components, one row a layer and head");
    fputs("<h2>Latency</h2>\n", out);
    put_figure(out, paths[3], "latency against length");
    if (sweep) put_sweep(out, sweep);
    fputs("<h2>Verification</h2>\n", out);
    if (verify) put_verification(out, verify);
    fputs("<h2>How to make it again</h2>\n<pre>", out);
    for (size_t k = 0; k < step_count; k++) {
        put_text(out, steps[k].command);
        fputc('\n', out);
    }
    fputs("</pre>\n<p class=note>Data: ", out);
    for (size_t k = 0; k < 6; k++)
        if (access(paths[k], R_OK) == 0)
            fprintf(out, "<a href=\"%s\">%s</a> ", base_name(paths[k]), base_name(paths[k]));
    fprintf(out, "· deberta %s</p>\n</html>\n", deberta_version());
    json_decref(sweep);
    json_decref(verify);
    return text_output_close(options, &output);
}
