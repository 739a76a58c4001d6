"""A graph by its definition: each operator by itself, on buffers of bytes."""

import numpy as np

import anydml as dml


def run_stepwise(graph, inputs, device="reference"):
    """The bytes of each output of a graph, from the bytes of each input, by name."""
    compute = dml.Device(device)
    held = {("input", i): inputs.get(t.name) for i, t in enumerate(graph.inputs)}
    held |= {
        (i, 0): np.frombuffer(node.data + bytes(-len(node.data) % 4), np.uint8)
        for i, node in enumerate(graph.nodes)
        if isinstance(node, dml.ConstantNode)
    }
    feeds = {
        (e.to_node_index, e.to_node_input_index): ("input", e.graph_input_index)
        for e in graph.input_edges
    } | {
        (e.to_node_index, e.to_node_input_index): (e.from_node_index, e.from_node_output_index)
        for e in graph.intermediate_edges
    }
    left = [i for i, node in enumerate(graph.nodes) if isinstance(node, dml.OperatorNode)]
    while left:
        node = next(i for i in left if all(p in held for to, p in feeds.items() if to[0] == i))
        left.remove(node)
        desc = graph.nodes[node].desc
        bindings = {}
        for role in ("INPUT", "OUTPUT"):
            at = 0
            for info in desc.tensor_fields():
                if info.role.name != role:
                    continue
                value = getattr(desc, info.attribute)
                members = []
                for tensor in value if info.many else [value]:
                    if tensor is not None:
                        if role == "OUTPUT":
                            size = tensor.total_tensor_size_in_bytes
                            held[node, at] = np.zeros(size, np.uint8)
                        place = feeds[node, at] if role == "INPUT" else (node, at)
                        members.append(held[place])
                    at += 1
                if members:
                    bindings[info.name] = members if info.many else members[0]
        operator = compute.create_operator(unowned(desc)).compile()
        operator.dispatch(**bindings)
    return {
        graph.outputs[e.graph_output_index].name: held[e.from_node_index, e.from_node_output_index]
        for e in graph.output_edges
    }


def unowned(desc):
    """The same operator with all tensors bound at dispatch."""
    text = desc.to_json()
    for value in text.values():
        for tensor in value if isinstance(value, list) else [value]:
            if isinstance(tensor, dict):
                tensor.pop("Flags", None)
    return dml.from_json(text)
