"""What people do with optimizers beside the loop: groups that come later, edits of states, copies, functions, slips."""
import copy
import gc
import warnings
import weakref

import pytest
import torch
from torch import nn

import sgdph
from conftest import loss_of, net, train


def test_parameters_without_memory_of_their_own_are_refused():
    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, requires_grad=True)

        __torch_dispatch__ = classmethod(lambda cls, func, types, args=(), kwargs=None: NotImplemented)

    for optimizer in (sgdph.Lion, sgdph.SGDPH, sgdph.AdaHessian):
        with pytest.raises(ValueError, match="parameter 0 is a Wrapper, which has no memory of its own.*sgdph.distribute"):
            optimizer([Wrapper(torch.zeros(3))])


def kinds(optimizer):
    return {entry.name: entry.second_order for entry in optimizer.partition()}


def test_a_head_that_comes_later_is_known_by_the_module_it_was_put_into():
    model = net()
    optimizer = sgdph.SGDPH(model, lr=0.01)
    train(model, optimizer, 2)
    model.add_module("head", nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4)).double())
    optimizer.add_param_group({"params": model.head.parameters(), "lr": 0.1})
    found = kinds(optimizer)
    assert {name: found[name] for name in found if name.startswith("head")} == {
        "head.0.weight": False, "head.0.bias": False, "head.1.weight": True, "head.1.bias": True}
    assert found["1.weight"] and not found["8.bias"]


def test_a_module_may_be_a_group():
    optimizer = sgdph.SGDPH(net(), lr=0.01)
    optimizer.add_param_group({"params": nn.Sequential(nn.Linear(5, 4), nn.LayerNorm(4)).double()})
    assert [entry.second_order for entry in optimizer.partition() if entry.group == 1] == [False, False, True, True]


def test_a_copy_keeps_its_blocks_when_a_group_is_added():
    model = net()
    optimizer = sgdph.SGDPH(model, lr=0.01)
    train(model, optimizer, 2)
    twin = copy.deepcopy(optimizer)
    before = kinds(twin)
    twin.add_param_group({"params": list(nn.Linear(5, 4).double().parameters())})
    after = kinds(twin)
    assert before.items() <= after.items() and sum(after.values()) == sum(before.values())
    twin.add_param_group({"params": nn.LayerNorm(4).double()})
    assert sum(kinds(twin).values()) == sum(before.values()) + 2


def test_states_that_are_taken_out_or_exchanged_are_so_in_the_core():
    model = net()
    optimizer = sgdph.AdaBelief(model.parameters(), lr=1e-3)
    train(model, optimizer, 3)
    first, second = list(model.parameters())[:2]
    key = next(key for key, value in optimizer.state[first].items() if isinstance(value, torch.Tensor) and value.shape == first.shape)
    exchanged = torch.full_like(second, 7.0)
    del optimizer.state[first]
    optimizer.state[second][key] = exchanged
    saved = optimizer.state_dict()["state"]
    assert 0 not in saved and torch.equal(saved[1][key], exchanged)
    optimizer.state.clear()
    assert not optimizer.state_dict()["state"]
    assert optimizer.state[first] == {}  # as a defaultdict's; no edit
    train(model, optimizer, 1)
    assert len(optimizer.state_dict()["state"]) == len(list(model.parameters()))


def test_functions_that_refer_to_the_optimizer_keep_nothing_alive():
    def use():
        model = net()
        optimizer = sgdph.SGDPH(model, lr=0.01, probe="rademacher")
        optimizer.set_all_reduce(lambda tensor: optimizer.param_groups and None)
        optimizer.set_probe_source(lambda parameter: (optimizer, torch.ones_like(parameter))[1])
        train(model, optimizer, 2)
        return weakref.ref(optimizer), weakref.ref(model)

    kept = use()
    gc.collect()
    assert [one() for one in kept] == [None, None]


def test_a_scaler_whose_scale_was_not_told_is_noticed():
    model = net()
    optimizer = sgdph.SGDPH(model, lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    before = [p.detach().clone() for p in model.parameters()]
    optimizer.backward(scaler.scale(loss_of(model)))
    with pytest.raises(ValueError, match="a GradScaler steps, and the scale of the loss was not given.*scale=scaler"):
        scaler.step(optimizer)
    optimizer.zero_grad()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scaler.scale(loss_of(model)).backward(create_graph=True)
    with pytest.raises(ValueError, match="GradScaler"):
        scaler.step(optimizer)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters()))
    for p in model.parameters():
        p.grad = None
    off = torch.amp.GradScaler("cpu", enabled=False)
    optimizer.backward(off.scale(loss_of(model)))
    off.step(optimizer)
    assert optimizer.last_step.applied


def test_a_scaler_is_noticed_through_whatever_wraps_a_step():
    model = net()
    optimizer = sgdph.SGDPH(model, lr=0.01)
    for _ in range(10):  # as schedulers and trainers do
        optimizer.step = lambda *args, inner=optimizer.step, **more: inner(*args, **more)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    optimizer.backward(scaler.scale(loss_of(model)))
    with pytest.raises(ValueError, match="a GradScaler steps"):
        scaler.step(optimizer)


def test_a_class_derived_from_ours_is_of_its_kind():
    class Mine(sgdph.SGDPH):
        def __init__(self, model, decay=0.1):
            super().__init__(model, lr=0.02, weight_decay=decay)

    model, other = net(), net()
    optimizer, plain = Mine(model), sgdph.SGDPH(other)
    train(model, optimizer, 3)
    plain.load_state_dict(optimizer.state_dict())
    other.load_state_dict(model.state_dict())
    again = Mine(other)
    again.load_state_dict(plain.state_dict())
    train(model, optimizer, 3, first=3)
    train(other, again, 3, first=3)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters()))
    loss_of(model).backward()
    with pytest.raises(RuntimeError) as error:
        optimizer.backward(loss_of(model))
    assert "measure=False" in str(error.value) and "::" not in str(error.value)
    assert type(copy.deepcopy(optimizer)) is Mine


