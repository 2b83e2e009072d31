#!/usr/bin/env python3
"""What transformers computes for a DeBERTa checkpoint, as a file that `deberta verify MODEL --against FILE` reads.

    tools/reference.py MODEL --text "Paris is the capital of France." -o expected.safetensors
    tools/reference.py MODEL --ids 1,291,269,262,2 --ids 1,7,2 -o expected.safetensors

MODEL is a folder or the name of a published checkpoint. The file has the layout of tests/golden (see its README): input_ids,
attention_mask, token_type_ids, hidden_states.*, attn.*.c2c/c2p/p2c/probs, and logits.* of the head that the checkpoint holds.
It is computed in float64 from the stored weights; --float32 leaves everything as transformers does it, to see how far that is
off. transformers does not clamp distances before it takes buckets: for inputs longer than max_relative_positions compare with
`--reference hf`. It has no Enhanced Mask Decoder and no replaced-token head, so there is nothing to compare those with.

Needs tools/reference-requirements.txt: python3 -m venv v && v/bin/pip install -r tools/reference-requirements.txt
SPDX-License-Identifier: MIT
"""
import argparse
import math
import sys

try:
    import torch
    import transformers
    from safetensors.torch import save_file
    from transformers.models.deberta import modeling_deberta as v1
    from transformers.models.deberta_v2 import modeling_deberta_v2 as v2
except ImportError as error:
    sys.exit(f"{error}: pip install -r tools/reference-requirements.txt")

HEADS = {
    "ForMaskedLM": (transformers.AutoModelForMaskedLM, "mlm"),
    "ForSequenceClassification": (transformers.AutoModelForSequenceClassification, "sequence"),
    "ForTokenClassification": (transformers.AutoModelForTokenClassification, "token"),
    "ForQuestionAnswering": (transformers.AutoModelForQuestionAnswering, "qa"),
}


def make_exact():
    """Two places take float32 detours whatever the model's type is; without them a float64 model is float64 throughout."""

    def exact_scale(query_layer, scale_factor):
        return torch.tensor(math.sqrt(query_layer.size(-1) * scale_factor), dtype=query_layer.dtype)

    def exact_norm(self, x):
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.pow(2).mean(-1, keepdim=True)
        return self.weight * (centred / torch.sqrt(variance + self.variance_epsilon)) + self.bias

    v1.scaled_size_sqrt = v2.scaled_size_sqrt = exact_scale
    v1.DebertaLayerNorm.forward = exact_norm


def record_components(model, config):
    """Wraps each layer's position bias, which adds c2p and p2c up: asked for one term at a time, it tells them apart."""
    layers = []
    modules = [m for m in model.modules() if isinstance(m, (v1.DisentangledSelfAttention, v2.DisentangledSelfAttention))]
    for module in modules:
        name = "disentangled_att_bias" if config.model_type == "deberta" else "disentangled_attention_bias"
        inner, parts = getattr(module, name), {}
        layers.append(parts)

        def wrapped(query, key, positions, table, factor, module=module, inner=inner, parts=parts):
            terms = module.pos_att_type
            heads = (-1, module.num_attention_heads, query.size(-2), key.size(-2))
            content = query @ key.transpose(-1, -2)
            if config.model_type != "deberta":  # v1 has scaled its queries by now
                content = content / v2.scaled_size_sqrt(query, factor)
            parts["c2c"] = content.reshape(heads)
            for term in terms:
                module.pos_att_type = [term]
                parts[term] = inner(query, key, positions, table, factor).reshape(heads)
            module.pos_att_type = terms
            return inner(query, key, positions, table, factor)

        setattr(module, name, wrapped)
    return layers


def load(path, dtype):
    """The model with the head that its config names, if the file really holds it; the bare encoder otherwise."""
    config = transformers.AutoConfig.from_pretrained(path)
    if config.model_type not in ("deberta", "deberta-v2"):
        sys.exit(f"{path}: model_type is '{config.model_type}', not a DeBERTa")
    architecture = (config.architectures or [""])[0]
    for suffix, (kind, name) in HEADS.items():
        if architecture.endswith(suffix):
            model, loading = kind.from_pretrained(path, output_loading_info=True, attn_implementation="eager")
            if not loading["missing_keys"]:
                return config, model.to(dtype).eval(), name
            print(f"the {name} head is not in the file ({sorted(loading['missing_keys'])[0]}); left out", file=sys.stderr)
    return config, transformers.AutoModel.from_pretrained(path, attn_implementation="eager").to(dtype).eval(), None


def make_inputs(arguments):
    if arguments.ids:
        rows = [[int(word) for word in row.split(",")] for row in arguments.ids]
        longest = max(map(len, rows))
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
        return ids, mask, torch.zeros_like(ids)
    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.model)
    pairs = [arguments.pair] * len(arguments.text) if arguments.pair is not None else None
    batch = tokenizer(arguments.text, pairs, padding=True, return_tensors="pt", return_token_type_ids=True)
    return batch["input_ids"], batch["attention_mask"], batch["token_type_ids"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", help="a folder, or the name of a published checkpoint")
    parser.add_argument("--text", action="append", help="a text; repeat for a batch")
    parser.add_argument("--pair", help="second segment of every text")
    parser.add_argument("--ids", action="append", help="token ids with commas, taken as they are; repeat for a batch")
    parser.add_argument("--float32", action="store_true", help="transformers as it is, in float32")
    parser.add_argument("-o", "--out", default="expected.safetensors")
    arguments = parser.parse_args()
    if not arguments.text and not arguments.ids:
        parser.error("--text or --ids is needed")

    if not arguments.float32:
        make_exact()
    torch.set_grad_enabled(False)
    transformers.utils.logging.disable_progress_bar()
    config, model, head = load(arguments.model, torch.float32 if arguments.float32 else torch.float64)
    components = record_components(model, config)
    ids, mask, types = make_inputs(arguments)
    result = model(input_ids=ids, attention_mask=mask, token_type_ids=types, output_hidden_states=True,
                   output_attentions=True)

    tensors = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
    for layer, hidden in enumerate(result.hidden_states):
        tensors[f"hidden_states.{layer}"] = hidden
    for layer, probabilities in enumerate(result.attentions):
        tensors[f"attn.{layer}.probs"] = probabilities
        for name, values in components[layer].items():
            tensors[f"attn.{layer}.{name}"] = values
    if head == "qa":
        tensors["logits.qa"] = torch.stack([result.start_logits, result.end_logits], dim=-1)
    elif head:
        tensors[f"logits.{head}"] = result.logits
    metadata = {"model": arguments.model, "reference": "hf", "transformers": transformers.__version__,
                "torch": torch.__version__, "precision": "float32" if arguments.float32 else "float64"}
    save_file({name: values.contiguous() for name, values in tensors.items()}, arguments.out, metadata=metadata)
    print(f"{arguments.out}: {tuple(ids.shape)} tokens, {len(result.hidden_states) - 1} layers"
          + (f", logits.{head}" if head else ""))


if __name__ == "__main__":
    main()
