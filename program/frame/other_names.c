/* Says what the names of other programs are here, and where an option has gone that a command once had.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "program/frame/option_scan.h"

/* Names of other programs for an option, and the advice for them. The first row that fits counts. */
typedef struct other_name {
    const char *theirs;   /* names separated by blanks, with dashes where they may have underscores */
    const char *commands; /* first words of the commands that this is said of, between blanks; NULL: of all */
    const char *ours;     /* an option that the command must have; NULL: there need be none */
    const char *answer;   /* "--name ..." is what it is here; anything else is a clause of its own */
} other_name;

#define STEPS "--steps, updates of --batch-sequences examples each"
#define LANGUAGE_MODELS                                                                                                \
    "bench encode answer attention classify detect eval fill-mask receptive-field report tag tokenize verify"

static const other_name other_names[] = {
    /* where results go */
    {"output output-file output-dir output-path outfile out-file out-dir save save-path save-dir savefig logdir", NULL,
     "out", "--out"},
    {"export-json json-output", NULL, "format", "--out FILE.json"},
    {"export-json json-output", NULL, "json", "--json with --out FILE"},
    {"export-csv export-markdown export-asciidoc csv markdown md output-format style", NULL, "format",
     "--format, with --out FILE"},
    {"overwrite-output-dir overwrite", "train finetune", NULL,
     "no run is overwritten: --out names a new folder or, with --resume, that of a run to go on with"},
    {"no-progress disable-tqdm no-progress-bar", NULL, "progress", "--progress never"},
    {"silent s", NULL, "quiet", "--quiet"},
    {"verbose v debug log-level logging-level", NULL, "quiet",
     "notes are said anyway, --quiet leaves them out, and --version is -V"},
    /* texts and models */
    {"prompt sentence sentences input-text inputs sentence-a sentence1 text-a p", NULL, "text", "--text"},
    {"query", "answer", "question", "--question"},
    {"text-pair sentence-b sentence2 text-b second", NULL, "pair", "--pair"},
    {"passage document", "answer", "context", "--context"},
    {"tokenizer tokenizer-name tokenizer-path use-fast-tokenizer", LANGUAGE_MODELS " train finetune", NULL,
     "the tokenizer is that of MODEL's folder"},
    {"task task-name do-train do-eval do-predict pipeline", NULL, NULL,
     "each task is a command of its own: deberta --help lists them"},
    {"cache-dir revision model-revision trust-remote-code token hf-token hf-repo use-auth-token", NULL, NULL,
     "MODEL is a folder of this machine: hf download NAME --local-dir FOLDER makes one"},
    /* the processor */
    {"num-threads n-threads nthreads nproc num-workers workers jobs j cpus intra-op-num-threads "
     "dataloader-num-workers preprocessing-num-workers",
     NULL, "threads", "--threads"},
    {"device gpu cuda no-cuda use-cpu use-cuda cpu n-gpu-layers ngl gpus device-id provider", NULL, NULL,
     "all of it runs on the processor; --threads and --isa say how"},
    {"fp16 bf16 half float16 bfloat16 amp dtype torch-dtype", "train finetune", NULL,
     "training computes in float32, and --save-dtype f16 is how it stores"},
    {"dtype torch-dtype quantize quantization load-in-8bit load-in-4bit int8 int16 optimize", NULL, "precision",
     "--precision"},
    {"fp16 bf16 half float16 bfloat16 amp", NULL, "precision", "--precision int16 or int8; without it float32"},
    {"fa flash-attn flash-attention attn-implementation", NULL, NULL,
     "it needs no option: attention never holds a whole matrix"},
    {"torch-compile compile tf32 jit-mode-eval use-ipex", NULL, NULL, "it needs no option: all of it is compiled"},
    {"n n-predict predict max-new-tokens", LANGUAGE_MODELS, "max-tokens",
     "nothing is generated, and --max-tokens is where texts are cut"},
    {"temp temperature top-p min-p", LANGUAGE_MODELS, NULL, "nothing is drawn at random: probabilities are printed"},
    /* measuring */
    {"warmup w no-warmup warmup-runs warmup-steps n-warmup", "bench", NULL,
     "it needs no option: each point is computed before it is measured"},
    {"runs r repetitions repeats repeat min-runs n-runs num-runs iterations iters number", "bench report", "reps",
     "--reps"},
    {"duration seconds max-time time", NULL, "min-time", "--min-time"},
    {"seq-len seq-length seqlen sequence-length n-prompt prompt-length max-length max-seq-length max-seq-len p lengths "
     "ctx-size context-size",
     "bench report verify receptive-field", "tokens", "--tokens"},
    {"n-layers num-layers layers n-depth num-hidden-layers", NULL, "depth", "--depth, how many layers"},
    {"batch-size batch-sizes batchsize", "bench", "batch", "--batch"},
    {"profile breakdown-by-stage profiling", NULL, "breakdown", "--breakdown"},
    /* lengths and batches */
    {"max-length max-seq-length max-seq-len seq-len seq-length sequence-length block-size max-position", NULL,
     "sequence-tokens", "--sequence-tokens"},
    {"max-length max-seq-length max-seq-len seq-len seq-length sequence-length ctx-size context-size truncate "
     "truncation c",
     NULL, "max-tokens", "--max-tokens"},
    {"padding pad-to-max-length pad", NULL, NULL,
     "nothing is padded: a batch holds texts of any lengths, and padding changes no result"},
    {"batch-size train-batch-size per-device-train-batch-size per-gpu-train-batch-size minibatch-size", NULL,
     "batch-sequences", "--batch-sequences"},
    {"per-device-eval-batch-size eval-batch-size", "train finetune", NULL,
     "it needs no option: batches change no result of a measurement"},
    {"batch-size per-device-eval-batch-size eval-batch-size ubatch-size b ub", NULL, "batch-tokens", "--batch-tokens"},
    {"doc-stride overlap", NULL, "stride", "--stride"},
    {"window-size chunk-size max-chunk", NULL, "window", "--window"},
    /* vectors */
    {"pooling pooling-mode pooling-strategy output-value embedding-type", NULL, "pool", "--pool mean, cls or none"},
    {"normalize normalize-embeddings embd-normalize normalise", "encode", NULL,
     "vectors are written as they are pooled: divide each by its norm"},
    {"embd-output-format output-format", "encode", NULL,
     "here it is the suffix of --out: .npy, .safetensors or .jsonl"},
    {"output-attentions attentions attention", NULL, "attention-layers", "--attention-layers all"},
    {"output-hidden-states hidden-states output-hidden-state", NULL, "hidden", "--hidden all"},
    {"output-logits return-logits", NULL, "logits", "--logits"},
    {"components", NULL, "component-layers", "--component-layers"},
    {"layers", NULL, "component-layers", "--component-layers"},
    /* answers */
    {"top-k topk n-best n-best-size k", NULL, "top", "--top"},
    {"max-answer-length max-answer-len", NULL, "max-answer", "--max-answer"},
    {"aggregation-strategy aggregation grouped-entities", NULL, "grouping", "--grouping"},
    {"return-all-scores all-scores", NULL, "top", "--top with the number of labels"},
    {"threshold", NULL, "cutoff", "--cutoff"},
    {"candidate-labels labels", "classify", NULL, "labels are those that the classifier was trained with"},
    /* training */
    {"learning-rate-init lr", NULL, "learning-rate", "--learning-rate"},
    {"epochs num-epochs num-train-epochs n-epochs max-epochs", NULL, "steps", STEPS},
    {"max-steps num-steps total-steps max-train-steps train-steps iterations", NULL, "steps", "--steps"},
    {"train train-file train-data train-dataset dataset dataset-name data", NULL, "examples", "--examples"},
    {"train train-file train-data train-dataset dataset dataset-name data corpus text", NULL, "file", "--file"},
    {"data", NULL, "numbers", "--numbers"},
    {"numbers csv", "receptive-field", "json", "--json, which has the numbers that are drawn"},
    {"validation-file eval-file dev-file valid-file test-file validation dev valid eval-data", "train finetune", "eval",
     "--eval"},
    {"input input-file in test-file text-file", NULL, "file", "--file"},
    {"eval-steps evaluation-strategy eval-strategy", NULL, "eval-every", "--eval-every N, in steps"},
    {"save-steps save-strategy checkpoint-steps", NULL, "checkpoint-every", "--checkpoint-every N, in steps"},
    {"save-total-limit", NULL, "keep", "--keep"},
    {"resume-from-checkpoint restart continue", NULL, "resume", "--resume, with the same --out"},
    {"logging-steps logging-strategy report-to log-every logging-dir", "train finetune", NULL,
     "log.jsonl in the folder --out has every step"},
    {"load-best-model-at-end", NULL, "eval", "--eval FILE, which keeps the best model in best/"},
    {"metric-for-best-model greater-is-better", "train finetune", NULL,
     "each task has its measure, by which --eval FILE keeps the best model"},
    {"push-to-hub hub-model-id hub-token", NULL, NULL, "nothing is uploaded: --out FOLDER holds what one would upload"},
    {"max-train-samples max-eval-samples max-samples", "train finetune", NULL,
     "all lines of a file are used: head -n N FILE makes a shorter one"},
    {"text-column-name text-column label-column-name label-column", "train finetune", "examples",
     "the file names its columns: label, text and pair (docs/json.md)"},
    {"lora lora-r lora-alpha use-peft peft", NULL, "freeze", "all weights are trained but those of --freeze"},
    {"freeze-encoder freeze-base freeze-layers freeze-embeddings", NULL, "freeze", "--freeze"},
    {"deepspeed fsdp ddp local-rank nproc-per-node", "train finetune", NULL,
     "several processes are started by mpirun: docs/cluster.md"},
    {"group-by-length", "train finetune", NULL, "it needs no option: padding is not computed"},
    {"label-smoothing-factor label-smoothing class-weights class-weight", "finetune", NULL,
     "the loss is the plain one of the task"},
    {"save-safetensors", "train finetune", NULL, "it needs no option: weights are stored as safetensors"},
    {"early-stopping-patience early-stopping", NULL, "patience", "--patience"},
    {"warmup-steps warmup-ratio warmup-proportion warmup-epochs", NULL, "warmup", "--warmup N, in steps"},
    {"lr-scheduler-type lr-scheduler scheduler lr-schedule", NULL, "schedule", "--schedule"},
    {"optim", NULL, "optimizer", "--optimizer"},
    {"adam-beta1", NULL, "beta1", "--beta1"},
    {"adam-beta2", NULL, "beta2", "--beta2"},
    {"adam-epsilon eps", NULL, "epsilon", "--epsilon"},
    {"wd", NULL, "weight-decay", "--weight-decay"},
    {"max-grad-norm clip-grad grad-clip gradient-clipping gradient-clip-val", NULL, "clip", "--clip"},
    {"gradient-accumulation-steps accumulate-grad-batches grad-accum", NULL, "micro-tokens",
     "--micro-tokens, which computes a step in parts with the same result"},
    {"gradient-checkpointing activation-checkpointing", NULL, "recompute", "--recompute"},
    {"mlm-probability masking-ratio mask-prob", NULL, "mask-probability", "--mask-probability"},
    {"line-by-line", NULL, "sequences", "--sequences lines"},
    {"llrd layerwise-lr-decay layer-wise-lr-decay lr-decay", NULL, "layer-decay", "--layer-decay"},
    {"dropout-prob hidden-dropout-prob attention-dropout", NULL, "dropout", "--dropout"},
    {"num-labels num-classes label-names", NULL, "labels", "--labels"},
    {"from-scratch config-name config-file model-type", NULL, "config", "--config"},
    {"ignore-mismatched-sizes", NULL, "new-head", "--new-head"},
    {"vocab-size", NULL, "vocabulary", "--vocabulary"},
    {"hidden hidden-size d-model n-embd", NULL, "width", "--width"},
    {"heads num-attention-heads n-head", NULL, "head-count", "--head-count"},
    /* figures */
    {"cmap colormap colourmap colors theme", NULL, "palette", "--palette"},
    {"figsize fig-size size", NULL, "width-mm", "--width-mm"},
    {"vmin vmax clim", NULL, "scale", "--scale"},
    {"resolution", NULL, "dpi", "--dpi"},
    {"tokens", NULL, "token-range", "--token-range"},
    /* measuring */
    {"lengths seq-len seq-lens sequence-length sequence-lengths", "bench", "tokens", "--tokens"},
    {"head-view model-view neuron-view display-mode", "attention", NULL,
     "lines between tokens are a kind of figure: deberta attention lines MODEL"},
    {"include-layers", NULL, "layers", "--layers"},
    {"include-heads", NULL, "heads", "--heads"},
    /* --ablate of other commands */
    {"ablate", "attribute", NULL, "attributions are of whole models: each term has its share"},
    {"ablate", "bench", "attention",
     "a term that is ablated is computed all the same, and takes as long: --attention leaves terms out"},
    {"ablate", "bench", NULL, "a term that is ablated is computed all the same, and takes as long"},
    {"ablate", "train finetune", NULL,
     "models are trained whole; eval, encode and others take --ablate, for a trained model without a term"},
    /* comparing */
    {"against reference-file golden", NULL, "expected", "--expected"},
    {"against", NULL, "minus", "--minus"},
};

