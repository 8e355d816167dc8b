"""Every optimizer of the catalogue as one of torch.optim."""
import copy
import inspect
import math
import threading
import time
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler

import sgdph
from conftest import OWN, bits, equal, loss_of, make, net, train


def test_the_catalogue_is_all_there():
    assert {"SGDPH", "AdaHessian", "AdaBelief", "Apollo", "Lion"} <= set(dir(sgdph)) & set(sgdph.__all__)
    assert all(issubclass(kind, torch.optim.Optimizer) for kind in sgdph.optimizers.values())
    assert not any(kind.__name__ in ("SGD", "Adam", "AdamW") for kind in sgdph.optimizers.values())


@pytest.mark.parametrize("name", OWN)
def test_it_learns(name):
    model = net()
    optimizer = make(name, model, lr=0.001 if name in ("lion", "adabelief") else 0.01)
    before = loss_of(model).item()
    for _ in range(30):
        optimizer.zero_grad()
        optimizer.backward(loss_of(model))
        optimizer.step()
    assert loss_of(model).item() < before
    assert optimizer.last_step.applied


@pytest.mark.parametrize("name", OWN)
def test_signature_and_help_say_defaults_and_bounds(name):
    kind = sgdph.optimizers[name]
    signature = inspect.signature(kind)
    assert list(signature.parameters)[:2] == ["params", "lr"]
    for option in kind._info["options"]:
        assert signature.parameters[option["name"]].default == option["default"]
        assert option["name"] in kind.__doc__
        assert option["type"] == "int" or option["bound"] in " ".join(kind.__doc__.split())
    assert kind(net()).defaults["lr"] == signature.parameters["lr"].default


@pytest.mark.parametrize(
    "options, text",
    [
        (dict(lr=-1), "lr must be finite and at least 0, got -1"),
        (dict(lr=math.nan), "lr must be finite and at least 0, got nan"),
        (dict(lr="fast"), "lr takes a number, got 'fast'"),
        (dict(lr=None), "lr takes a number, got None"),
        (dict(lr=True), "lr takes a number, got True"),
        (dict(lr=torch.ones(2)), "lr takes a number"),
        (dict(momentum=1), "momentum must lie in [0, 1)"),
        (dict(probe="one"), 'probe must be "ones", "rademacher" or "hadamard", got "one"'),
        (dict(probe=1), "probe takes a word, got 1"),
        (dict(probe_cycle=2.5), "probe_cycle takes a whole number, got 2.5"),
        (dict(probe_cycle=3), "power of two"),
        (dict(second_order=1), "second_order takes True or False, got 1"),
        (dict(momentun=0.9), "there is no option 'momentun'; did you mean 'momentum'?"),
        (dict(foreach=True), "there is no option 'foreach'"),
        (dict(fused=True), "there is no option 'fused'"),
        (dict(refresh="joint"), "joint"),
    ],
)
def test_a_bad_option_is_a_value_error_that_names_it(options, text):
    with pytest.raises(ValueError) as error:
        sgdph.SGDPH(net(), **options)
    assert text.lower() in str(error.value).lower() and "\n" not in str(error.value)


def test_numbers_of_every_kind_are_taken():
    model = net()
    optimizer = sgdph.SGDPH(model, np.float32(0.5), probe_cycle=np.int64(4), shift_guard=np.bool_(False), momentum=0)
    train(model, optimizer, 1)
    assert sgdph.AdaHessian(model, betas=[0.8, 0.99]).param_groups[0]["betas"] == [0.8, 0.99]
    with pytest.raises(ValueError, match=r"betas takes 2 numbers, got \(0.8,\)"):
        sgdph.AdaHessian(model, betas=(0.8,))
    with pytest.raises(ValueError, match=r"betas\[1\] must lie in \[0, 1\)"):
        sgdph.AdaHessian(model, betas=(0.8, 1))


