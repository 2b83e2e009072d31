/* A path that looks like ORGANISATION/NAME gets the command that downloads it. SPDX-License-Identifier: MIT */
#include "core/io/hub_name.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/status.h"

/* Two words, and the first is no folder here, nor what people call the folder of their models. */
static bool is_hub_name(const char *path)
{
    const char *slash = strchr(path, '/');
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    if (!slash || slash == path || *path == '.' || strspn(path, word) != (size_t)(slash - path)) return false;
    if (!slash[1] || slash[1 + strspn(slash + 1, word)] || strlen(path) > 80) return false;
    char folder[81];
    struct stat about;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    return strcmp(folder, "models") != 0 && stat(folder, &about) != 0;
}

deberta_status hub_name_check(const char *path, deberta_error *err)
{
    struct stat about;
    char here[PATH_MAX];
    if (*path == '/' || stat(path, &about) == 0 || errno != ENOENT) return DEBERTA_OK;
    if (!getcwd(here, sizeof here)) snprintf(here, sizeof here, "the current folder");
    if (!is_hub_name(path)) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%.200s: no such folder in %.200s", path, here);
    DEBERTA_FAIL(err, DEBERTA_E_FILE,
                 "%s: no such folder in %.120s; if a model on the hub has that name: hf download %s '*.json' spm.model "
                 "merges.txt bpe_encoder.bin 'model*.safetensors' pytorch_model.bin 'pytorch_model-*.bin' "
                 "--local-dir %s",
                 path, here, path, strchr(path, '/') + 1);
}
