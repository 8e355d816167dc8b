"""What an optimizer keeps goes out and comes back, and a run goes on with the same bits."""
import collections
import copy
import io
import os
import pickle
import warnings

import pytest
import torch

import sgdph
from conftest import OWN, bits, equal, loss_of, make, net, train


def by_state_dict(optimizer, model, name, folder):
    other = make(name, model, lr=0.7)
    other.load_state_dict(optimizer.state_dict())
    return other


def by_weights_only(optimizer, model, name, folder):
    torch.save(optimizer.state_dict(), folder / "state.pt")
    other = make(name, model, lr=0.7)
    other.load_state_dict(torch.load(folder / "state.pt", weights_only=True))
    return other


def by_archive(optimizer, model, name, folder):
    optimizer.save_archive(folder / "optimizer.pt")
    other = make(name, model, lr=0.7)
    other.load_archive(folder / "optimizer.pt")
    assert other.param_groups[0]["lr"] == optimizer.param_groups[0]["lr"]
    return other


def by_flat_checkpoint(optimizer, model, name, folder):
    return by_checkpoint(optimizer, model, name, folder, flatten=True)


def by_checkpoint(optimizer, model, name, folder, flatten=False):
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict, set_optimizer_state_dict

    flat = dict(options=StateDictOptions(flatten_optimizer_state_dict=flatten))
    twin = copy.deepcopy(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Of a checkpoint the keys of a new optimizer's state are read.
        dcp.save({"optimizer": get_optimizer_state_dict(model, optimizer, **flat)}, checkpoint_id=str(folder / "dcp"))
        other = make(name, twin, lr=0.7)
        target = {"optimizer": get_optimizer_state_dict(twin, other, **flat)}
        dcp.load(target, checkpoint_id=str(folder / "dcp"))
        set_optimizer_state_dict(twin, other, target["optimizer"], **flat)
    assert equal(bits(twin), bits(model))  # nothing moved on the way
    return other, twin


WAYS = {f.__name__: f for f in (by_state_dict, by_weights_only, by_archive, by_checkpoint, by_flat_checkpoint)}
OPTIONS = {"sgd-ph": [{}, dict(probe="hadamard", probe_cycle=4), dict(probe="rademacher", refresh="joint"), dict(rule="paper")]}
CASES = [(name, options) for name in OWN for options in OPTIONS.get(name, [{}])]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name, options", CASES)
def test_a_run_that_resumes_has_the_bits_of_one_that_does_not(name, options, way, tmp_path):
    model, straight = net(), net()
    optimizer, reference = make(name, model, **options), make(name, straight, **options)
    train(model, optimizer, 3)
    found = WAYS[way](optimizer, model, name, tmp_path) if not options else resumed_with(way, optimizer, model, name, options, tmp_path)
    other, model = found if isinstance(found, tuple) else (found, model)
    train(model, other, 7, first=3)
    train(straight, reference, 10)
    assert equal(bits(model), bits(straight))


def resumed_with(way, optimizer, model, name, options, folder):
    """A resumed script makes its optimizer as the first one did, but for the rate."""
    global make
    plain = make
    try:
        make = lambda n, m, **more: plain(n, m, **options, **more)  # noqa: E731
        return WAYS[way](optimizer, model, name, folder)
    finally:
        make = plain


@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
@pytest.mark.parametrize("name", OWN)
def test_a_copy_of_model_and_optimizer_goes_on_by_itself(name, way):
    model = net()
    optimizer = make(name, model)
    train(model, optimizer, 3)
    pair = copy.deepcopy((model, optimizer)) if way == "deepcopy" else pickle.loads(pickle.dumps((model, optimizer)))
    assert type(pair[1]) is type(optimizer) and pair[1].param_groups[0]["params"][0] is next(pair[0].parameters())
    train(*pair, 4, first=3)
    train(model, optimizer, 4, first=3)
    assert equal(bits(pair[0]), bits(model))
    if name == "sgd-ph":
        assert str(pair[1].partition()) == str(optimizer.partition())
        pair[1].add_param_group({"params": [("new", torch.ones(2, requires_grad=True))]})
        assert pair[1].partition()[-2].reason == optimizer.partition()[-1].reason


def test_a_copy_in_the_middle_of_a_window_begins_a_new_one():
    model = net()
    optimizer = sgdph.SGDPH(model)
    train(model, optimizer, 2)
    optimizer.backward(loss_of(model))
    other_model, other = copy.deepcopy((model, optimizer))
    other.zero_grad()
    optimizer.zero_grad()
    train(other_model, other, 3)
    train(model, optimizer, 3)
    assert equal(bits(model), bits(other_model))


def test_state_shows_the_cores_own_tensors_and_can_be_cleared():
    model = net()
    optimizer = sgdph.SGDPH(model)
    assert not optimizer.state
    train(model, optimizer, 2)
    weight = next(model.parameters())
    buffer = optimizer.state[weight]["momentum_buffer"]
    before = buffer.clone()
    train(model, optimizer, 1)
    assert not torch.equal(before, buffer) and buffer.data_ptr() == optimizer.state[weight]["momentum_buffer"].data_ptr()
    for reset in (lambda: setattr(optimizer, "state", collections.defaultdict(dict)), lambda: optimizer.state.clear()):
        train(model, optimizer, 1)
        assert optimizer.state
        reset()
        optimizer.zero_grad()
        optimizer.backward(loss_of(model))
        optimizer.step()
        gradient = weight.grad
        assert torch.equal(optimizer.state[weight]["momentum_buffer"], gradient)


def test_a_state_dict_is_plain_and_loading_it_shares_nothing():
    model = net()
    optimizer = sgdph.SGDPH(model)
    train(model, optimizer, 6)
    saved = optimizer.state_dict()
    assert set(saved) == {"state", "param_groups"} and "progress" in saved["param_groups"][0]
    assert "progress" not in repr(optimizer)
    kept = copy.deepcopy(saved)
    other = sgdph.SGDPH(model)
    other.load_state_dict(saved)
    train(model, other, 2)
    for key, fields in kept["state"].items():
        assert torch.equal(fields["momentum_buffer"], saved["state"][key]["momentum_buffer"])


def test_a_block_in_bfloat16_keeps_its_float32_copy():
    def run(resume):
        torch.manual_seed(0)
        model = net(dtype=torch.bfloat16)
        optimizer = sgdph.SGDPH(model, lr=0.01)
        for step in range(10):
            if resume and step == 5:
                saved = optimizer.state_dict()
                optimizer = sgdph.SGDPH(model, lr=0.01)
                optimizer.load_state_dict(saved)
            optimizer.zero_grad()
            optimizer.backward(loss_of(model, step, dtype=torch.bfloat16))
            optimizer.step()
        assert any(s.get("master") is not None and s["master"].dtype == torch.float32 for s in optimizer.state.values())
        return bits(model)

    assert equal(run(False), run(True))


def test_what_does_not_fit_is_refused_and_nothing_changes():
    model = net()
    optimizer = sgdph.SGDPH(model)
    train(model, optimizer, 3)
    before = copy.deepcopy(optimizer.state_dict())
    with pytest.raises(ValueError):
        optimizer.load_state_dict(sgdph.SGDPH(list(model.parameters())[:3]).state_dict())
    wrong = copy.deepcopy(before)
    wrong["state"][0]["momentum_buffer"] = torch.ones(7)
    with pytest.raises(ValueError, match="momentum_buffer has shape"):
        optimizer.load_state_dict(wrong)
    wrong = copy.deepcopy(before)
    wrong["param_groups"][0]["lr"] = -3
    with pytest.raises(ValueError, match="lr must be"):
        optimizer.load_state_dict(wrong)
    for other, text in ((torch.optim.SGD, "of no optimizer of sgdph"), (sgdph.Lion, "that of Lion")):
        with pytest.raises(ValueError, match=f"SGDPH: the state is {text}; load one that sgdph.SGDPH saved"):
            optimizer.load_state_dict(other(model.parameters(), lr=0.1).state_dict())
    assert str(optimizer.state_dict()) == str(before)
    train(model, optimizer, 1)


def test_archives_go_through_files_and_damaged_ones_are_refused(tmp_path):
    model = net()
    optimizer = sgdph.SGDPH(model, lr=0.125)
    train(model, optimizer, 4)
    buffer = io.BytesIO()
    optimizer.save_archive(buffer)
    other = sgdph.SGDPH(net())
    other.load_archive(io.BytesIO(buffer.getvalue()))
    assert other.param_groups[0]["lr"] == 0.125 and other.last_step is not None
    with pytest.raises(ValueError, match="holds the optimizer SGDPH"):
        sgdph.Lion(net()).load_archive(io.BytesIO(buffer.getvalue()))
    with pytest.raises((ValueError, RuntimeError)):
        other.load_archive(io.BytesIO(buffer.getvalue()[:1000]))
    with pytest.raises(FileNotFoundError):
        other.load_archive(tmp_path / "none")
    optimizer.save_archive(tmp_path / "a.pt")
    with pytest.raises(FileNotFoundError):
        optimizer.save_archive(tmp_path / "no" / "a.pt")
    assert os.listdir(tmp_path) == ["a.pt"]
    larger = net()
    larger[8] = torch.nn.Linear(6, 9).double()
    taken, skipped = sgdph.SGDPH(larger).load_matching_archive(tmp_path / "a.pt")
    assert taken == 7 and len(skipped) == 2 and "8.weight" in skipped[0]


def test_hooks_on_state_dicts_see_all_of_it():
    model = net()
    optimizer = sgdph.SGDPH(model)
    train(model, optimizer, 2)
    seen = []
    optimizer.register_state_dict_post_hook(lambda o, d: seen.append(sorted(d["param_groups"][0])))
    optimizer.register_load_state_dict_pre_hook(lambda o, d: {**d, "param_groups": [{**d["param_groups"][0], "lr": 0.5}]})
    optimizer.load_state_dict(optimizer.state_dict())
    assert "progress" in seen[0] and optimizer.param_groups[0]["lr"] == 0.5