def test_what_is_no_parameter_is_refused():
    for wrong in (None, "model", 3, torch.ones(3, requires_grad=True)):
        with pytest.raises(TypeError):
            sgdph.SGDPH(wrong)
    parameters = net().parameters()
    list(parameters)
    with pytest.raises(ValueError, match="empty parameter list"):
        sgdph.SGDPH(parameters)  # a generator used up
    with pytest.raises(ValueError, match="non-leaf"):
        sgdph.SGDPH([torch.ones(3, requires_grad=True) * 2])
    parameter = torch.ones(3, requires_grad=True)
    with pytest.raises(ValueError, match="twice"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sgdph.SGDPH([parameter, parameter])
    with pytest.raises(ValueError, match="has no shape yet"):
        sgdph.SGDPH(nn.LazyLinear(3))
    with pytest.raises(TypeError, match="by name"):
        sgdph.SGDPH(net(), 0.1, 0.9)


def test_groups_have_options_of_their_own():
    model = net()
    weights = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() == 1]
    optimizer = sgdph.SGDPH([{"params": weights, "weight_decay": 5e-3}, {"params": rest, "lr": 0.5}], lr=0.1, module=model)
    assert [g["lr"] for g in optimizer.param_groups] == [0.1, 0.5]
    train(model, optimizer, 2)
    with pytest.raises(ValueError, match="group 1: lr must be finite and at least 0, got -2"):
        optimizer.param_groups[1]["lr"] = -2
        optimizer.step()
    optimizer.param_groups[1]["lr"] = 0.5
    with pytest.raises(ValueError, match="^SGDPH, group 1: lr must be finite and at least 0, got -2"):
        sgdph.SGDPH([{"params": weights}, {"params": rest, "lr": -2}])
    with pytest.raises(ValueError, match="^SGDPH: lr must be finite and at least 0, got -2"):
        sgdph.SGDPH(model, lr=-2)
    with pytest.raises(ValueError, match="there is no option 'weight_decy'; did you mean 'weight_decay'"):
        sgdph.SGDPH([{"params": weights, "weight_decy": 1}])
    assert sgdph.SGDPH([{"params": weights, "lr_scale": 0.1, "layer": 3}]).param_groups[0]["layer"] == 3


def test_the_users_dictionaries_stay_as_they_are():
    group = {"params": list(net().parameters()), "lr": 0.3}
    sgdph.Lion([group])
    assert set(group) == {"params", "lr"}


def test_an_option_of_all_groups_must_be_the_same_in_all():
    model = net()
    parameters = list(model.parameters())
    with pytest.raises(ValueError, match="probe is optimizer-wide"):
        sgdph.SGDPH([{"params": parameters[:3]}, {"params": parameters[3:], "probe": "rademacher"}])
    optimizer = sgdph.SGDPH(model)
    optimizer.param_groups[0]["probe"] = "rademacher"
    train(model, optimizer, 2)  # the first group says what holds for all


@pytest.mark.parametrize("name", OWN)
def test_a_group_can_be_added(name):
    model = net()
    parameters = list(model.parameters())
    together, added = copy.deepcopy(model), model
    one = make(name, [{"params": list(together.parameters())[:4]}, {"params": list(together.parameters())[4:]}])
    two = make(name, [{"params": parameters[:4]}])
    two.add_param_group({"params": parameters[4:]})
    train(together, one, 4)
    train(added, two, 4)
    assert equal(bits(together), bits(added))
    with pytest.raises(ValueError, match="more than one parameter group"):
        two.add_param_group({"params": parameters[:1]})
    with pytest.raises(ValueError, match="lr must be"):
        two.add_param_group({"params": [torch.ones(2, requires_grad=True)], "lr": -1})
    assert len(two.param_groups) == 2
    train(added, two, 1)


def test_a_closure_is_called_with_gradients_enabled():
    model, other = net(), net()
    one, two = sgdph.SGDPH(model), sgdph.SGDPH(other)

    def closure():
        two.zero_grad()
        loss = loss_of(other)
        two.backward(loss)
        return loss

    one.backward(loss_of(model))
    one.step()
    with torch.no_grad():
        loss = two.step(closure)
    assert loss.item() > 0 and equal(bits(model), bits(other))


SCHEDULERS = {
    "StepLR": lambda o: lr_scheduler.StepLR(o, 2, 0.5),
    "MultiStepLR": lambda o: lr_scheduler.MultiStepLR(o, [2, 4]),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 6),
    "CosineAnnealingWarmRestarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3),
    "LinearLR": lambda o: lr_scheduler.LinearLR(o, 0.1, total_iters=4),
    "ExponentialLR": lambda o: lr_scheduler.ExponentialLR(o, 0.9),
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda step: 1 / (1 + step)),
    "ConstantLR": lambda o: lr_scheduler.ConstantLR(o, 0.1, 2),
    "MultiplicativeLR": lambda o: lr_scheduler.MultiplicativeLR(o, lambda step: 0.5 + 0.1 * step),
    "ChainedScheduler": lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.ConstantLR(o, 0.1, 2), lr_scheduler.ExponentialLR(o, 0.9)]),
    "PolynomialLR": lambda o: lr_scheduler.PolynomialLR(o, 6),
    "SequentialLR": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.ConstantLR(o, 0.1, 2), lr_scheduler.ExponentialLR(o, 0.9)], [2]),
    "CyclicLR": lambda o: lr_scheduler.CyclicLR(o, 0.001, 0.01, 2, cycle_momentum="beta" not in o.defaults),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=8, cycle_momentum="beta" not in o.defaults),
    "SWALR": lambda o: torch.optim.swa_utils.SWALR(o, swa_lr=0.05, anneal_epochs=3),
}  # fmt: skip