/* Returns true if a name, whose underscores count as dashes, is in a list separated by blanks. */
static bool is_listed(const char *list, const char *name, size_t length)
{
    for (const char *at = list; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        size_t k = 0;
        while (k < length && (at[k] == name[k] || (at[k] == '-' && name[k] == '_'))) k++;
        if (k == length && (at[k] == ' ' || at[k] == 0)) return true;
    }
    return false;
}

/* Returns the advice for a name of the model or of files where these are arguments of the command; NULL: none. */
static const char *find_argument(const common_options *options, const command *command, const char *name, size_t length)
{
    static const char models[] = "model m model-name-or-path model-name model-id model-path model-dir pretrained "
                                 "pretrained-model checkpoint",
                      files[] = "file f input input-file in test-file data dataset";
    const char *word = is_listed(models, name, length) ? "MODEL" : is_listed(files, name, length) ? "FILE" : NULL;
    if (!word || !strstr(command->arguments, word)) return NULL;
    return options_text(options, "%s an argument here: deberta %s %s", *word == 'M' ? "it is" : "files are",
                        command->name, command->arguments);
}

const char *options_known_elsewhere(const common_options *options, const command *command, const char *name,
                                    size_t length)
{
    const char *argument = length ? find_argument(options, command, name, length) : NULL;
    if (argument) return argument;
    for (size_t k = 0; length && k < sizeof other_names / sizeof *other_names; k++) {
        const other_name *row = &other_names[k];
        if (!is_listed(row->theirs, name, length)) continue;
        if (row->commands && !is_listed(row->commands, command->name, strcspn(command->name, " "))) continue;
        if (row->ours && !options_find(command, row->ours)) continue;
        return row->answer[0] == '-' ? options_text(options, "here it is %s", row->answer) : row->answer;
    }
    return NULL;
}

