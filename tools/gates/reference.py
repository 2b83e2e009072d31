#!/usr/bin/env python3
"""What transformers computes for a DeBERTa checkpoint, as a file that `deberta verify MODEL --expected FILE` reads.

    tools/gates/reference.py MODEL --text "Paris is the capital of France." -o expected.safetensors
    tools/gates/reference.py MODEL --ids 1,291,269,262,2 --ids 1,7,2 -o expected.safetensors

MODEL is a folder or the name of a published checkpoint. The file has the layout of tests/golden (see its README): input_ids,
attention_mask, token_type_ids, hidden_states.*, attn.*.c2c/c2p/p2c/probs, and logits.* of the heads that the checkpoint holds.
It is computed in float64 from the stored weights; --float32 leaves everything as transformers does it, to see how far that is
off. transformers does not clamp distances before it takes buckets: for inputs longer than max_relative_positions compare with
`--reference hf`. It has no Enhanced Mask Decoder and no replaced-token head: those are a few lines here, on its own layers.

Needs tools/gates/reference-requirements.txt: python3 -m venv v && v/bin/pip install -r tools/gates/reference-requirements.txt
SPDX-License-Identifier: MIT
"""
import argparse
import json
import math
import os
import sys

try:
    import torch
    import transformers
    from safetensors.torch import load_file, save_file
    from transformers.models.deberta import modeling_deberta as v1
    from transformers.models.deberta_v2 import modeling_deberta_v2 as v2
except ImportError as error:
    sys.exit(f"{error}: pip install -r tools/gates/reference-requirements.txt")

HEADS = {
    "ForMaskedLM": (transformers.AutoModelForMaskedLM, "mlm"),
    "ForSequenceClassification": (transformers.AutoModelForSequenceClassification, "sequence"),
    "ForTokenClassification": (transformers.AutoModelForTokenClassification, "token"),
    "ForQuestionAnswering": (transformers.AutoModelForQuestionAnswering, "qa"),
}


def make_exact():
    """Replaces two float32 conversions in transformers; without them a float64 model is float64 throughout."""

    def exact_scale(query_layer, scale_factor):
        return torch.tensor(math.sqrt(query_layer.size(-1) * scale_factor), dtype=query_layer.dtype)

    def exact_norm(self, x):
        centred = x - x.mean(-1, keepdim=True)
        return self.weight * (centred / torch.sqrt(centred.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)) + self.bias

    v1.scaled_size_sqrt = v2.scaled_size_sqrt = exact_scale
    v1.DebertaLayerNorm.forward = exact_norm


def record_components(model, config):
    """Wraps each layer's position bias, which adds c2p and p2c: called for one term at a time, it separates them."""
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
            if config.model_type != "deberta":  # v1 has scaled its queries at this point
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
    """Returns the model with the head that its config names if the file holds it, otherwise the bare encoder."""
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


def read_weights(folder):
    """Returns every tensor of the folder's weight files, under its name there."""
    names = [name for name in ("model.safetensors", "pytorch_model.bin") if os.path.exists(os.path.join(folder, name))][:1]
    for index in ("model.safetensors.index.json", "pytorch_model.bin.index.json") if not names else ():
        if not names and os.path.exists(os.path.join(folder, index)):
            with open(os.path.join(folder, index), encoding="utf-8") as file:
                names = sorted(set(json.load(file)["weight_map"].values()))
    tensors = {}
    for path in (os.path.join(folder, name) for name in names):
        tensors.update(load_file(path) if path.endswith(".safetensors") else torch.load(path, map_location="cpu", weights_only=True))
    return tensors


def layer_with_queries(layer, states, queries, **others):
    """Returns the output of a layer whose keys and values come from `states` and whose queries from elsewhere."""
    if hasattr(layer.attention.self, "query_proj"):
        return layer(states, query_states=queries, **others)[0]
    # transformers' v1 has the same parameter, but raises. Its in_proj makes q, k, v head by head.
    attention = layer.attention.self

    def replace_queries(module, _, output):
        heads = (*output.shape[:2], attention.num_attention_heads, 3, -1)
        mixed = output.view(heads).clone()
        mixed[..., 0, :] = torch.nn.functional.linear(queries, module.weight).view(heads)[..., 0, :]
        return mixed.view(output.shape)

    hook = attention.in_proj.register_forward_hook(replace_queries)
    context = attention(states, **others)[0]
    hook.remove()
    attended = layer.attention.output(context, queries)
    return layer.output(layer.intermediate(attended), attended)