def test_no_scheduler_of_torch_is_forgotten():
    there = {name for name, kind in vars(lr_scheduler).items() if isinstance(kind, type) and issubclass(kind, lr_scheduler.LRScheduler)}
    assert there - {"LRScheduler", "_LRScheduler"} <= {*SCHEDULERS, "ReduceLROnPlateau"}


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("name", OWN)
def test_schedulers_of_torch_drive_it(name, scheduler):
    """As much as if the options were set by hand before every step."""
    model, other = net(), net()
    scheduled, by_hand = make(name, model), make(name, other)
    driver = SCHEDULERS[scheduler](scheduled)
    if "beta" in scheduled.defaults:  # Apollo counts from the rate it began with
        by_hand = make(name, other)
        by_hand.param_groups[0]["lr"] = scheduled.param_groups[0]["lr"]
    rates = set()
    for step in range(6):
        rates.add(float(scheduled.param_groups[0]["lr"]))
        options = {k: v for k, v in scheduled.param_groups[0].items() if k in scheduled.defaults}
        by_hand.param_groups[0].update(copy.deepcopy(options))
        for m, o in ((model, scheduled), (other, by_hand)):
            o.zero_grad()
            o.backward(loss_of(m, step))
            o.step()
            # What the step went by.
            core = o._core.options()[0]
            assert core == options
        driver.step()
    assert equal(bits(model), bits(other))
    assert len(rates) > 1


def test_a_plateau_lowers_the_rate_and_a_cycle_moves_momentum():
    model = net()
    optimizer = sgdph.SGDPH(model, lr=0.1)
    plateau = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    for _ in range(3):
        train(model, optimizer, 1)
        plateau.step(1.0)
    assert optimizer.param_groups[0]["lr"] < 0.1
    cycle = lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=6)
    seen = set()
    train(model, optimizer, 5, after=lambda: (cycle.step(), seen.add(optimizer.param_groups[0]["momentum"])))
    assert len(seen) > 3


def test_lr_may_be_a_tensor():
    model, other = net(), net()
    one, two = sgdph.SGDPH(model, lr=torch.tensor(0.25)), sgdph.SGDPH(other, lr=0.25)
    driver = lr_scheduler.ExponentialLR(one, 0.5)
    train(model, one, 1)
    driver.step()
    train(model, one, 1, first=1)
    train(other, two, 1)
    two.param_groups[0]["lr"] = 0.125
    train(other, two, 1, first=1)
    assert equal(bits(model), bits(other))


def test_the_learning_rate_of_a_group_takes_effect_at_once():
    model = net()
    optimizer = sgdph.SGDPH(model, lr=0.1)
    train(model, optimizer, 2)
    optimizer.param_groups[0]["lr"] = 0.0
    before = bits(model)
    train(model, optimizer, 1)
    assert equal(before, bits(model))


def test_parameters_exchanged_in_a_group_are_followed():
    model = net()
    optimizer = sgdph.SGDPH(model)
    train(model, optimizer, 2)
    model[8] = nn.Linear(6, 5).double()
    optimizer.param_groups[0]["params"][-2:] = list(model[8].parameters())
    before = bits(model)
    train(model, optimizer, 1)
    assert not torch.equal(before[-1], model[8].bias)


def test_frozen_tied_and_unused_parameters():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 4), nn.LayerNorm(4)).double()
    model[2].weight = model[0].weight  # tied
    model[3].bias.requires_grad_(False)  # frozen
    model.register_parameter("unused", nn.Parameter(torch.ones(4, dtype=torch.float64)))
    optimizer = sgdph.SGDPH(model)
    before = bits(model)
    x = torch.randn(5, 4, dtype=torch.float64)
    for _ in range(8):
        optimizer.zero_grad()
        optimizer.backward(model(x).square().sum() + model(x).tanh().sum())
        optimizer.step()
    named = dict(zip([n for n, _ in model.named_parameters()], before))
    for name, parameter in model.named_parameters():
        assert torch.equal(named[name], parameter) == (name in ("unused", "3.bias")), name


@pytest.mark.parametrize("to_none", [True, False])
def test_zero_grad_clears_as_torchs(to_none):
    model = net()
    optimizer = sgdph.SGDPH(model)
    optimizer.backward(loss_of(model))
    optimizer.zero_grad(set_to_none=to_none)
    assert all((p.grad is None) == to_none for p in model.parameters())
    train(model, optimizer, 2)
    model.zero_grad()
    optimizer.backward(loss_of(model))
    optimizer.step()


