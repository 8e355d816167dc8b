"""Which parameters are blocks."""
import warnings

import pytest
import torch
from torch import nn

import sgdph
from conftest import loss_of, net, train


def blocks(optimizer):
    return {entry.name for entry in optimizer.partition() if entry.second_order}


class RMSNormOfOurs(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 1, 1))


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(4))


def test_norms_and_convolution_biases_are_blocks_and_linear_biases_are_not():
    optimizer = sgdph.SGDPH(net())
    assert blocks(optimizer) == {"1.weight", "1.bias", "3.bias", "4.weight", "4.bias"}
    reasons = {entry.name: entry.reason for entry in optimizer.partition()}
    assert reasons["1.weight"] == "norm gain" and reasons["4.bias"] == "norm shift" and reasons["3.bias"] == "convolution bias"
    assert reasons["8.bias"] == "linear bias" and reasons["0.weight"] == "4-D"


@pytest.mark.parametrize(
    "module",
    [
        nn.BatchNorm1d(4), nn.BatchNorm3d(4), nn.SyncBatchNorm(4), nn.InstanceNorm2d(4, affine=True), nn.GroupNorm(2, 4),
        nn.LayerNorm(4), nn.RMSNorm(4), RMSNormOfOurs(),
    ],
)  # fmt: skip
def test_norms_of_every_kind(module):
    assert blocks(sgdph.SGDPH(nn.Sequential(module))) == {f"0.{name}" for name, _ in module.named_parameters()}


def test_norms_over_more_than_channels_and_modules_without_channels_are_no_blocks():
    model = nn.Sequential(nn.LayerNorm((4, 5)), Scale(), nn.MultiheadAttention(4, 2), nn.Conv2d(3, 3, 1, bias=False))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer = sgdph.SGDPH(model)
    assert not blocks(optimizer)
    assert "1-D, of a module type without channels (Scale)" in str(optimizer.partition())


def test_weight_norm_gains_are_blocks_whatever_their_shape():
    layer = torch.nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 4, 3, bias=False))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        older = torch.nn.utils.weight_norm(nn.Linear(4, 6))
    model = nn.Sequential(layer, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), older).double()
    optimizer = sgdph.SGDPH(model, shift_guard=False)
    assert blocks(optimizer) == {"0.parametrizations.weight.original0", "4.weight_g"}
    assert layer.parametrizations.weight.original0.shape == (4, 1, 1, 1)
    x = torch.randn(5, 3, 6, 6, dtype=torch.float64)
    for _ in range(6):
        optimizer.zero_grad()
        optimizer.backward(nn.functional.cross_entropy(model(x), torch.arange(5)))
        optimizer.step()
    assert all(optimizer.state[e.parameter]["refreshes"] == 3 for e in optimizer.partition() if e.second_order)


def test_tensors_alone_go_by_their_shape_as_published():
    model = net()
    optimizer = sgdph.SGDPH(model.parameters())
    one_d = [p for p in model.parameters() if p.dim() == 1]
    chosen = [e.parameter for e in optimizer.partition() if e.second_order]
    assert [id(p) for p in chosen] == [id(p) for p in one_d[:-1]]
    last = optimizer.partition()[-1]
    assert last.name == "group 0 parameter 8" and last.reason == '1-D, the last 1-D parameter is first-order under rule="reference"'
    named = sgdph.SGDPH(model.named_parameters())
    assert [e.name for e in named.partition()] == [n for n, _ in model.named_parameters()]
    assert named.param_groups[0]["param_names"][0] == "0.weight"
    assert len(blocks(named)) == len(one_d) - 1


def test_names_and_roles_go_through_an_archive(tmp_path):
    optimizer = sgdph.SGDPH(net(), blocks="8.bias")
    optimizer.save_archive(tmp_path / "a.pt")
    other = sgdph.SGDPH(net())
    other.load_archive(tmp_path / "a.pt")
    assert str(other.partition()) == str(optimizer.partition()) and "8.bias" in blocks(other)