@pytest.mark.parametrize("name", ["SGDPH", "AdaHessian"])
def test_sparse_gradients_are_refused_and_those_of_another_optimizer_are_not(name):
    table, rest = nn.Embedding(5, 3, sparse=True), nn.Sequential(nn.LayerNorm(3), nn.Linear(3, 2))
    rows = torch.tensor([0, 3])
    whole = getattr(sgdph, name)(nn.Sequential(table, rest))
    with pytest.raises(RuntimeError, match="sparse gradients are not supported; construct the embedding with sparse=False"):
        whole.backward(rest(table(rows)).pow(3).sum())
    whole.zero_grad()
    ours, theirs = getattr(sgdph, name)(rest), torch.optim.SparseAdam(table.parameters())
    before = table.weight.detach().clone()
    for _ in range(3):
        ours.zero_grad(), theirs.zero_grad()
        ours.backward(rest(table(rows)).pow(3).sum())
        ours.step(), theirs.step()
    assert ours.last_step.products and not torch.equal(before, table.weight)


def test_several_processes_without_distribute_are_told(monkeypatch):
    sums = []
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda group=None: 2)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda group=None: 0)
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda tensor, group=None: sums.append(tensor.mul_(2)))
    model = net()
    optimizer = sgdph.SGDPH(model, lr=0.01)
    with pytest.warns(UserWarning, match="2 processes.*call sgdph.distribute"):
        train(model, optimizer, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(model, optimizer, 1)
        other = net()
        shared = sgdph.distribute(sgdph.SGDPH(other, lr=0.01))
        train(other, shared, 1)
        assert len(sums) == 1
        both = copy.deepcopy((other, shared))
        train(*both, 1)
        assert len(sums) == 2, "a copy averages too"


def test_keys_of_ones_own_are_kept_and_slips_refused():
    model = net()
    own = ["weight_decay_mult", "apply_weight_decay", "min_momentum", "second_order_lr", "lrs", "note"]
    optimizer = sgdph.SGDPH([{"params": model.parameters(), **dict.fromkeys(own, 1)}])
    assert all(key in optimizer.param_groups[0] for key in own)
    for slip in ("weight_decy", "momentun", "wieght_decay"):
        with pytest.raises(ValueError, match="did you mean"):
            sgdph.SGDPH([{"params": net().parameters(), slip: 0.1}])


@pytest.mark.parametrize("wrong, error, says", [
    (dict(scale=0), ValueError, "scale must be finite and not 0, got 0"),
    (dict(scale="two"), TypeError, "scale is a number"),
    (dict(represents=float("nan")), ValueError, "represents must be finite and positive"),
    (dict(measure="no"), TypeError, "measure is True or False, got 'no'"),
    (dict(inputs=[1]), TypeError, "inputs are tensors, got 1"),
])
def test_wrong_words_of_backward_are_named(wrong, error, says):
    model = net()
    with pytest.raises(error, match=says):
        sgdph.SGDPH(model).backward(loss_of(model), **wrong)


def test_what_blocks_are_not():
    with pytest.raises(ValueError, match="SGDPH: blocks takes patterns of names or a function, got 3"):
        sgdph.SGDPH(net(), blocks=3)


def fused():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.TransformerEncoder(layer, 2), nn.Flatten(), nn.Linear(40, 3))


def steps_of_encoder(model, optimizer, steps=20):
    x, y = torch.randn(4, 5, 8, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 1, 2, 0])
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_norms_before_fused_attention_are_not_measurable_and_training_goes_on():
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.MATH):
        model = fused()
        optimizer = sgdph.SGDPH(model, lr=0.01)
        losses = steps_of_encoder(model, optimizer)
    assert losses[-1] < losses[0] and optimizer.partition().blocks == 8
    model = fused()
    optimizer = sgdph.SGDPH(model, lr=0.01)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION), pytest.warns(UserWarning, match="not measurable.*norm1.weight.*flash_attention"):
        losses = steps_of_encoder(model, optimizer)
    assert losses[-1] < losses[0]
    reasons = {entry.name: entry.reason for entry in optimizer.partition()}
    assert "not measurable" in reasons["0.layers.0.norm2.weight"] and optimizer.partition().blocks == 4


class Once(nn.Module):
    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, gradient):
            return gradient * ctx.saved_tensors[0].cos()

    def forward(self, x):
        return self.Function.apply(x)


@pytest.mark.filterwarnings("ignore:AdaHessian. not measurable")
def test_what_lies_before_a_function_of_one_derivative_is_not_measurable():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 6), nn.LayerNorm(6), Once(), nn.Linear(6, 6), nn.LayerNorm(6), nn.Linear(6, 3))
    x, y = torch.randn(8, 5), torch.randint(3, (8,))
    optimizer = sgdph.SGDPH(model, lr=0.01)
    with pytest.warns(UserWarning, match="not measurable.*1.weight"):
        for _ in range(8):
            optimizer.zero_grad()
            optimizer.backward(nn.functional.cross_entropy(model(x), y))
            optimizer.step()
    found = {entry.name: entry for entry in optimizer.partition()}
    assert "not measurable" in found["1.weight"].reason and not found["1.weight"].second_order
    assert found["4.weight"].second_order
    first = model[0].weight.detach().clone()
    other = sgdph.AdaHessian(model, lr=0.01)
    other.zero_grad()
    other.backward(nn.functional.cross_entropy(model(x), y))
    other.step()
    assert torch.equal(first, model[0].weight), "what was never measured is not moved"