def test_a_model_may_change_its_type_on_the_way():
    model = net()
    optimizer = sgdph.SGDPH(model)
    train(model, optimizer, 5)
    model.float()
    for step in range(8):
        optimizer.zero_grad()
        optimizer.backward(loss_of(model, step, dtype=torch.float32))
        optimizer.step()
    assert all(s["momentum_buffer"].dtype == torch.float32 for s in optimizer.state.values())


def test_step_hooks_fire_and_repr_is_torchs():
    model = net()
    optimizer = sgdph.SGDPH(model, lr=0.125)
    called = []
    optimizer.register_step_pre_hook(lambda o, a, k: called.append("before"))
    optimizer.register_step_post_hook(lambda o, a, k: called.append("after"))
    train(model, optimizer, 2)
    assert called == ["before", "after"] * 2
    assert repr(optimizer).startswith("SGDPH (\nParameter Group 0\n") and "lr: 0.125" in repr(optimizer)


def test_a_gradient_that_is_not_finite_changes_nothing():
    model = net()
    optimizer = sgdph.SGDPH(model)
    train(model, optimizer, 3)
    before = bits(model)
    optimizer.zero_grad()
    optimizer.backward(loss_of(model))
    next(model.parameters()).grad[0] = float("inf")
    optimizer.step()
    assert not optimizer.last_step.applied and optimizer.last_step.non_finite > 0 and equal(before, bits(model))
    train(model, optimizer, 1)
    assert optimizer.last_step.applied and optimizer.last_step.step == 4


def test_backward_says_what_is_wrong_with_its_loss():
    model = net()
    optimizer = sgdph.SGDPH(model)
    with pytest.raises(TypeError, match="the loss must be a tensor, got float"):
        optimizer.backward(1.0)
    with pytest.raises(RuntimeError, match="must be a scalar"):
        optimizer.backward(model(torch.randn(2, 3, 6, 6, dtype=torch.float64)))
    with pytest.raises(RuntimeError, match="has no graph"):
        optimizer.backward(torch.tensor(1.0))
    with pytest.raises(ValueError, match="SGDPH.backward: scale must be finite and not 0"):
        optimizer.backward(loss_of(model), scale=0)
    with pytest.raises(TypeError, match="scale is a number"):
        optimizer.backward(loss_of(model), scale="big")
    optimizer.backward(loss_of(model))
    loss_of(model).backward()
    with pytest.raises(RuntimeError, match="measure=False") as error:
        optimizer.step()
    assert "::" not in str(error.value) and "BackwardOptions" not in str(error.value)


def test_another_thread_goes_on_while_it_works():
    model = nn.Sequential(*(m for _ in range(3) for m in (nn.Linear(1500, 1500), nn.LayerNorm(1500))))
    optimizer = sgdph.SGDPH(model)
    x, ticks, done = torch.randn(256, 1500), [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    optimizer.backward(model(x).square().mean())
    loss = model(x).tanh().square().mean()
    thread = threading.Thread(target=tick)
    thread.start()
    began = time.perf_counter()
    optimizer.backward(loss)
    ended = time.perf_counter()
    done.set()
    thread.join()
    assert sum(began < t < ended for t in ticks) >= 3, f"in {ended - began:.3f} s"


def test_a_second_thread_at_once_is_told_so_and_nothing_breaks():
    model = net()
    optimizer = sgdph.SGDPH(model)
    within, seen, errors = threading.Event(), threading.Event(), []

    def stay(gradient):
        within.set()
        assert seen.wait(60)
        return gradient

    handle = next(model.parameters()).register_hook(stay)
    first = threading.Thread(target=lambda: optimizer.backward(loss_of(model, 0)))
    first.start()
    assert within.wait(60)
    for call in (optimizer.step, lambda: optimizer.backward(loss_of(model, 1)), lambda: optimizer.state):
        try:
            call()
        except RuntimeError as error:
            errors.append(str(error))
    seen.set()
    first.join()
    assert len(errors) == 3 and all("two threads at once" in error for error in errors), errors
    handle.remove()
    optimizer.step()
    optimizer.zero_grad()
    train(model, optimizer, 2)


def test_a_hook_may_look_but_not_step():
    model = net()
    optimizer = sgdph.SGDPH(model)
    train(model, optimizer, 2)
    seen = []
    model[0].weight.register_hook(lambda g: seen.append(len(optimizer.state)))
    handle = model[0].weight.register_post_accumulate_grad_hook(lambda p: optimizer.step())
    with pytest.raises(RuntimeError, match="called from a hook of its own backward"):
        optimizer.backward(loss_of(model))
    handle.remove()
    optimizer.zero_grad()
    train(model, optimizer, 1)
    assert seen