def test_blocks_by_patterns():
    assert blocks(sgdph.SGDPH(net(), blocks="8.b*")) == {"1.weight", "1.bias", "3.bias", "4.weight", "4.bias", "8.bias"}
    assert blocks(sgdph.SGDPH(net(), first_order=["*.bias"])) == {"1.weight", "4.weight"}
    assert blocks(sgdph.SGDPH(net(), blocks=["*.bias"], first_order="[34].bias")) == {"1.weight", "4.weight", "1.bias", "8.bias"}
    assert blocks(sgdph.SGDPH(net().named_parameters(), blocks=["4.*"])) == {"4.weight", "4.bias"}
    with pytest.warns(UserWarning, match="'5.*' chooses none of the 9 parameters"):
        sgdph.SGDPH(net(), blocks=["5.*"])
    with pytest.raises(ValueError, match="takes patterns of names or a function, got 3"):
        sgdph.SGDPH(net(), blocks=[3])


def test_blocks_by_a_function():
    seen = []

    def choose(info):
        seen.append((info.name, type(info.module).__name__, info.local_name, info.block))
        return {"1.weight": False, "8.bias": True}.get(info.name)

    optimizer = sgdph.SGDPH(net(), blocks=choose)
    assert blocks(optimizer) == {"1.bias", "3.bias", "4.weight", "4.bias", "8.bias"}
    assert ("8.bias", "Linear", "bias", False) in seen and ("1.weight", "BatchNorm2d", "weight", True) in seen
    assert "norm gain, first-order by the classifier" in str(optimizer.partition())
    with pytest.raises(ValueError, match="says True, False or None, got 'yes'"):
        sgdph.SGDPH(net(), blocks=lambda info: "yes")


def test_groups_by_hand_with_a_module_for_the_rest():
    model = net()
    decay = [(n, p) for n, p in model.named_parameters() if p.dim() > 1]
    plain = [(n, p) for n, p in model.named_parameters() if p.dim() == 1]
    optimizer = sgdph.SGDPH([{"params": decay, "weight_decay": 0.1}, {"params": plain}], module=model)
    assert blocks(optimizer) == {"1.weight", "1.bias", "3.bias", "4.weight", "4.bias"}
    train(model, optimizer, 3)
    extra = nn.BatchNorm2d(3)
    optimizer.add_param_group({"params": [("extra.weight", extra.weight)], "second_order": False})
    assert optimizer.partition()[-1].name == "extra.weight"
    with pytest.raises(TypeError, match="module is a torch.nn.Module, got list"):
        sgdph.SGDPH(model.parameters(), module=list(model.parameters()))


def test_second_order_false_on_a_group_makes_it_first_order_and_says_so():
    model = net()
    optimizer = sgdph.SGDPH([{"params": model.parameters(), "second_order": False}], module=model)
    assert not blocks(optimizer) and "second_order=False on its group" in str(optimizer.partition())
    assert not optimizer.curvature_due
    optimizer.param_groups[0]["second_order"] = True
    assert optimizer.curvature_due and len(blocks(optimizer)) == 5


def test_partition_prints_a_line_for_each():
    text = str(sgdph.SGDPH(net()).partition())
    assert text.splitlines()[1].split() == ["1.weight", "second-order", "norm", "gain"]
    assert text.endswith("5 blocks among 9 parameters") and repr(sgdph.SGDPH(net()).partition()) == text


def test_a_shift_invariant_bias_is_found_and_named_once():
    model = net()  # a bias before softmax
    optimizer = sgdph.SGDPH(model, blocks="8.bias")
    with pytest.warns(UserWarning, match="SGDPH: shift-invariant .*: 8.bias$") as caught:
        train(model, optimizer, 40)
    assert len(caught) == 1 and "cpp" not in str(caught[0].message)
    assert "found shift-invariant" in str(optimizer.partition()) and "8.bias" not in blocks(optimizer)


def test_the_other_optimizers_know_no_blocks():
    with pytest.raises(ValueError, match="there is no option 'blocks'"):
        sgdph.Lion(net(), blocks=["*"])
    assert not hasattr(sgdph.Lion(net()), "partition")
    model = net()
    optimizer = sgdph.AdaHessian(model)
    optimizer.backward(loss_of(model))
    optimizer.step()
    assert optimizer.last_step.products == 1