def pretraining_logits(weights, config, encoder, result, mask):
    """The heads of pre-training that transformers leaves out or cannot find: masked language model, the same behind the Enhanced
    Mask Decoder, replaced-token detection. As Microsoft's code computes them, from the tensors that the file holds."""
    act = transformers.activations.ACT2FN[config.hidden_act]
    last, dtype, logits = result.hidden_states[-1], result.hidden_states[-1].dtype, {}
    linear = lambda x, name: torch.nn.functional.linear(x, weights[name + ".weight"].to(dtype), weights[name + ".bias"].to(dtype))

    def norm(x, name):
        gain, bias = (weights[f"{name}.LayerNorm.{part}"].to(dtype) for part in ("weight", "bias"))
        return torch.nn.functional.layer_norm(x, gain.shape, gain, bias, config.layer_norm_eps)

    def mlm(x):
        head = "lm_predictions.lm_head"
        return norm(act(linear(x, head + ".dense")), head) @ encoder.embeddings.word_embeddings.weight.T + weights[head + ".bias"].to(dtype)

    positions = next((w for name, w in weights.items() if name.endswith("embeddings.position_embeddings.weight")), None)
    if "lm_predictions.lm_head.dense.weight" in weights:
        logits["mlm"] = mlm(last)
        if config.position_biased_input:
            logits["mlm_emd"] = logits["mlm"]
        elif positions is not None and positions.shape[1] == config.hidden_size:
            before, layers = result.hidden_states[-2], encoder.encoder
            decoded = before + positions[:before.shape[1]].to(dtype)
            for _ in range(2):
                decoded = layer_with_queries(layers.layer[-1], before, decoded, attention_mask=layers.get_attention_mask(mask),
                                             relative_pos=layers.get_rel_pos(before), rel_embeddings=layers.get_rel_embedding())
            logits["mlm_emd"] = mlm(decoded)
    if "mask_predictions.dense.weight" in weights:
        logits["rtd"] = linear(act(linear(norm(last[:, :1] + last, "mask_predictions"), "mask_predictions.dense")), "mask_predictions.classifier")
    return logits


def compute(folder, ids, mask, types, float32=False, positions=None):
    """What the file of a reference holds: {name: tensor}. positions: ids of absolute positions, if they are not to be counted."""
    if not float32:
        make_exact()
    torch.set_grad_enabled(False)
    config, model, head = load(folder, torch.float32 if float32 else torch.float64)
    components = record_components(model, config)
    result = model(input_ids=ids, attention_mask=mask, token_type_ids=types, position_ids=positions, output_hidden_states=True,
                   output_attentions=True)
    tensors = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
    for layer, hidden in enumerate(result.hidden_states):
        tensors[f"hidden_states.{layer}"] = hidden
    for layer, probabilities in enumerate(result.attentions):
        tensors[f"attn.{layer}.probs"] = probabilities
        for name, values in components[layer].items():
            tensors[f"attn.{layer}.{name}"] = values
    for name, values in pretraining_logits(read_weights(folder), config, getattr(model, "deberta", model), result, mask).items():
        tensors[f"logits.{name}"] = values
    if head == "qa":
        tensors["logits.qa"] = torch.stack([result.start_logits, result.end_logits], dim=-1)
    elif head:
        tensors[f"logits.{head}"] = result.logits
    return {name: values.contiguous().clone() for name, values in tensors.items()}


def save(path, tensors, folder, float32=False):
    metadata = {"model": folder, "reference": "hf", "transformers": transformers.__version__, "torch": torch.__version__,
                "precision": "float32" if float32 else "float64"}
    save_file(tensors, path, metadata=metadata)


def pad(rows):
    """Returns lists of ids as a batch with its mask and token types."""
    longest = max(map(len, rows))
    ids = torch.tensor([list(row) + [0] * (longest - len(row)) for row in rows])
    return ids, torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows]), torch.zeros_like(ids)


def make_inputs(arguments):
    if arguments.ids:
        return pad([[int(word) for word in row.split(",")] for row in arguments.ids])
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

    transformers.utils.logging.disable_progress_bar()
    if not os.path.isdir(arguments.model):
        from huggingface_hub import snapshot_download
        arguments.model = snapshot_download(arguments.model)
    tensors = compute(arguments.model, *make_inputs(arguments), arguments.float32)
    save(arguments.out, tensors, arguments.model, arguments.float32)
    layers = sum(name.startswith("hidden_states.") for name in tensors) - 1
    print(f"{arguments.out}: {tuple(tensors['input_ids'].shape)} tokens, {layers} layers"
          + "".join(f", {name}" for name in tensors if name.startswith("logits.")))


if __name__ == "__main__":
    main()
