/* Suggests the download command for a path that looks like ORGANISATION/NAME. SPDX-License-Identifier: MIT */
#include "core/io/folder_kind.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/status.h"
#include "core/io/quote.h"

enum { HUB_NAME_BYTES = 81 };

static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

/* Two words, and the first is no folder here, nor what people call the folder of their models. */
static bool is_hub_name(const char *path)
{
    const char *slash = strchr(path, '/');
    if (!slash || slash == path || *path == '.' || strspn(path, word) != (size_t)(slash - path)) return false;
    if (!slash[1] || slash[1 + strspn(slash + 1, word)] || strlen(path) >= HUB_NAME_BYTES) return false;
    char folder[HUB_NAME_BYTES];
    struct stat about;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    return strcmp(folder, "models") != 0 && stat(folder, &about) != 0;
}

/* ORGANISATION/NAME of an address "https://host/ORGANISATION/NAME", whatever follows. */
static bool name_of_address(const char *path, char name[HUB_NAME_BYTES])
{
    const char *at = strstr(path, "://");
    if (!at || (strncmp(path, "http", 4) != 0 && strncmp(path, "hf", 2) != 0)) return false;
    at += 3;
    if (*path == 'h' && path[1] == 't') at = strchr(at, '/') ? strchr(at, '/') + 1 : "";
    const size_t organisation = strspn(at, word);
    if (!organisation || at[organisation] != '/') return false;
    const size_t rest = strspn(at + organisation + 1, word);
    if (!rest || organisation + 1 + rest >= HUB_NAME_BYTES) return false;
    snprintf(name, HUB_NAME_BYTES, "%.*s", (int)(organisation + 1 + rest), at);
    return true;
}

/* The names that people remember without the organisation. */
static bool name_of_microsoft(const char *path, char name[HUB_NAME_BYTES])
{
    static const char *const names[] = {
        "deberta-base",           "deberta-large",           "deberta-xlarge",    "deberta-base-mnli",
        "deberta-large-mnli",     "deberta-xlarge-mnli",     "deberta-v2-xlarge", "deberta-v2-xxlarge",
        "deberta-v2-xlarge-mnli", "deberta-v2-xxlarge-mnli", "deberta-v3-xsmall", "deberta-v3-small",
        "deberta-v3-base",        "deberta-v3-large",        "mdeberta-v3-base"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(path, names[i]) == 0) {
            snprintf(name, HUB_NAME_BYTES, "microsoft/%s", path);
            return true;
        }
    return false;
}

deberta_status hub_name_refuse(const char *path, deberta_error *err)
{
    char here[PATH_MAX], name[HUB_NAME_BYTES];
    if (*path == '/') DEBERTA_FAIL(err, DEBERTA_E_FILE, "%.200s: no such folder; " EXPECTED_PLACE, QUOTE(path));
    if (!getcwd(here, sizeof here)) snprintf(here, sizeof here, "the current folder");
    if (is_hub_name(path))
        snprintf(name, sizeof name, "%.80s", path);
    else if (!name_of_address(path, name) && !name_of_microsoft(path, name))
        DEBERTA_FAIL(err, DEBERTA_E_FILE, "%.200s: no such folder in %.200s; " EXPECTED_PLACE, QUOTE(path), here);
    DEBERTA_FAIL(err, DEBERTA_E_FILE,
                 "%.100s: no such folder in %.120s; if a model on the hub has that name: hf download %s '*.json' "
                 "spm.model merges.txt bpe_encoder.bin 'model*.safetensors' pytorch_model.bin 'pytorch_model-*.bin' "
                 "--local-dir %s",
                 QUOTE(path), here, name, strchr(name, '/') + 1);
}