const char *options_moved(const command *command, const char *name, size_t length)
{
    static const char *const drawn[] = {"configurations", "first", "training"}; /* of verify */
    for (size_t k = 0; k < sizeof drawn / sizeof *drawn; k++)
        if (strcmp(command->name, "verify") == 0 && strlen(drawn[k]) == length && strncmp(drawn[k], name, length) == 0)
            return "drawn cases and faults of training are a program of the tests: `ninja -C build tests/drawn/drawn` "
                   "builds it, and build/tests/drawn/drawn takes this option";
    return NULL;
}

const char *options_word_elsewhere(const command *command, const char *word)
{
    static const struct {
        const char *command, *theirs, *answer;
    } rows[] = {
        {"attention", "heatmap heatmaps heat-map heat-maps heads matrix matrices plot figure",
         "heat maps need no word: deberta attention MODEL --text TEXT -o FILE.png"},
        {"attention", "head-view model-view neuron-view arcs flow", "here it is lines: deberta attention lines MODEL"},
        {"bench", "latency throughput sweep run model", "a sweep needs no word: deberta bench MODEL"},
        {"train", "vocabulary vocab spm sentencepiece", "here it is tokenizer: deberta train tokenizer"},
        {"train", "electra discriminator", "here it is rtd: deberta train rtd MODEL"},
        {"train", "lm masked-lm", "here it is mlm: deberta train mlm MODEL"},
        {"train finetune", "classification classify glue text-classification sst2 mnli regression",
         "here it is sequence: deberta finetune sequence MODEL"},
        {"train finetune", "ner tag tagging pos token-classification",
         "here it is token: deberta finetune token MODEL"},
        {"train finetune", "squad question-answering answer", "here it is qa: deberta finetune qa MODEL"},
        {"train finetune", "swag multiple-choice", "here it is choice: deberta finetune choice MODEL"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (is_listed(rows[k].command, command->name, strlen(command->name)) &&
            is_listed(rows[k].theirs, word, strlen(word)))
            return rows[k].answer;
    return NULL;
}
